"""Recall of facts: what a question finds in the facts of both scopes.

1. The words of the query that are ids (`F3`, `global:F3`, a uid) stand for themselves; the
   newest of the chain answers for a fact that was replaced.
2. Each store is searched by words and vectors (`store.search.facts`). What does not fit the
   filters, the validity or the belief asked about is dropped; when too little is left, the
   search is repeated among the rows that fit. So a filter never hides what it allows.
3. Scores are relative to the best of their store. Before two stores are merged, the store
   whose best hit covers less of the query is scaled down by that.
4. Open conflicts that touch any fact shown come along. Accesses are counted in memory.

Without a query: what was used last comes first.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lore.errors import Invalid
from lored.core import ids
from lored.core.clock import Micros
from lored.core.facts import State
from lored.core.quantized import Float32
from lored.core.ranking import Likeness
from lored.embed.base import STATIC
from lored.services.app import App, Call
from lored.services.facts.reading import make_filter, mark, moment, unverified
from lored.services.facts.scopes import Target, for_read, lookup, one_number, opened
from lored.services.facts.views import Map
from lored.services.moments import now
from lored.store.driver import Connection
from lored.store.facts import bindings as facts_bindings
from lored.store.facts import changes, find
from lored.store.facts import conflicts as facts_conflicts
from lored.store.facts.bindings import Binding
from lored.store.facts.find import Filter
from lored.store.facts.rows import Fact
from lored.store.search import facts as fact_search

if TYPE_CHECKING:
    from lored.services.facts.front import Facts

LISTED: Final = 10
"""Facts of an answer when the caller does not say."""

SPARE: Final = 1.5
"""Hits asked for per fact wanted: some are of the past, in most stores few."""

FITTING: Final = 200_000
"""Facts among which a search is repeated when too few of its hits fit."""

QUERY_CHARS: Final = 10_000
"""Longer ones are refused: nobody asks in so many words."""

IDS: Final = 20
"""Ids looked up from one query."""


class Query(NamedTuple):
    """A question as all stores are asked it."""

    text: str
    vectors: dict[str, Float32 | None]
    like: Likeness | None
    named: tuple[ids.Ref, ...]


class Hit(NamedTuple):
    """A fact found: score, how much of the query it covers, the parts of the score."""

    fact: Fact
    score: float
    cover: float
    parts: dict[str, Any]


class Found(NamedTuple):
    """What one store answers."""

    target: Target
    hits: list[Hit]
    shown: list[Map]
    conflicts: list[Map]
    bindings: dict[int, list[Binding]]


async def recall(app: App, service: "Facts", call: Call, params: dict[str, Any]) -> Map:
    """`recall_fact`: facts with scores, the open conflicts that touch them, the mode."""
    at = now()
    limit = one_number(params, LISTED)
    text = (params.get("query") or "").strip()
    if len(text) > QUERY_CHARS:
        raise Invalid(f"query has {len(text)} characters, at most {QUERY_CHARS} are read")
    targets = await for_read(app, call, params)
    query, mode, degraded = await _ask(app, text)
    found = []
    for target in targets:
        async with opened(app, target) as database:
            found.append(
                await database.read(_reader(app, service, target, params, query, limit, at))
            )
    answer = await _merge(service, found, limit, at, explain=bool(params.get("explain")))
    answer["mode"] = mode
    if degraded:
        answer["degraded"] = [degraded]
    return answer


async def _ask(app: App, text: str) -> tuple[Query | None, str, str | None]:
    """The question with its vectors, how it is answered, and what is missing for that."""
    if not text:
        return None, "recent", None
    embedding = app.services.get("embedding")
    if embedding is None:
        return Query(text, {}, None, _named(text)), "lexical", None
    asked = await embedding.query(text)
    models = [name for name, vector in asked.found.items() if vector is not None]
    mode = "+".join(["lexical", *("static" if name == STATIC else name for name in models)])
    return Query(text, asked.found, embedding.likeness, _named(text)), mode, asked.degraded


def _named(text: str) -> tuple[ids.Ref, ...]:
    """Words of a query that are fact ids beyond doubt: `F3`, qualified ones, uids."""
    found = []
    for word in text.split()[:200]:
        word = word.strip(".,;:!?()[]'\"")
        last = word.rsplit(":", 1)[-1]
        if ids.fact_number(last[:1].upper() + last[1:]) is None and len(last) != 32:
            continue
        try:
            found.append(ids.parse(word, "fact"))
        except Invalid:
            continue
    return tuple(dict.fromkeys(found))[:IDS]


def _reader(
    app: App,
    service: "Facts",
    target: Target,
    params: dict[str, Any],
    query: Query | None,
    limit: int,
    at: Micros,
) -> Any:
    """What one store is asked, as a function of a connection."""
    view = service.view(target, at)

    def read(conn: Connection) -> Found:
        wanted = make_filter(conn, params, moment(params, at))
        hits = (
            _recent(conn, wanted, limit, view.seen)
            if query is None
            else _search(conn, wanted, query, limit, target)
        )
        rows = [hit.fact for hit in hits]
        row_ids = [row.id for row in rows]
        disputes = facts_conflicts.of_facts(conn, row_ids)
        return Found(
            target,
            hits,
            view.facts(conn, rows),
            view.conflicts(conn, disputes) if disputes else [],
            facts_bindings.of(conn, row_ids),
        )

    return read


def _recent(conn: Connection, wanted: Filter, limit: int, seen: Any) -> list[Hit]:
    """Most recently used first, accesses that are not written yet included."""
    rows = {fact.id: fact for fact in find.recently_used(conn, wanted, limit)}
    rows |= find.among(conn, wanted, list(seen))

    def used(fact: Fact) -> tuple[Micros, int]:
        return max(fact.last_accessed, seen.get(fact.id, (0, 0))[1]), fact.id

    ordered = sorted(rows.values(), key=used, reverse=True)[:limit]
    return [Hit(fact, float(used(fact)[0]), 1.0, {}) for fact in ordered]


def _search(
    conn: Connection, wanted: Filter, query: Query, limit: int, target: Target
) -> list[Hit]:
    exact = _exact(conn, wanted, query.named, target)
    if len(query.named) == len(query.text.split()):
        return exact[:limit]
    allowed: Sequence[int] | None = None
    if wanted.groups or wanted.kind or wanted.since is not None or wanted.until is not None:
        allowed = find.fitting(conn, wanted, fact_search.ALLOWED_IDS)
    hits, dropped = _hits(conn, wanted, query, limit, allowed)
    if allowed is None and dropped and len(hits) < limit:
        allowed = find.fitting(conn, wanted, FITTING)
        if allowed is not None:
            hits, _ = _hits(conn, wanted, query, limit, allowed)
    there = {hit.fact.id for hit in exact}
    return [*exact, *(hit for hit in hits if hit.fact.id not in there)][:limit]


def _hits(
    conn: Connection,
    wanted: Filter,
    query: Query,
    limit: int,
    allowed: Sequence[int] | None,
) -> tuple[list[Hit], bool]:
    """The best facts of this store that fit, best first, and whether any did not."""
    found = fact_search.search(
        conn,
        query.text,
        query.vectors,
        query.like,
        int(limit * SPARE) if allowed is None else limit,
        None if allowed is None else set(allowed),
    )
    rows = find.among(conn, wanted, [hit.rowid for hit in found])
    hits = [
        Hit(rows[hit.rowid], hit.score, max(hit.cover, hit.soft), _parts(hit))
        for hit in found
        if hit.rowid in rows and _says_something(hit)
    ]
    return hits[:limit], len(rows) < len(found)


def _says_something(hit: fact_search.FactHit) -> bool:
    """Whether a hit shares a word with the query or is near to it in meaning at all."""
    return bool(hit.matched) or hit.soft >= 0.5 or (hit.cosine or 0.0) >= 0.35


def _parts(hit: fact_search.FactHit) -> dict[str, Any]:
    return {**hit.parts, "matched": ", ".join(hit.matched), "cosine": hit.cosine}


def _exact(conn: Connection, wanted: Filter, named: Sequence[ids.Ref], target: Target) -> list[Hit]:
    """Facts that the query names; in a current answer the one that holds in their place."""
    found: dict[int, Hit] = {}
    for ref in named:
        if ref.scope not in (None, target.scope):
            continue
        fact = lookup(conn, ref)
        if fact is None:
            continue
        if fact.state is State.SUPERSEDED and wanted.moment.is_now:
            fact = changes.chain_end(conn, fact) if not wanted.include_superseded else fact
        kept = find.among(conn, wanted, [fact.id])
        if kept:
            found[fact.id] = Hit(kept[fact.id], 10.0, 1.0, {"id": 10.0})
    return list(found.values())


async def _merge(
    service: "Facts", found: Sequence[Found], limit: int, at: Micros, *, explain: bool
) -> Map:
    """The answers of the stores as one."""
    best = max((hit.cover for one in found for hit in one.hits), default=0.0)
    items: list[tuple[float, Target, Hit, Map]] = []
    for one in found:
        own = max((hit.cover for hit in one.hits), default=0.0)
        scale = own / best if best > 0 else 1.0
        for hit, shown in zip(one.hits, one.shown, strict=True):
            items.append((hit.score * scale, one.target, hit, shown))
    items.sort(key=lambda item: -item[0])
    items = items[:limit]
    shown_conflicts: dict[tuple[str, str], Map] = {}
    for one in found:
        kept = [item for item in items if item[1] == one.target]
        rows = [item[2].fact for item in kept]
        bound = {row.id: one.bindings[row.id] for row in rows if row.id in one.bindings}
        mark([item[3] for item in kept], rows, await unverified(bound))
        service.access.note(one.target.workspace, [row.id for row in rows], at)
        names = {name for item in kept for name in item[3].get("conflicts", ())}
        for conflict in one.conflicts:
            if conflict["id"] in names:
                shown_conflicts[conflict["scope"], conflict["id"]] = conflict
    for score, _, hit, shown in items:
        if hit.parts:
            shown["score"] = round(score, 4)
            if explain:
                shown["explain"] = {k: v for k, v in hit.parts.items() if v is not None}
    return {
        "facts": [item[3] for item in items],
        "conflicts": list(shown_conflicts.values()),
    }
