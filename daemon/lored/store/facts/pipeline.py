"""What happens when a fact is stated: duplicate or new row, index, cluster. One transaction.

1. The same text (`core.facts.normal_form`), active, with an overlapping window: nothing new.
   Its counter goes up, new tags and entities are added, bounds that the caller gave widen its
   window.
2. Else a row, its words in the text index, its vector.
3. Its comparison set joins a cluster or opens one (`clusters.assign`).

Collisions are found afterwards by `collisions.find`, so that an update can supersede
the old fact in between.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from lore.errors import Limit
from lored.core import entities as names
from lored.core import ids
from lored.core.clock import Micros
from lored.core.facts import NOTE_KINDS, State, Statement, text_hash, tidy, union
from lored.core.quantized import Float32
from lored.core.validity import Window
from lored.core.validity import window as make_window
from lored.store.driver import Connection
from lored.store.facts import clusters, log, rows
from lored.store.facts import entities as facts_entities
from lored.store.facts.log import Batch
from lored.store.facts.rows import Fact
from lored.store.search import text, vectors


@dataclass(slots=True)
class Given:
    """What an importer knows better than the clock: number (None = next), uid, times, counters,
    place and foreign keys of its line. ``exact`` keeps texts apart that are the same."""

    number: int | None = None
    uid: str | None = None
    created_at: Micros | None = None
    verified_at: Micros | None = None
    last_accessed: Micros | None = None
    access_count: int = 0
    position: int | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    exact: bool = False


class Rules(NamedTuple):
    """Settings that decide where a fact goes: cluster threshold (0 to 1), and how many
    microseconds a kind holds when the statement does not say (absent: open)."""

    threshold: float
    expiry: Mapping[str, Micros]


class Placed(NamedTuple):
    """Where a statement went: the fact, whether it and its cluster are new."""

    fact: Fact
    created: bool
    cluster_created: bool


def place(
    conn: Connection,
    batch: Batch,
    statement: Statement,
    *,
    rules: Rules,
    uid: str,
    vector: tuple[str, Float32] | None = None,
    given: Given | None = None,
    op: str = "remember",
) -> Placed:
    """State ``statement`` (checked by `core.facts.check`); see the module.

    ``uid`` is used when the fact is new, ``vector`` is (segment, unit float32). Raises
    `Invalid` for an impossible window or entity, IntegrityError for a number or uid in use.
    """
    given = given or Given()
    now = batch.now if given.created_at is None else given.created_at
    window = make_window(statement.valid_from, statement.valid_to, now)
    if statement.valid_to is None and statement.kind in rules.expiry:
        window = Window(window.start, window.start + rules.expiry[statement.kind])
    hashed = text_hash(statement.text, rows.text_key(conn))
    if not given.exact:
        known = _duplicate(conn, hashed, window)
        if known is not None:
            _repeat(conn, batch, known, statement, rules)
            return Placed(known, False, False)
    labels = _labels(conn, statement.kind, statement.tags, statement.entities, batch.now)
    assigned = clusters.assign(conn, labels.members, rules.threshold, batch.now)
    number = rows.next_number(conn) if given.number is None else given.number
    fact = Fact(
        id=0,
        number=number,
        uid=given.uid or uid,
        text=statement.text,
        tags=statement.tags,
        entities=statement.entities,
        kind=statement.kind,
        source=statement.source,
        asserted_by=statement.asserted_by,
        source_ref=statement.source_ref,
        session_id=statement.session_id,
        message_id=statement.message_id,
        created_at=now,
        verified_at=given.verified_at,
        last_accessed=now if given.last_accessed is None else given.last_accessed,
        access_count=given.access_count,
        valid_from=window.start,
        valid_to=window.end,
        state=State.ACTIVE,
        successor=None,
        successor_ref=None,
        known_from=now,
        cluster=assigned.cluster,
        core=assigned.core,
        set_id=labels.set_id,
        pending=False,
        position=number if given.position is None else given.position,
        extra=given.extra,
    )
    fact.id = rows.insert(conn, fact, hashed)
    facts_entities.link(conn, fact.id, labels.members, labels.mentions, new=True)
    text.index_fact(conn, fact.id, statement.text, statement.tags, statement.entities)
    if vector is not None:
        vectors.put_fact(conn, fact.id, *vector)
    batch.log(conn, op, facts=[fact.id], before={"created": [fact.id]}, actor=statement.asserted_by)
    return Placed(fact, True, assigned.created)


class _Labels(NamedTuple):
    members: list[int]
    mentions: list[int]
    set_id: int | None


def _labels(
    conn: Connection, kind: str, tags: Sequence[str], entities: Sequence[str], now: Micros
) -> _Labels:
    """Interned entities and tags: what the fact is compared by, what it only mentions."""
    things = names.parse_all(entities)
    marks = names.of_tags(tags)
    interned = facts_entities.intern(conn, [*things, *marks], now)
    compared = [] if kind in NOTE_KINDS else names.comparison_set(things, marks)
    members = sorted({interned[entity.key] for entity in compared})
    mentions = sorted(set(interned.values()) - set(members))
    return _Labels(members, mentions, facts_entities.set_of(conn, members))


def _duplicate(conn: Connection, hashed: int, window: Window) -> Fact | None:
    """The oldest active fact with the hashed text whose window overlaps."""
    for fact in rows.with_hash(conn, hashed):
        if fact.state is State.ACTIVE and fact.window.overlaps(window):
            return fact
    return None


def _repeat(conn: Connection, batch: Batch, fact: Fact, statement: Statement, rules: Rules) -> None:
    """Merge a statement into the fact that says the same. Raises `Limit` when both together
    have more labels than one fact may; then nothing was changed."""
    before: dict[str, Any] = {}
    things = [*fact.entities]
    present = {entity.key for entity in names.parse_all(fact.entities)}
    things += [e.written for e in names.parse_all(statement.entities) if e.key not in present]
    try:
        tags = tidy(union(fact.tags, statement.tags), "tags")
        things = tidy(things, "entities")
    except Limit as error:
        raise Limit(
            f"{ids.fact(fact.number)} says the same; together {error.message}", error.data
        ) from None
    rows.count_access(conn, [(fact.id, 1, batch.now)])
    fact.access_count += 1
    fact.last_accessed = max(fact.last_accessed, batch.now)
    if tags != fact.tags or things != fact.entities:
        before |= log.image(fact, *log.LABELS)
        relabel(conn, fact, tags, things, rules=rules, now=batch.now)
    wider = _wider(fact.window, statement)
    if wider != fact.window:
        before |= log.image(fact)
        rows.believe(
            conn, fact, now=batch.now, state=fact.state, window=wider, successor=fact.successor
        )
    if before:
        batch.log(
            conn,
            "repeat",
            facts=[fact.id],
            before={"facts": {str(fact.id): before}},
            actor=statement.asserted_by,
        )


def _wider(window: Window, statement: Statement) -> Window:
    """``window``, widened by the bounds that the statement itself gives."""
    start, end = window
    if statement.valid_from is not None:
        start = min(start, statement.valid_from)
    if statement.valid_to is not None and end is not None:
        end = max(end, statement.valid_to)
    return Window(start, end)


def relabel(
    conn: Connection,
    fact: Fact,
    tags: list[str],
    entities: list[str],
    *,
    rules: Rules,
    now: Micros,
    cluster: int | None = None,
) -> None:
    """Give ``fact`` (also the object) other tags and entities; when its comparison set changes
    it is put into a cluster anew, into ``cluster`` if one is given. The caller logs."""
    labels = _labels(conn, fact.kind, tags, entities, now)
    if cluster is not None:
        fact.cluster, fact.set_id = cluster, labels.set_id
        fact.core = clusters.core_in(conn, cluster, labels.members)
    elif labels.set_id != fact.set_id:
        assigned = clusters.assign(conn, labels.members, rules.threshold, now)
        fact.cluster, fact.core, fact.set_id = assigned.cluster, assigned.core, labels.set_id
    fact.tags, fact.entities = tags, entities
    rows.set_columns(
        conn,
        fact.id,
        tags=tags,
        entities=entities,
        cluster=fact.cluster,
        core=fact.core,
        set_id=fact.set_id,
    )
    facts_entities.link(conn, fact.id, labels.members, labels.mentions)
    if fact.state is not State.ERASED:
        text.index_fact(conn, fact.id, fact.text, tags, entities)
