"""Facts in groups and batches: thin over services.triage, snapshot and fact_groups."""

from typing import Any

from lored.services.app import App, Call
from lored.services.facts import groups

Map = dict[str, Any]


async def apply(app: App, call: Call, params: Map) -> Map:
    """Run a batch of operations."""
    found: Map = await app.get("triage").apply(call, params)
    return found


async def undo(app: App, call: Call, params: Map) -> Map:
    """Take back a batch or an entry."""
    found: Map = await app.get("triage").undo(call, params)
    return found


async def log(app: App, call: Call, params: Map) -> Map:
    """The change log."""
    found: Map = await app.get("triage").log(call, params)
    return found


async def snapshot(app: App, call: Call, params: Map) -> Map:
    """Several views in one call."""
    found: Map = await app.get("snapshots").snapshot(call, params)
    return found


async def conflicts(app: App, call: Call, params: Map) -> Map:
    """Conflicts by state."""
    return await groups.conflicts(app, call, params)


async def clusters(app: App, call: Call, params: Map) -> Map:
    """Clusters with their facts."""
    return await groups.clusters(app, call, params)


async def entities(app: App, call: Call, params: Map) -> Map:
    """Entities, suggestions, merges and aliases."""
    return await groups.entities(app, call, params)


HANDLERS = {
    "apply": apply,
    "undo": undo,
    "log": log,
    "snapshot": snapshot,
    "conflicts": conflicts,
    "clusters": clusters,
    "entities": entities,
}
