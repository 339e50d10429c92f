"""Indexing of transcripts: thin over services.indexing."""

from typing import Any

from lored.services.app import App, Call

Map = dict[str, Any]


async def index(app: App, call: Call, params: Map) -> Map:
    """Look for new text now."""
    ticket = await app.get("indexing").index(params.get("paths"), force=bool(params.get("force")))
    return {"accepted": True, "ticket": ticket}


async def index_wait(app: App, call: Call, params: Map) -> Map:
    """Until what was there at the call is searchable."""
    found: Map = await app.get("indexing").wait(params.get("ticket"))
    return found


async def index_status(app: App, call: Call, params: Map) -> Map:
    """Progress, roots, damage, queue."""
    found: Map = await app.get("indexing").status()
    return found


async def sources(app: App, call: Call, params: Map) -> Map:
    """Roots; changes apply at once."""
    names = ("enable", "disable", "add", "remove")
    indexing = app.get("indexing")
    await indexing.change_sources(**{name: params.get(name) for name in names})
    return {"roots": (await indexing.status())["roots"]}


async def exclude(app: App, call: Call, params: Map) -> Map:
    """Rules for what is never read."""
    rules = await app.get("indexing").change_rules(
        add=params.get("add"), remove=params.get("remove")
    )
    return {"rules": rules}


HANDLERS = {
    "index": index,
    "index_wait": index_wait,
    "index_status": index_status,
    "sources": sources,
    "exclude": exclude,
}
