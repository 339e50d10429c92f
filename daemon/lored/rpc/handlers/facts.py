"""Facts one by one: thin over services.facts."""

from typing import Any

from lored.services.app import App, Call
from lored.services.facts import statements

Map = dict[str, Any]


async def remember_fact(app: App, call: Call, params: Map) -> Map:
    """State a fact."""
    found: Map = await app.get("facts").remember(call, params)
    return found


async def remember(app: App, call: Call, params: Map) -> Map:
    """State a fact or a note."""
    kind = statements.note_kind(params.get("episode_type"), params.get("kind"))
    given = {key: value for key, value in params.items() if key not in ("content", "episode_type")}
    return await remember_fact(app, call, {**given, "text": params["content"], "kind": kind})


async def recall_fact(app: App, call: Call, params: Map) -> Map:
    """Find facts."""
    found: Map = await app.get("facts").recall(call, params)
    return found


async def update_fact(app: App, call: Call, params: Map) -> Map:
    """Replace a fact by a new text."""
    found: Map = await app.get("facts").update(call, params)
    return found


async def forget_fact(app: App, call: Call, params: Map) -> Map:
    """Forget a fact, take that back, or remove it for good."""
    found: Map = await app.get("facts").forget(call, params)
    return found


async def verify_fact(app: App, call: Call, params: Map) -> Map:
    """Note that a fact still holds."""
    found: Map = await app.get("facts").verify(call, params)
    return found


async def fact(app: App, call: Call, params: Map) -> Map:
    """One fact with history, conflicts and origin."""
    found: Map = await app.get("facts").get(call, params)
    return found


async def fact_history(app: App, call: Call, params: Map) -> Map:
    """The chain of a fact."""
    found: Map = await app.get("facts").history(call, params)
    return found


async def facts(app: App, call: Call, params: Map) -> Map:
    """Facts newest first."""
    found: Map = await app.get("facts").listing(call, params)
    return found


async def changes(app: App, call: Call, params: Map) -> Map:
    """What changed since a revision."""
    workspace = await app.workspaces.resolve(params.get("workspace") or call.workspace)
    found: Map = await app.get("facts").changes(
        params["since"], workspace.id if workspace else None, params.get("limit", 200)
    )
    return found


HANDLERS = {
    "remember_fact": remember_fact,
    "remember": remember,
    "recall_fact": recall_fact,
    "update_fact": update_fact,
    "forget_fact": forget_fact,
    "verify_fact": verify_fact,
    "fact": fact,
    "fact_history": fact_history,
    "facts": facts,
    "changes": changes,
}
