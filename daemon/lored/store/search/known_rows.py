"""Rows of words and phrases of a text index, kept in memory between questions.

An index only grows, but for rows that get other words (facts with other labels, messages read
again) or are forgotten for good; `store.search.text` counts those (`TEXT_EPOCH`), and what was
read under another count is not used. So a list needs only the rows added since it was read. A
list read by a newer snapshot serves an older one too: whoever asks drops rows that have no text
there. The words that stand in many rows cost most to read, and are those asked again.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lored.store.driver import Connection

Ids = NDArray[np.int32]
Read = Callable[[int], Ids]
"""The ascending rows above a given one."""

TEXT_EPOCH: Final = "text_epoch"
"""Key in `meta`: how often words were taken out of the text index."""

KEPT_ROWS: Final = 2_000_000
"""Rows of all lists together, 8 MB; the lists asked longest ago go first."""

LIST_ROWS: Final = 128
"""What a list counts beyond its rows (key, array, entry of the table: some 500 bytes), so that
many words that stand nowhere are bounded, too."""


@dataclass(frozen=True, slots=True)
class _Known:
    rows: Ids
    above: int
    """The list has the rows above this one,"""
    highest: int
    """up to this one."""


class KnownRows:
    """The lists that were read lately, by store, epoch and expression."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, int, str], _Known] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def get(self, state: tuple[str, int], expression: str, above: int, end: int, read: Read) -> Ids:
        """The rows above ``above`` that have ``expression`` in the store and epoch of ``state``,
        whose highest row is ``end``; ``read`` asks the index."""
        key = (*state, expression)
        with self._lock:
            known = self._known.get(key)
        if known is None or known.above > above:
            known = _Known(read(above), above, end)
        elif known.highest < end:
            newer = read(known.highest)
            known = _Known(np.concatenate((known.rows, newer)), known.above, end)
        self._keep(key, known)
        if known.above == above:
            return known.rows
        return known.rows[np.searchsorted(known.rows, np.int32(above), side="right") :]

    def _keep(self, key: tuple[str, int, str], known: _Known) -> None:
        with self._lock:
            before = self._known.pop(key, None)
            self._known[key] = known
            self._size += _cost(known) - (0 if before is None else _cost(before))
            while self._size > KEPT_ROWS and len(self._known) > 1:
                _, gone = self._known.popitem(last=False)
                self._size -= _cost(gone)


def _cost(known: _Known) -> int:
    return LIST_ROWS + len(known.rows)


def state(conn: Connection) -> tuple[str, int]:
    """The uuid of the store and the epoch of its text index."""
    found = dict(
        conn.execute(
            f"SELECT key, value FROM meta WHERE key IN ('uuid', '{TEXT_EPOCH}')"
        ).fetchall()
    )
    return found["uuid"], found.get(TEXT_EPOCH, 0)


def removed(conn: Connection) -> None:
    """Count that words of a row were taken out of the index."""
    conn.execute(
        "INSERT INTO meta(key, value) VALUES(?, 1)"
        " ON CONFLICT(key) DO UPDATE SET value = value + 1",
        (TEXT_EPOCH,),
    )
