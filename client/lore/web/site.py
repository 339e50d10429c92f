"""What all pages share: the memory, the templates, addresses, and how a page is answered."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from lore import __version__
from lore.errors import Invalid, LoreError
from lore.web.gate import SESSION, Session
from lore.web.live import Live
from lore.web.memory import Map, Memory

PAGES = (
    ("sessions", "Sessions", "s"),
    ("facts", "Facts", "f"),
    ("conflicts", "Conflicts", "c"),
    ("search", "Search", "q"),
    ("activity", "Activity", "a"),
    ("changes", "Changes", "h"),
    ("status", "Status", "t"),
)
"""The navigation: address, name, access key."""

LIVE_HEADER = "x-lore-live"

MARK = "lore.mark"
"""In the scope of a request: `Live.mark` when it came."""
"""On requests by which an open page draws itself anew: they must not take a notice away from
the page that it is for."""

STATUS_BY_CODE = {
    "invalid": 400,
    "not_found": 404,
    "ambiguous": 409,
    "conflict": 409,
    "limit": 413,
    "busy": 503,
    "timeout": 504,
    "unavailable": 503,
    "incompatible": 503,
    "shutting_down": 503,
}
"""HTTP status of a wire error; 500 for any other."""


@dataclass(slots=True)
class Site:
    """``base`` is the random path all addresses begin with, ``home`` the workspace that the view
    was started in, ``assets`` the addresses of style sheet and script."""

    base: str
    memory: Memory
    live: Live
    templates: Environment
    assets: dict[str, str]
    home: str | None = None


def of(request: Request) -> Site:
    """The site that a request is for."""
    site: Site = request.app.state.site
    return site


class Links:
    """Makes addresses of pages; those of one page keep the workspace it was asked for."""

    def __init__(self, base: str, workspace: str | None) -> None:
        self._base, self._workspace = base, workspace

    def __call__(self, path: str, **query: Any) -> str:
        """`url("session", id=...)`. A value of None is left out; ``w`` is added when the page was
        asked for a workspace, unless it is given (None: drop it)."""
        if self._workspace is not None and "w" not in query:
            query["w"] = self._workspace
        kept = {k: v for k, v in query.items() if v is not None and v is not False}
        kept = {k: v for k, v in kept.items() if v != "" or k == "w"}
        return self._base + path + (f"?{urlencode(kept)}" if kept else "")


@dataclass(frozen=True, slots=True)
class Where:
    """The workspace a page is about: ``asked`` as the address says it (None: not at all),
    ``workspace`` the id or None for none, ``root`` its folder."""

    asked: str | None
    workspace: str | None
    root: str | None = None


async def where(request: Request, *, default_home: bool) -> Where:
    """The workspace that ``?w=`` names; empty means none. Without it the workspace that the view
    was started in, or none. Raises `Invalid` for one that is unknown."""
    site = of(request)
    asked = request.query_params.get("w")
    chosen = asked if asked is not None else (site.home if default_home else None)
    if not chosen:
        return Where(asked, None)
    root = await site.memory.root(chosen)
    if root is None:
        raise Invalid(f"no workspace {chosen}; choose one from the list")
    return Where(asked, chosen, root)


def fields(request: Request, *names: str) -> Map:
    """The named query parameters, without surrounding blanks; empty text where absent."""
    return {name: request.query_params.get(name, "").strip() for name in names}


def page(
    request: Request,
    template: str,
    *,
    title: str,
    here: str = "",
    at: Where | None = None,
    topics: Iterable[str] = (),
    status: int = 200,
    **values: Any,
) -> Response:
    """A page from its template. ``here`` is its place in the navigation, ``topics`` what makes
    it draw itself anew."""
    site = of(request)
    session: Session = request.scope[SESSION]
    notice = session.notice
    if LIVE_HEADER in request.headers:
        notice = None
    else:
        session.notice = None
    text = site.templates.get_template(template).render(
        title=title,
        here=here,
        pages=PAGES,
        url=Links(site.base, at.asked if at else request.query_params.get("w")),
        at=at,
        topics=" ".join(topics),
        mark=request.scope[MARK],
        csrf=session.csrf,
        notice=notice,
        self_path=request.url.path.removeprefix(site.base),
        self_query=request.url.query,
        assets=site.assets,
        version=__version__,
        **values,
    )
    return HTMLResponse(text, status)


async def refused(request: Request, error: Exception) -> Response:
    """What a wire error looks like."""
    assert isinstance(error, LoreError)
    return page(
        request,
        "error.html",
        title="Not possible",
        status=STATUS_BY_CODE.get(error.code, 500),
        topics=("status",) if error.code == "unavailable" else (),
        error=error,
        candidates=error.data.get("candidates") or [],
    )
