"""What each known workspace holds, and when something last happened in it."""

from typing import Any

from lored.core.clock import Micros, to_wire
from lored.services.app import App
from lored.store.facts import counts
from lored.store.sessions import listing


async def list_workspaces(app: App) -> list[dict[str, Any]]:
    """The known workspaces, the last active one first: as `Workspaces.known`, with the number
    of `facts` that hold and of `sessions` (not of subagents), and `last_at` where there was
    anything at all."""
    sessions = await app.registry.sessions.read(listing.by_workspace)
    found: list[tuple[Micros, dict[str, Any]]] = []
    for known in app.workspaces.known():
        workspace = str(known["id"])
        count, last = sessions.get(workspace, (0, 0))
        facts = 0
        if known["facts"]:
            async with app.registry.facts(workspace) as database:
                facts, stated = await database.read(counts.held)
            last = max(last, stated)
        one: dict[str, Any] = {**known, "facts": facts, "sessions": count}
        if last:
            one["last_at"] = to_wire(last)
        found.append((last, one))
    return [one for _, one in sorted(found, key=lambda pair: -pair[0])]
