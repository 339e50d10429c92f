"""Putting a session in order anew while its files are read again from their start.

`mark` moves everything the session holds behind `STALE`. What is read again takes its place
from 0 on, in the order of the file; so an interrupted reading goes on where it was. When the
last file is read, `settle` puts what did not come again behind the rest, flagged `DROPPED`:
a rewritten file may hold less than we know, and nothing is forgotten because of that.
"""

from typing import Final

from lored.store.driver import Connection

STALE: Final = 1 << 40
"""Added to positions; no session has a trillion records."""

DROPPED: Final = 2
"""Bit of `messages.flags`: not in its file any more."""

_TABLES: Final = ("messages", "message_links", "actions", "compactions")


def mark(conn: Connection, session: int) -> None:
    """Everything of the session is to be placed anew."""
    for table in _TABLES:
        conn.execute(
            f"UPDATE {table} SET position = position + {STALE} WHERE session = ? "
            f"AND position < {STALE}",
            (session,),
        )
    conn.execute("UPDATE sessions SET positions = 0, born_at = NULL WHERE id = ?", (session,))


def settle(conn: Connection, session: int, file: int, position: int) -> int:
    """Place what did not come again from ``position`` on; the next free position.

    Does nothing while another file of the session than ``file`` is still to be read again.
    """
    waiting = conn.execute(
        "SELECT 1 FROM files WHERE session = ? AND anew = 1 AND gone_at IS NULL AND id != ?",
        (session, file),
    ).fetchone()
    if waiting is not None:
        return position
    rows = conn.execute(
        "SELECT position, 'messages', id FROM messages WHERE session = :s AND position >= :p "
        "UNION ALL SELECT position, 'actions', id FROM actions "
        "WHERE session = :s AND position >= :p "
        "UNION ALL SELECT position, 'compactions', id FROM compactions "
        "WHERE session = :s AND position >= :p "
        "UNION ALL SELECT position, 'message_links', message FROM message_links "
        "WHERE session = :s AND position >= :p ORDER BY 1",
        {"s": session, "p": STALE},
    ).fetchall()
    for _, table, number in rows:
        if table == "message_links":
            conn.execute(
                "UPDATE message_links SET position = ? WHERE session = ? AND message = ?",
                (position, session, number),
            )
        elif table == "messages":
            conn.execute(
                f"UPDATE messages SET position = ?, flags = flags | {DROPPED} WHERE id = ?",
                (position, number),
            )
        else:
            conn.execute(f"UPDATE {table} SET position = ? WHERE id = ?", (position, number))
        position += 1
    return position
