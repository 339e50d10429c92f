"""What happens to the course of a session: condensed records, undone turns.

Functions of a connection, called while a batch is written (`store.sessions.writes`).
"""

from typing import Final

from lored.core.batches import CompactionRow, RollbackRow
from lored.store.driver import Connection
from lored.store.sessions.rows import SessionRow
from lored.store.sessions.stale import STALE

ROLLED_BACK: Final = 1
"""Bit of `messages.flags`: an undone turn."""


def add_compaction(conn: Connection, session: SessionRow, row: CompactionRow) -> None:
    """Store a model's condensed record; the same key again replaces it only when its file is
    read anew."""
    old = conn.execute("SELECT position FROM compactions WHERE key = ?", (row.key,)).fetchone()
    if old is not None and old[0] < STALE:
        return
    conn.execute(
        "INSERT INTO compactions(session, key, position, at, summary, kept_facts, next_steps) "
        "VALUES(?, ?, ?, ?, ?, ?, ?) ON CONFLICT(key) DO UPDATE SET "
        "position = excluded.position, at = excluded.at, summary = excluded.summary, "
        "kept_facts = excluded.kept_facts, next_steps = excluded.next_steps",
        (
            session.id,
            row.key,
            session.place(),
            row.at,
            row.summary,
            row.kept_facts,
            row.next_steps,
        ),
    )


def roll_back(conn: Connection, session: SessionRow, row: RollbackRow) -> None:
    """Mark what is void before this place; it stays searchable. (What is void in another file:
    `store.sessions.voids`.)"""
    here = session.fields["positions"]
    start = None
    if row.from_key is not None:
        found = conn.execute(
            "SELECT position FROM messages WHERE key = ? AND session = ?",
            (row.from_key, session.id),
        ).fetchone()
        start = found[0] if found else None
    elif row.turns > 0:
        found = conn.execute(
            "SELECT position FROM messages WHERE session = ? AND position < ? AND role = 0 "
            f"AND NOT flags & {ROLLED_BACK} ORDER BY position DESC LIMIT 1 OFFSET ?",
            (session.id, here, row.turns - 1),
        ).fetchone()
        start = found[0] if found else 0
    if start is not None:
        conn.execute(
            f"UPDATE messages SET flags = flags | {ROLLED_BACK} WHERE session = ? "
            "AND position >= ? AND position < ?",
            (session.id, start, here),
        )
