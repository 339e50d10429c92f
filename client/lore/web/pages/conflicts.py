"""`conflicts`: what wants a decision, in all places: open conflicts, pending collisions.
`changes`: what was changed, by whom, and how to take it back."""

import asyncio
from itertools import groupby
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from lore.errors import LoreError
from lore.web import site
from lore.web.forms import scope_of
from lore.web.memory import Map, Memory

PLACES: Final = 50
"""Workspaces that one page looks into; more are named as left out."""

STATES: Final = ("open", "resolved", "dismissed", "all")

SHOWN: Final = 200
"""Entries of the change log on one page, the daemon's limit."""


async def conflicts(request: Request) -> Response:
    """The inbox of one place, or of all of them."""
    memory = site.of(request).memory
    at = await site.where(request, default_home=False)
    state = request.query_params.get("status", "open")
    state = state if state in STATES else "open"
    views = [f"conflicts:{state}", *(["pending"] if state == "open" else [])]
    places, left_out = await _places(memory, at.workspace)

    async def ask(place: str) -> Map:
        # With a workspace the global facts come too; they are asked for once, without.
        return await memory.call("snapshot", scopes=views, workspace=place.removeprefix("global"))

    answers = await asyncio.gather(*(ask(place) for place in places), return_exceptions=True)
    disputed: list[Map] = []
    pending: list[Map] = []
    failed: list[str] = []
    for place, answer in zip(places, answers, strict=True):
        if isinstance(answer, LoreError):
            failed.append(f"{place}: {answer.message}")
        elif isinstance(answer, BaseException):
            raise answer
        else:
            scope = scope_of(place)["scope"]
            found = answer[views[0]].get("conflicts", [])
            disputed += [one for one in found if one["scope"] == scope]
            found = answer.get("pending", {}).get("facts", [])
            pending += [one for one in found if one["fact"]["scope"] == scope]
    order = {"high": 0, "medium": 1, "low": 2}
    disputed.sort(key=lambda one: one["opened_at"], reverse=True)
    disputed.sort(key=lambda one: order.get(one["severity"], 1))
    pending.sort(key=lambda one: one["fact"]["created_at"], reverse=True)
    return site.page(
        request,
        "conflicts.html",
        title="Conflicts",
        here="conflicts",
        at=at,
        topics=("conflicts", "facts"),
        state=state,
        states=STATES,
        conflicts=disputed,
        pending=pending,
        failed=failed,
        left_out=left_out,
        roots={one["id"]: one["root"] for one in await memory.workspaces()},
        workspaces=await memory.workspaces(),
    )


async def changes(request: Request) -> Response:
    """The change log, newest first, one card for each batch."""
    memory = site.of(request).memory
    at = await site.where(request, default_home=True)
    scope = {"workspace": at.workspace} if at.workspace else {"scope": "global"}
    entries: list[Map] = (await memory.call("log", limit=SHOWN, **scope))["entries"]
    newest = await memory.call("facts", include_superseded=True, limit=SHOWN, **scope)

    def batch(entry: Map) -> tuple[str, str]:
        return entry["scope"], entry["batch"]

    return site.page(
        request,
        "changes.html",
        title="Changes",
        here="changes",
        at=at,
        topics=("facts", "conflicts"),
        batches=[
            {
                "scope": scope,
                "place": at.workspace if scope == "workspace" else "global",
                "id": name,
                "entries": members,
                "undone": all("undone_by" in entry for entry in members),
            }
            for (scope, name), group in groupby(entries, batch)
            if (members := list(group))
        ],
        full=len(entries) == SHOWN,
        texts={(fact["scope"], fact["id"]): fact["text"] for fact in newest["facts"]},
        workspaces=await memory.workspaces(),
    )


async def _places(memory: Memory, workspace: str | None) -> tuple[list[str], int]:
    """Where to look: one workspace, or global and all workspaces with facts; how many not."""
    if workspace:
        return ["global", workspace], 0
    having = [one["id"] for one in await memory.workspaces() if one.get("facts")]
    return ["global", *having[:PLACES]], max(len(having) - PLACES, 0)
