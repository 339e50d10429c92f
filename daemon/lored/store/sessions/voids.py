"""Parts of a session that a later file of it undid. Functions of a connection.

A reverted thread goes on in a new file, which names the bytes of the old one that still hold.
What stands behind them is read with `Job.void_from`, so it is marked as rolled back and not
folded, whichever file is read first.
"""

from typing import Final

from lored.core.reconcile import plain_name
from lored.store.driver import Connection
from lored.store.sessions import cursors

_OF_FILE: Final = "agent = ? AND session = ? AND instr(?, part || '.') > 0"
"""A part is a file whose name ends with its id."""


def undo(conn: Connection, agent: str, native_id: str, part: str, offset: int) -> None:
    """What stands in ``part`` of a session from ``offset`` on is undone."""
    conn.execute(
        "INSERT INTO voids(agent, session, part, offset) VALUES(?, ?, ?, ?) "
        "ON CONFLICT(agent, session, part) DO UPDATE SET offset = excluded.offset, applied = 0 "
        "WHERE excluded.offset < offset",
        (agent, native_id, part, offset),
    )


def void_from(conn: Connection, agent: str, native_id: str, path: str, offset: int) -> int | None:
    """From where on a file is undone that is to be read from ``offset`` on; None: it is not."""
    key = (agent, native_id, _name(path))
    row = conn.execute(f"SELECT offset FROM voids WHERE {_OF_FILE}", key).fetchone()
    if row is None:
        return None
    if offset <= row[0]:
        conn.execute(f"UPDATE voids SET applied = 1 WHERE {_OF_FILE}", key)
    return int(row[0])


def begin_anew(conn: Connection, agent: str, native_id: str, session: int) -> list[str]:
    """Begin a session (row id ``session``) anew when a file of it was read further than still
    holds; the paths that are to be read again."""
    for path, offset in conn.execute(
        "SELECT path, offset FROM files WHERE session = ? AND gone_at IS NULL "
        "AND blocked IS NULL AND EXISTS (SELECT 1 FROM voids v WHERE v.agent = ? "
        "AND v.session = ? AND NOT v.applied)",
        (session, agent, native_id),
    ).fetchall():
        late = conn.execute(
            f"SELECT 1 FROM voids WHERE {_OF_FILE} AND NOT applied AND offset < ?",
            (agent, native_id, _name(path), offset),
        ).fetchone()
        if late is not None:
            return cursors.reset(conn, path)
    return []


def _name(path: str) -> str:
    return plain_name(path).rpartition("/")[2]
