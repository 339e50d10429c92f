"""Recall: thin over services.recall."""

from typing import Any

from lored.services.app import App, Call

Map = dict[str, Any]


async def episodic_recall(app: App, call: Call, params: Map) -> Map:
    """What happened in past sessions."""
    found: Map = await app.get("recall").episodic(call, params)
    return found


async def recall(app: App, call: Call, params: Map) -> Map:
    """Facts and sessions together."""
    found: Map = await app.get("recall").recall(call, params)
    return found


HANDLERS = {"episodic_recall": episodic_recall, "recall": recall}
