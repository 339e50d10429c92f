"""Our own static files: style sheet, script, icon. Read once, served from memory by exact name,
so no path of a request ever reaches the file system."""

from hashlib import blake2b
from importlib.resources import files
from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

KINDS: Final = {
    "style.css": "text/css; charset=utf-8",
    "live.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}

_CACHE: Final = {"cache-control": "private, max-age=86400"}
"""Addresses carry a hash of the content, so an upgrade is seen at once."""


class Assets:
    """The files and their addresses."""

    def __init__(self) -> None:
        folder = files("lore.web") / "static"
        self._content = {name: (folder / name).read_bytes() for name in KINDS}

    def addresses(self, base: str) -> dict[str, str]:
        """Name -> address below ``base``."""
        return {
            name: f"{base}static/{name}?v={blake2b(content, digest_size=6).hexdigest()}"
            for name, content in self._content.items()
        }

    async def serve(self, request: Request) -> Response:
        """One file."""
        name = request.path_params["name"]
        if name not in KINDS:
            return PlainTextResponse("no such file\n", 404)
        return Response(self._content[name], media_type=KINDS[name], headers=_CACHE)

    def route(self) -> Route:
        """Where they are served."""
        return Route("/static/{name}", self.serve)
