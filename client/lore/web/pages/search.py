"""`search`: facts and sessions that fit some words, and why they do."""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from lore.web import site
from lore.web.memory import Map
from lore.web.pages.facts import travel

SHOWN: Final = 20
"""Facts, and sessions, on one page."""


async def search(request: Request) -> Response:
    """The form, and what was found when it was asked for something."""
    memory = site.of(request).memory
    at = await site.where(request, default_home=True)
    asked = site.fields(request, "q", "agent", "since", "until", "file", "command", "as_of")
    explain = bool(request.query_params.get("explain"))
    here = bool(request.query_params.get("here"))
    found: Map | None = None
    if asked["q"]:
        time = await travel(request, memory, at.workspace)
        found = await memory.call(
            "recall",
            query=asked["q"],
            workspace=at.workspace,
            everywhere=not (here and at.workspace),
            agent=asked["agent"],
            since=asked["since"],
            until=asked["until"],
            file=asked["file"],
            command=asked["command"],
            as_of=time["params"].get("as_of"),
            limit=SHOWN,
            explain=explain,
        )
    return site.page(
        request,
        "search.html",
        title=f"Search: {asked['q']}" if asked["q"] else "Search",
        here="search",
        at=at,
        asked=asked,
        explain=explain,
        only_here=here,
        found=found,
        narrowed=any(asked[name] for name in ("agent", "since", "until", "file", "command")),
        roots={one["id"]: one["root"] for one in await memory.workspaces()},
        agents=await memory.agents(),
        workspaces=await memory.workspaces(),
    )
