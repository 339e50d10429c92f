"""Conflicts as operations: flag two facts, let one win, or find that there was no conflict.

As in `facts_changes`, each function refuses what makes no sense and writes one log entry.
"""

from lore.errors import Conflict as Refused
from lore.errors import Invalid
from lored.core import ids
from lored.core.facts import State
from lored.store.driver import Connection
from lored.store.facts import conflicts, log, rows
from lored.store.facts.changes import clear_pending, close, must_be_active
from lored.store.facts.conflicts import Conflict
from lored.store.facts.log import Batch
from lored.store.facts.rows import Fact


def open_conflict(
    conn: Connection,
    batch: Batch,
    fact_a: Fact,
    fact_b: Fact,
    *,
    severity: str = "medium",
    actor: str | None = None,
    note: str | None = None,
) -> int:
    """Flag two active facts; returns the conflict's number. Refuses a pair that is flagged."""
    if severity not in ("low", "medium", "high"):
        raise Invalid(f"severity {severity!r}: low, medium or high")
    if fact_a.id == fact_b.id:
        raise Refused(f"{ids.fact(fact_a.number)} cannot be in conflict with itself")
    must_be_active(conn, fact_a)
    must_be_active(conn, fact_b)
    known = conflicts.between(conn, fact_a.id, fact_b.id)
    if known:
        raise Refused(f"this pair is flagged already: {ids.spell('conflict', known[0].id)}")
    before = {"facts": {str(fact.id): log.image(fact, "pending") for fact in (fact_a, fact_b)}}
    number = conflicts.insert(
        conn,
        fact_a.id,
        fact_b.id,
        severity=severity,
        note=note,
        now=batch.now,
        opened_by=actor or batch.actor,
    )
    before["opened"] = {str(number): {}}
    clear_pending(conn, fact_a)
    clear_pending(conn, fact_b)
    batch.log(
        conn,
        "conflict",
        facts=[fact_a.id, fact_b.id],
        conflicts=[number],
        before=before,
        actor=actor,
        note=note,
    )
    return number


def _must_be_open(one: Conflict) -> None:
    if one.status != conflicts.OPEN:
        raise Refused(f"{ids.spell('conflict', one.id)} is not open: it is {one.status}")


def resolve(
    conn: Connection,
    batch: Batch,
    one: Conflict,
    winner: Fact,
    *,
    actor: str | None = None,
    note: str | None = None,
) -> int:
    """End a conflict: ``winner`` stays, the other fact is superseded by it. Returns the entry."""
    _must_be_open(one)
    pair = rows.by_ids(conn, [one.fact_a, one.fact_b])
    if winner.id not in pair:
        names = " or ".join(ids.fact(fact.number) for fact in pair.values())
        raise Refused(
            f"{ids.fact(winner.number)} is no side of {ids.spell('conflict', one.id)}: "
            f"the winner is {names}"
        )
    must_be_active(conn, winner)
    loser = pair[one.fact_b if winner.id == one.fact_a else one.fact_a]
    before = {
        "facts": {
            str(loser.id): log.image(loser),
            str(winner.id): log.image(winner, "pending"),
        },
        "conflicts": {str(one.id): one.image()},
    }
    if loser.state is State.ACTIVE:
        close(conn, batch, loser, winner)
    conflicts.settle(
        conn,
        one.id,
        status=conflicts.RESOLVED,
        now=batch.now,
        by=actor or batch.actor,
        resolution=note,
        winner=winner.id,
    )
    clear_pending(conn, winner)
    return batch.log(
        conn,
        "resolve",
        facts=[loser.id, winner.id],
        conflicts=[one.id],
        before=before,
        actor=actor,
        note=note,
    )


def dismiss(
    conn: Connection,
    batch: Batch,
    one: Conflict,
    *,
    actor: str | None = None,
    note: str | None = None,
) -> int:
    """End a conflict that is none; both facts stay. Returns the entry."""
    _must_be_open(one)
    conflicts.settle(
        conn,
        one.id,
        status=conflicts.DISMISSED,
        now=batch.now,
        by=actor or batch.actor,
        resolution=note,
        winner=None,
    )
    return batch.log(
        conn,
        "dismiss",
        facts=[one.fact_a, one.fact_b],
        conflicts=[one.id],
        before={"conflicts": {str(one.id): one.image()}},
        actor=actor,
        note=note,
    )
