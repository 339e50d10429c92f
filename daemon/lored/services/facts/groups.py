"""Facts in groups: conflicts, clusters and entities as lists, over the scopes of a call."""

from functools import partial
from typing import Any, Protocol

from lore.errors import Invalid, NotFound
from lored.core import ids
from lored.core.entities import possible_names
from lored.services.app import App, Call
from lored.services.facts.scopes import Target, for_read, one_number, opened
from lored.services.facts.views import Map, View
from lored.services.moments import now
from lored.store.driver import Connection
from lored.store.facts import clusters as facts_clusters
from lored.store.facts import conflicts as facts_conflicts
from lored.store.facts import entities as facts_entities
from lored.store.facts.entities import Known

SHOWN_FACTS = 20
"""Facts of a cluster that are listed with it."""


class Read(Protocol):
    """What is read from each store."""

    def __call__(self, conn: Connection, view: View) -> list[Map]: ...


async def _over(
    app: App,
    call: Call,
    params: Map,
    read: Read,
) -> list[Map]:
    """The results of ``read`` on each store of the call, global first."""
    at = now()
    found: list[Map] = []
    for target in await for_read(app, call, params):
        view = app.get("facts").view(target, at)
        async with opened(app, target) as database:
            found += await database.read(partial(read, view=view))
    return found


async def conflicts(app: App, call: Call, params: Map) -> Map:
    """Conflicts of a status (open unless said otherwise), newest first."""
    limit = one_number(params, 50)
    asked = params.get("status", "open")
    status = None if asked == "all" else asked

    def read(conn: Connection, view: View) -> list[Map]:
        return view.conflicts(conn, facts_conflicts.listing(conn, status, limit))

    found = await _over(app, call, params, read)
    found.sort(key=lambda one: one["opened_at"], reverse=True)
    return {"conflicts": found[:limit], "status": asked}


async def clusters(app: App, call: Call, params: Map) -> Map:
    """Clusters with their facts, newest first, or the one named."""
    limit = one_number(params, 20)
    name = params.get("id")
    ref = None if name is None else ids.parse(name, "cluster")
    if ref is not None and ref.scope is not None and not params.get("scope"):
        params = {**params, "scope": ref.scope}

    def read(conn: Connection, view: View) -> list[Map]:
        only = None if ref is None else ref.number
        rows = facts_clusters.listing(conn, limit, only)
        return [view.cluster(conn, row, 200 if ref else SHOWN_FACTS) for row in rows]

    found = await _over(app, call, params, read)
    if ref is not None and not found:
        raise NotFound(f"no cluster {name} here; `lore clusters` lists them", {"id": name})
    found.sort(key=lambda one: one["created_at"], reverse=True)
    return {"clusters": found[:limit]}


async def entities(app: App, call: Call, params: Map) -> Map:
    """Entities with counts; or suggestions for a text; or, after a merge or alias, the entity
    that came of it."""
    joined = _pair(params, "merge"), _pair(params, "alias")
    if joined[0] and joined[1]:
        raise Invalid("merge and alias exclude each other: one call, one change")
    if joined[0] or joined[1]:
        return await _join(app, call, params, joined[0], joined[1])
    limit = one_number(params, 50)
    if params.get("text") is not None:
        return {"suggestions": await suggest(app, call, params, params["text"], limit)}

    def read(conn: Connection, view: View) -> list[Map]:
        return [wire(row, view.target) for row in facts_entities.listing(conn, limit)]

    found = await _over(app, call, params, read)
    found.sort(key=lambda one: (-one["count"], one["id"]))
    return {"entities": found[:limit]}


def wire(row: Known, target: Target) -> Map:
    """An entity in wire form: key, as written, active and all facts, other names."""
    kind, name = row.key.split(":", 1)
    return {
        "id": row.key,
        "entity": row.written,
        "type": kind,
        "name": name,
        "scope": target.scope,
        "count": row.active,
        "fact_count": row.facts,
        "aliases": row.aliases,
    }


async def suggest(app: App, call: Call, params: Map, text: str, limit: int) -> list[Map]:
    """Known entities that ``text`` mentions by name or alias: longest names first, then the
    most used, then by name. Deterministic; no model."""
    names = possible_names(text)

    def read(conn: Connection, view: View) -> list[Map]:
        found = facts_entities.mentioned(conn, names)
        wanted = {entity: name for name, ids_ in found.items() for entity in ids_}
        rows = facts_entities.listing(conn, len(wanted), list(wanted)) if wanted else []
        return [wire(row, view.target) | {"matched": wanted[row.id]} for row in rows]

    found = await _over(app, call, params, read)
    found.sort(key=lambda one: (-len(one["matched"]), -one["count"], one["id"], one["scope"]))
    return found[:limit]


def _pair(params: Map, name: str) -> tuple[str, str] | None:
    value: Any = params.get(name)
    if value is None:
        return None
    if len(value) != 2:
        raise Invalid(f"{name}: two names, got {len(value)}", {"parameter": name})
    return value[0], value[1]


async def _join(
    app: App,
    call: Call,
    params: Map,
    merge: tuple[str, str] | None,
    alias: tuple[str, str] | None,
) -> Map:
    op = (
        {"op": "merge", "from": merge[0], "into": merge[1]}
        if merge
        else {"op": "alias", "alias": alias[0], "entity": alias[1]}
        if alias
        else {}
    )
    where: Map = {name: params[name] for name in ("workspace", "scope") if name in params}
    if "scope" not in where:
        where = await _where(app, call, params, str(op.get("into", op.get("entity"))), where)
    done = await app.get("triage").apply(call, {"ops": [op], **where})
    into = str(op.get("into", op.get("entity")))

    def read(conn: Connection, view: View) -> list[Map]:
        found = facts_entities.matching(conn, into)
        rows = facts_entities.listing(conn, len(found), found) if found else []
        return [wire(row, view.target) for row in rows]

    scope: Map = {**where, "scope": done["scope"]}
    return {"entities": await _over(app, call, scope, read), "batch": done.get("batch")}


async def _where(app: App, call: Call, params: Map, entity: str, where: Map) -> Map:
    """The scope whose entity is meant: the only one of the call that knows it, else the
    default. Raises `NotFound` when none does."""
    having = []
    for target in await for_read(app, call, params):
        async with opened(app, target) as database:
            if await database.read(lambda c: facts_entities.matching(c, entity)):
                having.append(target.scope)
    if not having:
        raise NotFound(f"no entity {entity} here; `lore entities` lists the known ones")
    return {**where, "scope": having[0]} if len(having) == 1 else where
