"""Operations on stated facts: supersede, forget, restore, labels, checks, their chain.

Each is a function of a connection that refuses what makes no sense (with the names of the
facts), changes rows, and writes one entry of the change log with what `facts_undo` needs.
"""

from collections.abc import Sequence
from typing import Any

from lore.errors import Conflict as Refused
from lored.core import ids
from lored.core.clock import Micros
from lored.core.facts import DOCUMENT, State, tidy
from lored.store.driver import Connection
from lored.store.facts import collisions, conflicts, log
from lored.store.facts import rows as facts
from lored.store.facts.log import Batch
from lored.store.facts.pipeline import Rules, relabel
from lored.store.facts.rows import Fact

_STATES = {
    State.SUPERSEDED: "is superseded already",
    State.FORGOTTEN: "is forgotten",
    State.EVICTED: "was evicted",
    State.ERASED: "was forgotten for good",
}


def must_be_active(conn: Connection, fact: Fact) -> None:
    """Raise `Conflict` that says what became of a fact that is not active."""
    if fact.state is State.ACTIVE:
        return
    hint = ""
    if fact.state is State.SUPERSEDED and fact.successor is not None:
        end = chain_end(conn, fact)
        hint = f" by {ids.fact(facts.numbers_of(conn, [fact.successor])[fact.successor])}"
        if end.id != fact.successor:
            hint += f"; the newest of its chain is {ids.fact(end.number)}"
    elif fact.state is State.FORGOTTEN:
        hint = f"; restore it first: forget {ids.fact(fact.number)} with undo"
    raise Refused(f"{ids.fact(fact.number)} {_STATES[fact.state]}{hint}")


def chain_end(conn: Connection, fact: Fact) -> Fact:
    """The fact at the end of the successors of ``fact``."""
    seen = {fact.id}
    while fact.successor is not None and fact.successor not in seen:
        seen.add(fact.successor)
        following = facts.by_ids(conn, [fact.successor]).get(fact.successor)
        if following is None:
            break
        fact = following
    return fact


def supersede(
    conn: Connection,
    batch: Batch,
    old: Fact,
    new: Fact,
    *,
    actor: str | None = None,
    note: str | None = None,
) -> int:
    """``new`` replaces ``old`` from its own start on; an open conflict of the two is resolved.

    Refuses a fact that replaces itself, and facts that are not active: so no chain can end in
    a circle. Returns the log entry.
    """
    if old.id == new.id:
        raise Refused(f"{ids.fact(old.number)} cannot supersede itself")
    must_be_active(conn, old)
    must_be_active(conn, new)
    before: dict[str, Any] = {
        "facts": {
            str(old.id): log.image(old),
            str(new.id): log.image(new, "pending"),
        }
    }
    open_ones = conflicts.between(conn, old.id, new.id)
    before["conflicts"] = {str(one.id): one.image() for one in open_ones}
    close(conn, batch, old, new)
    for one in open_ones:
        conflicts.settle(
            conn,
            one.id,
            status=conflicts.RESOLVED,
            now=batch.now,
            by=actor or batch.actor,
            resolution=note or f"superseded by {ids.fact(new.number)}",
            winner=new.id,
        )
    clear_pending(conn, new)
    return batch.log(
        conn,
        "supersede",
        facts=[old.id, new.id],
        conflicts=[one.id for one in open_ones],
        before=before,
        actor=actor,
        note=note,
    )


def close(conn: Connection, batch: Batch, old: Fact, new: Fact) -> None:
    """End the window of ``old`` where that of ``new`` begins; the caller logs."""
    facts.believe(
        conn,
        old,
        now=batch.now,
        state=State.SUPERSEDED,
        window=old.window.close(new.valid_from),
        successor=new.id,
    )
    _set_pending(conn, old, False)


def _set_pending(conn: Connection, fact: Fact, pending: bool) -> None:
    if fact.pending != pending:
        fact.pending = pending
        facts.set_columns(conn, fact.id, pending=int(pending))


def clear_pending(conn: Connection, fact: Fact) -> None:
    """Take the pending mark away once nothing undecided is left."""
    if fact.pending and not undecided(conn, fact, 1):
        _set_pending(conn, fact, False)


def mark_pending(conn: Connection, fact: Fact) -> None:
    """Note that ``fact`` came with collisions that nobody has settled."""
    _set_pending(conn, fact, True)


def undecided(conn: Connection, fact: Fact, limit: int) -> list[collisions.Collision]:
    """Collisions of ``fact`` with facts that it has no conflict with (of any status). Passages
    of one document stand beside each other in it and are not held against each other."""
    decided = conflicts.decided_with(conn, fact.id)
    neighbours = collisions.LISTED if fact.source == DOCUMENT else 0
    found = collisions.find(conn, fact, limit + len(decided) + neighbours)
    return [
        one
        for one in found.listed
        if one.fact.id not in decided
        and (fact.source != DOCUMENT or one.fact.source_ref != fact.source_ref)
    ][:limit]


def _leave(
    conn: Connection,
    batch: Batch,
    fact: Fact,
    state: State,
    *,
    actor: str | None,
    note: str | None,
) -> int:
    """Forget or evict: out of every answer; open conflicts about it have no object any more."""
    before: dict[str, Any] = {"facts": {str(fact.id): log.image(fact)}}
    open_ones = conflicts.of_facts(conn, [fact.id])
    before["conflicts"] = {str(one.id): one.image() for one in open_ones}
    facts.believe(
        conn, fact, now=batch.now, state=state, window=fact.window, successor=fact.successor
    )
    _set_pending(conn, fact, False)
    word = "forgotten" if state is State.FORGOTTEN else "evicted"
    for one in open_ones:
        conflicts.settle(
            conn,
            one.id,
            status=conflicts.DISMISSED,
            now=batch.now,
            by=actor or batch.actor,
            resolution=f"{ids.fact(fact.number)} was {word}",
            winner=None,
        )
    return batch.log(
        conn,
        "forget" if state is State.FORGOTTEN else "evict",
        facts=[fact.id],
        conflicts=[one.id for one in open_ones],
        before=before,
        actor=actor,
        note=note,
    )


def forget(
    conn: Connection, batch: Batch, fact: Fact, *, actor: str | None = None, note: str | None = None
) -> int:
    """Forget softly. Refuses what is forgotten already. Returns the log entry."""
    if fact.state not in (State.ACTIVE, State.SUPERSEDED, State.EVICTED):
        raise Refused(f"{ids.fact(fact.number)} {_STATES[fact.state]} already")
    return _leave(conn, batch, fact, State.FORGOTTEN, actor=actor, note=note)


def evict(conn: Connection, batch: Batch, fact: Fact, *, note: str | None = None) -> int:
    """Take Recursive's capacity rule over from its file. Returns the log entry."""
    must_be_active(conn, fact)
    return _leave(conn, batch, fact, State.EVICTED, actor=None, note=note)


def restore(
    conn: Connection, batch: Batch, fact: Fact, *, actor: str | None = None, note: str | None = None
) -> int:
    """Take a soft forget back: superseded again if it has a successor, else active."""
    if fact.state not in (State.FORGOTTEN, State.EVICTED):
        state = "for good" if fact.state is State.ERASED else None
        raise Refused(
            f"{ids.fact(fact.number)} was forgotten for good and has no text any more"
            if state
            else f"{ids.fact(fact.number)} is not forgotten"
        )
    before = {"facts": {str(fact.id): log.image(fact)}}
    state_now = State.ACTIVE if fact.successor is None else State.SUPERSEDED
    facts.believe(
        conn, fact, now=batch.now, state=state_now, window=fact.window, successor=fact.successor
    )
    return batch.log(conn, "restore", facts=[fact.id], before=before, actor=actor, note=note)


# -- labels and checks ---------------------------------------------------------------------


def processed(
    conn: Connection,
    batch: Batch,
    seen: Sequence[Fact],
    *,
    actor: str | None = None,
    note: str | None = None,
) -> int:
    """Somebody looked at the collisions of these facts: all stay. Returns the entry."""
    before = {"facts": {str(fact.id): log.image(fact, "pending") for fact in seen}}
    for fact in seen:
        _set_pending(conn, fact, False)
    return batch.log(
        conn, "processed", facts=[f.id for f in seen], before=before, actor=actor, note=note
    )


def relabel_with(
    conn: Connection,
    batch: Batch,
    fact: Fact,
    *,
    tags: list[str],
    entities: list[str],
    rules: Rules,
    op: str,
    actor: str | None = None,
    note: str | None = None,
) -> int | None:
    """Give ``fact`` these tags and entities; None when nothing changes. Returns the entry."""
    tags, entities = tidy(tags, "tags"), tidy(entities, "entities")
    if (tags, entities) == (fact.tags, fact.entities):
        return None
    if fact.state is State.ERASED:
        raise Refused(f"{ids.fact(fact.number)} {_STATES[fact.state]}")
    before = {"facts": {str(fact.id): log.image(fact, *log.LABELS)}}
    relabel(conn, fact, tags, entities, rules=rules, now=batch.now)
    return batch.log(conn, op, facts=[fact.id], before=before, actor=actor, note=note)


def verify(
    conn: Connection,
    batch: Batch,
    fact: Fact,
    *,
    actor: str | None = None,
    note: str | None = None,
) -> int:
    """``fact`` was checked and holds. Returns the entry."""
    must_be_active(conn, fact)
    before = {"facts": {str(fact.id): log.image(fact, "verified_at")}}
    fact.verified_at = batch.now
    facts.set_columns(conn, fact.id, verified_at=batch.now)
    return batch.log(conn, "verify", facts=[fact.id], before=before, actor=actor, note=note)


def history(conn: Connection, fact: Fact, limit: int) -> list[Fact]:
    """The chain of ``fact``: everything that its newest successor replaced, directly or not,
    with itself, by start of validity; at most ``limit``."""
    found = {(end := chain_end(conn, fact)).id: end}
    level = [end.id]
    while level and len(found) < limit:
        rows = facts.select(conn, f"successor IN ({facts.marks(level)}) ORDER BY id", level)
        level = [row.id for row in rows if row.id not in found][: limit - len(found)]
        found |= {row.id: row for row in rows if row.id in level}
    return sorted(found.values(), key=_start)


def _start(fact: Fact) -> tuple[Micros, int]:
    return fact.valid_from, fact.id
