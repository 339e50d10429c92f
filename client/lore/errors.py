"""The error tree that client and daemon share: one class a wire code.

Owns the codes of the protocol (see wire/fault.py for their wire form). Imports nothing,
so that a shim can load it at no cost.
"""


class LoreError(Exception):
    """Any refusal or failure of a call.

    ``code`` is the wire code, ``message`` one sentence that names the object and the next
    step, ``data`` a map of details (strings, numbers, lists), ``retryable`` whether the same
    call may succeed later without any change.
    """

    code = "internal"
    retryable = False

    def __init__(self, message: str, data: "dict[str, object] | None" = None) -> None:
        super().__init__(message)
        self.message = message
        self.data: dict[str, object] = data or {}

    def __str__(self) -> str:
        return self.message


class Invalid(LoreError):
    """The request itself is wrong: unknown parameter, wrong type, out of range."""

    code = "invalid"


class NotFound(LoreError):
    """The named object does not exist in the scope asked."""

    code = "not_found"


class Ambiguous(LoreError):
    """The name fits several objects; ``data['candidates']`` lists them."""

    code = "ambiguous"


class Conflict(LoreError):
    """The state of the object forbids the change (already resolved, cycle, ...)."""

    code = "conflict"


class Busy(LoreError):
    """A named bound is reached for now; try again."""

    code = "busy"
    retryable = True


class Limit(LoreError):
    """Too large for a named limit; the message states the limit."""

    code = "limit"


class Timeout(LoreError):
    """The deadline of the call passed before an answer."""

    code = "timeout"
    retryable = True


class Unavailable(LoreError):
    """No daemon, or a part of it cannot work now; the message names the remedy."""

    code = "unavailable"
    retryable = True


class Incompatible(LoreError):
    """Protocol or schema versions do not fit; the message says which side to upgrade."""

    code = "incompatible"


class ShuttingDown(LoreError):
    """The daemon is draining; connect again."""

    code = "shutting_down"
    retryable = True


class Internal(LoreError):
    """A defect of ours; ``data['request_id']`` finds it in the log."""

    code = "internal"


BY_CODE: "dict[str, type[LoreError]]" = {
    kind.code: kind
    for kind in (
        Invalid,
        NotFound,
        Ambiguous,
        Conflict,
        Busy,
        Limit,
        Timeout,
        Unavailable,
        Incompatible,
        ShuttingDown,
        Internal,
    )
}


def from_code(code: str, message: str, data: "dict[str, object] | None" = None) -> LoreError:
    """The typed error for a wire code; an unknown code (a newer daemon) is `Internal`."""
    return BY_CODE.get(code, Internal)(message, data)
