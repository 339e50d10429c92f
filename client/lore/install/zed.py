"""Zed: `context_servers` in its settings, a JSON file with comments (zed.dev/docs/ai/mcp)."""

from __future__ import annotations

from lore.install.edits import Edit, JsonEdit
from lore.install.places import Place


def settings(place: Place) -> str:
    """The user's settings file; the same place on Linux and macOS."""
    return (
        place.at(".config", "zed", "settings.json")
        if place.darwin
        else place.config("zed", "settings.json")
    )


def edits(place: Place, recall: bool) -> list[Edit]:
    """One custom context server."""
    entry = {
        "source": "custom",
        "command": place.command,
        "args": ["mcp"],
        "env": place.carried,
    }
    return [JsonEdit(settings(place), {("context_servers", "lore"): entry})]
