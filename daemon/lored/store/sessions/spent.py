"""Tokens of messages that several sessions hold. Functions of a connection.

A fork repeats its origin's answers with their token counts, so the totals of its transcript
hold what was spent before it existed. What each repeated message cost is noted when a second
holder is read (whichever that is), and what a session only repeats stands in its row as
`extra.repeated`; readers take that from the totals.
"""

from collections.abc import Iterable

import orjson

from lored.store.driver import Connection


def note(conn: Connection, message: int, tokens: dict[str, int], *, more: bool) -> None:
    """What a message of several sessions cost; with ``more`` in addition to what is noted."""
    if more:
        row = conn.execute("SELECT tokens FROM spent WHERE message = ?", (message,)).fetchone()
        tokens = total([tokens, orjson.loads(row[0])] if row else [tokens])
    conn.execute(
        "INSERT INTO spent(message, tokens) VALUES(?, ?) ON CONFLICT(message) DO UPDATE SET "
        "tokens = excluded.tokens",
        (message, orjson.dumps(tokens).decode()),
    )


def set_repeated(conn: Connection, session: int) -> None:
    """Put into the row of a session what it only repeats."""
    repeated = total(
        orjson.loads(row[0])
        for row in conn.execute(
            "SELECT s.tokens FROM message_links l JOIN spent s ON s.message = l.message "
            "WHERE l.session = ?",
            (session,),
        )
    )
    conn.execute(
        "UPDATE sessions SET extra = CASE WHEN ?1 = '{}' THEN json_remove(extra, '$.repeated') "
        "ELSE json_set(extra, '$.repeated', json(?1)) END WHERE id = ?2",
        (orjson.dumps(repeated).decode(), session),
    )


def total(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    """The sum of several counts by name."""
    found: dict[str, int] = {}
    for one in counts:
        for name, count in one.items():
            found[name] = found.get(name, 0) + count
    return found


def own(told: dict[str, int], repeated: dict[str, int]) -> dict[str, int]:
    """The totals of a transcript without what it only repeats."""
    found = {name: count - repeated.get(name, 0) for name, count in told.items()}
    return {name: count for name, count in found.items() if count > 0}
