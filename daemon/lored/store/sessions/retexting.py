"""The words of stored messages into the text index anew, a portion at a time."""

from typing import Final

from lored.core import stored_text, tokens
from lored.store.driver import Connection
from lored.store.search import text

PORTION: Final = 500
"""Messages of one read and one write: some tens of milliseconds, so that calls get in between."""

Forms = list[tuple[int, str, str]]
"""messages.id, index form, context form."""


def count(conn: Connection) -> int:
    """Messages that `read` will give."""
    found: int = conn.execute("SELECT count(*) FROM messages").fetchone()[0]
    return found


def read(
    conn: Connection, after: int
) -> list[tuple[int, int | None, str | bytes, str | bytes | None]]:
    """The next messages after id ``after``: id, instant, stored text, stored text before it."""
    rows = conn.execute(
        "SELECT m.id, m.at, m.text, (SELECT p.text FROM messages p WHERE p.session = m.session"
        " AND p.position < m.position ORDER BY p.position DESC LIMIT 1)"
        " FROM messages m WHERE m.id > ? ORDER BY m.id LIMIT ?",
        (after, PORTION),
    )
    return [tuple(row) for row in rows]


def forms(rows: list[tuple[int, int | None, str | bytes, str | bytes | None]]) -> Forms:
    """What the index holds of these messages. Costly; call it in a thread."""
    made: Forms = []
    for message, at, packed, before in rows:
        said = stored_text.decode(packed)
        previous = None if before is None else stored_text.decode(before)
        made.append((message, tokens.index_form(said), tokens.context_form(at, previous, said)))
    return made


def put(conn: Connection, made: Forms) -> None:
    """Index them; words that stood there before are replaced."""
    text.index_messages(conn, made)


def rebuild_facts(conn: Connection) -> None:
    """The same for a facts store, which keeps the texts of its index."""
    text.rebuild_facts(conn)
