"""`workspace`: identity and how it was found."""

from typing import Any

from lore.errors import Invalid
from lored.services import holdings
from lored.services.app import App, Call


async def workspace(app: App, call: Call, params: dict[str, Any]) -> dict[str, Any]:
    """explain (default), list, alias, split."""
    action = params.get("action", "explain")
    if action == "list":
        return {"workspaces": await holdings.list_workspaces(app)}
    path = params.get("path") or call.workspace
    if not path:
        raise Invalid("workspace: give `path`")
    if action == "alias":
        if not params.get("target"):
            raise Invalid("workspace alias: give `target`, the workspace whose memory it joins")
        found = await app.workspaces.alias(path, params["target"])
    elif action == "split":
        found = await app.workspaces.split(path)
    else:
        resolved = await app.workspaces.resolve(path)
        if resolved is None:
            return {
                "path": path,
                "how": "no workspace: home, root and temporary folders only have global facts",
            }
        found = resolved
    return {
        "path": path,
        "id": found.id,
        "root": found.root,
        "how": found.how,
        "worktree": found.worktree,
        "moved_from": app.workspaces.moved_from(found),
    }


HANDLERS = {"workspace": workspace}
