"""Conflicts: two facts that somebody flagged as contradicting each other.

open -> resolved (one wins, the other is superseded by it) or dismissed (both stay). Never
reopened except by undo.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from lored.core.clock import Micros
from lored.store.driver import Connection
from lored.store.facts.rows import marks

OPEN: Final = "open"
RESOLVED: Final = "resolved"
DISMISSED: Final = "dismissed"

_COLUMNS: Final = (
    "id, fact_a, fact_b, severity, status, note, opened_at, opened_by, resolved_at, resolved_by,"
    " resolution, winner"
)


class Conflict(NamedTuple):
    """One row; facts by internal id."""

    id: int
    fact_a: int
    fact_b: int
    severity: str
    status: str
    note: str | None
    opened_at: Micros
    opened_by: str | None
    resolved_at: Micros | None
    resolved_by: str | None
    resolution: str | None
    winner: int | None

    def image(self) -> dict[str, Any]:
        """What a change of status overwrites, for the change log."""
        names = ("status", "resolved_at", "resolved_by", "resolution", "winner")
        return {name: getattr(self, name) for name in names}


def _select(conn: Connection, condition: str, values: Sequence[object]) -> list[Conflict]:
    rows = conn.execute(f"SELECT {_COLUMNS} FROM conflicts WHERE {condition}", tuple(values))
    return [Conflict(*row) for row in rows]


def by_id(conn: Connection, number: int) -> Conflict | None:
    """conflict:<number>."""
    found = _select(conn, "id = ?", (number,))
    return found[0] if found else None


def between(conn: Connection, one: int, two: int, *, status: str = OPEN) -> list[Conflict]:
    """Conflicts of a pair of facts, in either order."""
    return _select(
        conn,
        "((fact_a = ?1 AND fact_b = ?2) OR (fact_a = ?2 AND fact_b = ?1)) AND status = ?3"
        " ORDER BY id",
        (one, two, status),
    )


def any_open(conn: Connection) -> bool:
    """Whether anything is disputed."""
    row = conn.execute("SELECT 1 FROM conflicts WHERE status = 'open' LIMIT 1").fetchone()
    return row is not None


def of_facts(conn: Connection, ids: Sequence[int], *, status: str | None = OPEN) -> list[Conflict]:
    """Conflicts that touch any of the facts, oldest first; ``status`` None = any."""
    if not ids:
        return []
    if status == OPEN and not any_open(conn):
        return []  # as in most stores at most times
    question = marks(ids)
    wanted = "" if status is None else " AND status = ?"
    values = (*ids, *(() if status is None else (status,)))
    found = {
        row.id: row
        for column in ("fact_a", "fact_b")
        for row in _select(conn, f"{column} IN ({question}){wanted}", values)
    }
    return [found[number] for number in sorted(found)]


def listing(conn: Connection, status: str | None, limit: int) -> list[Conflict]:
    """Conflicts newest first; ``status`` None = all."""
    if status is None:
        return _select(conn, "1 ORDER BY id DESC LIMIT ?", (limit,))
    return _select(conn, "status = ? ORDER BY id DESC LIMIT ?", (status, limit))


def count(conn: Connection, status: str = OPEN) -> int:
    """How many conflicts have a status."""
    row = conn.execute("SELECT count(*) FROM conflicts WHERE status = ?", (status,)).fetchone()
    return int(row[0])


def decided_with(conn: Connection, fact: int) -> set[int]:
    """Facts with which ``fact`` has a conflict of any status: somebody looked at the pair."""
    return {
        row.fact_b if row.fact_a == fact else row.fact_a
        for row in of_facts(conn, [fact], status=None)
    }


def insert(
    conn: Connection,
    fact_a: int,
    fact_b: int,
    *,
    severity: str,
    note: str | None,
    now: Micros,
    opened_by: str | None,
) -> int:
    """Open a conflict; returns its number."""
    cursor = conn.execute(
        "INSERT INTO conflicts(fact_a, fact_b, severity, note, opened_at, opened_by)"
        " VALUES(?, ?, ?, ?, ?, ?)",
        (fact_a, fact_b, severity, note, now, opened_by),
    )
    return int(cursor.lastrowid)


def settle(
    conn: Connection,
    number: int,
    *,
    status: str,
    now: Micros | None,
    by: str | None,
    resolution: str | None,
    winner: int | None,
) -> None:
    """Write a status with its circumstances (also the open one, for undo)."""
    conn.execute(
        "UPDATE conflicts SET status = ?, resolved_at = ?, resolved_by = ?, resolution = ?,"
        " winner = ? WHERE id = ?",
        (status, now, by, resolution, winner, number),
    )
