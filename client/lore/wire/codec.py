"""Bytes to messages and back: the sans-io codec of one side of one connection.

Reading goes in three steps. The framer finds where each message ends and holds it to the
limits of size (framing.py). Each whole message is decoded by itself. Then its envelope (array,
type, id, method, parameters) is taken apart and, in the daemon, the parameters are held to
the rules of the wire; the client skips that, since the daemon's encoder asserts them.

Failures are of two kinds. A message that breaks a rule but has an end (a string that is not
UTF-8, a binary value, an integer key, a wrong envelope) becomes a `BadMessage`: that request
alone is refused. What makes the stream untrustworthy (bytes that are not MessagePack, a value
that is no message, one beyond a limit) raises `FramingError`, and the codec refuses all
further bytes. No decoder is ever used again after an error, which has crashed processes
(CVE-2026-57585) and reads bytes of strings as values.
"""

from msgpack import Unpacker, packb, unpackb

from lore.errors import Invalid, Limit, Unavailable
from lore.wire.framing import Framer
from lore.wire.limits import CONTAINER_ENTRIES, DEPTH, REQUEST_BYTES, RESPONSE_BYTES, VALUES
from lore.wire.messages import (
    ID_MAX,
    NOTIFICATION,
    REQUEST,
    RESPONSE,
    BadMessage,
    FramingError,
    Message,
    Notification,
    Request,
    Response,
    check,
)

FAST = Unpacker.__module__.endswith("_cmsgpack")
"""Whether msgpack's C decoder is in use; the Python one is 50 times slower."""

_LENGTHS = {REQUEST: 4, RESPONSE: 4, NOTIFICATION: 3}

_NOT_UTF8 = "text is not valid UTF-8"


class Codec:
    """The reading side of one connection.

    `role` is `daemon` (reads requests: 1 MiB each, every rule checked) or `client` (reads
    responses: 8 MiB). Raises `Unavailable` in the daemon role when msgpack lacks its C part.
    """

    __slots__ = ("_checked", "_failure", "_framer")

    def __init__(self, role: str) -> None:
        if role not in ("daemon", "client"):
            raise ValueError(f"role {role!r}: daemon or client")
        self._checked = role == "daemon"
        if self._checked and not FAST:
            raise Unavailable(
                "msgpack runs in pure Python here, too slow for a daemon; "
                "reinstall it with its C extension: pip install --force-reinstall msgpack"
            )
        if self._checked:
            self._framer = Framer(REQUEST_BYTES, CONTAINER_ENTRIES, VALUES, DEPTH)
        else:
            self._framer = Framer(RESPONSE_BYTES, RESPONSE_BYTES, RESPONSE_BYTES, DEPTH)
        self._failure: str | None = None

    def feed(self, data: "bytes | bytearray | memoryview") -> list[Message]:
        """Take the next bytes of the stream, any amount; return the messages they complete.

        Raises `FramingError` when the stream cannot go on, now and on every later call; the
        messages ahead of the failure are in its `before`.
        """
        if self._failure is not None:
            raise FramingError(self._failure)
        messages: list[Message] = []
        whole: list[bytes] = []
        failure: FramingError | None = None
        try:
            self._framer.feed(data, whole)
        except FramingError as error:
            failure = error
            error.request_id = asker_of(self._framer.beginning())
        try:
            for raw in whole:
                messages.append(self._open(raw))  # noqa: PERF401 - those before a failure count
        except FramingError as error:
            failure = error
        if failure is not None:
            self._failure = failure.reason
            failure.before = messages
            raise failure
        return messages

    def _open(self, raw: bytes) -> Message:
        """Decode one whole message; `FramingError` for what is no message at all."""
        try:
            value = unpackb(raw, raw=False, strict_map_key=False)
        except Exception as error:
            # A dozen types: UnicodeDecodeError, TypeError for a key that is an array, ...
            bad_text = isinstance(error, UnicodeDecodeError)
            return BadMessage(asker_of(raw), _NOT_UTF8 if bad_text else f"not readable: {error}")
        kind = value[0] if value else None
        if type(kind) is not int or kind not in _LENGTHS:
            raise FramingError("not a message: its first element must be 0, 1 or 2")
        message_id: int | None = None
        if kind != NOTIFICATION and len(value) > 1 and _is_id(value[1]):
            message_id = value[1]
        if len(value) != _LENGTHS[kind]:
            asker = message_id if kind == REQUEST else None
            return BadMessage(asker, f"a message of type {kind} has {_LENGTHS[kind]} elements")
        if kind == NOTIFICATION:
            return self._open_call(None, value[1], value[2])
        if message_id is None:
            return BadMessage(None, f"message id must be an integer from 0 to {ID_MAX}")
        if kind == RESPONSE:
            return Response(message_id, value[2], value[3])
        return self._open_call(message_id, value[2], value[3])

    def _open_call(self, message_id: "int | None", method: object, params: object) -> Message:
        if type(method) is not str:
            return BadMessage(message_id, "method name must be text")
        named: dict[str, object]
        if type(params) is list and len(params) == 1 and type(params[0]) is dict:
            named = params[0]
            if self._checked and named:
                try:
                    check(named, DEPTH - 2)
                except ValueError as error:
                    return BadMessage(message_id, str(error))
        elif params == [] or params == [[]]:
            named = {}  # Lua writes an empty table as an empty array
        else:
            return BadMessage(message_id, "parameters must be an array with one map: [{...}]")
        if message_id is None:
            return Notification(method, named)
        return Request(message_id, method, named)


def _is_id(value: object) -> bool:
    return type(value) is int and 0 <= value <= ID_MAX


def asker_of(beginning: bytes) -> "int | None":
    """The id in the first bytes of a request that cannot be read whole; None if none is there."""
    unpacker = Unpacker()
    unpacker.feed(beginning[:32])
    try:
        unpacker.read_array_header()
        kind, message_id = unpacker.unpack(), unpacker.unpack()
    except Exception:  # whatever stands there, it is no id
        return None
    return message_id if kind == REQUEST and _is_id(message_id) else None


def encode_request(message_id: int, method: str, params: dict[str, object]) -> bytes:
    """The bytes of a call. Raises `Invalid` for a value that may not cross, `Limit` for size."""
    _assert_plain(params, DEPTH - 2)
    return _pack([REQUEST, message_id, method, [params]], REQUEST_BYTES, "request")


def encode_notification(
    method: str, params: dict[str, object], limit: int = RESPONSE_BYTES
) -> bytes:
    """The bytes of a message without answer; `limit` in bytes. Raises as `encode_request`."""
    _assert_plain(params, DEPTH - 2)
    return _pack([NOTIFICATION, method, [params]], limit, "notification")


def encode_response(message_id: int, result: object) -> bytes:
    """The bytes of an answer. Raises `Invalid` or `Limit` (then answer that error instead)."""
    _assert_plain(result, DEPTH - 1)
    return _pack([RESPONSE, message_id, None, result], RESPONSE_BYTES, "result")


def encode_error(message_id: int, error: object) -> bytes:
    """The bytes of a refusal; `error` is a wire form made by fault.to_wire."""
    _assert_plain(error, DEPTH - 1)
    return _pack([RESPONSE, message_id, error, None], RESPONSE_BYTES, "error")


def _assert_plain(value: object, depth: int) -> None:
    try:
        check(value, depth)
    except ValueError as error:
        raise Invalid(f"cannot be sent: {error}") from None


def _pack(message: list[object], limit: int, what: str) -> bytes:
    try:
        data: bytes = packb(message)
    except UnicodeEncodeError:
        raise Invalid(f"cannot be sent: {_NOT_UTF8}") from None
    if len(data) > limit:
        raise Limit(f"{what} of {len(data)} bytes is larger than the limit of {limit} bytes")
    return data
