"""Whether a disk has room: asked when a store cannot be opened, since SQLite says several things
about a full disk (no log, no shared memory, no journal), some of which have other causes too.
"""

import errno
import os
import tempfile
from typing import Final

ROOM_BYTES: Final = 256 << 10
"""What opening a store for writing needs at most: its shared memory and the first log pages."""

FULL: Final = "database or disk is full"
"""SQLite's own words (sqlite3_errstr), by which the daemon's refusals know a full disk."""

_SHORT: Final = (errno.ENOSPC, errno.EDQUOT)


def is_short(folder: str) -> bool:
    """Whether `ROOM_BYTES` cannot be written in ``folder``."""
    try:
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            left = ROOM_BYTES
            while left:
                left -= file.write(os.urandom(left))  # which no file system stores as a hole
    except OSError as error:
        return error.errno in _SHORT
    return False
