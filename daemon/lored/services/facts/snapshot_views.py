"""The views of a snapshot: each a function of what was asked and the part after the colon."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol

from lore.errors import Invalid, NotFound
from lored.core import ids
from lored.core.entities import of_tag
from lored.services.app import App, Call
from lored.services.facts import groups
from lored.services.facts.reading import make_filter, moment
from lored.services.facts.scopes import Target, opened
from lored.services.facts.views import Map, View
from lored.store.driver import Connection
from lored.store.facts import changes, conflicts, counts, entities, find
from lored.store.facts import clusters as facts_clusters

FACTS: Final = 50
"""Facts of one view; the count beside them is the true one."""

PENDING: Final = 50
"""Facts with undecided collisions that are listed."""


class Read(Protocol):
    """What is read from each store."""

    def __call__(self, conn: Connection, view: View) -> Any: ...


@dataclass(frozen=True, slots=True)
class Ask:
    """What all views of one call share."""

    app: App
    call: Call
    params: Map
    targets: list[Target]
    at: int

    async def over(self, read: Read) -> list[Any]:
        """The result of ``read`` on each store of the call, global first."""
        found = []
        for target in self.targets:
            view = self.app.get("facts").view(target, self.at)
            async with opened(self.app, target) as database:
                found.append(await database.read(partial(read, view=view)))
        return found


def _number(value: str, default: int, highest: int = 200) -> int:
    if not value:
        return default
    if not value.isdecimal() or not 1 <= int(value) <= highest:
        raise Invalid(f"{value!r} is not a number from 1 to {highest}")
    return int(value)


def _asked(ask: Ask, conn: Connection, **more: Any) -> find.Filter:
    return make_filter(conn, {**ask.params, **more}, moment(ask.params, ask.at))


async def _entity(ask: Ask, value: str) -> Map:
    """One entity (a bare name means any type): its facts, clusters and conflicts."""
    if not value:
        raise Invalid("entity: name one, for example entity:tool:redis")

    def read(conn: Connection, view: View) -> Map | None:
        found = entities.matching(conn, value)
        if not found:
            return None
        asked = _asked(ask, conn, entities=[value])
        page = find.page(conn, asked, FACTS)
        clusters = facts_clusters.of_entities(conn, found, FACTS)
        rows = [row for one in clusters for row in facts_clusters.listing(conn, 1, one)]
        return {
            "entities": [
                groups.wire(row, view.target) for row in entities.listing(conn, len(found), found)
            ],
            "facts": view.facts(conn, page.facts),
            "fact_count": find.total(conn, asked),
            "clusters": [
                {
                    "id": ids.spell("cluster", row.id),
                    "scope": view.target.scope,
                    "title": row.title,
                    "active_count": row.active,
                    "superseded_count": row.superseded,
                }
                for row in rows
            ],
            "conflicts": view.conflicts(
                conn, conflicts.of_facts(conn, [row.id for row in page.facts])
            ),
        }

    parts = [part for part in await ask.over(read) if part is not None]
    if not parts:
        raise NotFound(f"no entity {value}; `lore entities` lists the known ones")
    return _joined(parts, ("entities", "facts", "clusters", "conflicts"))


async def _cluster(ask: Ask, value: str) -> Map:
    """One cluster with its active and superseded facts."""
    params = {**ask.params, "id": value, "limit": 1}
    found: Map = (await groups.clusters(ask.app, ask.call, params))["clusters"][0]
    found["active_facts"] = found.pop("facts")
    return found


async def _conflicts(ask: Ask, value: str) -> Map:
    """Conflicts of a status, open when none is named."""
    status = value or "open"
    if status not in ("open", "resolved", "dismissed", "all"):
        raise Invalid(f"conflicts:{value}: open, resolved, dismissed or all")

    def read(conn: Connection, view: View) -> Map:
        wanted = None if status == "all" else status
        rows = conflicts.listing(conn, wanted, FACTS)
        count = sum(
            conflicts.count(conn, one)
            for one in (("open", "resolved", "dismissed") if wanted is None else (wanted,))
        )
        return {"count": count, "conflicts": view.conflicts(conn, rows)}

    return {"status_filter": status, **_joined(await ask.over(read), ("conflicts",))}


async def _recent(ask: Ask, value: str) -> Map:
    """The newest facts."""
    limit = _number(value, 10)

    def read(conn: Connection, view: View) -> Map:
        return {"facts": view.facts(conn, find.page(conn, _asked(ask, conn), limit).facts)}

    found = _joined(await ask.over(read), ("facts",))
    found["facts"].sort(key=lambda fact: fact["created_at"], reverse=True)
    found["facts"] = found["facts"][:limit]
    return {"count": len(found["facts"]), **found}


async def _pending(ask: Ask, value: str) -> Map:
    """Facts that came with collisions nobody has settled, with what they stand against: each
    pair once, at its newer fact."""
    limit = _number(value, PENDING)

    def read(conn: Connection, view: View) -> Map:
        rows = counts.pending_facts(conn, limit)
        items: list[Map] = []
        shown: set[frozenset[int]] = set()
        gone = 0
        for row in rows:
            undecided = changes.undecided(conn, row, 5)
            gone += not undecided
            found = [one for one in undecided if frozenset((row.id, one.fact.id)) not in shown]
            shown |= {frozenset((row.id, one.fact.id)) for one in found}
            if found:
                items.append(
                    {
                        "fact": view.fact(conn, row),
                        "collisions": view.collisions(conn, row, found),
                    }
                )
        names = sorted({name for one in items for name in one["fact"].get("entities", ())})
        return {"count": counts.pending(conn) - gone, "facts": items, "entities": names}

    found = _joined(await ask.over(read), ("facts", "entities"))
    found["entities"] = sorted(set(found["entities"]))
    return found


async def _stats(ask: Ask, value: str) -> Map:
    """Counts of both scopes together and one by one."""

    def read(conn: Connection, view: View) -> Map:
        return counts.counts(conn) | {"scope": view.target.scope}

    parts = await ask.over(read)
    keys = dict.fromkeys(key for part in parts for key in part if key != "scope")
    total: Map = {key: sum(part.get(key, 0) for part in parts) for key in keys}
    return {**total, "scopes": parts} if parts else total


async def _workspace(ask: Ask, value: str) -> Map:
    """Where the call stands: its workspace, and how many facts each scope has."""
    found = await ask.app.workspaces.resolve(
        value or ask.params.get("workspace") or ask.call.workspace
    )
    stats = await _stats(ask, "")
    answer: Map = {"scopes": stats.get("scopes", [])}
    if found is None:
        return {"workspace": "none: only the global facts apply here", **answer}
    return {"id": found.id, "root": found.root, "how": found.how, **answer}


async def _query(ask: Ask, value: str) -> Map:
    """What a recall finds."""
    if not value:
        raise Invalid("query: say what to look for, for example query:redis ttl")
    given: Map = {
        key: ask.params[key] for key in ("as_of", "known_at", "workspace") if key in ask.params
    }
    found: Map = await ask.app.get("facts").recall(ask.call, {"query": value, "limit": 10, **given})
    return {"count": len(found["facts"]), **found}


async def _entities(ask: Ask, value: str) -> Map:
    """Known entities, of one type if it is named."""
    params = {**ask.params, "limit": 200}
    found = (await groups.entities(ask.app, ask.call, params))["entities"]
    if value:
        found = [one for one in found if one["type"] == value.lower()]
    return {"count": len(found), "entities": found}


async def _kind(ask: Ask, kind: str, value: str) -> Map:
    limit = _number(value, 20)

    def read(conn: Connection, view: View) -> Map:
        page = find.page(conn, _asked(ask, conn, kind=kind), limit)
        return {"facts": view.facts(conn, page.facts)}

    found = _joined(await ask.over(read), ("facts",))
    return {"count": len(found["facts"]), **found}


async def _decisions(ask: Ask, value: str) -> Map:
    """The newest decisions."""
    return await _kind(ask, "decision", value)


async def _topic(ask: Ask, value: str) -> Map:
    """Facts with a tag: what other memories call a topic."""

    def read(conn: Connection, view: View) -> Map | None:
        spelled = [value, value.replace("-", " ")]
        known = entities.ids_of(conn, [of_tag(tag).key for tag in spelled])
        if not known:
            return None
        asked = _asked(ask, conn)
        asked.groups.append(sorted(set(known.values())))
        page = find.page(conn, asked, FACTS)
        name = next(iter(entities.written_names(conn, known.values()).values()))
        return {
            "name": name,
            "fact_count": find.total(conn, asked),
            "facts": view.facts(conn, page.facts),
        }

    parts = [part for part in await ask.over(read) if part is not None]
    if not parts:
        raise NotFound(f"no fact has the tag {value}")
    return _joined(parts, ("facts",))


def _joined(parts: list[Map], lists: tuple[str, ...]) -> Map:
    """The views of several stores as one: lists one after the other, numbers added."""
    found: Map = {}
    for part in parts:
        for key, value in part.items():
            if key in lists:
                found.setdefault(key, []).extend(value)
            elif isinstance(value, int):
                found[key] = found.get(key, 0) + value
            else:
                found.setdefault(key, value)
    for key in lists:
        found.setdefault(key, [])
    return found


VIEWS: Final[dict[str, Callable[[Ask, str], Awaitable[Map]]]] = {
    "entity": _entity,
    "cluster": _cluster,
    "concept": _cluster,
    "conflicts": _conflicts,
    "recent": _recent,
    "stats": _stats,
    "pending": _pending,
    "workspace": _workspace,
    "query": _query,
    "entities": _entities,
    "decisions": _decisions,
    "topic": _topic,
}
