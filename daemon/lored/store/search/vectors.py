"""Vectors in the stores, by segment: put, take out, score.

A segment holds all vectors of one model (`embed.base.Model.name`); models are never mixed in
one score. Vectors are int8 with a scale of their own each (`core.quantized.quantize`), so a score
is a cosine of the integers and needs no scale.

Messages: an int8 row each, and the sign bits in blocks (`store/search/packing.py`), which
`store/search/columns.py` scans in memory. Facts: an int8 row each is the truth; where sqlite-vec
loads, a vec0 table mirrors a small segment, in steps, so that a statement seldom pays for it.
A daemon without the extension writes the row alone: the mirror is then further behind.
Every function takes the connection of a running transaction.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np

from lored.core.quantized import Float32, quantize, sign_bits
from lored.store import driver
from lored.store.driver import Connection
from lored.store.search import nearest as _nearest
from lored.store.search import packing

MIRROR_STEP: Final = 64
"""Changes that the vec0 table is brought up to date with together: a row alone costs a
statement .3 ms there, of many together .05 ms. Questions read the rows between."""


def segment_id(conn: Connection, name: str) -> int | None:
    """The id of a segment, None when nothing was ever put into it."""
    row = conn.execute("SELECT id FROM vector_segments WHERE name = ?", (name,)).fetchone()
    return None if row is None else int(row[0])


def make_segment(conn: Connection, name: str, dimension: int, centre: Float32 | None = None) -> int:
    """The id of the segment ``name``, made if it is new. Raises ValueError for a segment that
    has another dimension: a changed model needs a name of its own."""
    blob = None if centre is None else centre.astype("<f4").tobytes()
    conn.execute(
        "INSERT INTO vector_segments(name, dimension, centre) VALUES(?, ?, ?)"
        " ON CONFLICT(name) DO NOTHING",
        (name, dimension, blob),
    )
    row = conn.execute(
        "SELECT id, dimension FROM vector_segments WHERE name = ?", (name,)
    ).fetchone()
    if row[1] != dimension:
        raise ValueError(f"segment {name} holds vectors of {row[1]} dimensions, not {dimension}")
    return int(row[0])


# -- messages ------------------------------------------------------------------------------


def put_messages(conn: Connection, segment: str, rows: Iterable[tuple[int, bytes]]) -> None:
    """Store the vectors of messages; an id again replaces its vector.

    ``rows``: (messages.id, int8 vector of `quantize`), all of one dimension.
    """
    rows = list(rows)
    if not rows:
        return
    number = make_segment(conn, segment, len(rows[0][1]))
    conn.executemany(
        "INSERT OR REPLACE INTO message_vectors(segment, message, vector) VALUES(?, ?, ?)",
        [(number, message, vector) for message, vector in rows],
    )
    values = np.frombuffer(b"".join(v for _, v in rows), dtype=np.int8).reshape(len(rows), -1)
    packed = np.zeros(len(rows), dtype=packing.sign_row(values.shape[1]))
    packed["id"] = [message for message, _ in rows]
    packed["bits"] = sign_bits(values.astype(np.float32), _centre(conn, number))
    packing.append(conn, number, packed)


def remove_messages(conn: Connection, ids: Iterable[int]) -> None:
    """Delete the vectors and sign bits of messages in every segment; unknown is no error."""
    gone = list(ids)
    for number, dimension in conn.execute("SELECT id, dimension FROM vector_segments").fetchall():
        conn.executemany(
            "DELETE FROM message_vectors WHERE segment = ? AND message = ?",
            [(number, message) for message in gone],
        )
        packing.remove(conn, number, gone, packing.sign_row(dimension).itemsize)


def drop_message_segment(conn: Connection, name: str) -> None:
    """Delete all message vectors of a segment."""
    number = segment_id(conn, name)
    if number is not None:
        conn.execute("DELETE FROM message_vectors WHERE segment = ?", (number,))
        packing.drop(conn, number)
        conn.execute("DELETE FROM vector_segments WHERE id = ?", (number,))


# -- facts ---------------------------------------------------------------------------------


def put_fact(conn: Connection, rowid: int, segment: str, vector: Float32) -> None:
    """Store the vector (float32[d], unit) of a fact; again replaces it."""
    put_facts(conn, segment, [(rowid, quantize(vector[None, :])[0])])


def put_facts(conn: Connection, segment: str, rows: Sequence[tuple[int, bytes]]) -> None:
    """As `put_fact` for many, already quantised."""
    if not rows:
        return
    known = conn.execute(_STATE + "name = ?", (segment,)).fetchone()
    if known is None or known[1] != len(rows[0][1]):
        number = make_segment(conn, segment, len(rows[0][1]))
        known = conn.execute(_STATE + "id = ?", (number,)).fetchone()
    state = _State(*known)
    state = state._replace(changes=state.changes + 1)
    conn.execute(
        "UPDATE vector_segments SET changes = ? WHERE id = ?", (state.changes, state.number)
    )
    conn.executemany(
        "INSERT INTO fact_vectors(segment, fact, change, vector) VALUES(?, ?, ?, ?)"
        " ON CONFLICT(segment, fact) DO UPDATE SET change = excluded.change,"
        " vector = excluded.vector",
        [(state.number, fact, state.changes, vector) for fact, vector in rows],
    )
    if 0 <= state.mirrored <= state.changes - MIRROR_STEP:
        _mirror(conn, state)


def remove_fact(conn: Connection, rowid: int) -> None:
    """Delete the vectors of a fact in every segment; unknown is no error."""
    for (number,) in conn.execute(
        "DELETE FROM fact_vectors WHERE fact = ? RETURNING segment", (rowid,)
    ).fetchall():
        state = _State(*conn.execute(_STATE + "id = ?", (number,)).fetchone())
        conn.execute("UPDATE vector_segments SET epoch = epoch + 1 WHERE id = ?", (number,))
        if driver.HAS_VEC and state.mirrored > 0 and state.mirrored_epoch == state.epoch:
            table = _nearest.mirror_table(number)
            conn.execute(f"DELETE FROM {table} WHERE fact = ?", (rowid,))
            conn.execute(
                "UPDATE vector_segments SET mirrored_epoch = epoch WHERE id = ?", (number,)
            )


def drop_fact_segment(conn: Connection, name: str) -> None:
    """Delete all fact vectors of a segment."""
    number = segment_id(conn, name)
    if number is not None:
        conn.execute("DELETE FROM fact_vectors WHERE segment = ?", (number,))
        if driver.HAS_VEC:
            conn.execute(f"DROP TABLE IF EXISTS {_nearest.mirror_table(number)}")
        conn.execute("DELETE FROM vector_segments WHERE id = ?", (number,))


def nearest_facts(
    conn: Connection,
    segment: str,
    vector: Float32,
    k: int,
    rescored: int = _nearest.RESCORED,
) -> list[tuple[int, float]]:
    """(fact rowid, cosine) of the ``k`` facts nearest to ``vector`` (float32[d], unit), best
    first; empty when the segment has none. ``rescored``: see `nearest`. Forgotten facts keep
    their vector until they are removed: the caller filters by validity."""
    return _nearest.nearest(conn, segment, vector, k, rescored)


def fact_cosines(
    conn: Connection, segment: str, vector: Float32, rowids: Sequence[int]
) -> dict[int, float]:
    """The exact cosine of ``vector`` (unit) with each of the facts that has a vector."""
    return _nearest.scored(conn, segment, vector, rowids)


_STATE: Final = (
    "SELECT id, dimension, changes, epoch, mirrored, mirrored_epoch FROM vector_segments WHERE "
)


class _State(NamedTuple):
    """A segment, and up to which change and epoch its vec0 table has it (-1: too large)."""

    number: int
    dimension: int
    changes: int
    epoch: int
    mirrored: int
    mirrored_epoch: int


def _mirror(conn: Connection, state: _State) -> None:
    """Bring the vec0 table of a segment up to date, or give it up when it is large."""
    if not driver.HAS_VEC:
        return
    number, table = state.number, _nearest.mirror_table(state.number)
    if _is_large(conn, number):
        conn.execute(f"DROP TABLE IF EXISTS {table}")
        conn.execute("UPDATE vector_segments SET mirrored = -1 WHERE id = ?", (number,))
        return
    since = state.mirrored
    if since == 0 or state.mirrored_epoch != state.epoch:
        since = 0  # what a daemon without the extension removed is still in the table
        conn.execute(f"DROP TABLE IF EXISTS {table}")
        conn.execute(
            f"CREATE VIRTUAL TABLE {table} USING vec0("
            f"fact INTEGER PRIMARY KEY, vector int8[{state.dimension}] distance_metric=cosine)"
        )
    rows = conn.execute(
        "SELECT fact, vector FROM fact_vectors WHERE segment = ? AND change > ?", (number, since)
    ).fetchall()
    if since:
        conn.executemany(f"DELETE FROM {table} WHERE fact = ?", [(fact,) for fact, _ in rows])
    conn.executemany(f"INSERT INTO {table}(fact, vector) VALUES(?, vec_int8(?))", rows)
    conn.execute(
        "UPDATE vector_segments SET mirrored = changes, mirrored_epoch = epoch WHERE id = ?",
        (number,),
    )


def _is_large(conn: Connection, number: int) -> bool:
    row = conn.execute(
        f"SELECT 1 FROM fact_vectors WHERE segment = ? LIMIT 1 OFFSET {_nearest.MIRRORED_FACTS}",
        (number,),
    ).fetchone()
    return row is not None


def _centre(conn: Connection, number: int) -> Float32 | None:
    row = conn.execute("SELECT centre FROM vector_segments WHERE id = ?", (number,)).fetchone()
    return None if row is None or row[0] is None else np.frombuffer(row[0], dtype="<f4")
