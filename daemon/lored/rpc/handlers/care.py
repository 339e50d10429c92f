"""status, health, metrics: thin over services.health."""

from typing import Any

from lored.services.app import App, Call


async def status(app: App, call: Call, params: dict[str, Any]) -> dict[str, Any]:
    """Everything about the daemon."""
    found: dict[str, Any] = await app.get("health").status()
    return found


async def health(app: App, call: Call, params: dict[str, Any]) -> dict[str, Any]:
    """ok, or why not."""
    found: dict[str, Any] = await app.get("health").health()
    return found


async def metrics(app: App, call: Call, params: dict[str, Any]) -> dict[str, Any]:
    """OpenMetrics text."""
    return {"text": await app.get("health").metrics()}


HANDLERS = {"status": status, "health": health, "metrics": metrics}
