"""What a damaged store knew about its facts: conflicts and other names of entities.

Read as far as the pages go, from both ends of each table; facts are named by uid, since a store
that takes the place of another may number its rows anew. Put in after the facts (salvage.py): a
conflict of facts that are there, with its number where that is free, a known one with the
status that was settled later; a name by the same way that the operation `alias` takes. What was
undone after the backup was made stays undone only if the facts say so; the change log is the
backup's, since its entries name rows by their old numbers.
"""

import contextlib
from typing import Any, NamedTuple

from lore.errors import Conflict as Refused
from lore.errors import Invalid, NotFound
from lored.core.clock import Micros
from lored.store import driver
from lored.store.driver import Connection
from lored.store.facts import merge, rows

_CONFLICT = (
    "id, fact_a, fact_b, winner, severity, status, note, opened_at, opened_by, resolved_at,"
    " resolved_by, resolution"
)


class Ties(NamedTuple):
    """``conflicts``: (id, uid, uid, uid of the winner or None, and the other columns);
    ``names``: (other name, name) of entities as written."""

    conflicts: list[tuple[Any, ...]]
    names: list[tuple[str, str]]


NONE = Ties([], [])


def read(connection: Connection, uids: dict[int, str]) -> Ties:
    """What is readable in a damaged store; ``uids`` of the facts that could be read, by row."""
    found = []
    for number, a, b, winner, *rest in _both_ends(
        connection, f"SELECT {_CONFLICT} FROM conflicts ORDER BY id"
    ):
        whole = all(isinstance(one, int) for one in (number, a, b, rest[3]))
        if whole and isinstance(rest[0], str) and a in uids and b in uids:
            found.append((number, uids[a], uids[b], uids.get(winner), *rest))
    named = _both_ends(
        connection,
        "SELECT a.written, e.written FROM entity_aliases a JOIN entities e ON e.id = a.entity"
        " ORDER BY a.key",
    )
    names = [(a, b) for a, b in named if isinstance(a, str) and isinstance(b, str)]
    return Ties(sorted(found, key=lambda one: int(one[0])), names)


def _both_ends(connection: Connection, query: str) -> list[Any]:
    """The rows of an ordered query up to the first bad page, and from the last one on."""
    found: dict[Any, None] = {}
    for order in ("", " DESC"):
        try:
            for row in connection.execute(query + order):
                found[tuple(row)] = None
        except driver.Error:
            continue
        break
    return list(found)


def put_in(conn: Connection, ties: Ties, now: Micros) -> int:
    """Take them into the store of ``conn``, inside a transaction; how many were new."""
    new = 0
    for number, uid_a, uid_b, uid_winner, *rest in ties.conflicts:
        a, b = rows.by_uid(conn, uid_a), rows.by_uid(conn, uid_b)
        winner = None if uid_winner is None else rows.by_uid(conn, uid_winner)
        if a is not None and b is not None:
            best = None if winner is None else winner.id
            new += _put_conflict(conn, number, a.id, b.id, best, rest)
    for other, name in ties.names:
        with contextlib.suppress(NotFound, Refused, Invalid):
            merge.join(conn, other, name, now)
            new += 1
    return new


def _put_conflict(
    conn: Connection, number: int, a: int, b: int, winner: int | None, rest: list[Any]
) -> int:
    severity, status, note, opened_at, opened_by, *settled = rest
    known = conn.execute(
        "SELECT id, status FROM conflicts WHERE opened_at = ?1 AND fact_a IN (?2, ?3)"
        " AND fact_b IN (?2, ?3)",
        (opened_at, a, b),
    ).fetchone()
    if known is not None:
        if known[1] == "open" and status != "open":
            conn.execute(
                "UPDATE conflicts SET status = ?, winner = ?, resolved_at = ?, resolved_by = ?,"
                " resolution = ? WHERE id = ?",
                (status, winner, *settled, known[0]),
            )
            return 1
        return 0
    taken = conn.execute("SELECT 1 FROM conflicts WHERE id = ?", (number,)).fetchone()
    conn.execute(
        f"INSERT INTO conflicts({_CONFLICT}) VALUES({', '.join('?' * 12)})",
        (
            *(None if taken else number, a, b, winner, severity, status, note),
            *(opened_at, opened_by, *settled),
        ),
    )
    return 1
