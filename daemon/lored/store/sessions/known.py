"""What the worker must know of a session before it reads on. Functions of a connection."""

from typing import Any, Final

from lored.core.stored_text import decode
from lored.store.driver import Connection
from lored.store.sessions import rows

PREVIOUS_CHARS: Final = 300
"""End of the last spoken message, context of the next (`core.tokens.CONTEXT_CHARS`)."""


def known(conn: Connection, agent: str, native_id: str) -> dict[str, Any]:
    """Fold state, fields and the end of the last spoken message of a session; ``barred`` when
    it was forgotten, ``stored`` when anything of it is."""
    found: dict[str, Any] = {"fold": None, "fields": {}, "previous": "", "barred": False}
    found["stored"] = False
    row = rows.load(conn, agent, native_id)
    if row is None:
        found["barred"] = rows.is_forgotten(conn, agent, native_id)
        return found
    found["stored"] = row.fields["message_count"] > 0
    found["fold"] = conn.execute("SELECT fold FROM sessions WHERE id = ?", (row.id,)).fetchone()[0]
    found["fields"] = rows.known_fields(row)
    last = conn.execute(
        # Roles user, assistant, summary; what is not placed anew yet does not count.
        "SELECT text FROM (SELECT position, text FROM messages WHERE session = ?1 "
        "AND position < ?2 AND role IN (0, 1, 3) UNION ALL SELECT l.position, m.text "
        "FROM message_links l JOIN messages m ON m.id = l.message WHERE l.session = ?1 "
        "AND l.position < ?2 AND m.role IN (0, 1, 3)) ORDER BY position DESC LIMIT 1",
        (row.id, row.fields["positions"]),
    ).fetchone()
    if last is not None:
        found["previous"] = decode(last[0])[-PREVIOUS_CHARS:]
    return found
