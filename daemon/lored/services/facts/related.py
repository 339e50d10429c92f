"""What a new statement is near to without colliding: facts of other clusters that share a name,
facts that say something similar, in both scopes of the caller.

The statement's own store is asked in the statement's transaction, before anything is written
(`near`) and once it is known which clusters are other ones (`choose`): one visit to one thread
costs less than searching beside the writer. The caller's other store is read before.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from lored.core.quantized import Float32
from lored.services.app import App, Call
from lored.services.facts.scopes import GLOBAL, Target, asked_scope, opened, workspace_target
from lored.services.facts.views import Map, View
from lored.services.settings import Settings
from lored.store import migrate
from lored.store.driver import Connection
from lored.store.facts import related
from lored.store.facts import rows as facts
from lored.store.facts.rows import Fact
from lored.store.search import vectors

if TYPE_CHECKING:
    from lored.services.facts.front import Facts

NEAREST = 24
"""Facts read from the vector index: some of them will be collisions or of the same cluster."""

RESCORED = 96
"""Rows of the quick scan that are scored exactly: this search runs at every statement."""

NAMED = 24
"""Facts read that share a name."""


class Asked(NamedTuple):
    """A statement as its neighbours are looked for: entities as written, their bare names, and
    the static vector with its segment."""

    entities: Sequence[str]
    names: Sequence[str]
    vector: tuple[str, Float32] | None


class Near(NamedTuple):
    """What was found in one store: internal ids with their cosine (without one: no vector)."""

    named: frozenset[int]
    cosines: dict[int, float]

    def rank(self, fact: int) -> tuple[bool, float, int]:
        """The order of facts: those that share a name, then the most similar, the newest."""
        return fact in self.named, self.cosines.get(fact, 0.0), fact


class Item(NamedTuple):
    """A related fact in wire form, and its place in the order."""

    named: bool
    cosine: float
    shown: Map


@dataclass(frozen=True, slots=True)
class Other:
    """The caller's other store: its highest F-number (0: none), its part of the revision token
    (empty: there is no other store), what is related there."""

    highest: int = 0
    token: str = ""
    items: list[Item] = field(default_factory=list)

    def joined(self, own: str, target: Target) -> str:
        """The token of an answer: global first, as `services.facts.revisions` writes it."""
        parts = [self.token, own] if target.workspace is not None else [own, self.token]
        return ",".join(part for part in parts if part)


async def look_at_other(
    app: App,
    service: "Facts",
    call: Call,
    params: dict[str, Any],
    target: Target,
    at: int,
    asked: Asked | None = None,
) -> Other:
    """What an answer needs to know about the caller's other store, if there is one: global for
    a workspace, and the other way round. Without ``asked`` nothing related is looked for."""
    other = await _other_target(app, call, params, target)
    if other is None:
        return Other()
    async with opened(app, other) as database:

        def read(conn: Connection) -> Other:
            items = []
            if asked is not None:
                found = near(conn, app.settings, asked)
                view = service.view(other, at)
                items = choose(conn, app.settings, view, found, asked, f" ({other.scope} facts)")
            token = f"{database.uuid}:{migrate.revision(conn)}"
            return Other(facts.next_number(conn) - 1, token, items)

        return await database.read(read)


async def _other_target(
    app: App, call: Call, params: dict[str, Any], target: Target
) -> Target | None:
    if target.workspace is not None:
        return GLOBAL
    if asked_scope(params) != "global" and not (params.get("workspace") or call.workspace):
        return None
    found = await workspace_target(app, call, params)
    return found if found and app.registry.has_facts(found.workspace or "") else None


def near(conn: Connection, settings: Settings, asked: Asked) -> Near:
    """Ids near to a statement in one store, among committed facts."""
    if settings.fact_related_max_results == 0:
        return Near(frozenset(), {})
    named = related.sharing_names(conn, asked.names, NAMED)
    cosines: dict[int, float] = {}
    if asked.vector is not None:
        segment, values = asked.vector
        cosines = dict(vectors.nearest_facts(conn, segment, values, NEAREST, RESCORED))
        missing = [fact for fact in named if fact not in cosines]
        cosines |= vectors.fact_cosines(conn, segment, values, missing)
    return Near(frozenset(named), cosines)


def choose(
    conn: Connection,
    settings: Settings,
    view: View,
    found: Near,
    asked: Asked,
    place: str = "",
    *,
    apart: Sequence[int] = (),
    cluster: int | None = None,
) -> list[Item]:
    """The related facts of one store, best first: those that share a name, then those whose
    cosine reaches `fact_related_similarity_threshold`; without ``apart`` (the fact itself, its
    collisions) and the facts of its ``cluster``. ``place`` is said behind each reason."""
    floor = settings.fact_related_similarity_threshold
    wanted = {fact for fact, cosine in found.cosines.items() if cosine >= floor} | found.named
    standing = related.standing(conn, wanted.difference(apart), cluster) if wanted else []
    best = sorted(standing, key=found.rank, reverse=True)[: settings.fact_related_max_results]
    known = facts.by_ids(conn, best)
    rows = [known[fact] for fact in best]
    mine = sorted(asked.entities)
    return [
        _item(found, row, shown, mine, place)
        for row, shown in zip(rows, view.facts(conn, rows), strict=True)
    ]


def best_of(settings: Settings, *found: list[Item]) -> list[Map]:
    """The related facts of an answer, those of several stores put in one order."""
    items = sorted(
        (item for one in found for item in one), key=lambda item: (-item.named, -item.cosine)
    )
    return [item.shown for item in items[: settings.fact_related_max_results]]


def _item(found: Near, row: Fact, shown: Map, mine: list[str], place: str) -> Item:
    shares = "same name of an entity" if row.id in found.named else "similar text"
    if row.entities and sorted(row.entities) == mine:
        shares = "same entities"
    one: Map = {"fact": shown, "why": shares + place}
    score = found.cosines.get(row.id)
    if score is not None:
        one["score"] = round(score, 3)
    return Item(row.id in found.named, score or 0.0, one)
