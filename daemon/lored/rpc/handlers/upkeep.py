"""verify, backup, restore, maintain, redact: thin over their services."""

from typing import Any

from lored.services.app import App, Call


async def verify(app: App, call: Call, params: dict[str, Any]) -> dict[str, Any]:
    """Checks with remedies."""
    found: dict[str, Any] = await app.get("upkeep").verify(
        call, deep=params.get("deep", False), fix=params.get("fix", False)
    )
    return found


async def backup(app: App, call: Call, params: dict[str, Any]) -> dict[str, Any]:
    """Copy the precious stores now."""
    found: dict[str, Any] = await app.get("backup").back_up(call, params.get("path"))
    return found


async def restore(app: App, call: Call, params: dict[str, Any]) -> dict[str, Any]:
    """Put a backup back."""
    found: dict[str, Any] = await app.get("backup").restore(call, params["path"])
    return found


async def maintain(app: App, call: Call, params: dict[str, Any]) -> dict[str, Any]:
    """Care that is due."""
    found: dict[str, Any] = await app.get("upkeep").maintain(call)
    return found


async def redact(app: App, call: Call, params: dict[str, Any]) -> dict[str, Any]:
    """Secrets in what is stored."""
    found: dict[str, Any] = await app.get("redaction").run(call, fix=params.get("fix", False))
    return found


HANDLERS = {
    "verify": verify,
    "backup": backup,
    "restore": restore,
    "maintain": maintain,
    "redact": redact,
}
