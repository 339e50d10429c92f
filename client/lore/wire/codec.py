"""Bytes to messages and back: the sans-io codec of one side of one connection.

Reading goes in three steps. The C decoder cuts the stream into values; it is fed pieces of
at most 64 KiB and emptied after each, so that its buffer never holds more than one
incomplete message plus a piece. The envelope (array, type, id, method, parameters) is then
taken apart. In the daemon each value is held to the rules of the wire last (messages.check);
the client skips that, since the daemon's encoder has asserted them.

Failures are of two kinds. A message that breaks a rule but leaves the stream in step (a
string that is not UTF-8, a binary value, a wrong envelope) becomes a `BadMessage`: that
request alone is refused. What makes the stream untrustworthy (bytes that are not
MessagePack, a value that is no message, one over its size or depth limit) raises
`FramingError`, and the codec refuses all further bytes: a decoder that is used again after
an error has crashed processes (CVE-2026-57585) and reads bytes of strings as values.

Strings are decoded with surrogateescape, because a strict decoder is out of step after a
bad string: Vim sends Latin-1 as it stands.
"""

from msgpack import Unpacker, packb

from lore.errors import Invalid, Limit, Unavailable
from lore.wire.limits import CONTAINER_ENTRIES, READ_BYTES, REQUEST_BYTES, RESPONSE_BYTES
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
    TooDeep,
    check,
)

FAST = Unpacker.__module__.endswith("_cmsgpack")
"""Whether msgpack's C decoder is in use. The Python one needs 49 s for a 20 MB message."""

_LENGTHS = {REQUEST: 4, RESPONSE: 4, NOTIFICATION: 3}


class Codec:
    """The reading side of one connection.

    `role` is `daemon` (reads requests: 1 MiB each, 10,000 entries a container, every rule
    checked) or `client` (reads responses: 8 MiB). Raises `Unavailable` in the daemon role
    when msgpack lacks its C part.
    """

    __slots__ = ("_checked", "_failure", "_limit", "_taken", "_unpacker")

    def __init__(self, role: str) -> None:
        if role not in ("daemon", "client"):
            raise ValueError(f"role {role!r}: daemon or client")
        self._checked = role == "daemon"
        if self._checked and not FAST:
            raise Unavailable(
                "msgpack runs in pure Python here, too slow for a daemon; "
                "reinstall it with its C extension: pip install --force-reinstall msgpack"
            )
        self._limit = REQUEST_BYTES if self._checked else RESPONSE_BYTES
        entries = CONTAINER_ENTRIES if self._checked else self._limit
        self._unpacker = Unpacker(
            raw=False,
            strict_map_key=True,
            unicode_errors="surrogateescape" if self._checked else "strict",
            max_buffer_size=self._limit + READ_BYTES,
            max_array_len=entries,
            max_map_len=entries,
        )
        self._taken = 0
        self._failure: str | None = None

    def feed(self, data: "bytes | bytearray | memoryview") -> list[Message]:
        """Take the next bytes of the stream, any amount; return the messages they complete.

        Raises `FramingError` when the stream cannot go on, now and on every later call; the
        messages ahead of the failure are in its `before`.
        """
        if self._failure is not None:
            raise FramingError(self._failure)
        messages: list[Message] = []
        view = memoryview(data)
        try:
            for start in range(0, len(view), READ_BYTES):
                self._drain(view[start : start + READ_BYTES], messages)
        except FramingError as error:
            self._failure = error.reason
            error.before = messages
            raise
        return messages

    def _drain(self, piece: memoryview, messages: list[Message]) -> None:
        unpacker = self._unpacker
        try:
            unpacker.feed(piece)
        except Exception:  # BufferFull: an incomplete message fills the buffer
            raise self._too_large() from None
        while True:
            try:
                value = unpacker.unpack()
            except Exception as error:
                if type(error).__name__ == "OutOfData":
                    return
                # The decoder raises a dozen types for bytes that are not MessagePack.
                raise FramingError(
                    f"not a MessagePack stream within limits: {str(error) or type(error).__name__}"
                ) from None
            end = unpacker.tell()
            size, self._taken = end - self._taken, end
            if size > self._limit:
                raise self._too_large()
            messages.append(self._open(value))

    def _too_large(self) -> FramingError:
        return FramingError(f"message larger than {self._limit} bytes", "limit")

    def _open(self, value: object) -> Message:
        """Take the envelope apart; `FramingError` for what is no message at all."""
        if type(value) is not list or not value:
            raise FramingError("not a message: expected an array [type, ...]")
        kind = value[0]
        if type(kind) is not int or kind not in _LENGTHS:
            raise FramingError("not a message: its first element must be 0, 1 or 2")
        message_id: int | None = None
        if kind != NOTIFICATION and len(value) > 1:
            message_id = value[1]
            if type(message_id) is not int or not 0 <= message_id <= ID_MAX:
                message_id = None
        asker = message_id if kind == REQUEST else None
        if self._checked:
            try:
                check(value, depth=_WHOLE)
            except TooDeep as error:
                raise FramingError(str(error), "limit", asker) from None
            except ValueError as error:
                return BadMessage(asker, str(error))
        if len(value) != _LENGTHS[kind]:
            return BadMessage(asker, f"a message of type {kind} has {_LENGTHS[kind]} elements")
        if kind == NOTIFICATION:
            return self._call(None, value[1], value[2])
        if message_id is None:
            return BadMessage(None, f"message id must be an integer from 0 to {ID_MAX}")
        if kind == RESPONSE:
            return Response(message_id, value[2], value[3])
        return self._call(message_id, value[2], value[3])

    @staticmethod
    def _call(message_id: "int | None", method: object, params: object) -> Message:
        if type(method) is not str:
            return BadMessage(message_id, "method name must be text")
        named: dict[str, object]
        if params == [] or params == [[]]:
            named = {}  # Lua writes an empty table as an empty array
        elif type(params) is list and len(params) == 1 and type(params[0]) is dict:
            named = params[0]
        else:
            return BadMessage(message_id, "parameters must be an array with one map: [{...}]")
        if message_id is None:
            return Notification(method, named)
        return Request(message_id, method, named)


_WHOLE = check.__defaults__[0] + 1  # type: ignore[index]  # the message array counts


def encode_request(message_id: int, method: str, params: dict[str, object]) -> bytes:
    """The bytes of a call. Raises `Invalid` for a value that may not cross, `Limit` for size."""
    _assert_plain(params, depth=_WHOLE - 2)
    return _pack([REQUEST, message_id, method, [params]], REQUEST_BYTES, "request")


def encode_notification(
    method: str, params: dict[str, object], limit: int = RESPONSE_BYTES
) -> bytes:
    """The bytes of a message without answer; `limit` in bytes. Raises as `encode_request`."""
    _assert_plain(params, depth=_WHOLE - 2)
    return _pack([NOTIFICATION, method, [params]], limit, "notification")


def encode_response(message_id: int, result: object) -> bytes:
    """The bytes of an answer. Raises `Invalid` or `Limit` (then answer that error instead)."""
    _assert_plain(result, depth=_WHOLE - 1)
    return _pack([RESPONSE, message_id, None, result], RESPONSE_BYTES, "result")


def encode_error(message_id: int, error: object) -> bytes:
    """The bytes of a refusal; `error` is a wire form made by fault.to_wire."""
    _assert_plain(error, depth=_WHOLE - 1)
    return _pack([RESPONSE, message_id, error, None], RESPONSE_BYTES, "error")


def _assert_plain(value: object, depth: int) -> None:
    try:
        check(value, depth)
    except ValueError as error:
        raise Invalid(f"cannot be sent: {error}") from None


def _pack(message: list[object], limit: int, what: str) -> bytes:
    data: bytes = packb(message)
    if len(data) > limit:
        raise Limit(f"{what} of {len(data)} bytes is larger than the limit of {limit} bytes")
    return data
