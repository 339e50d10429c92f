"""The application: addresses, pages and forms behind the gate."""

import re

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from lore.errors import Internal, LoreError, NotFound
from lore.web import forms, reading, site
from lore.web.assets import Assets
from lore.web.gate import Doors, Gate
from lore.web.live import Live
from lore.web.memory import Memory
from lore.web.pages import activity, conflicts, fact, facts, search, session, status, timeline
from lore.web.site import Site


async def start(request: Request) -> Response:
    """The first page."""
    return RedirectResponse(site.Links(site.of(request).base, None)("sessions"), 303)


async def events(request: Request) -> Response:
    """The stream that tells a page what changed."""
    live = site.of(request).live
    if request.method == "HEAD":
        return Response(media_type="text/event-stream")
    if live.is_full:
        return PlainTextResponse("too many open pages\n", 503)
    topics = request.query_params.get("topics", "").split()
    since = request.query_params.get("since", "")
    # Without a mark, or one of an earlier view, the page may be as old as it likes.
    mark = int(since) if re.fullmatch(r"[0-9]{1,15}", since) else 0
    return StreamingResponse(live.stream(topics, mark), media_type="text/event-stream")


async def lost(request: Request, error: Exception) -> Response:
    """An address that leads nowhere, or with the wrong method."""
    assert isinstance(error, HTTPException)
    if error.status_code != 404:
        return PlainTextResponse(f"{error.detail}\n", error.status_code, error.headers)
    return await site.refused(request, NotFound("there is no such page"))


async def broken(request: Request, error: Exception) -> Response:
    """A defect of ours: said plainly, without a traceback."""
    name = type(error).__name__
    return await site.refused(
        request, Internal(f"a defect of this view ({name}); LORE_DEBUG=1 lore web tells more")
    )


ROUTES = (
    Route("/", start),
    Route("/sessions", timeline.timeline),
    Route("/session", session.session),
    Route("/facts", facts.facts),
    Route("/entities", facts.entities),
    Route("/entity", facts.entity),
    Route("/cluster/{place}/{name}", facts.cluster),
    Route("/fact/{place}/{name}", fact.fact),
    Route("/conflicts", conflicts.conflicts),
    Route("/changes", conflicts.changes),
    Route("/search", search.search),
    Route("/activity", activity.activity),
    Route("/status", status.status),
    Route("/events", events),
    forms.ROUTE,
)


def build(memory: Memory, doors: Doors, port: int, home: str | None) -> tuple[ASGIApp, Live]:
    """The guarded application for a port, and its live part, which must be closed."""
    assets = Assets()
    live = Live(memory)
    inner = Starlette(
        routes=[Mount(doors.base.rstrip("/"), routes=[*ROUTES, assets.route()])],
        exception_handlers={LoreError: site.refused, HTTPException: lost, Exception: broken},
    )
    inner.state.site = Site(
        doors.base, memory, live, reading.environment(), assets.addresses(doors.base), home
    )

    async def marked(scope: Scope, receive: Receive, send: Send) -> None:
        scope[site.MARK] = live.mark
        await inner(scope, receive, send)

    return Gate(marked, doors, port), live
