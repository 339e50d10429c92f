"""`import` and `export`: thin over services.importing."""

from typing import Any

from lored.services.app import App, Call


async def bring(app: App, call: Call, params: dict[str, Any]) -> dict[str, Any]:
    """Take facts in from another memory."""
    found: dict[str, Any] = await app.get("importing").bring(call, params)
    return found


async def export(app: App, call: Call, params: dict[str, Any]) -> dict[str, Any]:
    """Facts as JSONL or Markdown, a page at a time."""
    found: dict[str, Any] = await app.get("importing").export(call, params)
    return found


HANDLERS = {"import": bring, "export": export}
