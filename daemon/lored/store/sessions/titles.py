"""Titles that a transcript tells of other sessions, by the key of one of their messages.

The other session may be read before or after: what is told waits until its message is there.
Functions of a connection.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from lored.core.batches import record_key
from lored.store.driver import Connection
from lored.store.portions import portions

WAITING: Final = 4_096
"""Titles that wait for their session; most of those that never come are of deleted files."""


def tell(conn: Connection, agent: str, titles: Mapping[str, str]) -> list[bytes]:
    """Let titles (record key -> title) wait, newer ones in place of older; their stored keys."""
    keys = [record_key(agent, name) for name in titles]
    conn.executemany(
        "INSERT INTO titles(key, title) VALUES(?, ?) ON CONFLICT(key) DO UPDATE SET "
        "title = excluded.title",
        zip(keys, titles.values(), strict=True),
    )
    conn.execute(
        "DELETE FROM titles WHERE id <= (SELECT id FROM titles ORDER BY id DESC LIMIT 1 OFFSET ?)",
        (WAITING,),
    )
    return keys


def give(conn: Connection, keys: Iterable[bytes]) -> list[int]:
    """Give the titles that wait for messages of ``keys`` to the sessions that own these; a
    title of the session's own goes before. Row ids of the sessions."""
    if conn.execute("SELECT 1 FROM titles LIMIT 1").fetchone() is None:
        return []
    given: list[int] = []
    for part in portions(keys):
        marks = ",".join("?" * len(part))
        for number, title, session in conn.execute(
            "SELECT t.id, t.title, m.session FROM titles t JOIN messages m ON m.key = t.key "
            f"WHERE t.key IN ({marks}) ORDER BY t.id",
            part,
        ).fetchall():
            conn.execute(
                "UPDATE sessions SET title = ?, extra = json_set(extra, '$.titled', 'elsewhere') "
                "WHERE id = ? AND ifnull(json_extract(extra, '$.titled'), 'elsewhere') = "
                "'elsewhere'",
                (title, session),
            )
            conn.execute("DELETE FROM titles WHERE id = ?", (number,))
            given.append(session)
    return given
