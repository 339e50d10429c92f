"""Results and errors as bytes, in the form that a client gets. Pure."""

from typing import Any, Final

from lore.errors import LoreError
from lore.wire import fault
from lore.wire.codec import encode_error, encode_response

LONGEST_MESSAGE: Final = 1000
"""Characters of an error's message when its data could not be sent."""

_CONTAINERS: Final = (dict, list, tuple)


def result_bytes(message_id: int, result: dict[str, Any]) -> bytes:
    """A response; keys without a value are left out. Raises `Limit` or `Invalid`."""
    return encode_response(message_id, prune(result))


def error_bytes(message_id: int, error: LoreError, form: str) -> bytes:
    """A refusal in one of the two forms (`pair`, `map`); never raises."""
    try:
        return encode_error(message_id, fault.to_wire(error, form))
    except LoreError:  # data of the error that may not cross
        bare = type(error)(error.message[:LONGEST_MESSAGE])
        return encode_error(message_id, fault.to_wire(bare, form))


def prune(value: Any) -> Any:
    """A copy without the map keys whose value is None, at any depth."""
    if type(value) is dict:
        return {
            key: prune(item) if type(item) in _CONTAINERS else item
            for key, item in value.items()
            if item is not None
        }
    return [prune(item) if type(item) in _CONTAINERS else item for item in value]
