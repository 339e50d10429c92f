"""The facts nearest to a vector: numpy over the segment in memory, or vec0, same answers.

A process that asks once (a command that reads the stores directly) asks the vec0 table of a
small segment and reads no vectors. From the second question on the segment is held in memory
(`core.vector_table`), brought up to date from the table of vectors at each question: .1 ms at
1,000 facts and 1 ms at 100,000, where vec0 takes .8 and 22 ms (measured; research/retrieval
4.1 and 4.2).

A write function that asks before it puts anything reads what others of its group put, not yet
committed (`store.writer`); if that is taken back, `drop` follows.
"""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from lored.core.quantized import Float32, cosines
from lored.core.vector_table import VectorTable
from lored.store import driver
from lored.store.driver import Connection

MIRRORED_FACTS: Final = 1_000
"""Facts up to which there is a vec0 table: .8 ms a question there, 6 ms at 10,000."""

AHEAD: Final = 10_000
"""Changes that a table may be ahead of a reader's snapshot before it is made anew."""

RESCORED: Final = 1_000
"""Rows of the scan that are scored exactly."""

HELD_BYTES: Final = 64 << 20
"""Vectors in memory, of all segments together: 100,000 facts by the static table and the model.
The segments asked longest ago go first, to be read again when they are asked."""

ROW_BATCH: Final = 500

LOADED_ROWS: Final = 8_192
"""Rows taken into memory at once: their floating-point form takes four times their bytes."""


@dataclass(slots=True)
class _Held:
    """A segment in memory and how much of it that is."""

    table: VectorTable
    change: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Segment:
    """The row of a segment, and of which store it is."""

    number: int
    dimension: int
    changes: int
    epoch: int
    mirrored: int
    mirrored_epoch: int
    centre: bytes | None
    store: str


_held: "OrderedDict[tuple[str, int], _Held]" = OrderedDict()
_asked: set[tuple[str, int]] = set()
_lock = threading.Lock()


def drop() -> None:
    """Forget what is in memory: it may hold vectors that were never committed."""
    with _lock:
        _held.clear()


def mirror_table(number: int) -> str:
    """Name of the vec0 table of a segment."""
    return f"fact_vec_{number}"


def nearest(
    conn: Connection, segment: str, vector: Float32, k: int, rescored: int = RESCORED
) -> list[tuple[int, float]]:
    """(fact rowid, cosine) of the ``k`` nearest to ``vector`` (float32[d], unit), best first.

    ``rescored``: how many rows of a scan of signs are scored; fewer than `RESCORED` cost less
    (1 us each) and miss more of the best.
    """
    found = segment_of(conn, segment, vector)
    if found is None or k < 1:
        return []
    if _asks_once(found):
        return by_extension(conn, found, vector, k)
    return _table(conn, found).nearest(vector, k, rescored)


def scored(conn: Connection, segment: str, vector: Float32, ids: Sequence[int]) -> dict[int, float]:
    """The cosine of ``vector`` (float32[d], unit) with each of the facts that has a vector."""
    found = segment_of(conn, segment, vector) if ids else None
    if found is None:
        return {}
    if (found.store, found.number) in _held:
        return _table(conn, found).cosines(vector, ids)
    return exact(conn, found.number, vector, list(ids))


def exact(
    conn: Connection, number: int, vector: Float32, ids: list[int], table: str = "fact"
) -> dict[int, float]:
    """The cosine of ``vector`` with each row of ``{table}_vectors`` among ``ids``."""
    found: list[Any] = []
    for start in range(0, len(ids), ROW_BATCH):
        part = ids[start : start + ROW_BATCH]
        marks = ",".join("?" * len(part))
        found += conn.execute(
            f"SELECT {table}, vector FROM {table}_vectors WHERE segment = ?"
            f" AND {table} IN ({marks})",
            (number, *part),
        ).fetchall()
    if not found:
        return {}
    scores = cosines(b"".join(row[1] for row in found), vector)
    return dict(zip((row[0] for row in found), scores.tolist(), strict=True))


def segment_of(conn: Connection, name: str, vector: Float32) -> Segment | None:
    """The segment ``name``, None when nothing was put into it. Raises ValueError when its
    vectors are not as long as ``vector``."""
    row = conn.execute(
        "SELECT id, dimension, changes, epoch, mirrored, mirrored_epoch, centre,"
        " (SELECT value FROM meta WHERE key = 'uuid') FROM vector_segments WHERE name = ?",
        (name,),
    ).fetchone()
    if row is None:
        return None
    if row[1] != len(vector):
        raise ValueError(f"segment {name} has {row[1]} dimensions, not {len(vector)}")
    return Segment(*row)


def _asks_once(segment: Segment) -> bool:
    """Whether vec0 can answer, and this process has not asked the segment before."""
    key = (segment.store, segment.number)
    if not driver.HAS_VEC or segment.mirrored < 1 or segment.mirrored_epoch != segment.epoch:
        return False
    with _lock:
        first = key not in _asked and key not in _held
        _asked.add(key)
    return first


def by_extension(
    conn: Connection, segment: Segment, vector: Float32, k: int
) -> list[tuple[int, float]]:
    """As `nearest` by the vec0 table of a segment, and by the rows that are newer than it."""
    # The query is quantised for vec0, so its cosines differ in the third digit: take some
    # more and score them as numpy does, so that both ways give the same numbers and order.
    scale = 127 / max(float(np.abs(vector).max()), 1e-9)
    query = np.rint(vector * scale).astype(np.int8).tobytes()
    rows = conn.execute(
        f"SELECT fact FROM {mirror_table(segment.number)} WHERE vector MATCH vec_int8(?) AND k = ?",
        (query, min(k + 32, 4096)),
    ).fetchall()
    rows += conn.execute(
        "SELECT fact FROM fact_vectors WHERE segment = ? AND change > ?",
        (segment.number, segment.mirrored),
    ).fetchall()
    found = exact(conn, segment.number, vector, [row[0] for row in rows])
    return sorted(found.items(), key=lambda item: (-item[1], item[0]))[:k]


def _table(conn: Connection, segment: Segment) -> VectorTable:
    """The segment in memory, up to date with the snapshot of ``conn`` at least."""
    key, changes = (segment.store, segment.number), segment.changes
    with _lock:
        held = _held.get(key)
        # Another thread may have read a newer snapshot: whoever asks drops facts that the
        # snapshot does not have, so a newer table serves as well.
        if held is None or held.epoch < segment.epoch or held.change > changes + AHEAD:
            centre = None if segment.centre is None else np.frombuffer(segment.centre, dtype="<f4")
            held = _Held(VectorTable(segment.dimension, centre), 0, segment.epoch)
        if held.change < changes:
            rows = conn.execute(
                "SELECT fact, vector FROM fact_vectors WHERE segment = ? AND change > ?",
                (segment.number, held.change),
            )
            while part := rows.fetchmany(LOADED_ROWS):
                vectors = np.frombuffer(b"".join(row[1] for row in part), dtype=np.int8)
                held.table.put(
                    np.array([row[0] for row in part], dtype=np.int64),
                    vectors.reshape(-1, segment.dimension),
                )
            held.change = changes
        _held[key] = held
        _held.move_to_end(key)
        while len(_held) > 1 and sum(one.table.nbytes for one in _held.values()) > HELD_BYTES:
            _held.popitem(last=False)
        return held.table
