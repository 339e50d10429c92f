"""What a new statement is near to without colliding: facts of other clusters that share a name,
facts that say something similar, in both scopes of the caller.

The search needs nothing of the new fact's row, so it runs on readers while the writer commits;
only then is it known which clusters are other ones.
"""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from lored.core.quantized import Float32
from lored.services.app import App, Call
from lored.services.facts.scopes import GLOBAL, Target, asked_scope, opened, workspace_target
from lored.services.facts.statements import Stated
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


class Near(NamedTuple):
    """What was found in one store: internal ids with their cosine (None: no vector)."""

    target: Target
    named: frozenset[int]
    cosines: dict[int, float]


async def other_targets(
    app: App, call: Call, params: dict[str, Any], target: Target
) -> list[Target]:
    """The caller's other store: global for a workspace, and the other way round."""
    if target.workspace is not None:
        return [GLOBAL]
    if asked_scope(params) != "global" and not (params.get("workspace") or call.workspace):
        return []
    found = await workspace_target(app, call, params)
    return [found] if found and app.registry.has_facts(found.workspace or "") else []


class Other(NamedTuple):
    """The caller's other store: its highest F-number (0: none), and its part of the revision
    token (empty: there is no other store)."""

    highest: int = 0
    token: str = ""

    def joined(self, own: str, target: Target) -> str:
        """The token of an answer: global first, as `services.facts.revisions` writes it."""
        parts = [self.token, own] if target.workspace is not None else [own, self.token]
        return ",".join(part for part in parts if part)


async def look_at(app: App, targets: Sequence[Target]) -> Other:
    """What an answer needs to know about the other store, if there is one."""
    for target in targets:
        async with opened(app, target) as database:
            highest, revision = await database.read(
                lambda c: (facts.next_number(c) - 1, migrate.revision(c))
            )
            return Other(highest, f"{database.uuid}:{revision}")
    return Other()


async def gather(
    app: App,
    targets: Sequence[Target],
    names: Sequence[str],
    vector: tuple[str, Float32] | None,
) -> list[Near]:
    """Ids near to a statement with entities of the bare ``names`` and a static ``vector``."""

    async def look(target: Target) -> Near:
        def find(conn: Connection) -> Near:
            named = related.sharing_names(conn, names, NAMED)
            cosines: dict[int, float] = {}
            if vector is not None:
                segment, values = vector
                cosines = dict(vectors.nearest_facts(conn, segment, values, NEAREST, RESCORED))
                missing = [fact for fact in named if fact not in cosines]
                cosines |= vectors.fact_cosines(conn, segment, values, missing)
            return Near(target, frozenset(named), cosines)

        async with opened(app, target) as database:
            return await database.read(find)

    if app.settings.fact_related_max_results == 0:
        return []
    return list(await asyncio.gather(*map(look, targets)))


async def choose(
    app: App, service: "Facts", found: Sequence[Near], own: Target, stated: Stated, at: int
) -> list[dict[str, Any]]:
    """The related facts of a statement, best first: those that share a name, then those whose
    cosine reaches `fact_related_similarity_threshold`; collisions are not repeated."""
    floor = app.settings.fact_related_similarity_threshold
    most = app.settings.fact_related_max_results
    mine = stated.placed.fact
    listed = {one.fact.id for one in stated.found.listed}
    items: list[tuple[bool, float, dict[str, Any]]] = []
    for near in found:
        here = near.target == own
        wanted = {fact for fact, cosine in near.cosines.items() if cosine >= floor} | near.named
        wanted -= {mine.id, *listed} if here else set()
        if not wanted:
            continue

        def read(
            conn: Connection, near: Near = near, here: bool = here, wanted: set[int] = wanted
        ) -> list[tuple[bool, float, dict[str, Any]]]:
            view = service.view(near.target, at)
            rows = [
                row
                for row in facts.by_ids(conn, wanted).values()
                if row.state == 0 and not (here and row.cluster == mine.cluster)
            ]
            rows.sort(key=lambda row: (-_rank(near, row), -row.id))
            texts = view.facts(conn, rows[:most])
            return [
                (
                    row.id in near.named,
                    near.cosines.get(row.id, 0.0),
                    _item(near, row, text, mine, "" if here else f" ({near.target.scope} facts)"),
                )
                for row, text in zip(rows, texts, strict=False)
            ]

        async with opened(app, near.target) as database:
            items += await database.read(read)
    items.sort(key=lambda item: (-item[0], -item[1]))
    return [item for _, _, item in items[:most]]


def _rank(near: Near, row: Fact) -> float:
    return (2.0 if row.id in near.named else 0.0) + near.cosines.get(row.id, 0.0)


def _item(near: Near, row: Fact, text: dict[str, Any], mine: Fact, place: str) -> dict[str, Any]:
    shares = "same name of an entity" if row.id in near.named else "similar text"
    if row.entities and sorted(row.entities) == sorted(mine.entities):
        shares = "same entities"
    score = near.cosines.get(row.id)
    found: dict[str, Any] = {"fact": text, "why": shares + place}
    if score is not None:
        found["score"] = round(score, 3)
    return found
