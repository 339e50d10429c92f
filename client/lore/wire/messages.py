"""The messages of the wire as plain values, and the rules every value in them must keep.

Owns the three MessagePack-RPC shapes (request, response, notification), the outcome for a
message that is refused without harm to the stream, and the failure that ends a stream.
No bytes here (see codec.py) and no meaning of methods (see methods.py). Classes are written
out, without dataclasses or typing: those two cost more than a whole call (15 ms).
"""

from lore.wire.limits import DEPTH, INTEGER_MAX

REQUEST, RESPONSE, NOTIFICATION = 0, 1, 2
"""First element of a message (MessagePack-RPC specification)."""

ID_MAX = (1 << 32) - 1
"""Message ids are unsigned 32-bit (MessagePack-RPC specification)."""


class _Message:
    """Equality and printing for the slotted values below, which nothing changes once made."""

    __slots__: tuple[str, ...] = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Message) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        kind = type(self)
        fields = (f"{name}={getattr(self, name)!r}" for name in kind.__slots__)
        return f"{kind.__name__}({', '.join(fields)})"

    def _values(self) -> list[object]:
        kind = type(self)
        return [kind.__name__, *(getattr(self, name) for name in kind.__slots__)]


class Request(_Message):
    """A call that wants one answer: id (0 to 2^32-1), method name, parameters by name."""

    __slots__ = ("id", "method", "params")

    def __init__(self, id: int, method: str, params: dict[str, object]) -> None:  # noqa: A002
        self.id, self.method, self.params = id, method, params


class Response(_Message):
    """The answer to the request `id`: `error` (wire form, see fault.py) or else `result`."""

    __slots__ = ("error", "id", "result")

    def __init__(self, id: int, error: object, result: object) -> None:  # noqa: A002
        self.id, self.error, self.result = id, error, result


class Notification(_Message):
    """A message without an answer: method name and parameters by name."""

    __slots__ = ("method", "params")

    def __init__(self, method: str, params: dict[str, object]) -> None:
        self.method, self.params = method, params


class BadMessage(_Message):
    """A refused message in a stream that is still in step.

    `id` is that of the request to answer with `invalid: reason`; None when there is nobody
    to answer (a notification, a response, or a request without a usable id).
    """

    __slots__ = ("id", "reason")

    def __init__(self, id: "int | None", reason: str) -> None:  # noqa: A002
        self.id, self.reason = id, reason


Message = Request | Response | Notification | BadMessage


class FramingError(Exception):
    """The byte stream cannot be trusted any more: close it and drop its codec.

    `reason` is one sentence; `code` the wire code that fits (`invalid` or `limit`);
    `request_id` the request that may be told before closing, if it is known; `before` the
    messages of the same piece of bytes that came complete ahead of the failure.
    """

    def __init__(self, reason: str, code: str = "invalid", request_id: "int | None" = None) -> None:
        super().__init__(reason)
        self.reason, self.code, self.request_id = reason, code, request_id
        self.before: list[Message] = []


def check(value: object, depth: int) -> None:
    """Hold a value (a result, or the parameters of a message) to the rules of the wire.

    Text keys; integers within +-(2^53-1); finite numbers; no binary, extension or other types.
    That text is valid UTF-8 is left to encoder and decoder, which see it anyway. `depth` is
    how many levels of containers may still open. Raises `ValueError` with the broken rule.
    """
    kind = type(value)
    if kind is dict:
        if depth <= 0:
            raise ValueError(f"nested deeper than {DEPTH} levels")
        for key, item in value.items():  # type: ignore[attr-defined]
            if type(key) is not str:
                raise ValueError(f"map key of type {type(key).__name__}; keys are text")
            if type(item) is not str:
                check(item, depth - 1)
    elif kind is list or kind is tuple:
        if depth <= 0:
            raise ValueError(f"nested deeper than {DEPTH} levels")
        for item in value:  # type: ignore[attr-defined]
            if type(item) is not str:
                check(item, depth - 1)
    elif kind is int:
        if not -INTEGER_MAX <= value <= INTEGER_MAX:  # type: ignore[operator]
            raise ValueError("integer beyond +-(2^53-1); send it as text")
    elif kind is float:
        if value - value != 0.0:  # type: ignore[operator]  # inf and nan are not zero
            raise ValueError("number that is not finite")
    elif value is not None and kind is not str and kind is not bool:
        if kind is bytes:
            raise ValueError("binary value; send text")
        raise ValueError(f"value of type {kind.__name__}; only plain data crosses the wire")
