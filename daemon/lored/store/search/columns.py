"""What search keeps in memory of all messages: catalogue and sign bits, in step with the store.

`refresh` reads the blocks (`store/search/packing.py`) newer than what is known, in the read
transaction of the search itself, so that a search sees exactly what its snapshot holds, or a
little more. A million messages are 9 MB of catalogue, and a million vectors 36 MB of signs;
those of a segment that is not scanned, since a better one has it all, are left in the store.
Used by several reader threads: one refreshes while others scan what was complete before.
"""

import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from lored.core.quantized import Float32, SignMatrix, sign_bits, sign_words
from lored.store.driver import Connection
from lored.store.search import nearest, packing

Mask = NDArray[np.bool_]
"""By message id; beyond its end: not allowed."""

GROW_ROWS: Final = 1 << 16
"""Least growth of the arrays, and a quarter of their size when that is more."""

OLDEST: Final = -(1 << 31)
"""Second of a message without a time."""

ALL_ROLES: Final = frozenset(range(16))


@dataclass(slots=True)
class _Segment:
    number: int
    dimension: int
    centre: Float32 | None
    matrix: SignMatrix | None
    """None until it is scanned."""
    rows: int
    held: Mask
    """Which messages have a vector."""


@dataclass(slots=True)
class _Followed:
    """How far the blocks of one kind are known: newest change, epoch, rows per block."""

    change: int = 0
    epoch: int = 0
    rows: dict[int, int] = field(default_factory=dict)


class Columns:
    """The columns of one sessions store."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._followed: dict[int, _Followed] = {}
        self._segments: dict[str, _Segment] = {}
        self._session: NDArray[np.int32] = np.full(GROW_ROWS, -1, dtype=np.int32)
        self._role: NDArray[np.int8] = np.zeros(GROW_ROWS, dtype=np.int8)
        self._second: NDArray[np.int32] = np.full(GROW_ROWS, OLDEST, dtype=np.int32)
        self.highest = 0
        """Largest message id known."""

    def refresh(self, conn: Connection) -> None:
        """Take in what was written since the last call."""
        with self._lock:
            known = {kind: (f.change, f.epoch) for kind, f in self._followed.items()}
            state = {
                kind: (change, epoch)
                for kind, change, epoch in conn.execute(
                    "SELECT kind, change, epoch FROM block_changes"
                )
            }
            if state == known:
                return
            segments = {
                row[0]: row
                for row in conn.execute("SELECT id, name, dimension, centre FROM vector_segments")
            }
            for name in [n for n, s in self._segments.items() if s.number not in segments]:
                del self._segments[name]
            for kind, (change, epoch) in state.items():
                if kind == packing.CATALOGUE:
                    self._follow(conn, kind, change, epoch, packing.CATALOGUE_ROW, None)
                elif kind in segments:
                    number, name, dimension, centre = segments[kind]
                    segment = self._segment(number, name, dimension, centre, epoch)
                    row_type = packing.sign_row(segment.dimension)
                    self._follow(conn, kind, change, epoch, row_type, segment)

    def mask(
        self,
        sessions: Collection[int] | None,
        roles: Collection[int] = ALL_ROLES,
        since: int | None = None,
        until: int | None = None,
    ) -> Mask:
        """Which messages are of the given sessions (None = all) and roles, and from ``since``
        (microseconds, inclusive) to before ``until``; to the second. A message without a time is
        of no date."""
        count = self.highest + 1
        owner = self._session[:count]
        if sessions is None:
            allowed = owner >= 0
        else:
            chosen = np.zeros(int(owner.max(initial=0)) + 2, dtype=bool)
            ids = np.fromiter(sessions, dtype=np.int64, count=len(sessions))
            chosen[ids[(ids >= 0) & (ids < len(chosen) - 1)]] = True
            allowed = chosen[owner]  # -1, no such message, reads the last: never chosen
        if not ALL_ROLES.issubset(roles):
            allowed &= np.isin(self._role[:count], list(roles))
        if since is not None:
            allowed &= self._second[:count] >= since // 1_000_000
        if until is not None:
            second = self._second[:count]
            allowed &= (second > OLDEST) & (second <= (until - 1) // 1_000_000)
        return allowed

    def owners(self, ids: "NDArray[np.int64]") -> "NDArray[np.int64]":
        """The session of each message, -1 for unknown ones."""
        known = np.where(ids <= self.highest, ids, 0)
        return np.where(ids <= self.highest, self._session[known], -1).astype(np.int64)

    def rows(self, segment: str) -> int:
        """How many vectors of a segment are in memory."""
        known = self._segments.get(segment)
        return known.rows if known else 0

    def nearest(
        self, conn: Connection, segment: str, vector: Float32, cut: int, allowed: Mask | None
    ) -> dict[int, float]:
        """About the ``cut`` messages nearest to ``vector`` (float32[d], unit) by their signs,
        with their exact cosines; empty when nothing is known of the segment."""
        known = self._segments.get(segment)
        if known is None or known.dimension != len(vector):
            return {}
        query = sign_bits(vector[None, :], known.centre)[0]
        ids = np.unique(self._matrix(conn, segment).nearest(query, cut, allowed))
        return nearest.exact(conn, known.number, vector, ids.tolist(), "message")

    def release(self, segment: str) -> None:
        """Keep no signs of a segment until it is scanned again."""
        known = self._segments.get(segment)
        if known is not None:
            known.matrix = None

    def cosines(
        self, conn: Connection, segment: str, vector: Float32, ids: Sequence[int]
    ) -> dict[int, float]:
        """The exact cosine of ``vector`` with each of the messages that has a vector. Whether
        one has is known here: most that words find are tools' outputs, which have none."""
        known = self._segments.get(segment)
        if known is None or known.dimension != len(vector):
            return {}
        wanted = np.array(ids, dtype=np.int64)
        wanted = wanted[wanted < len(known.held)]
        wanted = wanted[known.held[wanted]]
        return nearest.exact(conn, known.number, vector, wanted.tolist(), "message")

    def missing(self, segment: str, roles: Collection[int], limit: int) -> tuple[list[int], int]:
        """Up to ``limit`` messages of the given roles without a vector of ``segment``, the
        newest first, and how many there are in all."""
        count = self.highest + 1
        absent = (self._session[:count] >= 0) & np.isin(self._role[:count], list(roles))
        known = self._segments.get(segment)
        if known is not None:
            held = known.held[:count]
            absent[: len(held)] &= ~held
        ids = np.flatnonzero(absent)
        order = np.lexsort((-ids, -self._second[ids].astype(np.int64)))
        found: list[int] = ids[order[:limit]].tolist()
        return found, len(ids)

    # -- following the blocks ----------------------------------------------------------------

    def _matrix(self, conn: Connection, name: str) -> SignMatrix:
        """The signs of a segment, as far as the snapshot of ``conn`` has them at least."""
        with self._lock:
            segment = self._segments.get(name)
            if segment is None:
                return SignMatrix(1)
            if segment.matrix is None:
                number = segment.number
                found = conn.execute(
                    "SELECT change, epoch FROM block_changes WHERE kind = ?", (number,)
                ).fetchone()
                change, epoch = found or (0, 0)
                segment.matrix, segment.rows = SignMatrix(sign_words(segment.dimension)), 0
                self._followed.pop(number, None)
                row_type = packing.sign_row(segment.dimension)
                self._follow(conn, number, change, epoch, row_type, segment)
            return segment.matrix

    def _segment(
        self, number: int, name: str, dimension: int, centre: bytes | None, epoch: int
    ) -> _Segment:
        known = self._segments.get(name)
        followed = self._followed.get(number)
        if known is None or known.number != number or (followed and followed.epoch != epoch):
            middle = None if centre is None else np.frombuffer(centre, dtype="<f4")
            held = np.zeros(GROW_ROWS, dtype=bool)
            known = _Segment(number, dimension, middle, None, 0, held)
            self._segments[name] = known
            self._followed.pop(number, None)
        return known

    def _follow(
        self,
        conn: Connection,
        kind: int,
        change: int,
        epoch: int,
        row_type: "np.dtype[Any]",
        segment: _Segment | None,
    ) -> None:
        followed = self._followed.setdefault(kind, _Followed(epoch=epoch))
        if followed.epoch != epoch:
            followed = self._followed[kind] = _Followed(epoch=epoch)
            if segment is None:
                self._session[:] = -1
        if followed.change >= change:
            return
        for block, data in conn.execute(
            "SELECT id, data FROM blocks WHERE kind = ? AND change > ? ORDER BY id",
            (kind, followed.change),
        ):
            rows = np.frombuffer(data, dtype=row_type)
            fresh = rows[followed.rows.get(block, 0) :]
            followed.rows[block] = len(rows)
            if segment is None:
                self._take(fresh)
            elif len(fresh):
                matrix = segment.matrix  # another thread may release it meanwhile
                if matrix is not None:
                    matrix.append(fresh["id"], fresh["bits"])
                segment.rows += len(fresh)
                segment.held = _grown(segment.held, int(fresh["id"].max()), False)
                segment.held[fresh["id"]] = True
        followed.change = change

    def _take(self, rows: "NDArray[Any]") -> None:
        if not len(rows):
            return
        top = int(rows["id"].max())
        self._session = _grown(self._session, top, -1)
        self._role = _grown(self._role, top, 0)
        self._second = _grown(self._second, top, OLDEST)
        ids = rows["id"]
        self._role[ids] = rows["role"]
        seconds = np.where(rows["at"] == packing.NO_INSTANT, OLDEST, rows["at"] // 1_000_000)
        self._second[ids] = np.clip(seconds, OLDEST, (1 << 31) - 1)
        self._session[ids] = rows["session"]
        self.highest = max(self.highest, top)


_Column = TypeVar("_Column", NDArray[np.int32], NDArray[np.int8], Mask)


def _grown(column: _Column, top: int, value: int) -> _Column:
    """``column`` with a place for ``top``; new places have ``value``."""
    if top < len(column):
        return column
    extra = max(top + 1 - len(column), len(column) // 4, GROW_ROWS)
    return np.concatenate((column, np.full(extra, value, dtype=column.dtype)))
