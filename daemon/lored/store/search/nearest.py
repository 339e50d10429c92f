"""The facts nearest to a vector: vec0 while the segment is small, else numpy, same answers.

numpy keeps the sign bits of a segment in memory (40 bytes a fact), brought up to date from
the table at each call, and scores what the scan keeps exactly from the int8 rows. Up to
`RESCORED` facts that is every fact, so both ways are exact; beyond, the scan loses under 2 %
of the true best ten.
"""

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from lored.core.quantized import Float32, SignMatrix, cosines, sign_bits, sign_words
from lored.store import driver
from lored.store.driver import Connection

MIRRORED_FACTS: Final = 1_000
"""Facts up to which vec0 answers: .6 ms there, 6 ms at 10,000, 22 ms at 100,000, where the
scan of sign bits takes .1 and 1.2 ms (measured; research/retrieval 4.1 and 4.2)."""

AHEAD: Final = 10_000
"""Changes that a matrix may be ahead of a reader's snapshot before it is made anew."""

RESCORED: Final = 1_000
"""Rows of the scan that are scored exactly."""

MATRICES: Final = 16
"""Matrices kept: two segments of each of the workspace stores that stay open."""

ROW_BATCH: Final = 500


@dataclass(slots=True)
class _Known:
    """A matrix and how much of its segment it has."""

    matrix: SignMatrix
    change: int
    epoch: int


_matrices: "OrderedDict[tuple[str, str], _Known]" = OrderedDict()
_lock = threading.Lock()


def mirror_table(number: int) -> str:
    """Name of the vec0 table of a segment."""
    return f"fact_vec_{number}"


def nearest(
    conn: Connection, segment: str, vector: Float32, k: int, rescored: int | None = None
) -> list[tuple[int, float]]:
    """(fact rowid, cosine) of the ``k`` nearest to ``vector`` (float32[d], unit), best first.

    ``rescored``: how many rows of a scan of sign bits are scored; fewer than `RESCORED` cost
    less (2 us each) and miss more of the best.
    """
    row = conn.execute(
        "SELECT id, dimension, changes, epoch, mirrored, mirrored_epoch, centre"
        " FROM vector_segments WHERE name = ?",
        (segment,),
    ).fetchone()
    if row is None or k < 1:
        return []
    number, dimension, changes, epoch, mirrored, mirrored_epoch, centre = row
    if dimension != len(vector):
        raise ValueError(f"segment {segment} has {dimension} dimensions, not {len(vector)}")
    if driver.HAS_VEC and (mirrored, mirrored_epoch) == (changes, epoch):
        return _by_extension(conn, number, vector, k)
    store = conn.execute("SELECT value FROM meta WHERE key = 'uuid'").fetchone()[0]
    matrix = _matrix(conn, (store, segment), number, dimension, changes, epoch, centre)
    middle = None if centre is None else np.frombuffer(centre, dtype="<f4")
    query = sign_bits(vector[None, :], middle)[0]
    ids = np.unique(matrix.nearest(query, max(rescored or RESCORED, k)))
    found = exact(conn, number, vector, ids.tolist())
    return sorted(found.items(), key=lambda item: (-item[1], item[0]))[:k]


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


def _by_extension(
    conn: Connection, number: int, vector: Float32, k: int
) -> list[tuple[int, float]]:
    # The query is quantised for vec0, so its cosines differ in the third digit: take some
    # more and score them as numpy does, so that both ways give the same numbers and order.
    scale = 127 / max(float(np.abs(vector).max()), 1e-9)
    query = np.rint(vector * scale).astype(np.int8).tobytes()
    rows = conn.execute(
        f"SELECT fact FROM {mirror_table(number)} WHERE vector MATCH vec_int8(?) AND k = ?",
        (query, min(k + 32, 4096)),
    ).fetchall()
    found = exact(conn, number, vector, [row[0] for row in rows])
    return sorted(found.items(), key=lambda item: (-item[1], item[0]))[:k]


def _matrix(
    conn: Connection,
    key: tuple[str, str],
    number: int,
    dimension: int,
    changes: int,
    epoch: int,
    centre: bytes | None,
) -> SignMatrix:
    middle = None if centre is None else np.frombuffer(centre, dtype="<f4")
    with _lock:
        known = _matrices.get(key)
        # Another thread may have read a newer snapshot: rows beyond ours are dropped when they
        # are looked up in our snapshot's table, so a newer matrix serves as well.
        if known is None or known.epoch < epoch or known.change > changes + AHEAD:
            known = _Known(SignMatrix(sign_words(dimension)), 0, epoch)
        if known.change < changes:
            rows = conn.execute(
                "SELECT fact, vector FROM fact_vectors WHERE segment = ? AND change > ?",
                (number, known.change),
            ).fetchall()
            if rows:
                table = np.frombuffer(b"".join(r[1] for r in rows), dtype=np.int8)
                bits = sign_bits(table.reshape(-1, dimension).astype(np.float32), middle)
                known.matrix.append(np.array([r[0] for r in rows], dtype=np.int64), bits)
            known.change = changes
        _matrices[key] = known
        _matrices.move_to_end(key)
        while len(_matrices) > MATRICES:
            _matrices.popitem(last=False)
        return known.matrix
