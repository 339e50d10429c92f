"""Statements of another memory into one facts store, in one transaction.

Each goes through the same pipeline as a stated fact: exact duplicates merge, clusters form,
collisions come back. Links and open conflicts of the other memory follow when all are in.
What was imported before (same uid) is left as it is. Passages of documents get the entities
that this store knows and they mention, so that they meet the facts about these; passages of
one document are not held against each other.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from lore.errors import LoreError
from lored.core import ids, jsonl
from lored.core.entities import possible_names
from lored.core.facts import DOCUMENT, State, check, text_hash
from lored.core.imports.incoming import Harvest, Incoming
from lored.store.driver import Connection
from lored.store.facts import changes, disputes, entities, log
from lored.store.facts import rows as facts
from lored.store.facts.collisions import Collision
from lored.store.facts.intake import COLLISIONS_LISTED, Sources
from lored.store.facts.log import Batch
from lored.store.facts.pipeline import Given, place
from lored.store.facts.rows import Fact


@dataclass(slots=True)
class Imported:
    """The result, by internal ids."""

    created: list[int] = field(default_factory=list)
    merged: list[int] = field(default_factory=list)
    known: int = 0
    erased: int = 0
    conflicts: int = 0
    collisions: list[tuple[int, list[Collision]]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def bring_in(
    conn: Connection,
    batch: Batch,
    harvest: Harvest,
    sources: Sources,
    advance: Callable[[], None],
) -> Imported:
    """Take a harvest in; see the module. ``advance`` is called for each fact; what it raises
    ends the import."""
    result = Imported(problems=list(harvest.problems))
    erased, key = facts.erased_hashes(conn), facts.text_key(conn)
    placed: dict[str, int] = {}
    fresh: set[int] = set()
    for one in harvest.facts:
        advance()
        if text_hash(one.statement.text, key) in erased:
            result.erased += 1
            continue
        known = facts.by_uid(conn, one.uid)
        if known is not None:
            placed[one.key] = known.id
            result.known += 1
            continue
        if one.statement.source == DOCUMENT:
            one.statement.entities = _mentioned(conn, one.statement.text)
        fact_id, created = _place(conn, batch, one, sources, result)
        if fact_id is not None:
            placed[one.key] = fact_id
            (result.created if created else result.merged).append(fact_id)
            if created:
                fresh.add(fact_id)
    _link(conn, batch, harvest, placed, fresh, result)
    for conflict in harvest.conflicts:
        pair = [placed.get(conflict.fact_a), placed.get(conflict.fact_b)]
        try:
            rows = facts.by_ids(conn, [one for one in pair if one is not None])
            if len(rows) == 2 and pair[0] is not None and pair[1] is not None:
                disputes.open_conflict(
                    conn,
                    batch,
                    rows[pair[0]],
                    rows[pair[1]],
                    severity=conflict.severity,
                    note=conflict.note,
                )
                result.conflicts += 1
        except LoreError:
            result.known += 1  # flagged at an earlier import, or one side is not active here
    _collide(conn, result)
    return result


def _mentioned(conn: Connection, text: str) -> list[str]:
    """Entities of this store that ``text`` names."""
    found = entities.mentioned(conn, possible_names(text))
    wanted = {one for known in found.values() for one in known}
    return [one.written for one in entities.listing(conn, len(wanted), sorted(wanted))]


def _free(conn: Connection, number: int | None) -> int | None:
    """The number that a statement had elsewhere when it is free here, else None (the next):
    other texts refer to it."""
    return None if number is None or facts.by_number(conn, number) else number


def _place(
    conn: Connection, batch: Batch, one: Incoming, sources: Sources, result: Imported
) -> tuple[int | None, bool]:
    try:
        done = place(
            conn,
            batch,
            check(one.statement),
            rules=sources.rules,
            uid=one.uid,
            vector=sources.vectors.get(one.statement.text),
            given=Given(
                number=_free(conn, one.number),
                uid=one.uid,
                created_at=one.created_at,
                last_accessed=one.last_accessed,
                access_count=one.access_count,
                # A text that was replaced there must not merge with an active one here.
                exact=one.superseded_by is not None,
            ),
            op="import",
        )
    except LoreError as error:
        result.problems.append(f"{one.key}: {error}")
        return None, False
    return done.fact.id, done.created


def _link(
    conn: Connection,
    batch: Batch,
    harvest: Harvest,
    placed: Mapping[str, int],
    fresh: set[int],
    result: Imported,
) -> None:
    sentinels = {jsonl.FORGOTTEN: State.FORGOTTEN, jsonl.EVICTED: State.EVICTED}
    for one in harvest.facts:
        fact_id = placed.get(one.key)
        if fact_id is None or fact_id not in fresh or one.superseded_by is None:
            continue
        fact = facts.by_ids(conn, [fact_id])[fact_id]
        target = one.superseded_by
        before = {"facts": {str(fact.id): log.image(fact)}}
        if target in sentinels:
            state, successor, window = sentinels[target], None, fact.window
        else:
            new = _target(conn, placed.get(target), fact)
            if new is None:
                result.problems.append(f"{one.key}: superseded by {target}, which is not there")
            state, successor = State.SUPERSEDED, None if new is None else new.id
            window = fact.window.close(batch.now if new is None else new.valid_from)
        facts.believe(conn, fact, now=batch.now, state=state, window=window, successor=successor)
        batch.log(conn, "import", facts=[fact.id], before=before)


def _target(conn: Connection, fact_id: int | None, old: Fact) -> Fact | None:
    """The successor, unless it is missing or the link would close a circle."""
    if fact_id is None or fact_id == old.id:
        return None
    new = facts.by_ids(conn, [fact_id])[fact_id]
    return None if changes.chain_end(conn, new).id == old.id else new


def _collide(conn: Connection, result: Imported) -> None:
    for fact_id in result.created:
        fact = facts.by_ids(conn, [fact_id])[fact_id]
        if fact.state is not State.ACTIVE:
            continue
        found = changes.undecided(conn, fact, COLLISIONS_LISTED)
        if found:
            changes.mark_pending(conn, fact)
            result.collisions.append((fact_id, found))


def spelled(fact: Fact) -> str:
    """`F3` of a fact of this store."""
    return ids.fact(fact.number)
