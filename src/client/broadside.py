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
import sys
import time
import unicodedata
import urllib.error
import urllib.request
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple, Union

__all__ = [
    "connect", "create_key", "import_key", "load_key", "verify_export", "verify_proof",
    "Board", "BoardError", "Follow", "Key", "NoAnswer", "NotVerified", "SignedCommand",
]

FIELD_ORDER = (
    "operation room page text kind reply_to to request_id public_key timestamp nonce handle visibility members target "
    "amount ttl event_id cursor limit query before reason data filename media_type attachments"
).split()

_PKCS8_START = bytes.fromhex("302e020100300506032b657004220420")
_REQUEST_SECONDS = 60
_PAUSE_MIN, _PAUSE_MAX = 0.25, 8.0
_SAFE = 2**53 - 1
_ANSWER_BYTES_MAX = 32 * 1024 * 1024


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


class NotVerified(Exception):
    """Something does not verify. line: of an export, counted from 1."""

    def __init__(self, reason: str, line: Optional[int] = None):
        self.reason, self.line = reason, line
        super().__init__(reason if line is None else f"line {line}: {reason}")


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


def _point(data: bytes) -> Optional[_Point]:
    """The point that 32 bytes encode; None if they encode none."""
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & ((1 << 255) - 1)
    if y >= _P:
        return None
    square = (y * y - 1) * pow(_D * y * y + 1, _P - 2, _P) % _P
    x = pow(square, (_P + 3) // 8, _P)
    if (x * x - square) % _P:
        x = x * pow(2, (_P - 1) // 4, _P) % _P
    if (x * x - square) % _P or (x == 0 and sign):
        return None
    x = _P - x if x & 1 != sign else x
    return x, y, 1, x * y % _P


def _times(scalar: int, point: _Point) -> _Point:
    result: _Point = (0, 1, 1, 0)
    while scalar:
        if scalar & 1:
            result = _add(result, point)
        point, scalar = _add(point, point), scalar >> 1
    return result


def _pure_verify(public: bytes, signature: bytes, message: bytes) -> bool:
    key, r, s = _point(public), _point(signature[:32]), int.from_bytes(signature[32:], "little")
    if key is None or r is None or s >= _L:
        return False
    k = int.from_bytes(hashlib.sha512(signature[:32] + public + message).digest(), "little") % _L
    left, right = _times(s, _BASE), _add(r, _times(k, key))
    return (left[0] * right[2] - right[0] * left[2]) % _P == 0 and (left[1] * right[2] - right[1] * left[2]) % _P == 0


def _is_signed(public: bytes, signature: bytes, message: bytes) -> bool:
    if len(public) != 32 or len(signature) != 64:
        return False
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except Exception:  # Not installed, or without Ed25519.
        return _pure_verify(public, signature, message)
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


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

    def to_file(self, passphrase: Optional[str] = None) -> str:
        """The text of a key file. Anyone who has it can sign as you; with a passphrase, anyone who has both."""
        if passphrase is not None:
            return _sealed(self._seed, self.public_key, self.id, passphrase)
        parts = {"type": "broadside-key", "public_key": self.public_key, "id": self.id, "seed": _base64url(self._seed)}
        return json.dumps(parts, separators=(",", ":")) + "\n"


# Version 2 of key files: the seed under AES-256-GCM, with everything else in the file authenticated in this order.
_SEALED_HEAD = ("type", "version", "public_key", "id", "kdf", "rounds", "salt", "cipher", "nonce")
_ROUNDS_MIN, _ROUNDS_MAX = 600_000, 10_000_000


def _seal(head: Dict[str, Any], passphrase: str) -> Tuple[Any, bytes, bytes]:
    """What opens and closes a sealed file: the cipher, its nonce and what it authenticates."""
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError:
        raise RuntimeError("a key file with a passphrase needs the package cryptography: pip install cryptography") from None
    words = unicodedata.normalize("NFKC", passphrase).encode()
    key = hashlib.pbkdf2_hmac("sha256", words, _bytes_of(head["salt"]), head["rounds"])
    text = json.dumps({name: head[name] for name in _SEALED_HEAD}, separators=(",", ":"))
    return AESGCM(key), _bytes_of(head["nonce"]), b"broadside-key-v2\n" + text.encode()


def _sealed(seed: bytes, public_key: str, id: str, passphrase: str) -> str:
    salt, nonce = _base64url(secrets.token_bytes(16)), _base64url(secrets.token_bytes(12))
    values = ("broadside-key", 2, public_key, id, "PBKDF2-SHA-256", _ROUNDS_MIN, salt, "AES-256-GCM", nonce)
    head = dict(zip(_SEALED_HEAD, values))
    cipher, start, about = _seal(head, passphrase)
    return json.dumps(dict(head, sealed=_base64url(cipher.encrypt(start, seed, about))), separators=(",", ":")) + "\n"


def _unsealed(file: Dict[str, Any], passphrase: Optional[str]) -> bytes:
    texts = [file.get(name) for name in ("public_key", "id", "salt", "nonce", "sealed")]
    is_known = file.get("type") == "broadside-key" and file.get("kdf") == "PBKDF2-SHA-256" and file.get("cipher") == "AES-256-GCM"
    is_sealed = all(isinstance(each, str) and re.fullmatch(r"[A-Za-z0-9_-]{1,100}", each) for each in texts)
    rounds = file.get("rounds")
    if not (is_known and is_sealed and type(rounds) is int and _ROUNDS_MIN <= rounds <= _ROUNDS_MAX):
        raise ValueError("the text contains no Ed25519 key")
    if passphrase is None:
        raise ValueError("this key file is sealed: it opens with its passphrase")
    cipher, start, about = _seal(file, passphrase)
    try:
        return bytes(cipher.decrypt(start, _bytes_of(file["sealed"]), about))
    except Exception:
        raise ValueError("the passphrase does not open this key file, or the file was changed") from None


def create_key() -> Key:
    """Makes a new key, in memory."""
    return Key(secrets.token_bytes(32))


def import_key(text: str, passphrase: Optional[str] = None) -> Key:
    """Reads the text of a key file: JSON of `broadside keygen`, to_file or a page of a board, or a PKCS#8 PEM of OpenSSL. A
    file that was sealed opens with its passphrase."""
    if "-----BEGIN" in text:
        der = base64.b64decode("".join(line for line in text.splitlines() if not line.startswith("-----")))
        if der[:16] != _PKCS8_START or len(der) != 48:
            raise ValueError("the text contains no Ed25519 key")
        return Key(der[16:])
    try:
        parts = json.loads(text)
    except ValueError:
        parts = None
    if not isinstance(parts, dict):
        raise ValueError("the text contains no Ed25519 key")
    if parts.get("version") == 2:
        key = Key(_unsealed(parts, passphrase))
    else:
        seed = parts.get("seed")
        if not isinstance(seed, str) or re.fullmatch(r"[A-Za-z0-9_-]{43}", seed) is None:
            raise ValueError("the text contains no Ed25519 key")
        key = Key(_bytes_of(seed))
    # A file whose two halves disagree was edited by hand: signing with it would make another person.
    if parts.get("public_key", key.public_key) != key.public_key:
        raise ValueError("the public and private halves of this key do not match")
    return key


def load_key(path: str, passphrase: Optional[str] = None) -> Key:
    """The key in a file, which is created if there is none. passphrase: of a sealed file."""
    fresh = create_key()
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        pass
    else:
        with os.fdopen(descriptor, "w") as file:
            file.write(fresh.to_file(passphrase))
        return fresh
    if os.name == "posix" and os.stat(path).st_mode & 0o077:
        raise PermissionError(f"others can read the key file {path}: restrict it to yourself with chmod 600")
    with open(path, encoding="utf-8") as file:
        try:
            return import_key(file.read(16_384), passphrase)
        except ValueError as error:
            raise ValueError(f"{path} is not a key file: {error}") from None


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
        self._data: Dict[Any, Dict[str, Any]] = {}
        self._board_time, self._own_time = 0, 0.0
        self._open = urllib.request.build_opener(_NoRedirect).open

    def refresh(self, service: Optional[str] = None) -> None:
        """Asks again for the service id, limits and time."""
        found = self._get("/capabilities")
        wanted = service or self.service or found.get("service_id")
        if not isinstance(found.get("service_id"), str):
            raise ValueError(f"{self.address} is not a Broadside board: it has no service_id")
        if found["service_id"] != wanted:
            raise ValueError(f"{self.address} is the service {found['service_id']}, not {wanted}")
        self.service = wanted
        operations = [each for each in found.get("operations") or [] if isinstance(each, dict)]
        self._data = {each.get("name"): _dict(_dict(each.get("data")).get("properties")) for each in operations}
        self._unversioned = {each.get("name") for each in operations if not _has_version(each.get("data"))}
        limits = found.get("limits") or {}
        self._lines, self._bytes = limits.get("batch_lines") or 1, limits.get("body_bytes") or 65_536
        self._set_clock()

    def call(self, operation: str, **fields: Any) -> Dict[str, Any]:
        """Runs any operation. Signed if there is a key; reads of public data need none. data may be a dict."""
        return self._call(dict(fields, operation=operation), self._patience)

    def typed(self, operation: str, given: Dict[str, str]) -> Dict[str, Any]:
        """Fields of an operation from their texts: numbers, lists, and what is inside data, as /capabilities declares them."""
        fields: Dict[str, Any] = {}
        data: Dict[str, Any] = {}
        within = self._data.get(operation, {})
        for name, text in given.items():
            if name in within:
                kind = _dict(within[name]).get("type", "")
                data[name] = text if kind == "string" or _parsed(text.encode()) is None else _parsed(text.encode())
            elif name in ("members", "attachments"):
                fields[name] = text.split(",")
            else:
                is_number = name in ("amount", "ttl", "limit", "before") and re.fullmatch(r"[0-9]{1,15}", text)
                fields[name] = int(text) if is_number else text
        return dict(fields, data=data) if data else fields

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

    def tail(self, room: str, cursor: str = "") -> Iterator[Dict[str, Any]]:
        """The posts of a room, one after the other as they are accepted, from this call on or after cursor."""
        # Asked for here, not when the first post is.
        news = self.follow(room, kinds=["event.posted"], cursor=cursor)
        return (update["event"] for update in news if "event" in update)

    def export_lines(self) -> Iterator[str]:
        """Everything public, line by line, for verify_export or a file."""
        with self._open(urllib.request.Request(self.address + "/v1/export"), timeout=_REQUEST_SECONDS) as answer:
            for line in answer:
                yield line.decode()

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
                return _answer_of(_parsed(_whole(response)), response.status)
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
                    answer = _parsed(line)
                    if line.endswith(b"\n") and isinstance(answer, dict):
                        answers[answer.get("line", 0)] = _answer_of(answer, answer.get("status", 0))
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


def _answer_of(body: Any, status: int) -> _Answer:
    body = body if isinstance(body, dict) else {}
    if body.get("ok") is True:
        return _Answer(data=body.get("data"))
    error = body.get("error")
    # A fault of the board or of a proxy says nothing about the outcome.
    if status >= 500 or (not isinstance(error, dict) and 200 <= status < 300):
        return _Answer(failed=f"status {status}")
    if isinstance(error, dict):
        return _Answer(refused=_refusal_in(error), status=status)
    return _Answer(refused={"code": "no_board", "message": f"status {status} without an answer of a board"}, status=status)


def _refusal_in(error: Dict[str, Any]) -> Dict[str, Any]:
    """What a refusal contains, as far as it has the right form."""
    kinds = {"code": str, "message": str, "field": str, "retry_after": (int, float), "details": dict}
    found = {name: error[name] for name, kind in kinds.items() if isinstance(error.get(name), kind)}
    return dict({"code": "unknown", "message": "no reason was given"}, **found)


def _refused_answer(error: urllib.error.HTTPError) -> _Answer:
    try:
        return _answer_of(_parsed(_whole(error)), error.code)
    except Exception as failed:
        return _Answer(failed=failed)


def _whole(answer: Any) -> bytes:
    """The whole answer. Raises if it is longer than any answer of a board."""
    data = bytes(answer.read(_ANSWER_BYTES_MAX + 1))
    if len(data) > _ANSWER_BYTES_MAX:
        raise OSError(f"the answer is longer than {_ANSWER_BYTES_MAX} bytes")
    return data


def _parsed(text: bytes) -> Any:
    """None if it is not JSON."""
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


def verify_proof(proof: Dict[str, Any], vkey: str) -> Dict[str, Any]:
    """Checks the answer of log.proof: that the entry of the event is in the log whose key is pinned. vkey: as you saved it from
    /log/vkey or /capabilities. Raises NotVerified. Answers event_id, index, size and origin."""
    entry = _base64(proof.get("entry"), "the entry")
    lines = _lines_in(entry)
    command, event = lines.get("command", ""), lines.get("event", "")
    if not _is_hash(command) or command[:32] != event or event != proof.get("event_id"):
        raise NotVerified("the entry is not that of the event")
    payload = proof.get("signed_payload")
    if payload is not None and hashlib.sha256(str(payload).encode()).hexdigest() != command:
        raise NotVerified("the signed bytes do not hash to the command of the entry")
    head = _open_checkpoint(proof.get("checkpoint"), vkey)
    index, path = proof.get("leaf_index"), proof.get("inclusion_path")
    if not isinstance(path, list) or len(path) > 63 or not all(_is_hash(each) for each in path):
        raise NotVerified("inclusion_path is not a list of hashes")
    if type(index) is not int or not 0 <= index < head["size"]:
        raise NotVerified("leaf_index is not the number of a leaf of this log")
    # RFC 9162 section 2.1.3.2.
    node, at, last = _leaf_hash(entry), index, head["size"] - 1
    for sibling in (bytes.fromhex(each) for each in path):
        if last == 0:
            raise NotVerified("the path is too long")
        if at % 2 or at == last:
            node = _node_hash(sibling, node)
            while at % 2 == 0 and at:
                at, last = at // 2, last // 2
        else:
            node = _node_hash(node, sibling)
        at, last = at // 2, last // 2
    if last != 0 or node != head["root"]:
        raise NotVerified("the path does not lead from the entry to the root that the checkpoint signs")
    return {"event_id": event, "index": index, "size": head["size"], "origin": head["origin"]}


def verify_export(lines: Iterable[str], vkey: str) -> Dict[str, Any]:
    """Checks a whole export (/v1/export, all of it): each signature, the ids of events and authors, that text, room and author
    are those that were signed, and that every line is the leaf it names of the log whose key is pinned. Raises NotVerified at
    the first fault. Answers counts of lines, and the origin and size of the log. `broadside verify` checks every other field
    that is shown, too."""
    check = _ExportCheck(vkey)
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                check.take(_dict(_parsed(line.encode())), number)
            except NotVerified as error:
                raise NotVerified(error.reason, number if error.line is None else error.line) from None
    return check.end()


class _ExportCheck:
    def __init__(self, vkey: str):
        self._keys = {_key_of(vkey)[0]: vkey}
        self._claims: Dict[str, List[Tuple[int, bytes, int]]] = {}
        #: Identity of a key that came by rotation.
        self._owners: Dict[str, str] = {}
        self._leaves: List[bytes] = []
        self._origin: Optional[str] = None
        #: What the closed log before says of the one that follows.
        self._tie: Optional[Tuple[str, bytes]] = None
        self._head: Optional[Dict[str, Any]] = None
        self._counts = {"events": 0, "tombstones": 0, "leaves": 0}

    def take(self, line: Dict[str, Any], number: int) -> None:
        if self._head is not None:
            raise NotVerified("a line follows the end")
        kind = line.get("type")
        whole = {"leaves": self._take_leaves, "log": self._take_closed, "end": self._take_end}.get(str(kind))
        if whole is not None:
            return whole(line)
        # What the board itself could not read is named by its leaf, which the root covers.
        if kind == "unreadable":
            return None
        command = line.get("command_sha256")
        if not _is_hash(command) or str(command)[:32] != line.get("event_id"):
            raise NotVerified("event_id is not the first half of command_sha256")
        if kind == "event":
            self._take_event(line)
        elif kind == "rotation":
            self._take_rotation(line)
        elif kind == "tombstone":
            if "text" in line:
                raise NotVerified("a tombstone still has its text")
            self._counts["tombstones"] += 1
        elif kind == "undelegation":
            self._take_undelegation(line)
        else:
            raise NotVerified(f"lines of type {kind} are not known")
        return self._claim(line, number)

    def _take_event(self, line: Dict[str, Any]) -> None:
        author = _dict(line.get("author"))
        command, _ = _open_payload(line, line["command_sha256"])
        key = command.get("public_key")
        if key != author.get("public_key"):
            raise NotVerified("the signed bytes name a key other than the author's")
        _check_signature(line["signed_payload"], line.get("signature"), key)
        own = key
        if "delegation" in line:
            given = _dict(line["delegation"])
            made, digest = _open_payload(given)
            if made.get("operation") != "delegation.create" or made.get("target") != key:
                raise NotVerified("the delegation is for another key than the one that signed")
            if given.get("id") != digest[:32]:
                raise NotVerified("the id of the delegation is another")
            own = made.get("public_key")
            _check_signature(given["signed_payload"], given.get("signature"), own)
        if author.get("id") != self._owner_of(own):
            raise NotVerified("the author's id is not that of the key")
        if command.get("text") != line.get("text"):
            raise NotVerified("the text is not what was signed")
        if "room" in command and command["room"] != line.get("room"):
            raise NotVerified("the room is not what was signed")
        self._counts["events"] += 1

    def _take_rotation(self, line: Dict[str, Any]) -> None:
        command, _ = _open_payload(line, line["command_sha256"])
        if command.get("operation") != "identity.rotate":
            raise NotVerified("the signed bytes are for another operation")
        _check_signature(line["signed_payload"], line.get("signature"), command.get("public_key"))
        _check_signature(line["signed_payload"], line.get("proof"), command.get("target"))
        self._owners[command["target"]] = self._owner_of(command["public_key"])

    def _take_undelegation(self, line: Dict[str, Any]) -> None:
        # The end of a delegation is signed if its identity revoked it.
        if line.get("ended_by") != "revoked" and "signature" not in line:
            return
        command, _ = _open_payload(line, line["command_sha256"])
        if command.get("operation") != "delegation.revoke":
            raise NotVerified("the signed bytes are for another operation")
        _check_signature(line["signed_payload"], line.get("signature"), command.get("public_key"))

    def _owner_of(self, key: Any) -> str:
        return self._owners.get(key) or hashlib.sha256(_bytes_of(key)).hexdigest()

    def _claim(self, line: Dict[str, Any], number: int) -> None:
        """The leaves that a line says it is: its own, and that of its redaction."""
        kind = {"event": "post", "tombstone": "post", "rotation": "rotate", "undelegation": "undelegate"}[line["type"]]
        room, seq = (line.get("room"), line.get("seq")) if kind == "post" else ("-", "-")
        about = f"target {line.get('delegation_id')}\n" if kind == "undelegate" else ""
        self._claim_one(line, f"kind {kind}", f"room {room}\nseq {seq}", about, number)
        if "redaction" in line:
            about = f"target {line['event_id']}\n"
            self._claim_one(_dict(line["redaction"]), "kind redact", f"room {room}\nseq {seq}", about, number)

    def _claim_one(self, of: Dict[str, Any], kind: str, place: str, about: str, number: int) -> None:
        log = _dict(of.get("log"))
        origin, index, command = log.get("origin"), log.get("index"), str(of.get("command_sha256"))
        if log.get("state") != "included" or not isinstance(origin, str) or type(index) is not int:
            raise NotVerified("log names no leaf")
        time_line = f"time {of.get('created_at')}"
        entry = f"broadside/entry@v1\n{kind}\nevent {command[:32]}\n{place}\n{time_line}\ncommand {command}\n{about}"
        self._claims.setdefault(origin, []).append((index, _leaf_hash(entry.encode()), number))

    def _take_leaves(self, line: Dict[str, Any]) -> None:
        hashes = _base64(line.get("hashes"), "hashes")
        if self._origin is None:
            self._origin = str(line.get("origin"))
        if line.get("origin") != self._origin or line.get("start") != len(self._leaves) or len(hashes) % 32:
            raise NotVerified("the leaves do not continue the previous ones")
        self._leaves.extend(hashes[at : at + 32] for at in range(0, len(hashes), 32))

    def _take_closed(self, line: Dict[str, Any]) -> None:
        """The end of a closed log: its key is what the log before named, and it names the next."""
        last, first, origin = _base64(line.get("close"), "close"), _base64(line.get("open"), "open"), line.get("origin")
        if origin != self._origin or not self._leaves or _leaf_hash(last) != self._leaves[-1]:
            raise NotVerified("the close entry is not the last leaf of the log")
        begun = _lines_in(first)
        # Of a log whose end is lost the next one says so, and no entry names its key.
        is_lost = begun.get("lost") == f"after {begun.get('size')}"
        following, _, vkey = (str(line.get("next")) if is_lost else _lines_in(last).get("next", "")).partition(" ")
        own = self._keys.get(str(origin))
        note = line.get("checkpoint")
        head = _checkpoint_in(note) if own is None else _open_checkpoint(note, own)
        self._end_log(head)
        named = (begun.get("previous"), begun.get("size"), begun.get("root"))
        if named != (head["origin"], str(head["size"]), head["root"].hex()):
            raise NotVerified("the first entry of the next log does not name the end of this one")
        if own is not None and not is_lost and _key_of(vkey)[0] == following:
            self._keys.setdefault(following, vkey)
        self._tie = following, _leaf_hash(first)

    def _take_end(self, line: Dict[str, Any]) -> None:
        origin = _checkpoint_in(line.get("checkpoint"))["origin"]
        if origin not in self._keys:
            raise NotVerified(f"the log is {origin}, whose key is not the one that is pinned")
        head = _open_checkpoint(line.get("checkpoint"), self._keys[origin])
        self._end_log(head)
        self._head = head

    def _end_log(self, head: Dict[str, Any]) -> None:
        """Every leaf of a log is there: its root, and what the lines say they are."""
        leaves = self._leaves
        if self._origin is not None and head["origin"] != self._origin:
            raise NotVerified("the checkpoint is of another log than the leaves")
        if self._tie is not None and (head["origin"] != self._tie[0] or not leaves or leaves[0] != self._tie[1]):
            raise NotVerified("the log is not the one that the closed log names")
        if head["size"] != len(leaves):
            raise NotVerified(f"the checkpoint covers {head['size']} leaves, not these")
        if _tree_root(leaves) != head["root"]:
            raise NotVerified("the root of the leaves is not the one that the checkpoint signs")
        for index, leaf, number in self._claims.pop(head["origin"], []):
            if not 0 <= index < len(leaves) or leaves[index] != leaf:
                raise NotVerified(f"its entry is not leaf {index} of the log", number)
        self._counts["leaves"] += len(leaves)
        self._leaves, self._origin, self._tie = [], None, None

    def end(self) -> Dict[str, Any]:
        if self._head is None:
            raise NotVerified("the export is not complete: it has no end")
        for claims in self._claims.values():
            raise NotVerified("it names a log whose leaves are not there", claims[0][2])
        return dict(self._counts, origin=self._head["origin"], size=self._head["size"])


def _dict(value: Any) -> Dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _is_hash(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[0-9a-f]{64}", value) is not None


def _open_payload(of: Dict[str, Any], stated: Optional[str] = None) -> Tuple[Dict[str, Any], str]:
    """The signed bytes as a command with their hash, if the line states the same."""
    text = of.get("signed_payload")
    if not isinstance(text, str):
        raise NotVerified("there is no signed_payload")
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
    if stated is not None and digest != stated:
        raise NotVerified("command_sha256 is not the hash of the signed bytes")
    opened = _dict(_parsed(text.encode("utf-8", "replace")))
    command = _dict(opened.get("command"))
    # One command has one spelling: otherwise two readers could read two things in the same bytes.
    try:
        is_canonical = signing_bytes(str(opened.get("service")), command) == text.encode()
    except (TypeError, UnicodeEncodeError):
        is_canonical = False
    if not is_canonical:
        raise NotVerified("the signed_payload is not in the form of signing bytes")
    return command, digest


def _check_signature(text: str, signature: Any, public_key: Any) -> None:
    names = (signature, public_key)
    if all(isinstance(each, str) and re.fullmatch(r"[A-Za-z0-9_-]{43}|[A-Za-z0-9_-]{86}", each) for each in names):
        if _is_signed(_bytes_of(public_key), _bytes_of(signature), text.encode()):
            return
    raise NotVerified("a signature does not verify")


def _key_of(vkey: str) -> Tuple[str, bytes]:
    """Name and public key of name+id+base64 (C2SP signed-note)."""
    found = re.fullmatch(r"([^+\s]+)\+[0-9a-f]{8}\+([A-Za-z0-9+/]{44})", vkey)
    material = base64.b64decode(found.group(2)) if found else b""
    if found is None or material[0] != 1:
        raise ValueError(f"{vkey} is not the key of a log")
    return found.group(1), material[1:]


def _checkpoint_in(note: Any) -> Dict[str, Any]:
    """The text of a signed note is an origin, a size and a root; nothing is verified yet."""
    parts = str(note).split("\n\n", 1)[0].split("\n")
    if len(parts) < 3 or not parts[0] or not re.fullmatch(r"0|[1-9][0-9]{0,15}", parts[1]):
        raise NotVerified("the checkpoint cannot be read")
    if not re.fullmatch(r"[A-Za-z0-9+/]{43}=", parts[2]):
        raise NotVerified("the checkpoint cannot be read")
    return {"origin": parts[0], "size": int(parts[1]), "root": base64.b64decode(parts[2])}


def _open_checkpoint(note: Any, vkey: str) -> Dict[str, Any]:
    name, public = _key_of(vkey)
    head = _checkpoint_in(note)
    text, _, signatures = str(note).partition("\n\n")
    for line in signatures.split("\n"):
        found = re.fullmatch(r"\u2014 (\S+) ([A-Za-z0-9+/]+={0,2})", line)
        if found is None or found.group(1) != name or len(found.group(2)) % 4:
            continue
        data = base64.b64decode(found.group(2))
        if len(data) == 68 and head["origin"] == name and _is_signed(public, data[4:], (text + "\n").encode()):
            return head
    raise NotVerified("the checkpoint is not signed by the key that is pinned")


def _tree_root(leaves: List[bytes]) -> bytes:
    """RFC 9162 section 2.1.1: pairs of each level, and the last alone where they are odd."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    level = leaves
    while len(level) > 1:
        pairs = range(0, len(level), 2)
        level = [_node_hash(level[n], level[n + 1]) if n + 1 < len(level) else level[n] for n in pairs]
    return level[0]


def _leaf_hash(entry: bytes) -> bytes:
    return hashlib.sha256(b"\0" + entry).digest()


def _node_hash(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\1" + left + right).digest()


def _lines_in(entry: bytes) -> Dict[str, str]:
    """The lines of a log entry by their first word."""
    lines = entry.decode("utf-8", "replace").split("\n")
    if lines[0] != "broadside/entry@v1" or lines[-1] != "":
        raise NotVerified("an entry cannot be read")
    return {name: rest for name, _, rest in (line.partition(" ") for line in lines[1:-1])}


def _base64(text: Any, what: str) -> bytes:
    if not isinstance(text, str) or not re.fullmatch(r"[A-Za-z0-9+/]*={0,2}", text) or len(text) % 4:
        raise NotVerified(f"{what} is not base64")
    return base64.b64decode(text)


def _bytes_of(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _main(arguments: List[str]) -> int:
    """python3 broadside.py ADDRESS OPERATION [name=value ...]: runs an operation with the key in broadside-key.json, which is
    made when there is none, and prints the answer as JSON."""
    if len(arguments) < 2 or not all("=" in each for each in arguments[2:]):
        print("usage: python3 broadside.py ADDRESS OPERATION [name=value ...]", file=sys.stderr)
        return 2
    address, operation, *given = arguments
    try:
        board = connect(address, os.environ.get("BROADSIDE_KEY") or "broadside-key.json")
        answer = board.call(operation, **board.typed(operation, dict(each.split("=", 1) for each in given)))
    except (BoardError, NoAnswer, ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    print(json.dumps(answer, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
