"""The daemon's clock and zone, and dates of callers as instants.

The only place of the services that asks what time it is.
"""

import time
from typing import Any

from lore.errors import Invalid
from lored.core.clock import Micros, parse_when
from lored.zone import zone

__all__ = ["instant", "now", "zone"]


def now() -> Micros:
    """Microseconds UTC, whole milliseconds: as exact as the wire shows them, so that a time that
    was shown can be asked about."""
    return time.time_ns() // 1_000_000 * 1_000


def instant(params: dict[str, Any], name: str, at: Micros, *, end: bool = False) -> Micros | None:
    """The date parameter ``name`` as microseconds, None when it is absent.

    Raises `Invalid` that names the parameter and what is understood.
    """
    text = params.get(name)
    if text is None:
        return None
    try:
        return parse_when(text, now=at, zone=zone(), end=end)
    except ValueError as error:
        raise Invalid(f"{name}: {error}", {"parameter": name}) from None
