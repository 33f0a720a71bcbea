#!/usr/bin/env python3
"""Reads a data directory of Broadside, written from storage/README.md alone.

Usage: reader.py DIRECTORY [--vkey VKEY]

Prints one JSON object: what is in the directory, and every problem found. Exits with 0 if there is none, otherwise with 1.
Needs Python 3.8 and its standard library. Signatures are checked if the package `cryptography` is installed;
otherwise the report says that they were not.
"""

import argparse
import base64
import collections
import hashlib
import json
import os
import struct
import sys
import zlib

try:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
except ImportError:
    Ed25519PublicKey = None

KEYED, STUB, MORE = 0x80, 0x40, 0x20
PUBLIC, LEAF, LEAVES = 0x01, 0x02, 0x04
FOOTER = 255
SEGMENT_HEADER, FRAME_HEADER = 64, 28
OPEN_KEY = hashlib.sha256(b"broadside: the log that follows another").digest()[:16]


def sha256(data):
    return hashlib.sha256(data).digest()


def le(data, at, size):
    return int.from_bytes(data[at : at + size], "little")


def be(data, at, size):
    return int.from_bytes(data[at : at + size], "big")


class Problems:
    """Collects problems, each with the place where it was found."""

    def __init__(self):
        self.found = []

    def add(self, where, what):
        self.found.append(f"{where}: {what}")

    def check(self, holds, where, what):
        if not holds:
            self.add(where, what)
        return holds


class Signatures:
    """Ed25519, if it is available."""

    def __init__(self, problems):
        self.problems = problems
        self.checked = 0

    def check(self, key, signature, message, where):
        if Ed25519PublicKey is None:
            return
        self.checked += 1
        try:
            Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
        except (InvalidSignature, ValueError):
            self.problems.add(where, "a signature is not good")

    def report(self):
        return "not checked: python3-cryptography is missing" if Ed25519PublicKey is None else self.checked


# MessagePack


class Unpacker:
    """Decodes MessagePack; counts which extensions occur."""

    extensions = collections.Counter()

    def __init__(self, data):
        self.data = data
        self.at = 0

    def take(self, size):
        taken = self.data[self.at : self.at + size]
        if len(taken) < size:
            raise ValueError("MessagePack ends in the middle of a value")
        self.at += size
        return taken

    def number(self, size, signed=False):
        return int.from_bytes(self.take(size), "big", signed=signed)

    def text(self, size):
        return self.take(size).decode("utf-8")

    def array(self, count):
        return [self.value() for _ in range(count)]

    def map(self, count):
        return {self.value(): self.value() for _ in range(count)}

    def extension(self, size):
        kind, data = self.number(1, signed=True), self.take(size)
        self.extensions[f"{kind}:{data.hex()}"] += 1
        if (kind, data) != (0, b"\0"):
            raise ValueError(f"MessagePack extension {kind} with {size} bytes")
        return None

    def value(self):
        head = self.number(1)
        if head < 0x80:
            return head
        if head < 0x90:
            return self.map(head & 0x0F)
        if head < 0xA0:
            return self.array(head & 0x0F)
        if head < 0xC0:
            return self.text(head & 0x1F)
        if head >= 0xE0:
            return head - 0x100
        return self.sized(head)

    def sized(self, head):
        if head in (0xC0, 0xC2, 0xC3):
            return {0xC0: None, 0xC2: False, 0xC3: True}[head]
        if 0xC4 <= head <= 0xC6:
            return self.take(self.number(1 << head - 0xC4))
        if 0xC7 <= head <= 0xC9:
            return self.extension(self.number(1 << head - 0xC7))
        if head == 0xCA:
            return struct.unpack(">f", self.take(4))[0]
        if head == 0xCB:
            return struct.unpack(">d", self.take(8))[0]
        if 0xCC <= head <= 0xCF:
            return self.number(1 << head - 0xCC)
        if 0xD0 <= head <= 0xD3:
            return self.number(1 << head - 0xD0, signed=True)
        if 0xD4 <= head <= 0xD8:
            return self.extension(1 << head - 0xD4)
        if 0xD9 <= head <= 0xDB:
            return self.text(self.number(1 << head - 0xD9))
        if head in (0xDC, 0xDD):
            return self.array(self.number(2 if head == 0xDC else 4))
        if head in (0xDE, 0xDF):
            return self.map(self.number(2 if head == 0xDE else 4))
        raise ValueError(f"MessagePack has no {head:02x}")


def unpack(data):
    unpacker = Unpacker(data)
    value = unpacker.value()
    if unpacker.at != len(data):
        raise ValueError(f"{len(data) - unpacker.at} bytes behind a MessagePack value")
    return value


# Journals

Frame = collections.namedtuple("Frame", "number type flags durable payload size")


def frame_at(data, at, seed):
    """The frame at a position, or None if there is no intact one."""
    if at + FRAME_HEADER > len(data) or data[at : at + 2] != b"\xff\xb5":
        return None
    length = le(data, at + 4, 4)
    end = at + FRAME_HEADER + length
    if length == 0 or end > len(data):
        return None
    payload = data[at + FRAME_HEADER : end]
    if zlib.crc32(payload, zlib.crc32(data[at : at + 24], seed)) != le(data, at + 24, 4):
        return None
    number = le(data, at + 8, 8)
    durable = le(data, at + 16, 8)
    if durable >> 63:
        durable = number - (durable >> 40 & 0x7FFFFF)
    return Frame(number, data[at + 2], data[at + 3], durable, payload, end - at)


def digest_of(frame):
    return frame.payload[:32] if frame.flags & STUB else sha256(frame.payload)


class Journal:
    """All valid frames of a journal, in order."""

    def __init__(self, directory, problems):
        self.problems = problems
        self.frames = []
        self.end = "a frame"
        self.segments = self.sealed = self.stubs = self.indexes = 0
        self.journal_id = None
        self.chain = bytes(32)
        names = sorted(name for name in os.listdir(directory) if len(name) == 24 and name.endswith(".log"))
        for name in names:
            self.read_segment(os.path.join(directory, name), name == names[-1])
        self.drop_unfinished()

    def read_segment(self, path, is_newest):
        with open(path, "rb") as file:
            data = file.read()
        version = data[3] if len(data) >= SEGMENT_HEADER else 0
        is_header = data[:3] == b"BSJ" and version in (1, 2, 3) and zlib.crc32(data[:60]) == le(data, 60, 4)
        if not is_header:
            is_empty = is_newest and not data[SEGMENT_HEADER:].strip(b"\0")
            self.problems.check(is_empty, path, "no header")
            return
        self.segments += 1
        first = len(self.frames) + 1
        self.problems.check(le(data, 20, 8) == first, path, f"does not begin with frame {first}")
        self.problems.check(data[28:60] == self.chain, path, "names another chain hash before it")
        self.problems.check(self.journal_id in (None, data[4:20]), path, "belongs to another journal")
        self.journal_id = data[4:20]
        offsets, end, footer = self.read_frames(data, zlib.crc32(data[4:20]) if version > 1 else 0)
        self.seal(path, data, {"first": first, "offsets": offsets, "end": end, "footer": footer, "newest": is_newest})

    def read_frames(self, data, seed):
        """Positions of the frames, the position after the last one, and the footer."""
        at, offsets = SEGMENT_HEADER, []
        while True:
            frame = frame_at(data, at, seed)
            if frame is None or frame.number != len(self.frames) + 1 or frame.durable >= frame.number:
                return offsets, at, None
            if frame.type == FOOTER:
                return offsets, at + frame.size, frame
            offsets.append(at)
            self.frames.append(frame)
            self.stubs += 1 if frame.flags & STUB else 0
            at += frame.size

    def seal(self, path, data, walked):
        frames = self.frames[walked["first"] - 1 :]
        links = (struct.pack("<QB", each.number, each.type) + digest_of(each) for each in frames)
        chain = sha256(self.chain + b"".join(links)) if frames else self.chain
        rest = data[walked["end"] :]
        footer = walked["footer"]
        if footer is None:
            self.problems.check(walked["newest"], path, "is not sealed")
            self.end = "a frame" if not rest else "a torn write" if rest.strip(b"\0") else "zeros"
            if self.end == "a torn write":
                self.check_torn(path, rest, len(self.frames) + 1)
            return
        self.sealed += 1
        self.chain = chain
        self.end = "a footer"
        is_right = footer.payload == struct.pack("<I", len(frames)) + chain
        self.problems.check(is_right, path, "its footer has another count or chain hash")
        self.problems.check(not rest.strip(b"\0") and (walked["newest"] or not rest), path, "goes on after its footer")
        self.read_index(path[:-4] + ".idx", frames, walked["offsets"], walked["end"])

    def check_torn(self, path, rest, missing):
        """Checks that no intact frame in the torn bytes says that the missing frame was on disk."""
        at = rest.find(b"\xff\xb5")
        while at >= 0:
            frame = frame_at(rest, at, zlib.crc32(self.journal_id))
            if frame is not None and missing <= frame.durable < frame.number:
                self.problems.add(path, f"frame {missing} was durable, and is damaged")
            at = rest.find(b"\xff\xb5", at + 1)

    def drop_unfinished(self):
        while self.frames and self.frames[-1].flags & MORE:
            self.frames.pop()

    def read_index(self, path, frames, offsets, segment_bytes):
        if not os.path.exists(path):
            return
        with open(path, "rb") as file:
            data = file.read()
        self.indexes += 1
        is_sound = data[4:8] == b"BSIX" and zlib.crc32(data[:-4]) == le(data, len(data) - 4, 4)
        if not self.problems.check(is_sound, path, "is no index"):
            return
        index = read_index(data)
        newest = {}
        for ordinal, frame in enumerate(frames):
            if frame.flags & KEYED:
                newest[key_of(frame)] = ordinal
        expected = {
            "journal_id": self.journal_id,
            "first": frames[0].number if frames else index["first"],
            "bytes": segment_bytes,
            "chain": self.chain,
            "offsets": offsets,
            "keys": sorted(newest.items()),
        }
        for name, value in expected.items():
            self.problems.check(index[name] == value, path, f"{name} differ from the segment")


def read_index(data):
    table = le(data, 0, 4)
    fields = table - int.from_bytes(data[table : table + 4], "little", signed=True)

    def field(number):
        return table + le(data, fields + 4 + 2 * number, 2)

    def vector(number, size):
        start = field(number) + le(data, field(number), 4)
        count = le(data, start, 4)
        return [data[start + 4 + n * size : start + 4 + (n + 1) * size] for n in range(count)]

    return {
        "journal_id": b"".join(vector(0, 1)),
        "first": le(data, field(1), 8),
        "bytes": le(data, field(2), 4),
        "chain": b"".join(vector(3, 1)),
        "offsets": [le(each, 0, 4) for each in vector(4, 4)],
        "keys": [(each[:16], le(each, 16, 4)) for each in vector(5, 20)],
    }


def key_of(frame):
    at = 32 if frame.flags & STUB else 0
    return frame.payload[at : at + 16]


# Records

Record = collections.namedtuple("Record", "key entries body")


def record_of(frame):
    payload = frame.payload[32:] if frame.flags & STUB else frame.payload
    length = le(payload, 16, 2)
    block, rest = payload[18 : 18 + length], payload[18 + length :]
    body = rest[4 : 4 + le(rest, 0, 4)] if frame.flags & STUB else rest
    entries = []
    if frame.flags & LEAVES:
        while block:
            size = be(block, 0, 2)
            entries.append(block[2 : 2 + size])
            block = block[2 + size :]
    elif frame.flags & LEAF:
        entries = [block]
    key, fields = payload[:16], unpack(body)
    if isinstance(fields, list):
        fields = event_fields(fields)
    return Record(key, [entry_text(entry, key) for entry in entries], fields)


def event_fields(body):
    """The fields of an event by name, from its list."""
    room, page, kind, seq, at, author, key, sig, signed, via, reply, root = body[:12]
    rest = body[12] if len(body) > 12 else {}
    fields = {"room": room, "page": page or "main", "kind": kind or "note", "seq": seq, "at": at, "author": author}
    fields["by"] = {"key": key, "sig": sig, "signed": signed}
    fields["via"] = via or "command"
    fields.update({name: value for name, value in (("reply", reply), ("root", root)) if value is not None})
    for name, value in rest.items():
        (fields["by"] if name in ("cut", "for") else fields)[name] = value
    return fields


def entry_text(kept, key=b""):
    """The text of an entry; posts are packed, and in a record they lack the first half of the hash, which is its key."""
    if kept[0] not in (1, 2):
        return kept
    size = 32 if kept[0] == 1 else 16
    command = (key if kept[0] == 2 else b"") + kept[1 : 1 + size]
    time, seq, room = le(kept, 1 + size, 4), le(kept, 5 + size, 4), kept[9 + size :].decode("ascii")
    lines = ["broadside/entry@v1", "kind post", f"event {command[:16].hex()}", f"room {room}", f"seq {seq}"]
    return "\n".join([*lines, f"time {time}", f"command {command.hex()}", ""]).encode("ascii")


def entry_lines(entry):
    lines = entry.decode("ascii").split("\n")
    if lines[0] != "broadside/entry@v1" or lines[-1] != "":
        raise ValueError("no entry")
    return dict(line.split(" ", 1) for line in lines[1:-1])


class Records:
    """The decisions of the shards."""

    def __init__(self, directory, problems, signatures):
        self.directory = directory
        self.problems = problems
        self.signatures = signatures
        self.kinds = collections.Counter()
        self.events = []
        self.named_files = {}
        self.without_bytes = 0

    def take(self, frame, where):
        """Entries of the record in the public log."""
        try:
            return self.read(frame, where)
        except (ValueError, KeyError, IndexError, UnicodeDecodeError) as problem:
            self.problems.add(where, f"it cannot be read: {problem!r}")
            return []

    def read(self, frame, where):
        record = record_of(frame)
        body = record.body
        op = body["op"] if frame.type == 4 else {1: "room created", 2: "event", 3: "handle claimed"}[frame.type]
        self.kinds[op] += 1
        command = self.signed(frame, record, op, where) if "by" in body else None
        if frame.type == 2:
            self.event(frame, record, command, where)
        return record.entries

    def signed(self, frame, record, op, where):
        """Verifies the signature; returns the command, or None if its bytes are gone."""
        by = record.body["by"]
        data = self.signed_bytes(by, record, op)
        sha = by["cut"]["sha"] if data is None else sha256(data)
        self.problems.check(sha[:16] == record.key, where, "its key is not the id of the signed command")
        if data is None:
            self.without_bytes += 1
            return None
        self.signatures.check(by["key"], by["sig"], data, where)
        command = json.loads(data)["command"]
        own = by.get("for")
        if own is not None:
            self.signatures.check(own["key"], own["sig"], own["signed"], where)
            self.problems.check(sha256(own["signed"])[:16] == own["id"], where, "the id of its delegation")
            target = json.loads(own["signed"])["command"]["target"]
            self.problems.check(target == base64url(by["key"]), where, "its delegation is for another key")
        return command

    def signed_bytes(self, by, record, op):
        cut = by.get("cut")
        if cut is None:
            return by["signed"]
        if op != "blob.put" or by["signed"] == b"":
            return None
        path = os.path.join(self.directory, "blobs", record.body["room"], cut["file"].hex())
        self.named_files[path] = cut["file"]
        if not os.path.exists(path):
            return None
        with open(path, "rb") as file:
            text = base64url(file.read()).encode()
        return by["signed"][: cut["at"]] + text + by["signed"][cut["at"] :]

    def event(self, frame, record, command, where):
        body = record.body
        event = {"id": record.key.hex(), "room": body["room"], "page": body["page"], "seq": body["seq"]}
        event["public"] = bool(frame.flags & PUBLIC)
        if command is not None:
            event["text"] = command.get("text", "")
        if "original" in body:
            event["original"] = body["original"].hex()
        self.events.append(event)
        if not record.entries:
            return
        lines = entry_lines(record.entries[0])
        is_right = (lines["event"], lines["room"], lines["seq"]) == (event["id"], body["room"], str(body["seq"]))
        self.problems.check(is_right, where, "its entry is of another event")

    def check_files(self):
        """Checks the bytes of attachments against their names; returns how many there are."""
        count = 0
        for path, digest in self.named_files.items():
            if not os.path.exists(path):
                continue
            count += 1
            with open(path, "rb") as file:
                self.problems.check(sha256(file.read()) == digest, path, "other bytes than its name says")
        return count


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


# Public log


def leaf_hash(entry):
    return sha256(b"\0" + entry)


class Tree:
    """The roots of a growing tree: the hashes of its complete subtrees, largest first."""

    def __init__(self):
        self.size = 0
        self.parts = []
        self.nodes = []

    def append(self, digest):
        self.nodes.append(digest)
        self.parts.append(digest)
        self.size += 1
        completed = self.size
        while completed % 2 == 0:
            right, left = self.parts.pop(), self.parts.pop()
            self.parts.append(sha256(b"\1" + left + right))
            self.nodes.append(self.parts[-1])
            completed //= 2

    def root(self):
        if not self.parts:
            return sha256(b"")
        root = self.parts[-1]
        for part in reversed(self.parts[:-1]):
            root = sha256(b"\1" + part + root)
        return root


LogFrame = collections.namedtuple("LogFrame", "first change size root ranges entries checkpoint closed")


def log_frame_of(frame):
    data, closed = frame.payload, None
    if frame.type == 3:
        length = le(data, 16, 4)
        closed, data = json.loads(data[20 : 20 + length]), data[20 + length :]
    count = le(data, 56, 2)
    ranges = []
    for n in range(count):
        at = 58 + 28 * n
        sizes = ((0, 2), (4, 8), (12, 8), (20, 4), (24, 4))
        ranges.append(tuple(le(data, at + offset, size) for offset, size in sizes))
    at = 58 + 28 * count
    entries, at, left = [], at + 4, le(data, at, 4)
    for _ in range(left):
        size = be(data, at, 2)
        entries.append(entry_text(data[at + 2 : at + 2 + size]))
        at += 2 + size
    return LogFrame(le(data, 0, 8), le(data, 8, 8), le(data, 16, 8), data[24:56], ranges, entries, data[at:], closed)


def parse_vkey(vkey):
    name, key_id, material = vkey.split("+", 2)
    data = base64.b64decode(material, validate=True)
    known = sha256(name.encode() + b"\n" + data)[:4].hex()
    if len(data) != 33 or data[0] != 1 or key_id != known:
        raise ValueError(f"{vkey} is no vkey of a log")
    return name, data[1:]


def open_note(note):
    """The text of a note, and its signatures by name: (key id, signature)."""
    text, _, signatures = note.decode("utf-8").rpartition("\n\n")
    found = collections.defaultdict(list)
    for line in signatures.splitlines():
        dash, name, data = line.split(" ")
        if dash != "\u2014":
            raise ValueError("no signature line")
        raw = base64.b64decode(data, validate=True)
        found[name].append((raw[:4], raw[4:]))
    return text + "\n", found


class PublicLog:
    """Checks log frames against the records that they cover, and all signatures over them."""

    def __init__(self, directory, origin, vkeys, problems, signatures):
        self.directory = os.path.join(directory, "log")
        self.origin = origin
        self.vkeys = vkeys
        self.problems = problems
        self.signatures = signatures
        self.tree = Tree()
        self.logs = []
        self.changes = 0
        self.covered = collections.Counter()
        self.close = None

    def take(self, frame, shards):
        """`shards`: frames and entries of every shard, from number 1."""
        where = f"log frame {frame.number}"
        try:
            self.read(frame, shards, where)
        except (ValueError, KeyError, IndexError, UnicodeDecodeError) as problem:
            self.problems.add(where, f"it cannot be read: {problem!r}")

    def read(self, frame, shards, where):
        log = log_frame_of(frame)
        check = lambda holds, what: self.problems.check(holds, where, what)
        check(frame.type in (1, 2, 3), "a type that this page does not know")
        if frame.type == 3:
            self.open(frame, log, check)
        check(log.first == self.tree.size and log.change == self.changes + 1, "it begins elsewhere")
        if frame.type == 1:
            check(log.entries == self.cover(log, shards, check), "its entries are not those of its records")
        else:
            check(len(log.entries) == 1, "it closes or opens a log with more than one entry")
        for entry in log.entries:
            self.tree.append(leaf_hash(entry))
        root = self.tree.root()
        check((log.size, log.root) == (self.tree.size, root), "its root is not that of its entries")
        self.checkpoint(log, check, where)
        if frame.type == 2:
            self.close = entry_lines(log.entries[0])
            check(self.close["kind"] == "close", "its entry closes no log")
            self.end_tree()

    def cover(self, log, shards, check):
        entries = []
        for shard, first, last, changes, leaves in log.ranges:
            if not check(shard < len(shards), f"shard {shard} does not exist"):
                continue
            frames = shards[shard][self.covered[shard] : last]
            skipped = [frame for frame, _ in frames if frame.number < first]
            check(all(not frame.flags & PUBLIC for frame in skipped), f"it passes over public records of shard {shard}")
            taken = [(frame, own) for frame, own in frames if frame.number >= first]
            check(len(taken) == max(0, last + 1 - first), f"shard {shard} lacks records that it covers")
            own = [entry for _, made in taken for entry in made]
            check(changes == sum(1 for frame, _ in taken if frame.flags & PUBLIC), f"changes of shard {shard}")
            check(leaves == len(own), f"leaves of shard {shard}")
            entries += own
            self.covered[shard] = max(self.covered[shard], last)
            self.changes += changes
        return entries

    def open(self, frame, log, check):
        lines = entry_lines(log.entries[0])
        is_lost = lines.get("lost") == "after " + lines["size"]
        if is_lost:
            self.end_tree()
        ended = self.logs[-1]
        expected = ("open", ended["origin"], str(ended["size"]), ended["root"])
        check((lines["kind"], lines["previous"], lines["size"], lines["root"]) == expected, "it opens after another end")
        check(frame.payload[:16] == OPEN_KEY, "its key")
        known = [{"origin": each["origin"], "size": each["size"]} for each in self.logs]
        check([{"origin": each["origin"], "size": each["size"]} for each in log.closed] == known, "its closed logs")
        for each in log.closed:
            self.vkeys.setdefault(each["origin"], each["vkey"])
        if is_lost:
            self.origin = log.checkpoint.decode().split("\n")[0]
        else:
            self.origin, vkey = self.close["next"].split(" ")
            self.vkeys.setdefault(self.origin, vkey)
            check(self.vkeys[self.origin] == vkey, "the closed log names another key for this one")
        self.close = None
        self.tree = Tree()

    def checkpoint(self, log, check, where):
        text, signatures = open_note(log.checkpoint)
        origin, size, root = text.split("\n")[:3]
        check((int(size), base64.b64decode(root)) == (log.size, log.root), "its checkpoint is of another head")
        check(origin == self.origin, "its checkpoint is of another log")
        if not self.logs or self.logs[-1]["origin"] != origin:
            self.logs.append({"origin": origin, "heads": 0, "signed": 0})
        self.logs[-1].update(size=log.size, root=log.root.hex(), heads=self.logs[-1]["heads"] + 1)
        if origin not in self.vkeys:
            return
        name, key = parse_vkey(self.vkeys[origin])
        check(name == origin, "its key has another name")
        key_id = sha256(name.encode() + b"\n\x01" + key)[:4]
        own = [signature for found, signature in signatures[name] if found == key_id]
        if check(len(own) == 1, "the log has not signed its checkpoint"):
            self.signatures.check(key, own[0], text.encode(), where)
            self.logs[-1]["signed"] += 1

    def end_tree(self):
        """Compares the file of node hashes, as far as it goes."""
        name = "nodes.bin" if len(self.logs) == 1 else f"nodes-{self.logs[-1]['origin'].rsplit('/', 1)[1]}.bin"
        path = os.path.join(self.directory, name)
        if not os.path.exists(path):
            return
        with open(path, "rb") as file:
            data = file.read()
        nodes = b"".join(self.tree.nodes)
        length = min(len(data), len(nodes))
        self.problems.check(data[:length] == nodes[:length], path, "a node hash differs")


# The whole directory


def read_facts(directory, problems):
    path = os.path.join(directory, "board.json")
    with open(path, encoding="utf-8") as file:
        facts = json.load(file)
    check = facts.pop("check", None)
    text = json.dumps(facts, separators=(",", ":"), ensure_ascii=False)
    if check is not None:
        problems.check(sha256(text.encode()).hex()[:16] == check, path, "its check is of other facts")
    if facts["format"] != 1:
        raise SystemExit(f"{path} has format {facts['format']}, and this reader knows 1")
    return facts


def vkeys_of(directory, given):
    """By origin: the keys in the mark beside the directory, and one given by hand, which takes precedence."""
    keys = {}
    mark = directory.rstrip("/") + ".mark"
    if os.path.exists(mark):
        with open(mark, encoding="utf-8") as file:
            for number, line in enumerate(file):
                if number == 0 or line.startswith("after "):
                    vkey = line.strip().split(" ")[-1]
                    keys[parse_vkey(vkey)[0]] = vkey
    if given is not None:
        keys[parse_vkey(given)[0]] = given
    return keys


def read_board(directory, vkey):
    problems = Problems()
    signatures = Signatures(problems)
    facts = read_facts(directory, problems)
    journals = {"log": Journal(os.path.join(directory, "log"), problems)}
    records = Records(directory, problems, signatures)
    shards = []
    for number in range(facts["shards"]):
        name = f"shard-{number:02}"
        journals[name] = Journal(os.path.join(directory, name), problems)
        taken = [(frame, records.take(frame, f"{name} frame {frame.number}")) for frame in journals[name].frames]
        shards.append(taken)
    log = PublicLog(directory, facts["origin"], vkeys_of(directory, vkey), problems, signatures)
    for frame in journals["log"].frames:
        log.take(frame, shards)
    log.end_tree()
    counted = ("segments", "sealed", "indexes", "stubs", "end")
    return {
        "facts": facts,
        "journals": {
            name: {"frames": len(journal.frames), **{each: getattr(journal, each) for each in counted}}
            for name, journal in journals.items()
        },
        "records": dict(sorted(records.kinds.items())),
        "extensions": dict(Unpacker.extensions),
        "events": records.events,
        "attachments": records.check_files(),
        "without_signed_bytes": records.without_bytes,
        "logs": log.logs,
        "covered": dict(log.covered),
        "signatures": signatures.report(),
        "problems": problems.found,
    }


def main():
    parser = argparse.ArgumentParser(description="Reads a data directory of Broadside and checks it.")
    parser.add_argument("directory")
    parser.add_argument("--vkey", help="key of the newest log, kept since an earlier day")
    given = parser.parse_args()
    report = read_board(given.directory, given.vkey)
    json.dump(report, sys.stdout, indent=1)
    print()
    sys.exit(1 if report["problems"] else 0)


if __name__ == "__main__":
    main()
