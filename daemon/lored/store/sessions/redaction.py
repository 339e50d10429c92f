"""Stored text of sessions, in portions, for the search for secrets that an older rule set or a
switched-off redaction let in. Functions of a connection."""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from lored.core import stored_text, tokens
from lored.store.driver import Connection
from lored.store.search import text as text_index

PORTION: Final = 500
"""Rows of one read or write: some milliseconds, so that other calls get in between."""

Cleaner = Callable[[str], str]


class Column(NamedTuple):
    """A column that holds words of a transcript. Names are ours, never a caller's."""

    table: str
    name: str
    packed: bool = False


COLUMNS: Final = (
    Column("messages", "text", packed=True),
    Column("actions", "command"),
    Column("actions", "target"),
    Column("actions", "excerpt", packed=True),
    Column("compactions", "summary"),
    Column("compactions", "kept_facts"),
    Column("compactions", "next_steps"),
    Column("sessions", "title"),
    Column("sessions", "summary"),
    Column("statements", "text"),
    Column("titles", "title"),
)


def count(conn: Connection) -> int:
    """Rows that `portion` will give over all columns."""
    return sum(
        int(
            conn.execute(
                f"SELECT count(*) FROM {column.table} WHERE {column.name} IS NOT NULL"
            ).fetchone()[0]
        )
        for column in COLUMNS
    )


def portion(conn: Connection, column: Column, after: int) -> list[tuple[int, str]]:
    """The next rows after id ``after`` as (id, text); empty at the end."""
    rows = conn.execute(
        f"SELECT id, {column.name} FROM {column.table}"
        f" WHERE id > ? AND {column.name} IS NOT NULL ORDER BY id LIMIT ?",
        (after, PORTION),
    )
    return [(row[0], stored_text.decode(row[1]) if column.packed else row[1]) for row in rows]


def replace(conn: Connection, column: Column, rows: list[tuple[int, str]]) -> None:
    """Store other texts; the words of messages are indexed anew."""
    conn.executemany(
        f"UPDATE {column.table} SET {column.name} = ? WHERE id = ?",
        [(stored_text.encode(said) if column.packed else said, row) for row, said in rows],
    )
    if column.table == "messages":
        text_index.index_messages(
            conn, [(row, tokens.index_form(said), _context(conn, row, said)) for row, said in rows]
        )


def _context(conn: Connection, message: int, said: str) -> str:
    at, before = conn.execute(
        "SELECT m.at, (SELECT p.text FROM messages p WHERE p.session = m.session"
        " AND p.position < m.position ORDER BY p.position DESC LIMIT 1)"
        " FROM messages m WHERE m.id = ?",
        (message,),
    ).fetchone()
    return tokens.context_form(at, None if before is None else stored_text.decode(before), said)


def folds(conn: Connection, after: int) -> list[tuple[int, bytes]]:
    """The next states of summary folds after session ``after``: (id, MessagePack)."""
    rows = conn.execute(
        "SELECT id, fold FROM sessions WHERE id > ? AND fold IS NOT NULL ORDER BY id LIMIT ?",
        (after, PORTION),
    )
    return [(row[0], row[1]) for row in rows]


def replace_folds(conn: Connection, rows: list[tuple[int, bytes]]) -> None:
    """Store other fold states."""
    conn.executemany("UPDATE sessions SET fold = ? WHERE id = ?", [(b, i) for i, b in rows])


def texts(conn: Connection) -> Iterator[tuple[str, str]]:
    """Facts of a facts store: (F-number, text)."""
    for number, said in conn.execute("SELECT number, text FROM facts WHERE text <> ''"):
        yield f"F{number}", said
