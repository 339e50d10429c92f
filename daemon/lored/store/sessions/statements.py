"""What sessions asked a memory to remember. Functions of a connection."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import orjson

from lored.core.batches import Stated
from lored.core.clock import to_wire
from lored.store.driver import Connection

OF_SESSION: Final = 500
"""Statements kept of one session: an agent in a loop must not fill the store."""


def add(
    conn: Connection,
    stated: Iterable[Stated],
    sessions: Mapping[str, int],
    messages: Mapping[bytes, int],
) -> None:
    """Store statements of one batch; ``sessions``: native id -> row id, ``messages``: key ->
    row id. One that held a secret is left out."""
    for one in stated:
        session = sessions.get(one.session)
        if session is None or one.secret:
            continue
        conn.execute(
            "INSERT INTO statements(session, message, at, text, entities) "
            "SELECT ?1, ?2, ?3, ?4, ?5 WHERE (SELECT count(*) FROM statements WHERE session = ?1)"
            " < ?6 ON CONFLICT(session, text) DO NOTHING",
            (
                session,
                None if one.message is None else messages.get(one.message),
                one.at,
                one.text,
                orjson.dumps(one.entities).decode(),
                OF_SESSION,
            ),
        )


def of_session(conn: Connection, session: int, limit: int) -> list[dict[str, Any]]:
    """The latest statements of a session, oldest first, in wire form."""
    rows = conn.execute(
        "SELECT text, entities, message, at FROM statements WHERE session = ? "
        "ORDER BY id DESC LIMIT ?",
        (session, limit),
    ).fetchall()
    return [
        {
            "text": text,
            "entities": orjson.loads(entities),
            **({} if message is None else {"message_id": str(message)}),
            **({} if at is None else {"at": to_wire(at)}),
        }
        for text, entities, message, at in reversed(rows)
    ]
