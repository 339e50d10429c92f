"""Stored text of sessions, in portions, for the search for secrets that an older rule set or a
switched-off redaction let in. Functions of a connection."""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from lored.core import stored_text
from lored.store.driver import Connection
from lored.store.sessions import retexting

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
    """Store other texts; messages are indexed anew whose words come from them."""
    conn.executemany(
        f"UPDATE {column.table} SET {column.name} = ? WHERE id = ?",
        [(stored_text.encode(said) if column.packed else said, row) for row, said in rows],
    )
    numbers = [row for row, _ in rows]
    if column.table == "actions":  # what was done stands in the words of its output
        marks = ",".join("?" * len(numbers))
        numbers = [
            row[0]
            for row in conn.execute(
                f"SELECT output FROM actions WHERE id IN ({marks}) AND output IS NOT NULL", numbers
            )
        ]
    if column.table in ("messages", "actions"):
        retexting.again(conn, numbers)


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
