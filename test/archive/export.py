#!/usr/bin/env python3
"""Reads an export of Broadside (messages or ledger), written from storage/README.md, "Exports", alone.

Usage: export.py FILE --vkey VKEY

Prints one JSON object: what is in the file, and every problem found. Exits with 0 if there is none, otherwise with 1.
Needs the package `cryptography`.
"""

import argparse
import base64
import hashlib
import json
import sys

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


def sha256(data):
    return hashlib.sha256(data).digest()


def base64url(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def is_signed(key, signature, message):
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
        return True
    except (InvalidSignature, ValueError):
        return False


def root_of(hashes):
    if len(hashes) < 2:
        return hashes[0] if hashes else sha256(b"")
    # The largest power of two below the number of leaves.
    left = 1 << ((len(hashes) - 1).bit_length() - 1)
    return sha256(b"\x01" + root_of(hashes[:left]) + root_of(hashes[left:]))


def parse_vkey(text):
    name, key_id, rest = text.strip().split("+", 2)
    key = base64.b64decode(rest, validate=True)
    if key[0] != 1 or sha256(name.encode() + b"\n" + key)[:4].hex() != key_id:
        raise ValueError("not a vkey of Ed25519: " + text)
    return name, bytes.fromhex(key_id), key[1:]


def lines_of(entry):
    return dict(line.split(" ", 1) for line in entry.decode().split("\n")[1:-1])


def entry_of(kind, event, room, seq, time, command, more=()):
    fields = [("kind", kind), ("event", event), ("room", room), ("seq", seq), ("time", time), ("command", command), *more]
    return "".join(["broadside/entry@v1\n", *(f"{name} {value}\n" for name, value in fields)]).encode()


def named(line):
    return line["event_id"], line["created_at"], line["command_sha256"]


class Export:
    def __init__(self, vkey):
        self.problems = []
        self.counts = {}
        self.signatures = 0
        self.moved = {}
        self.leaves = {}
        self.closed = {}
        self.end = None
        self.claims = {}
        key = parse_vkey(vkey)
        self.keys = {key[0]: key}

    def check(self, holds, where, what):
        if not holds:
            self.problems.append(f"{where}: {what}")

    def read(self, text):
        self.check(text.endswith("\n"), "the file", "does not end with a line feed")
        records = 0
        for number, line in enumerate(text.split("\n")[:-1], 1):
            value = json.loads(line)
            where = f"line {number}"
            kind = value["type"]
            self.check(self.end is None, where, "follows the end")
            self.counts[kind] = self.counts.get(kind, 0) + 1
            if kind == "leaves":
                hashes = base64.b64decode(value["hashes"], validate=True)
                known = self.leaves.setdefault(value["origin"], [])
                self.check(len(known) == value["start"], where, "start is not the next index")
                known.extend(hashes[at : at + 32] for at in range(0, len(hashes), 32))
            elif kind == "log":
                self.closed[value["origin"]] = value
            elif kind == "end":
                self.end = value
            else:
                records += 1
                getattr(self, kind)(value, where)
        self.check(self.end is not None and self.end["count"] == records, "the end", "is missing or has another count")
        self.logs()

    def claim(self, line, entry, where):
        log = line["log"]
        self.claims.setdefault((log["origin"], log["index"]), []).append((entry, where))

    def signed(self, key, signature, line, where):
        message = line["signed_payload"].encode()
        self.check(is_signed(base64url(key), base64url(signature), message), where, "a signature does not verify")
        self.signatures += 1
        return json.loads(message)["command"]

    def is_owner(self, key, identity, where):
        holds = sha256(base64url(key)).hex() == identity or self.moved.get(key) == identity
        self.check(holds, where, "the key is not one of the identity")

    def hashed(self, line, where):
        digest = sha256(line["signed_payload"].encode()).hex()
        self.check(digest == line["command_sha256"], where, "command_sha256 is not the hash of signed_payload")

    def tombstone(self, line, where):
        event, time, command = named(line)
        self.check(command[:32] == event, where, "event_id is not the start of command_sha256")
        room, seq = line["room"], line["seq"]
        self.claim(line, entry_of("post", event, room, seq, time, command), where)
        if "redaction" in line:
            removed = line["redaction"]
            by, at, sha = named(removed)
            self.claim(removed, entry_of("redact", by, room, seq, at, sha, [("target", event)]), where)

    def event(self, line, where):
        self.tombstone(line, where)
        self.hashed(line, where)
        author = line["author"]
        command = self.signed(author["public_key"], line["signature"], line, where)
        self.check(command["public_key"] == author["public_key"], where, "another key was signed")
        self.check(command["text"] == line["text"], where, "another text was signed")
        key = author["public_key"]
        if "delegation" in line:
            given = line["delegation"]
            key = json.loads(given["signed_payload"])["command"]["public_key"]
            made = self.signed(key, given["signature"], given, where)
            digest = sha256(given["signed_payload"].encode()).hex()
            is_right = digest[:32] == given["id"] and made["operation"] == "delegation.create"
            self.check(is_right and made["target"] == author["public_key"], where, "the delegation is of another key")
        self.is_owner(key, author["id"], where)

    def rotation(self, line, where):
        self.hashed(line, where)
        event, time, command = named(line)
        self.claim(line, entry_of("rotate", event, "-", "-", time, command), where)
        signed = self.signed(line["public_key"], line["signature"], line, where)
        self.signed(line["new_public_key"], line["proof"], line, where)
        self.check(signed["target"] == line["new_public_key"], where, "another key was signed")
        self.is_owner(line["public_key"], line["identity"], where)
        self.moved[line["new_public_key"]] = line["identity"]

    def undelegation(self, line, where):
        event, time, command = named(line)
        target = [("target", line["delegation_id"])]
        self.claim(line, entry_of("undelegate", event, "-", "-", time, command, target), where)
        if "signature" in line:
            self.hashed(line, where)
            key = json.loads(line["signed_payload"])["command"]["public_key"]
            self.signed(key, line["signature"], line, where)

    def unreadable(self, line, where):
        pass

    def ledger(self, line, where):
        more = [("transfer", line["transfer"]), ("type", line["posting"])]
        more += [(name, line[name]) for name in ("code", "debit", "credit", "amount")]
        entry = entry_of("ledger", line["event"], line["room"], line["seq"], line["time"], line["command"], more)
        self.claim(line, entry, where)

    def logs(self):
        origins = list(self.leaves)
        roots = {origin: root_of(hashes) for origin, hashes in self.leaves.items()}
        for origin, following in zip(origins, origins[1:]):
            log = self.closed[origin]
            last, first = (base64.b64decode(log[name], validate=True) for name in ("close", "open"))
            self.check(self.leaves[origin][-1] == sha256(b"\x00" + last), origin, "close is not its last leaf")
            self.check(self.leaves[following][0] == sha256(b"\x00" + first), following, "open is not its first leaf")
            before = lines_of(first)
            if "lost" in before:
                self.check(log["next"] == following, origin, "next is another log")
            else:
                named_next, vkey = lines_of(last)["next"].split(" ")
                key = parse_vkey(vkey)
                self.check(named_next == following == key[0], origin, "close names another log")
                if origin in self.keys:
                    self.keys.setdefault(following, key)
            size = str(len(self.leaves[origin]))
            holds = (before["previous"], before["size"], before["root"]) == (origin, size, roots[origin].hex())
            self.check(holds, following, "open names another head")
        for origin in origins:
            note = (self.closed.get(origin) or self.end)["checkpoint"]
            text, _, signatures = note.rpartition("\n\n")
            size, root = len(self.leaves[origin]), base64.b64encode(roots[origin]).decode()
            self.check(text == f"{origin}\n{size}\n{root}", origin, "the checkpoint is of another head")
            if origin not in self.keys:
                continue
            name, key_id, key = self.keys[origin]
            good = False
            for line in signatures.splitlines():
                _, signer, blob = line.split(" ")
                raw = base64.b64decode(blob, validate=True)
                if signer == name and raw[:4] == key_id:
                    good = is_signed(key, raw[4:], (text + "\n").encode())
            self.check(good, origin, "the checkpoint is not signed")
        for (origin, index), claims in self.claims.items():
            known = self.leaves.get(origin, [])
            for entry, where in claims:
                holds = index < len(known) and known[index] == sha256(b"\x00" + entry)
                self.check(holds, where, "its entry is not the leaf that it names")


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("file")
    arguments.add_argument("--vkey", required=True)
    given = arguments.parse_args()
    export = Export(given.vkey)
    with open(given.file, encoding="utf-8", newline="") as file:
        export.read(file.read())
    report = {
        "counts": export.counts,
        "signatures": export.signatures,
        "leaves": sum(map(len, export.leaves.values())),
        "claimed": len(export.claims),
        "problems": export.problems,
    }
    print(json.dumps(report))
    sys.exit(1 if export.problems else 0)


main()
