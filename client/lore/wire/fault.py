"""Errors on the wire: `LoreError` to a wire value and back, in both forms.

The pair `[kind, "code: text"]` is what MessagePack-RPC peers show: Neovim prints only text
or exactly `[0 or 1, text]`. The map `{code, message, data, retryable}` goes to a client that
asked for it in `hello`. No traceback crosses: anything but a `LoreError` is a defect that
the caller logs and answers as `Internal` with a request id.
"""

from lore.errors import BY_CODE, Internal, LoreError, from_code

FAILED, INVALID_REQUEST = 0, 1
"""Kinds of the pair: Neovim's two error types (exception, validation)."""


def to_wire(error: LoreError, form: str = "pair") -> object:
    """The wire value of an error; `form` is `pair` or `map`. Lone surrogates are replaced."""
    message = _clean(error.message)
    if form == "map":
        value: dict[str, object] = {
            "code": error.code,
            "message": message,
            "retryable": bool(error.retryable),
        }
        if error.data:
            value["data"] = error.data
        return value
    kind = INVALID_REQUEST if error.code == "invalid" else FAILED
    return [kind, f"{error.code}: {message}"]


def from_wire(value: object) -> LoreError:
    """The typed error of a wire value in either form; never raises.

    A code of a newer daemon becomes `Internal` with the code in `data`; so does a shape that
    is none of ours, with its printed form as the message.
    """
    if isinstance(value, dict):
        code, message, data = value.get("code"), value.get("message"), value.get("data")
        error = _typed(str(code), str(message), data if isinstance(data, dict) else {})
        if isinstance(value.get("retryable"), bool):
            error.retryable = value["retryable"]
        return error
    if isinstance(value, list) and len(value) == 2 and isinstance(value[1], str):
        code, colon, message = value[1].partition(": ")
        if colon and code in BY_CODE:
            return _typed(code, message, {})
        return Internal(value[1])
    return Internal(value if isinstance(value, str) else f"unknown error form: {value!r:.200}")


def _typed(code: str, message: str, data: dict[str, object]) -> LoreError:
    if code not in BY_CODE:
        data = {**data, "code": code}
    return from_code(code, message, data)


def _clean(text: str) -> str:
    if text.isascii():
        return text
    return text.encode("utf-8", "replace").decode()
