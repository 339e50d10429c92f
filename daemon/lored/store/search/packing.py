"""Packed columns of many messages in one row: read a million of them in a moment.

The catalogue (kind 0) holds what filters ask of every message: id, session, role, instant.
Kind N holds the sign bits of vector segment N. Rows are appended to the newest block of
their kind until it has `BLOCK_ROWS`; each write raises the kind's `change`, so that a reader
(`store/search/columns.py`) takes only what is new. A message written again is appended again, and
the later row counts. A removal rewrites the blocks that hold the message and raises `epoch`:
readers then start over.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lored.core.quantized import sign_words
from lored.store.driver import Connection

CATALOGUE: Final = 0
"""The kind of block that holds `CATALOGUE_ROW`s."""

BLOCK_ROWS: Final = 512
"""Rows of a full block. An append rewrites at most one block (20 KB); a million rows are
2,000 reads."""

CATALOGUE_ROW: Final = np.dtype([("id", "<i8"), ("session", "<i4"), ("role", "i1"), ("at", "<i8")])

NO_INSTANT: Final = -(1 << 62)
"""`at` of a message without a time: older than everything."""

ID_BATCH: Final = 500


def sign_row(dimension: int) -> "np.dtype[Any]":
    """The row type of sign bits: message id and the words of the bits."""
    return np.dtype([("id", "<i8"), ("bits", "<u8", (sign_words(dimension),))])


def catalogue_messages(conn: Connection, ids: Sequence[int]) -> None:
    """Append the catalogue rows of messages that are in `messages`."""
    found: list[tuple[int, int, int, int]] = []
    for start in range(0, len(ids), ID_BATCH):
        part = ids[start : start + ID_BATCH]
        marks = ",".join("?" * len(part))
        found += conn.execute(
            f"SELECT id, session, role, ifnull(at, {NO_INSTANT}) FROM messages"
            f" WHERE id IN ({marks}) ORDER BY id",
            part,
        ).fetchall()
    append(conn, CATALOGUE, np.array([tuple(row) for row in found], dtype=CATALOGUE_ROW))


def append(conn: Connection, kind: int, rows: "NDArray[Any]") -> None:
    """Add rows (a structured array with a field `id`) to the blocks of ``kind``."""
    if not len(rows):
        return
    change = _next_change(conn, kind)
    last = conn.execute(
        "SELECT id, rows, data FROM blocks WHERE kind = ? ORDER BY id DESC LIMIT 1", (kind,)
    ).fetchone()
    start = 0
    if last is not None and last[1] < BLOCK_ROWS:
        start = min(BLOCK_ROWS - last[1], len(rows))
        part = rows[:start]
        conn.execute(
            "UPDATE blocks SET change = ?, rows = rows + ?, lowest = min(lowest, ?),"
            " highest = max(highest, ?), data = ? WHERE id = ?",
            (change, start, *_span(part), last[2] + part.tobytes(), last[0]),
        )
    for begin in range(start, len(rows), BLOCK_ROWS):
        part = rows[begin : begin + BLOCK_ROWS]
        conn.execute(
            "INSERT INTO blocks(kind, change, rows, lowest, highest, data)"
            " VALUES(?, ?, ?, ?, ?, ?)",
            (kind, change, len(part), *_span(part), part.tobytes()),
        )


def remove(conn: Connection, kind: int, ids: Sequence[int], row_bytes: int = 0) -> None:
    """Rewrite the blocks of ``kind`` without the rows of ``ids``.

    ``row_bytes``: size of a row when it is not the catalogue's; the id is its first 8 bytes.
    """
    if not ids:
        return
    width = row_bytes or CATALOGUE_ROW.itemsize
    gone = np.array(sorted(ids), dtype=np.int64)
    changed = False
    blocks = conn.execute(
        "SELECT id, lowest, highest FROM blocks WHERE kind = ? AND lowest <= ? AND highest >= ?",
        (kind, int(gone[-1]), int(gone[0])),
    ).fetchall()
    for block, lowest, highest in blocks:
        if np.searchsorted(gone, lowest) == np.searchsorted(gone, highest, side="right"):
            continue
        data = conn.execute("SELECT data FROM blocks WHERE id = ?", (block,)).fetchone()[0]
        table = np.frombuffer(data, dtype=np.uint8).reshape(-1, width)
        owners = np.ascontiguousarray(table[:, :8]).view("<i8").reshape(-1)
        keep = ~np.isin(owners, gone)
        if keep.all():
            continue
        changed = True
        if keep.any():
            conn.execute(
                "UPDATE blocks SET rows = ?, data = ? WHERE id = ?",
                (int(keep.sum()), table[keep].tobytes(), block),
            )
        else:
            conn.execute("DELETE FROM blocks WHERE id = ?", (block,))
    if changed:
        _next_change(conn, kind, removal=True)


def drop(conn: Connection, kind: int) -> None:
    """Forget all blocks of ``kind``."""
    conn.execute("DELETE FROM blocks WHERE kind = ?", (kind,))
    _next_change(conn, kind, removal=True)


def _span(rows: "NDArray[Any]") -> tuple[int, int]:
    return int(rows["id"].min()), int(rows["id"].max())


def _next_change(conn: Connection, kind: int, *, removal: bool = False) -> int:
    row = conn.execute(
        "INSERT INTO block_changes(kind, change, epoch) VALUES(?1, 1, ?2) ON CONFLICT(kind)"
        " DO UPDATE SET change = change + 1, epoch = epoch + ?2 RETURNING change",
        (kind, int(removal)),
    ).fetchone()
    return int(row[0])
