"""Times as transcripts write them -> the one form that records carry."""

from datetime import datetime
from typing import Any

from lored.core.clock import parse_instant, to_wire


def instant(value: Any) -> str | None:
    """ISO-8601 UTC text with `Z` of a timestamp in any form that agents write (ISO with or
    without zone, epoch seconds, epoch milliseconds); None when it is no usable time."""
    if type(value) is str and value[-1:] == "Z" and value[10:11] == "T" and len(value) < 32:
        try:
            datetime.fromisoformat(value)
        except ValueError:
            return None
        return value
    micros = parse_instant(value)
    return None if micros is None else to_wire(micros)
