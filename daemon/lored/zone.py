"""The user's time zone, for the daemon and for its worker.

Owns where it is looked up; what it is used for is arithmetic (`core.clock`).
"""

import os
from datetime import UTC, datetime, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_LOCALTIME: Final = "/etc/localtime"


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
