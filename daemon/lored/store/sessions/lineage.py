"""Settling which session owns messages that several hold. Functions of a connection.

The final state depends on what is stored, not on the order in which files were read: the
oldest holder (`core.lineage`) owns a message, the others link to it.
"""

from typing import Final

from lored.core.lineage import Kin, by_age, origin_of
from lored.store.driver import Connection
from lored.store.search import packing
from lored.store.sessions import spent

FAMILY: Final = 64
"""Sessions compared at once: phantom copies in their hundreds exist, and cost squares."""


def settle(conn: Connection, session: int) -> list[int]:
    """Give shared messages of a session's family to their oldest holder and name origins.

    Returns the row ids of sessions whose row changed.
    """
    family = _family(conn, session)
    if len(family) < 2:
        return []
    kin: dict[int, Kin] = {}
    for number in family:
        native, declared, born = conn.execute(
            "SELECT native_id, json_extract(extra, '$.declared_origin'), born_at FROM sessions "
            "WHERE id = ?",
            (number,),
        ).fetchone()
        if born is None:
            born = _birth(conn, number)
        kin[number] = Kin(native, born, declared)
    ages = by_age(kin.values())
    rank = {one.native_id: index for index, one in enumerate(ages)}
    order = sorted(family, key=lambda number: rank[kin[number].native_id])
    changed: set[int] = set()
    for older in order:
        changed |= _claim(conn, older, order[order.index(older) + 1 :])
    for number in family:
        counts = _shared(conn, number)
        shared = {one.native_id: counts.get(other, 0) for other, one in kin.items()}
        origin = origin_of(kin[number], shared, ages)
        # What a copy repeats is not its own time.
        row = conn.execute(
            "UPDATE sessions SET forked_from = ?1, started_at = CASE WHEN ?1 IS NULL THEN "
            "started_at ELSE max(ifnull(started_at, born_at), ifnull(born_at, started_at)) END "
            "WHERE id = ?2 AND (forked_from IS NOT ?1 OR ?1 IS NOT NULL AND started_at < born_at) "
            "RETURNING id",
            (origin, number),
        ).fetchone()
        if row is not None:
            changed.add(number)
        spent.set_repeated(conn, number)
    return sorted(changed)


def _family(conn: Connection, session: int) -> list[int]:
    """The session and those that share messages with it directly."""
    return [session, *list(_shared(conn, session))[: FAMILY - 1]]


def _shared(conn: Connection, session: int) -> dict[int, int]:
    """Other sessions -> number of messages that they and this one both hold."""
    counts: dict[int, int] = {}
    for statement in (
        # messages of others that this one links to
        "SELECT m.session, count(*) FROM message_links l JOIN messages m ON m.id = l.message "
        "WHERE l.session = ?1 GROUP BY 1",
        # others that link to messages of this one
        "SELECT l.session, count(*) FROM messages m JOIN message_links l ON l.message = m.id "
        "WHERE m.session = ?1 GROUP BY 1",
        # others that link to the same messages of a third
        "SELECT b.session, count(*) FROM message_links a JOIN message_links b "
        "ON a.message = b.message AND a.session != b.session WHERE a.session = ?1 GROUP BY 1",
    ):
        for other, count in conn.execute(statement, (session,)):
            counts[other] = counts.get(other, 0) + count
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _birth(conn: Connection, session: int) -> int | None:
    """The instant of the first message that only this session holds, which is then stored;
    without one, that of its last message."""
    own = conn.execute(
        "SELECT m.at FROM messages m WHERE m.session = ? AND m.at IS NOT NULL AND NOT EXISTS "
        "(SELECT 1 FROM message_links l WHERE l.message = m.id) ORDER BY m.position LIMIT 1",
        (session,),
    ).fetchone()
    if own is not None:
        conn.execute("UPDATE sessions SET born_at = ? WHERE id = ?", (own[0], session))
        return int(own[0])
    last = conn.execute(
        "SELECT max(at) FROM (SELECT at FROM messages WHERE session = ?1 UNION ALL "
        "SELECT m.at FROM message_links l JOIN messages m ON m.id = l.message "
        "WHERE l.session = ?1)",
        (session,),
    ).fetchone()
    return None if last[0] is None else int(last[0])


def _claim(conn: Connection, older: int, younger: list[int]) -> set[int]:
    """Move messages that ``older`` links to from younger owners to it; touched sessions."""
    if not younger:
        return set()
    marks = ",".join("?" * len(younger))
    rows = conn.execute(
        "SELECT m.id, m.session, m.position, l.position FROM message_links l "
        f"JOIN messages m ON m.id = l.message WHERE l.session = ? AND m.session IN ({marks})",
        (older, *younger),
    ).fetchall()
    conn.executemany(
        "DELETE FROM message_links WHERE session = ? AND position = ? AND message = ?",
        [(older, linked, number) for number, _, _, linked in rows],
    )
    conn.executemany(
        "UPDATE messages SET session = ?, position = ? WHERE id = ?",
        [(older, linked, number) for number, _, _, linked in rows],
    )
    conn.executemany(
        "INSERT INTO message_links(session, position, message) VALUES(?, ?, ?)",
        [(owner, position, number) for number, owner, position, _ in rows],
    )
    packing.catalogue_messages(conn, [row[0] for row in rows])
    return {older, *(row[1] for row in rows)} if rows else set()
