"""Injection: `context`, and `episodic_recall_summary`."""

from typing import Any

from lored.services.app import App, Call


async def context(app: App, call: Call, params: dict[str, Any]) -> dict[str, Any]:
    """The block for an agent's prompt."""
    answer: dict[str, Any] = await app.get("context").build(call, params)
    return answer


async def episodic_recall_summary(app: App, call: Call, params: dict[str, Any]) -> dict[str, Any]:
    """The block about the last session or sessions."""
    found: dict[str, Any] = await app.get("context").summarise(call, params)
    return found


HANDLERS = {"context": context, "episodic_recall_summary": episodic_recall_summary}
