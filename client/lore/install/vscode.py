"""VS Code: `mcp.json` of the user profile (code.visualstudio.com, MCP configuration reference)."""

from __future__ import annotations

import os

from lore.install.edits import Edit, JsonEdit
from lore.install.places import Place


def folder(place: Place) -> str:
    """The folder of the user's default profile."""
    if place.darwin:
        return place.at("Library", "Application Support", "Code", "User")
    return place.config("Code", "User")


def edits(place: Place, recall: bool) -> list[Edit]:
    """One entry under `servers`."""
    entry: dict[str, object] = {"type": "stdio", "command": place.command, "args": ["mcp"]}
    if place.carried:
        entry["env"] = place.carried
    return [JsonEdit(os.path.join(folder(place), "mcp.json"), {("servers", "lore"): entry})]
