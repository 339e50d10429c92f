"""Reworded summaries in the sessions store. Functions of a connection.

A reworded summary replaces the two lines of the rendered one; the next fold renders it anew,
so a session that grows loses outdated words by itself.
"""

from typing import Any

import orjson

from lored.store.driver import Connection


def summary_of(conn: Connection, agent: str, native_id: str) -> tuple[int, dict[str, Any]] | None:
    """(row id, rendered summary) of a session."""
    row = conn.execute(
        "SELECT id, summary FROM sessions WHERE agent = ? AND native_id = ?", (agent, native_id)
    ).fetchone()
    return None if row is None else (row[0], orjson.loads(row[1]))


def replace(conn: Connection, session: int, before: dict[str, Any], after: dict[str, Any]) -> bool:
    """Store ``after`` if the session still has the summary ``before``; whether it had."""
    row = conn.execute("SELECT summary FROM sessions WHERE id = ?", (session,)).fetchone()
    if row is None or orjson.loads(row[0]) != before:
        return False
    conn.execute(
        "UPDATE sessions SET summary = ? WHERE id = ?", (orjson.dumps(after).decode(), session)
    )
    return True
