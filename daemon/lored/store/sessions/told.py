"""What a batch tells beside its rows: titles of other sessions, costs of repeated answers,
statements. Functions of a connection, called while a batch is written (`store.sessions.writes`).
"""

from collections.abc import Mapping
from typing import NamedTuple

from lored.core.batches import Batch, MessageRow
from lored.store.driver import Connection
from lored.store.sessions import spent, statements, titles


class Held(NamedTuple):
    """Row ids of a stored message and of the session that owns it."""

    message: int
    session: int


def keep(
    conn: Connection,
    agent: str,
    batch: Batch,
    sessions: Mapping[str, int],
    messages: Mapping[bytes, Held],
) -> list[int]:
    """Store it. ``sessions``: native id -> row id, ``messages``: key -> row, of all that the
    batch speaks of. Row ids of sessions whose title changed."""
    fresh = {row.key for row in batch.rows if isinstance(row, MessageRow)}
    for key, (name, tokens) in batch.spent.items():
        held = messages.get(key)
        if held is not None and name in sessions and held.session != sessions[name]:
            spent.note(conn, held.message, tokens, more=key not in fresh)
    statements.add(
        conn, batch.stated, sessions, {key: one.message for key, one in messages.items()}
    )
    keys = list(messages)
    for name, patch in batch.patches.items():
        if name in sessions and patch.get("titles"):
            keys += titles.tell(conn, agent, patch["titles"])
    return titles.give(conn, keys)
