"""The client for boards in one file: Python 3.9 or newer, nothing to install. Every board serves it at /client/broadside.py.

    from broadside import connect
    board = connect("https://board.example", key="me.json")
    posted = board.post("lobby", "Hello.")
    print(posted["event_id"])

A command is signed once and sent until its outcome is known: the same bytes have no second effect. A secret key never
leaves the process. What a board answers is data and is never evaluated.

Signatures are made by the package cryptography or PyNaCl where one of them is installed, and by the code below where neither
is. The code below takes about as many steps for each key, not exactly as many: on a machine that strangers share, install one.
"""

import base64
import hashlib
import json
import os
import re
import secrets
import time
import urllib.error
import urllib.request
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple, Union

__all__ = ["connect", "create_key", "import_key", "load_key", "Board", "BoardError", "Follow", "Key", "NoAnswer", "SignedCommand"]

FIELD_ORDER = (
    "operation room page text kind reply_to to request_id public_key timestamp nonce handle visibility members target "
    "amount ttl event_id cursor limit query before reason data filename media_type attachments"
).split()

_PKCS8_START = bytes.fromhex("302e020100300506032b657004220420")
_REQUEST_SECONDS = 60
_PAUSE_MIN, _PAUSE_MAX = 0.25, 8.0
_SAFE = 2**53 - 1


class BoardError(Exception):
    """A refusal: the board says that the command had no effect."""

    def __init__(self, error: Dict[str, Any], status: int, was_resent: bool = False):
        self.code: str = str(error.get("code"))
        self.message: str = str(error.get("message"))
        #: The field at fault; data.KEY inside data.
        self.field: Optional[str] = error.get("field")
        #: Seconds after which the same command may succeed.
        self.retry_after: Optional[float] = error.get("retry_after")
        self.details: Dict[str, Any] = error.get("details") or {}
        self.status = status
        #: An earlier attempt had no answer.
        self.was_resent = was_resent
        super().__init__(f"{self.code}: {self.message}" + (f" (field {self.field})" if self.field else ""))


class NoAnswer(Exception):
    """The outcome is unknown: nothing answered in time. board.send(error.command) sends the same bytes again, which is safe."""

    def __init__(self, address: str, command: "Optional[SignedCommand]", cause: object):
        self.command = command
        super().__init__(f"{address} gave no answer, so the outcome is unknown: {cause}")


class SignedCommand:
    """A command with its signature: the JSON to send, and the id of what it creates."""

    def __init__(self, body: bytes, event_id: str, sha256: str):
        self.body, self.event_id, self.sha256 = body, event_id, sha256


# Ed25519, RFC 8032 section 5.1. Points are (X, Y, Z, T) with x = X/Z, y = Y/Z, x*y = T/Z.
_P = 2**255 - 19
_L = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, _P - 2, _P) % _P
_Point = Tuple[int, int, int, int]


def _add(one: _Point, other: _Point) -> _Point:
    a = (one[1] - one[0]) * (other[1] - other[0]) % _P
    b = (one[1] + one[0]) * (other[1] + other[0]) % _P
    c = 2 * one[3] * other[3] * _D % _P
    d = 2 * one[2] * other[2] % _P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % _P, g * h % _P, f * g % _P, e * h % _P


_BASE_Y = 4 * pow(5, _P - 2, _P) % _P
_BASE_X = 15112221349535400772501151409588531511454012693041857206046113283949847762202
_BASE: _Point = (_BASE_X, _BASE_Y, 1, _BASE_X * _BASE_Y % _P)


def _times_base(scalar: int) -> bytes:
    """The point scalar * B, as 32 bytes. Every bit costs an addition, whether it is set or not."""
    result, power = (0, 1, 1, 0), _BASE
    for bit in range(256):
        added = _add(result, power)
        result = added if scalar >> bit & 1 else result
        power = _add(power, power)
    x, y, z, _ = result
    inverse = pow(z, _P - 2, _P)
    return ((y * inverse % _P) | (x * inverse % _P & 1) << 255).to_bytes(32, "little")


class _PureSigner:
    def __init__(self, seed: bytes):
        digest = hashlib.sha512(seed).digest()
        self._scalar = int.from_bytes(digest[:32], "little") & ((1 << 254) - 8) | 1 << 254
        self._prefix = digest[32:]
        self.public = _times_base(self._scalar)

    def sign(self, message: bytes) -> bytes:
        r = int.from_bytes(hashlib.sha512(self._prefix + message).digest(), "little") % _L
        point = _times_base(r)
        k = int.from_bytes(hashlib.sha512(point + self.public + message).digest(), "little") % _L
        return point + ((r + k * self._scalar) % _L).to_bytes(32, "little")


class _CryptographySigner:
    def __init__(self, seed: bytes):
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        key = Ed25519PrivateKey.from_private_bytes(seed)
        self.public = key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
        self.sign = key.sign


class _NaclSigner:
    def __init__(self, seed: bytes):
        from nacl.signing import SigningKey

        self._key = SigningKey(seed)
        self.public = bytes(self._key.verify_key)

    def sign(self, message: bytes) -> bytes:
        return bytes(self._key.sign(message).signature)


def _signer(seed: bytes) -> Any:
    for kind in (_CryptographySigner, _NaclSigner):
        try:
            return kind(seed)
        except Exception:  # Not installed, or without Ed25519.
            continue
    return _PureSigner(seed)


class Key:
    """An Ed25519 key from its seed: the 32 secret bytes of RFC 8032."""

    def __init__(self, seed: bytes):
        if len(seed) != 32:
            raise ValueError("an Ed25519 seed has 32 bytes")
        self._seed = seed
        self._signer = _signer(seed)
        #: base64url, 43 characters.
        self.public_key: str = _base64url(self._signer.public)
        #: Hex SHA-256 of the public key. It names your identity as long as you do not rotate your first key.
        self.id: str = hashlib.sha256(self._signer.public).hexdigest()

    def __repr__(self) -> str:
        return f"<Key {self.public_key}>"

    def sign(self, message: bytes) -> bytes:
        return bytes(self._signer.sign(message))

    def to_file(self) -> str:
        """The text of a key file. Anyone who has it can sign as you."""
        parts = {"type": "broadside-key", "public_key": self.public_key, "id": self.id, "seed": _base64url(self._seed)}
        return json.dumps(parts, separators=(",", ":")) + "\n"


def create_key() -> Key:
    """Makes a new key, in memory."""
    return Key(secrets.token_bytes(32))


def import_key(text: str) -> Key:
    """Reads the text of a key file: JSON of `broadside keygen`, to_file or a page of a board, or a PKCS#8 PEM of OpenSSL."""
    if "-----BEGIN" in text:
        der = base64.b64decode("".join(line for line in text.splitlines() if not line.startswith("-----")))
        if der[:16] != _PKCS8_START or len(der) != 48:
            raise ValueError("the text contains no Ed25519 key")
        return Key(der[16:])
    try:
        parts = json.loads(text)
        seed = parts["seed"]
    except (ValueError, TypeError, KeyError):
        raise ValueError("the text contains no Ed25519 key") from None
    if not isinstance(seed, str) or re.fullmatch(r"[A-Za-z0-9_-]{43}", seed) is None:
        raise ValueError("the text contains no Ed25519 key")
    key = Key(base64.urlsafe_b64decode(seed + "="))
    # A file whose two halves disagree was edited by hand: signing with it would make another person.
    if parts.get("public_key", key.public_key) != key.public_key:
        raise ValueError("the public and private halves of this key do not match")
    return key


def load_key(path: str) -> Key:
    """The key in a file, which is created if there is none."""
    fresh = create_key()
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        pass
    else:
        with os.fdopen(descriptor, "w") as file:
            file.write(fresh.to_file())
        return fresh
    if os.name == "posix" and os.stat(path).st_mode & 0o077:
        raise PermissionError(f"others can read the key file {path}: restrict it to yourself with chmod 600")
    with open(path, encoding="utf-8") as file:
        try:
            return import_key(file.read(16_384))
        except ValueError as error:
            raise ValueError(f"{path} is no key file: {error}") from None


def signing_bytes(service: str, command: Dict[str, Any]) -> bytes:
    """The bytes that Ed25519 signs. Raises TypeError, with the name of the field, for what JSON cannot keep."""
    for name in command:
        if name not in FIELD_ORDER and name not in ("signature", "proof"):
            raise TypeError(f"{name}: commands have no such field")
    given = {name: command[name] for name in FIELD_ORDER if not _is_empty(name, command.get(name))}
    text = json.dumps({"version": 1, "service": service, "command": given}, ensure_ascii=False, separators=(",", ":"))
    return text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029").encode()


def _is_empty(name: str, value: Any) -> bool:
    if value is None:
        return True
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _SAFE:
        return value == 0
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, (list, tuple)) or not all(_is_text(each) for each in texts):
        raise TypeError(f"{name}: must be text of valid Unicode, a safe integer, or a list of texts")
    return len(value) == 0


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and not any(0xD800 <= ord(char) <= 0xDFFF for char in value)


def connect(
    address: str,
    key: Union[Key, str, None] = None,
    *,
    service: Optional[str] = None,
    patience: float = 120,
    proof_bits_max: int = 20,
) -> "Board":
    """Asks the board for its service id and its time.

    key: a key, or the path of a key file; without one, the board is read only.
    service: the service id that the board must have. A signature is only valid for one service.
    patience: seconds to go on trying, where no answer comes or the board says to wait.
    proof_bits_max: most bits of work to do for a room that requires it.
    """
    board = Board(address, load_key(key) if isinstance(key, str) else key, patience, proof_bits_max)
    board.refresh(service)
    return board


class _Answer:
    """What came back from one request: data, a refusal with its status, or why there is neither."""

    def __init__(self, data: Any = None, refused: Optional[Dict[str, Any]] = None, status: int = 0, failed: object = None):
        self.data, self.refused, self.status, self.failed = data, refused, status, failed

    def retry_seconds(self, pause: float) -> Optional[float]:
        """Seconds until the same bytes may be sent again; None: the answer is final."""
        if self.failed is not None:
            return pause
        if self.refused is None or self.status != 429:
            return None
        return max(pause, self.refused.get("retry_after") or 0)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


class Board:
    """Use connect()."""

    def __init__(self, address: str, key: Optional[Key], patience: float, proof_bits_max: int):
        self.address = address.rstrip("/")
        self.key = key
        #: Part of every signature.
        self.service = ""
        self._patience = patience
        self._proof_bits_max = proof_bits_max
        self._lines, self._bytes = 1, 65_536
        #: Operations whose data has no schema.
        self._unversioned: set = set()
        self._board_time, self._own_time = 0, 0.0
        self._open = urllib.request.build_opener(_NoRedirect).open

    def refresh(self, service: Optional[str] = None) -> None:
        """Asks again for the service id, limits and time."""
        found = self._get("/capabilities")
        wanted = service or self.service or found.get("service_id")
        if not isinstance(found.get("service_id"), str):
            raise ValueError(f"{self.address} is no Broadside board: it has no service_id")
        if found["service_id"] != wanted:
            raise ValueError(f"{self.address} is the service {found['service_id']}, not {wanted}")
        self.service = wanted
        operations = [each for each in found.get("operations") or [] if isinstance(each, dict)]
        self._unversioned = {each.get("name") for each in operations if not _has_version(each.get("data"))}
        limits = found.get("limits") or {}
        self._lines, self._bytes = limits.get("batch_lines") or 1, limits.get("body_bytes") or 65_536
        self._set_clock()

    def call(self, operation: str, **fields: Any) -> Dict[str, Any]:
        """Runs any operation. Signed if there is a key; reads of public data need none. data may be a dict."""
        return self._call(dict(fields, operation=operation), self._patience)

    def post(self, room: str, text: str, **more: Any) -> Dict[str, Any]:
        return self.call("post", room=room, text=text, **more)

    def reply(self, to: Union[str, Dict[str, Any]], text: str, **more: Any) -> Dict[str, Any]:
        """Replies to an event, or to the event with this id."""
        room, event_id = self._place(to)
        return self.post(room, text, reply_to=event_id, **more)

    def edit(self, event: Union[str, Dict[str, Any]], text: str) -> Dict[str, Any]:
        """Posts a new version of an event of yours."""
        room, event_id = self._place(event)
        return self.post(room, text, data={"supersedes": event_id})

    def vote(self, event: Union[str, Dict[str, Any]], value: int) -> Dict[str, Any]:
        """1 for it, -1 against it, 0 withdraws the vote."""
        return self.call("vote", event_id=event if isinstance(event, str) else event["event_id"], data={"value": value})

    def pages(self, operation: str, **fields: Any) -> Iterator[Dict[str, Any]]:
        """Every answer of a list, page by page."""
        while True:
            answer = self.call(operation, **fields)
            yield answer
            if not answer.get("has_more"):
                return
            fields["cursor"] = answer["next_cursor"]

    def follow(self, *rooms: str, kinds: Iterable[str] = (), cursor: str = "") -> "Follow":
        """Follows rooms, or (with none) the whole board. Everything after this call is included; with a cursor, everything
        after it. It continues over lost connections and restarts of the board."""
        return Follow(self, rooms, tuple(kinds), cursor)

    def sign(self, operation: str, **fields: Any) -> SignedCommand:
        """Signs a command, and does not send it."""
        return self._sign(dict(fields, operation=operation))

    def send(self, command: SignedCommand) -> Dict[str, Any]:
        """Sends a signed command until its outcome is known. The same command has no second effect."""
        return self._send(command, self._patience)

    def batch(self, commands: Iterable[Union[Dict[str, Any], SignedCommand]]) -> List[Union[Dict[str, Any], BoardError, NoAnswer]]:
        """Signs and sends many commands, each a dict with its operation. The answers, or errors, in the order of the
        commands. A refusal of one has no effect on the others. Lines without an outcome are sent again."""
        signed = [each if isinstance(each, SignedCommand) else self._sign(each) for each in commands]
        outcomes: Dict[int, Any] = {}
        unanswered = set()
        until, pause = time.monotonic() + self._patience, _PAUSE_MIN
        while len(outcomes) < len(signed):
            some = self._first_of(signed, [n for n in range(len(signed)) if n not in outcomes])
            answers, failed = self._post_lines([signed[n] for n in some])
            wait = 0.0 if answers else pause
            for line, n in enumerate(some, 1):
                answer = answers.get(line) or _Answer(failed=failed)
                later = answer.retry_seconds(pause)
                if later is None or time.monotonic() + later > until:
                    outcomes[n] = self._outcome(signed[n], answer, n in unanswered)
                    if later is None:
                        until = time.monotonic() + self._patience
                    continue
                wait = max(wait, later)
                if answer.failed is not None:
                    unanswered.add(n)
            pause = min(pause * 2, _PAUSE_MAX) if wait else _PAUSE_MIN
            time.sleep(wait)
        return [outcomes[n] for n in range(len(signed))]

    def _place(self, of: Union[str, Dict[str, Any]]) -> Tuple[str, str]:
        if isinstance(of, str):
            of = self.call("event.get", event_id=of)["event"]
        return of["room"], of["event_id"]

    def _outcome(self, command: SignedCommand, answer: _Answer, was_resent: bool) -> Any:
        if answer.failed is not None:
            return NoAnswer(self.address, command, answer.failed)
        return answer.data if answer.refused is None else BoardError(answer.refused, answer.status, was_resent)

    def _first_of(self, signed: List[SignedCommand], rest: List[int]) -> List[int]:
        """As many as one request may have."""
        size = 0
        for count, n in enumerate(rest):
            size += len(signed[n].body) + 1
            if count == self._lines or (count > 0 and size > self._bytes):
                return rest[:count]
        return rest

    def _plain(self, given: Dict[str, Any]) -> Dict[str, Any]:
        """The fields as they are signed and sent."""
        fields = {name: value for name, value in given.items() if value is not None}
        if isinstance(fields.get("data"), dict):
            version = {} if fields.get("operation") in self._unversioned else {"schema": 1}
            fields["data"] = json.dumps(dict(version, **fields["data"]), ensure_ascii=False, separators=(",", ":"))
        return fields

    def _call(self, given: Dict[str, Any], patience: float) -> Dict[str, Any]:
        if self.key is None:
            body = json.dumps(self._plain(given), ensure_ascii=False).encode()
            return self._send(SignedCommand(body, "", ""), patience)
        try:
            return self._send(self._sign(given), patience)
        except BoardError as error:
            # Only what was certainly not accepted is signed a second time.
            if error.code != "stale_timestamp" or error.was_resent:
                raise
        self._set_clock()
        return self._send(self._sign(given), patience)

    def _poll(self, given: Dict[str, Any]) -> Dict[str, Any]:
        """A read that is asked, and signed anew, until there is an answer: a signature is too old after five minutes."""
        while True:
            try:
                return self._call(given, 60)
            except NoAnswer:
                continue
            except BoardError as error:
                if error.code == "stale_timestamp":
                    self._set_clock()
                elif error.status == 429:
                    time.sleep(max(_PAUSE_MAX, error.retry_after or 0))
                else:
                    raise

    def _sign(self, given: Dict[str, Any]) -> SignedCommand:
        if self.key is None:
            raise ValueError("signing needs a key: connect(address, key=...)")
        timestamp = int(self._board_time + time.monotonic() - self._own_time)
        command = dict(self._plain(given), public_key=self.key.public_key, timestamp=timestamp, nonce=secrets.token_urlsafe(16))
        data = signing_bytes(self.service, command)
        digest = hashlib.sha256(data).hexdigest()
        command["signature"] = _base64url(self.key.sign(data))
        return SignedCommand(json.dumps(command, ensure_ascii=False).encode(), digest[:32], digest)

    def _send(self, command: SignedCommand, patience: float) -> Dict[str, Any]:
        until, pause = time.monotonic() + patience, _PAUSE_MIN
        body, was_resent, is_proven = command.body, False, False
        while True:
            answer = self._ask("/v1/command", body)
            if answer.failed is None and answer.refused is None:
                return answer.data
            bits = None if is_proven or answer.refused is None else _proof_bits(answer.refused)
            if bits is not None and bits <= self._proof_bits_max:
                body = body[:-1] + b',"proof":"' + _solve_proof(command.sha256, bits).encode() + b'"}'
                is_proven = True
                continue
            wait = answer.retry_seconds(pause)
            if wait is None or time.monotonic() + wait > until:
                raise self._outcome(command, answer, was_resent)
            was_resent = was_resent or answer.failed is not None
            time.sleep(wait)
            pause = min(pause * 2, _PAUSE_MAX)

    def _set_clock(self) -> None:
        begun = time.monotonic()
        self._board_time, self._own_time = self._get("/time")["unix"], begun

    def _get(self, path: str) -> Dict[str, Any]:
        until, pause = time.monotonic() + self._patience, _PAUSE_MIN
        while True:
            answer = self._ask(path, None)
            if answer.failed is None and answer.refused is None:
                return answer.data
            wait = answer.retry_seconds(pause)
            if wait is None or time.monotonic() + wait > until:
                if answer.refused is None:
                    raise NoAnswer(self.address, None, answer.failed)
                raise BoardError(answer.refused, answer.status)
            time.sleep(wait)
            pause = min(pause * 2, _PAUSE_MAX)

    def _ask(self, path: str, body: Optional[bytes]) -> _Answer:
        try:
            with self._request(path, body, "application/json") as response:
                return _answer_of(_parsed(response.read()), response.status)
        except urllib.error.HTTPError as error:
            with error:
                return _refused_answer(error)
        except Exception as error:  # A cut connection has many names.
            return _Answer(failed=error)

    def _request(self, path: str, body: Optional[bytes], kind: str) -> Any:
        request = urllib.request.Request(self.address + path, body, {"Content-Type": kind} if body is not None else {})
        return self._open(request, timeout=_REQUEST_SECONDS)

    def _post_lines(self, commands: List[SignedCommand]) -> Tuple[Dict[int, _Answer], object]:
        """The answers that arrived, by their line. The last of them may be cut off."""
        answers: Dict[int, _Answer] = {}
        body = b"".join(each.body + b"\n" for each in commands)
        try:
            with self._request("/v1/commands", body, "application/x-ndjson") as response:
                for line in response:
                    told = _parsed(line)
                    if line.endswith(b"\n") and isinstance(told, dict):
                        answers[told.get("line", 0)] = _answer_of(told, told.get("status", 0))
            return answers, "the answer ended early"
        except urllib.error.HTTPError as error:
            with error:
                whole = _refused_answer(error)
            return {line: whole for line in range(1, len(commands) + 1)}, None
        except Exception as error:
            return answers, error


class Follow:
    """Updates, for `for`. Raises BoardError where the board ends it, for example private_room or expired."""

    def __init__(self, board: Board, rooms: Tuple[str, ...], kinds: Tuple[str, ...], cursor: str):
        self._board = board
        self._data: Dict[str, Any] = {}
        if rooms:
            self._data["rooms"] = rooms
        if kinds:
            self._data["kinds"] = kinds
        #: Everything before it has been handed out and asked beyond. Keep it to resume: nothing is lost, some may come again.
        self.cursor: str = cursor or self._ask("", 0)["cursor"]

    def _ask(self, cursor: str, wait: int) -> Dict[str, Any]:
        return self._board._poll({"operation": "updates.get", "cursor": cursor, "data": dict(self._data, wait=wait)})

    def __iter__(self) -> Iterator[Dict[str, Any]]:
        while True:
            answer = self._ask(self.cursor, 25)
            yield from answer["updates"]
            self.cursor = answer["cursor"]


def _has_version(data: Any) -> bool:
    """The data of an operation has a schema."""
    return isinstance(data, dict) and "schema" in (data.get("properties") or {})


def _answer_of(told: Any, status: int) -> _Answer:
    told = told if isinstance(told, dict) else {}
    if told.get("ok") is True:
        return _Answer(data=told.get("data"))
    error = told.get("error")
    # A fault of the board or of a proxy says nothing about the outcome.
    if status >= 500 or (not isinstance(error, dict) and 200 <= status < 300):
        return _Answer(failed=f"status {status}")
    if isinstance(error, dict):
        return _Answer(refused=error, status=status)
    return _Answer(refused={"code": "no_board", "message": f"status {status} without an answer of a board"}, status=status)


def _refused_answer(error: urllib.error.HTTPError) -> _Answer:
    try:
        return _answer_of(_parsed(error.read()), error.code)
    except Exception as failed:
        return _Answer(failed=failed)


def _parsed(text: bytes) -> Any:
    """None for what is no JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return None


def _proof_bits(error: Dict[str, Any]) -> Optional[int]:
    """Bits of work that a room or board requires of this command."""
    found = re.search(r" (\d+) bits of work", str(error.get("message"))) if error.get("code") == "proof_required" else None
    return int(found.group(1)) if found else None


def _solve_proof(command_sha256: str, bits: int) -> str:
    """Counts up until the hash begins with that many zero bits: 2^bits tries on average."""
    head = hashlib.sha256(f"broadside-proof-v1\n{command_sha256}\n".encode())
    counter = 0
    while True:
        tried = head.copy()
        tried.update(str(counter).encode())
        if int.from_bytes(tried.digest(), "big") >> (256 - bits) == 0:
            return f"{bits}.{counter}"
        counter += 1


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
