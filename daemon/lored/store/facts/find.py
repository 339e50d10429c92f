"""Which facts a reader asks for: filters, validity, belief, pages.

Conditions are made of our own SQL; values are bound. The table is named `f`. Tags and
entities given together must all be there; an entity without a type means any type.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from lored.core.clock import Micros
from lored.core.entities import of_tag
from lored.core.facts import State
from lored.core.validity import Moment, Window
from lored.store.driver import Connection
from lored.store.facts import conflicts as facts_conflicts
from lored.store.facts import entities as facts_entities
from lored.store.facts import rows as facts
from lored.store.facts.rows import IDS_AT_ONCE, Fact, marks

RARE: Final = 2_000
"""An entity with fewer facts than this is read by its postings; a busy one is tested per row."""


@dataclass(slots=True)
class Filter:
    """What is asked for. `groups` are alternatives of entity ids, one group per given label;
    None = a label that nothing has, so nothing matches."""

    moment: Moment
    groups: list[list[int]] = field(default_factory=list)
    kind: str | None = None
    since: Micros | None = None
    until: Micros | None = None
    include_superseded: bool = False


def make(
    conn: Connection,
    moment: Moment,
    *,
    tags: Sequence[str] = (),
    entities: Sequence[str] = (),
    kind: str | None = None,
    since: Micros | None = None,
    until: Micros | None = None,
    include_superseded: bool = False,
) -> Filter:
    """A filter from what a caller writes; ``since`` and ``until`` are about `created_at`."""
    groups = [list(facts_entities.ids_of(conn, [of_tag(tag).key]).values()) for tag in tags]
    groups += [facts_entities.matching(conn, entity) for entity in entities]
    return Filter(moment, groups, kind, since, until, include_superseded)


def condition(conn: Connection, wanted: Filter) -> tuple[str, list[object]]:
    """SQL and values for everything but `known_at`, which only `believed` can tell."""
    parts: list[str] = []
    values: list[object] = []
    moment = wanted.moment
    if wanted.include_superseded:
        parts.append("f.state <> ?")
        values.append(int(State.ERASED))
    elif moment.is_now:
        # As `Moment.shows`: what was true when it was recorded has begun, also by a clock set back.
        parts.append(
            "f.state = 0 AND f.valid_from <= max(?, f.created_at)"
            " AND (f.valid_to IS NULL OR f.valid_to > ?)"
        )
        values += [moment.now, moment.now]
    elif moment.known_at is None:
        parts.append(
            "f.state IN (0, 1) AND f.valid_from <= ? AND (f.valid_to IS NULL OR f.valid_to > ?)"
        )
        values += [moment.valid_at, moment.valid_at]
    if moment.known_at is not None:
        parts.append("f.created_at <= ? AND f.state <> ?")
        values += [moment.known_at, int(State.ERASED)]
    if wanted.kind is not None:
        parts.append("f.kind = ?")
        values.append(wanted.kind)
    if wanted.since is not None:
        parts.append("f.created_at >= ?")
        values.append(wanted.since)
    if wanted.until is not None:
        parts.append("f.created_at < ?")
        values.append(wanted.until)
    for group in wanted.groups:
        parts.append(_has_one(conn, group))
        values += group
    return " AND ".join(parts) or "1", values


def _has_one(conn: Connection, group: Sequence[int]) -> str:
    if not group:
        return "0"
    question = marks(group)
    rare = conn.execute(
        "SELECT count(*) FROM (SELECT 1 FROM fact_entities"
        f" WHERE entity IN ({question}) LIMIT {RARE})",
        tuple(group),
    ).fetchone()[0]
    if rare < RARE:
        return f"f.id IN (SELECT fact FROM fact_entities WHERE entity IN ({question}))"
    return (
        f"EXISTS (SELECT 1 FROM fact_entities x WHERE x.fact = f.id AND x.entity IN ({question}))"
    )


def among(conn: Connection, wanted: Filter, ids: Sequence[int]) -> dict[int, Fact]:
    """Of the facts ``ids``, those that ``wanted`` asks for, as believed at its moment."""
    sql, values = condition(conn, wanted)
    found: dict[int, Fact] = {}
    for start in range(0, len(ids), IDS_AT_ONCE):
        part = ids[start : start + IDS_AT_ONCE]
        for fact in facts.select(conn, f"f.id IN ({marks(part)}) AND {sql}", (*part, *values)):
            found[fact.id] = fact
    return {fact.id: fact for fact in believed(conn, list(found.values()), wanted)}


def fitting(conn: Connection, wanted: Filter, most: int) -> list[int] | None:
    """Ids of all facts that ``wanted`` asks for (belief apart), None when there are more than
    ``most``."""
    sql, values = condition(conn, wanted)
    rows = conn.execute(f"SELECT f.id FROM facts f WHERE {sql} LIMIT {most + 1}", values)
    found = [row[0] for row in rows]
    return None if len(found) > most else found


class Page(NamedTuple):
    """A part of a listing: facts newest first, where the next part begins (None = end)."""

    facts: list[Fact]
    after: tuple[Micros, int] | None


def page(
    conn: Connection, wanted: Filter, limit: int, after: tuple[Micros, int] | None = None
) -> Page:
    """Facts newest first (by `created_at`), at most ``limit``, after the place ``after``."""
    sql, values = condition(conn, wanted)
    kept: list[Fact] = []
    while True:
        place, bound = "", list[object]()
        if after is not None:
            place = " AND (f.created_at < ? OR (f.created_at = ? AND f.id < ?))"
            bound = [after[0], after[0], after[1]]
        rows = facts.select(
            conn,
            f"{sql}{place} ORDER BY f.created_at DESC, f.id DESC LIMIT {limit + 1}",
            (*values, *bound),
        )
        more = len(rows) > limit
        rows = rows[:limit]
        for index, fact in enumerate(believed(conn, rows, wanted)):
            kept.append(fact)
            if len(kept) == limit:
                rest = more or index + 1 < len(rows)
                last = kept[-1]
                return Page(kept, (last.created_at, last.id) if rest else None)
        if not more:
            return Page(kept, None)
        after = (rows[-1].created_at, rows[-1].id)


def total(conn: Connection, wanted: Filter) -> int:
    """How many facts `page` would give in all."""
    sql, values = condition(conn, wanted)
    if wanted.moment.known_at is None:
        row = conn.execute(f"SELECT count(*) FROM facts f WHERE {sql}", values).fetchone()
        return int(row[0])
    return len(believed(conn, facts.select(conn, sql, values), wanted))


def recently_used(conn: Connection, wanted: Filter, limit: int) -> list[Fact]:
    """Facts most recently used first."""
    if wanted.moment.is_now and not wanted.include_superseded:
        sql, values = condition(conn, wanted)
        return facts.select(
            conn, f"{sql} ORDER BY f.last_accessed DESC, f.id DESC LIMIT {limit}", values
        )
    sql, values = condition(conn, wanted)
    rows = facts.select(conn, f"{sql} ORDER BY f.last_accessed DESC, f.id DESC", values)
    return believed(conn, rows, wanted)[:limit]


# -- belief --------------------------------------------------------------------------------


def believed(conn: Connection, rows: list[Fact], wanted: Filter) -> list[Fact]:
    """``rows`` as they were believed at the filter's `known_at` (unchanged without one), without
    those that were not part of the answer then. Order is kept."""
    moment = wanted.moment
    if moment.known_at is None:
        return rows
    at = moment.known_at
    changed = [row.id for row in rows if row.known_from > at]
    past: dict[int, tuple[Window, State, int | None]] = {}
    for start in range(0, len(changed), IDS_AT_ONCE):
        part = changed[start : start + IDS_AT_ONCE]
        for fact, valid_from, valid_to, state, successor in conn.execute(
            "SELECT fact, valid_from, valid_to, state, successor FROM fact_versions"
            f" WHERE fact IN ({marks(part)}) AND known_from <= ? AND known_to > ?",
            (*part, at, at),
        ):
            past[fact] = Window(valid_from, valid_to), State(state), successor
    kept = []
    for row in rows:
        if row.known_from > at:
            if row.id not in past:
                continue
            window, state, successor = past[row.id]
            row = replace(
                row,
                valid_from=window.start,
                valid_to=window.end,
                state=state,
                successor=successor,
                successor_ref=None,
            )
        if wanted.include_superseded or moment.shows(row.state, row.window, row.created_at):
            kept.append(row)
    return kept


class Links(NamedTuple):
    """What a fact is tied to, by F-number and conflict number."""

    superseded_by: int | None
    supersedes: list[int]
    conflicts: list[int]


UNTIED: Final = Links(None, [], [])
"""Of a fact that is tied to nothing, as most are."""


def links(conn: Connection, rows: Sequence[Fact]) -> dict[int, Links]:
    """Successor, predecessors and open conflicts of each fact."""
    ids = [row.id for row in rows]
    if not ids:
        return {}
    following = [row.successor for row in rows if row.successor is not None]
    numbers = facts.numbers_of(conn, following) if following else {}
    earlier = facts.predecessors_of(conn, ids)
    disputed: dict[int, list[int]] = {}
    for one in facts_conflicts.of_facts(conn, ids):
        for side in (one.fact_a, one.fact_b):
            disputed.setdefault(side, []).append(one.id)
    if not numbers and not earlier and not disputed:
        return dict.fromkeys(ids, UNTIED)
    return {
        row.id: Links(
            None if row.successor is None else numbers.get(row.successor),
            earlier.get(row.id, []),
            disputed.get(row.id, []),
        )
        for row in rows
    }
