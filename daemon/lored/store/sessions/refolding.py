"""Sessions whose summary was folded by another version of `core.summary`. Functions of a
connection.

A fold state of another version cannot be folded on. Where a file of the session is still
there, it is read anew. Where none is, the summary stays as it was told and is marked
`outdated`; it has no state any more, so whatever comes to the session later begins a new one.
"""

from typing import Final

import msgpack
import orjson

from lored.store.driver import Connection
from lored.store.sessions import cursors

PORTION: Final = 50
"""Sessions of one transaction: all their rows are placed anew, some milliseconds each."""


def is_due(conn: Connection, version: int) -> bool:
    """Whether sessions were not looked through for ``version`` yet."""
    row = conn.execute("SELECT value FROM meta WHERE key = 'fold_version'").fetchone()
    return row is None or row[0] != version


def look_through(conn: Connection, version: int, after: int) -> tuple[int | None, int]:
    """Look at the next sessions after row id ``after``; (where to go on, None at the end, how
    many were of another version)."""
    rows = conn.execute(
        "SELECT id, fold, summary FROM sessions WHERE id > ? AND fold IS NOT NULL "
        "ORDER BY id LIMIT ?",
        (after, PORTION),
    ).fetchall()
    others = 0
    for session, fold, summary in rows:
        if msgpack.unpackb(fold, strict_map_key=False).get("version") == version:
            continue
        others += 1
        path = conn.execute(
            "SELECT path FROM files WHERE session = ? AND gone_at IS NULL AND blocked IS NULL",
            (session,),
        ).fetchone()
        if path is not None:
            cursors.reset(conn, path[0])
        else:
            told = {**orjson.loads(summary), "outdated": True}
            conn.execute(
                "UPDATE sessions SET fold = NULL, summary = ? WHERE id = ?",
                (orjson.dumps(told).decode(), session),
            )
    return (rows[-1][0] if rows else None), others


def finish(conn: Connection, version: int, databases: list[str]) -> None:
    """All were looked at. ``databases``: files that hold many sessions, to be read again whole
    because some were of another version."""
    for path in databases:
        cursors.rewind(conn, path)
    conn.execute(
        "INSERT INTO meta(key, value) VALUES('fold_version', ?) "
        "ON CONFLICT(key) DO UPDATE SET value = excluded.value",
        (version,),
    )
