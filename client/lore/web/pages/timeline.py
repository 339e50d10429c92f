"""`sessions`: past sessions of all agents, newest first, with filters; a query finds episodes."""

from datetime import timedelta
from itertools import groupby
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from lore.cli import times
from lore.web import site
from lore.web.memory import Map
from lore.web.plots import today

SHOWN: Final = 40
"""Sessions on one page."""


async def timeline(request: Request) -> Response:
    """The list, grouped by day."""
    memory = site.of(request).memory
    at = await site.where(request, default_home=False)
    asked = site.fields(request, "agent", "since", "until", "q", "status", "after")
    subagents = bool(request.query_params.get("subagents"))
    filters = {
        "workspace": at.workspace,
        "everywhere": at.workspace is None,
        "agent": asked["agent"],
        "since": asked["since"],
        "until": asked["until"],
    }
    found: list[Map]
    if asked["q"]:
        answer = await memory.call(
            "episodic_recall", query=asked["q"], limit=SHOWN, context_messages=0, **filters
        )
        found = [hit["session"] | {"excerpts": hit["excerpts"]} for hit in answer["sessions"]]
        total, following = len(found), None
    else:
        answer = await memory.call(
            "sessions",
            status=asked["status"],
            subagents=subagents,
            after=asked["after"],
            limit=SHOWN,
            **filters,
        )
        found, total, following = answer["sessions"], answer["total"], answer.get("next")
    roots = {one["id"]: one["root"] for one in await memory.workspaces()}
    days = [("Best matches first", found)] if asked["q"] else by_day(found)
    return site.page(
        request,
        "timeline.html",
        title="Sessions",
        here="sessions",
        at=at,
        topics=("sessions",),
        asked=asked,
        subagents=subagents,
        days=days if found else [],
        total=total,
        following=following,
        degraded=answer.get("degraded", []),
        roots=roots,
        agents=await memory.agents(),
        workspaces=await memory.workspaces(),
    )


def by_day(sessions: list[Map]) -> list[tuple[str, list[Map]]]:
    """Sessions under the local day on which they ended, in their order."""

    def day(session: Map) -> str:
        return times.day(session.get("ended_at") or session.get("started_at"))

    return [(_named(key), list(group)) for key, group in groupby(sessions, day)]


def _named(day: str) -> str:
    if not day:
        return "Without a date"
    if day == today().isoformat():
        return "Today"
    if day == (today() - timedelta(days=1)).isoformat():
        return "Yesterday"
    moment = times.local(day + "T12:00:00")
    return moment.strftime("%A, %d %B %Y").replace(", 0", ", ") if moment else day
