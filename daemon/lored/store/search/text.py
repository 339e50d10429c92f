"""The text indexes: what is written to them and what is taken out again.

Facts and messages each have an FTS5 table of stems with columns `(text, ctx)`; see
`sql/*/schema/02-search.sql`. What stands in them is made by `core.tokens`; what is asked of
them stands in `store/search/matching.py`. Every function takes the connection of a running
transaction.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from lored.core.tokens import index_form
from lored.store.driver import Connection, Error
from lored.store.search import facts as fact_search
from lored.store.search import known_rows, matching, packing

MESSAGE_TABLES: Final = ("message_stems",)
FACT_TABLES: Final = ("fact_stems",)

DELETE_ROWS: Final = 500
"""Ids bound to one DELETE statement; SQLite's default limit is 32,766 variables."""


def index_messages(conn: Connection, rows: Iterable[tuple[int, str, str]]) -> None:
    """Index messages whose rows are in `messages` already; an id again replaces its words.

    ``rows``: (messages.id, `tokens.index_form` of the text, `tokens.context_form`).
    """
    rows = list(rows)
    reword_messages(conn, rows)
    packing.catalogue_messages(conn, [row[0] for row in rows])


def reword_messages(conn: Connection, rows: Sequence[tuple[int, str, str]]) -> None:
    """Other words for messages whose session, role and time stay (arguments as above)."""
    if rows and min(row[0] for row in rows) <= matching.size(conn, matching.MESSAGES):
        known_rows.removed(conn)
    for table in MESSAGE_TABLES:
        conn.executemany(f"INSERT OR REPLACE INTO {table}(rowid, text, ctx) VALUES(?, ?, ?)", rows)


def remove_messages(conn: Connection, ids: Iterable[int]) -> None:
    """Take messages out of the index; ids that are not in it are no error.

    Their words stay in the pages of the file until `purge_messages`.
    """
    gone = list(ids)
    known_rows.removed(conn)
    for table in MESSAGE_TABLES:
        for part in _parts(gone):
            marks = ",".join("?" * len(part))
            conn.execute(f"DELETE FROM {table} WHERE rowid IN ({marks})", part)
    packing.remove(conn, packing.CATALOGUE, gone)


def purge_messages(conn: Connection) -> None:
    """Rewrite the message index without the words of removed messages (slow on large stores)."""
    for table in MESSAGE_TABLES:
        conn.execute(f"INSERT INTO {table}({table}) VALUES('optimize')")


def merge_messages(conn: Connection, pages: int = 500) -> bool:
    """Do up to ``pages`` of merge work, for idle time; True while there is more to do."""
    busy = False
    for table in MESSAGE_TABLES:
        before = conn.total_changes
        conn.execute(f"INSERT INTO {table}({table}, rank) VALUES('merge', ?)", (pages,))
        busy |= conn.total_changes - before >= 2
    return busy


def index_fact(
    conn: Connection, rowid: int, text: str, tags: Sequence[str], entities: Sequence[str]
) -> None:
    """Index a fact by its text and, in `ctx`, its tags and entities; again replaces it."""
    remove_fact(conn, rowid)
    names = [entity.replace(":", " ", 1) for entity in entities]
    row = (rowid, index_form(text), index_form(" ".join((*tags, *names))))
    conn.execute("INSERT INTO fact_texts(id, text, ctx) VALUES(?, ?, ?)", row)
    for table in FACT_TABLES:
        conn.execute(f"INSERT INTO {table}(rowid, text, ctx) VALUES(?, ?, ?)", row)


def remove_fact(conn: Connection, rowid: int) -> None:
    """Take a fact out of the index, its words out of the pages; unknown is no error."""
    row = conn.execute("SELECT id, text, ctx FROM fact_texts WHERE id = ?", (rowid,)).fetchone()
    if row is None:
        return
    for table in FACT_TABLES:
        conn.execute(
            f"INSERT INTO {table}({table}, rowid, text, ctx) VALUES('delete', ?, ?, ?)", tuple(row)
        )
    conn.execute("DELETE FROM fact_texts WHERE id = ?", (rowid,))
    known_rows.removed(conn)


def search_facts(conn: Connection, query: str, k: int) -> list[tuple[int, float]]:
    """(rowid, score) of the best ``k`` facts by words alone, best first."""
    return [(hit.rowid, hit.score) for hit in fact_search.search(conn, query, {}, None, k)]


def rebuild_facts(conn: Connection) -> None:
    """Make the fact indexes anew from `fact_texts`."""
    for table in FACT_TABLES:
        conn.execute(f"INSERT INTO {table}({table}) VALUES('rebuild')")


def check(conn: Connection, tables: Sequence[str]) -> list[str]:
    """What is wrong with the given indexes, one sentence each; empty when they are sound.

    For facts this compares index and texts word by word; for messages, whose index holds no
    texts, it proves the structure of the index alone.
    """
    wrong = []
    for table in tables:
        try:
            conn.execute(f"INSERT INTO {table}({table}, rank) VALUES('integrity-check', 1)")
        except Error as error:
            wrong.append(f"text index {table}: {error}")
    return wrong


def _parts(ids: list[int]) -> Iterable[list[int]]:
    for start in range(0, len(ids), DELETE_ROWS):
        yield ids[start : start + DELETE_ROWS]
