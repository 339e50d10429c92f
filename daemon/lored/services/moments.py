"""The daemon's clock and zone, and dates of callers as instants.

The only place of the services that asks what time it is.
"""

import os
import time
from datetime import UTC, datetime, tzinfo
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from lore.errors import Invalid
from lored.core.clock import Micros, parse_when

_LOCALTIME: Final = "/etc/localtime"


def now() -> Micros:
    """Microseconds UTC, whole milliseconds: as exact as the wire shows them, so that a time that
    was shown can be asked about."""
    return time.time_ns() // 1_000_000 * 1_000


def zone() -> tzinfo:
    """The user's time zone with its rules (TZ, else /etc/localtime), else today's offset."""
    name = os.environ.get("TZ", "").lstrip(":")
    if not name:
        try:
            name = os.readlink(_LOCALTIME).rpartition("zoneinfo/")[2]
        except OSError:
            name = ""
    if name and not name.startswith("/"):
        try:
            return ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            pass
    return datetime.now(UTC).astimezone().tzinfo or UTC


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
