"""Recall and reindex: thin over their services."""

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


async def reindex(app: App, call: Call, params: Map) -> Map:
    """Text index or vectors anew."""
    found: Map = await app.get("reindexing").run(
        call,
        model=params.get("model"),
        text=params.get("text", False),
        wait=params.get("wait", False),
    )
    return found


HANDLERS = {"episodic_recall": episodic_recall, "recall": recall, "reindex": reindex}
