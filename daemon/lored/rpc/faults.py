"""Exceptions of the layers below as errors of the wire, each with its remedy.

Only what a user can act on is translated; anything else is a defect of ours, which dispatch
logs and answers as `internal`.
"""

import errno
from typing import Final

from lore.errors import Busy, Invalid, LoreError, Timeout, Unavailable
from lored.store import driver
from lored.store.database import StoreBusy
from lored.store.migrate import ForeignFile, NewerSchema

STORE_RETRY_MS: Final = 500
"""After which a store with a full queue has worked off some of it."""

_CORRUPT: Final = (
    "corrupt",
    "a store is damaged; it is checked and, if need be, set aside and restored now (nothing is "
    "deleted): try again in a moment; where this stays, run: lore restart",
)

_REMEDIES: Final = (
    # text of SQLite's message, (name of the degraded mode, what to do)
    ("disk is full", ("disk_full", "the disk is full; free space, nothing was stored")),
    ("readonly", ("read_only", "the store cannot be written; make its file system writable")),
    ("malformed", _CORRUPT),
    ("corrupt", _CORRUPT),  # what FTS5 says of its own pages
    ("not a database", _CORRUPT),
    ("disk i/o", ("io_error", "the disk reported an error; check it, then: lore doctor")),
    ("unable to open", ("no_open", "a store cannot be opened; check permissions and free space")),
    ("locked", ("locked", "another program holds a store of lored open; end it and try again")),
)

_ERRNO: Final = {
    errno.ENOSPC: _REMEDIES[0][1],
    errno.EDQUOT: ("disk_full", "the disk quota is used up; free space, nothing was stored"),
    errno.EROFS: _REMEDIES[1][1],
    errno.EMFILE: ("no_files", "too many open files; raise LimitNOFILE (ulimit -n) and restart"),
    errno.ENFILE: ("no_files", "the system has too many open files"),
    errno.EIO: _REMEDIES[4][1],
}


def translate(error: BaseException) -> LoreError | None:
    """The wire error for an exception of store, driver or operating system; None if unknown.

    ``data['degraded']`` names the degraded mode that `status` then shows.
    """
    if isinstance(error, StoreBusy):
        return Busy(f"{error}; try again", {"retry_after_ms": STORE_RETRY_MS})
    if isinstance(error, NewerSchema | ForeignFile):
        return Unavailable(str(error), {"degraded": "store_refused"})
    if isinstance(error, driver.Error):
        text = str(error).lower()
        if "interrupted" in text:
            return Timeout("the search was interrupted")
        for words, (name, remedy) in _REMEDIES:
            if words in text:
                return Unavailable(remedy, {"degraded": name})
        return None
    if isinstance(error, ValueError) and "null byte" in str(error):
        return Invalid("a path holds a NUL character; no file has such a name")
    if isinstance(error, OSError) and error.errno in _ERRNO:
        name, remedy = _ERRNO[error.errno]
        return Unavailable(remedy, {"degraded": name})
    return None
