"""`status`: what the daemon does, holds and lacks, with the remedy for each lack."""

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from lore.cli.progress import progress_line, reached
from lore.web import site
from lore.web.memory import Map

SHOWN_APART: Final = frozenset(
    {
        *("degraded", "index", "memory", "operations", "queues", "roots", "stores"),
        *("activated", "data", "instance", "log", "pid", "protocol", "socket", "started_at"),
        *("uptime_seconds", "version"),
    }
)
"""Parts of `status` that have a place of their own on the page; the others are listed as they
are, so that what a newer daemon says is not lost."""


async def status(request: Request) -> Response:
    """The page."""
    memory = site.of(request).memory
    found: Map = await memory.call("status")
    roots = sorted(found.get("roots", []), key=lambda root: -root.get("sessions", 0))
    index = found.get("index") or {}
    return site.page(
        request,
        "status.html",
        title="Status",
        here="status",
        topics=("status", "progress"),
        found=found,
        roots=roots,
        index=index,
        running=[(progress_line(one), *reached(one)) for one in found.get("operations") or ()],
        progress=index.get("progress") or {},
        roots_by_id={one["id"]: one["root"] for one in await memory.workspaces()},
        more=[
            line
            for name, value in sorted(found.items())
            if name not in SHOWN_APART
            for line in flat(value, name)
        ],
    )


def flat(value: Any, name: str = "") -> list[tuple[str, str]]:
    """Nested maps and lists as (path, text) lines; empty ones say so."""
    if isinstance(value, dict):
        parts = [flat(part, f"{name} {key}".strip()) for key, part in value.items()]
    elif isinstance(value, list):
        parts = [flat(part, f"{name} {number}".strip()) for number, part in enumerate(value, 1)]
    else:
        return [(name, str(value))]
    return [line for part in parts for line in part] or [(name, "none")]
