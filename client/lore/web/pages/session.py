"""`session`: one session: summary, lineage, facts stated in it, actions, its messages."""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from lore.errors import Invalid
from lore.web import site
from lore.web.memory import Map

SHOWN: Final = 30
"""Messages on one page."""


async def session(request: Request) -> Response:
    """The page; `from` or `around` choose the messages that it shows."""
    memory = site.of(request).memory
    asked = site.fields(request, "id", "from", "around")
    found: Map = (await memory.call("session", id=asked["id"]))["session"]
    span: Map = {}
    if asked["around"]:
        span = {"around": asked["around"]}
    elif asked["from"]:
        if not asked["from"].isdecimal() or len(asked["from"]) > 12:
            raise Invalid(f"from={asked['from']}: give the position of a message, from 0")
        span = {"from": int(asked["from"])}
    part = await memory.call("session_messages", id=asked["id"], limit=SHOWN, **span)
    messages: list[Map] = part["messages"]
    first = messages[0]["position"] if messages else 0
    roots = {one["id"]: one["root"] for one in await memory.workspaces()}
    return site.page(
        request,
        "session.html",
        title=found.get("title") or found["id"],
        here="sessions",
        topics=("sessions", "facts"),
        session=found,
        summary=found.get("summary") or {},
        lineage=found.get("lineage") or {},
        actions=found.get("actions") or [],
        messages=messages,
        around=asked["around"],
        previous=max(first - SHOWN, 0) if first > 0 else None,
        following=part.get("next"),
        root=roots.get(found.get("workspace")),
    )
