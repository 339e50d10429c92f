"""A mark beside a store in which damage was met, so that all of it is looked at.

Opening a large store reads a few of its pages only; a damaged one further in shows when a call
meets it. The store is then checked and healed while the daemon runs (registry.py). The mark, an
empty file `<store>.suspect`, lets the next start do so where that did not come to its end; it
goes once the store was checked.
"""

import contextlib
import os

from lored.store import driver


def is_damage(error: Exception) -> bool:
    """Whether the driver speaks of the file's content, not of disk, rights or locks."""
    text = str(error).lower()
    return any(
        sign in text
        for sign in ("malformed", "not a database", "corrupt", "unsupported file format")
    )


def note(path: str, error: BaseException) -> bool:
    """Mark the store at ``path`` if the error that it gave speaks of damage; whether it does."""
    damaged = isinstance(error, driver.DatabaseError) and is_damage(error)
    if damaged:
        mark(path)
    return damaged


def mark(path: str) -> None:
    """The store at ``path`` may be damaged."""
    with contextlib.suppress(OSError):
        os.close(os.open(path + ".suspect", os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600))


def is_marked(path: str) -> bool:
    """Whether damage was met in the store at ``path``."""
    return os.path.lexists(path + ".suspect")


def clear(path: str) -> None:
    """The store was checked."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path + ".suspect")
