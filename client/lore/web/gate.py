"""Who comes in: the checks before every request and the headers after it.

The view listens on a loopback port that every process and every web page on this machine can
reach. In the order of the checks:

1. Host must name this port of the loopback address. A page of another site whose name was
   rebound to 127.0.0.1 sends its own name.
2. The path must begin with a random word. Browsers send a cookie to every port of its host, so
   the cookie is bound to this path, which no server on another port can guess.
3. `enter?token=` takes the token of the printed link once and gives a session cookie (HttpOnly,
   SameSite=Strict). Everything else but the style sheet and script needs that cookie.
4. Requests that another origin caused are refused by Sec-Fetch-Site.
5. A POST needs our Origin, a small url-encoded form and the session's own form token. Browsers
   write `Origin: null` under our Referrer-Policy; then Sec-Fetch-Site, which no page can set,
   must say same-origin.

No CORS header is ever sent. The content policy allows our own files alone and nothing inline.
"""

import re
import secrets
import time
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from typing import Any, Final
from urllib.parse import parse_qsl

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE: Final = "lore"

FORM_BYTES: Final = 256 * 1024
"""Largest form: one fact's text and some fields."""

FORM_FIELDS: Final = 64

SESSIONS: Final = 8
"""Browsers that may be in at once; there is one link, so there is one unless the code grows."""

FORM: Final = "lore.form"
"""Scope key of the checked fields of a POST."""

SESSION: Final = "lore.session"
"""Scope key of the `Session` of a request."""

POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types lore",
    )
)

HEADERS: Final = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}

_STATIC: Final = re.compile(r"static/[a-z.]+")
"""Style sheet, script and icon: they hold nothing of the memory."""

ENTERED: Final = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="refresh" content="0;url={base}"><title>lore</title>
<link rel="icon" href="{base}static/icon.svg" type="image/svg+xml">
<p><a href="{base}">Open the memory</a></p></html>
"""
"""The answer to the link. Not a redirect: a browser that came from another program's page would
not send a strict cookie along one, but does so when our own page goes on."""

REFUSED: Final = (
    "This view opens once, with the link that `lore web` printed.\n"
    "Was the link used already, or is this another browser? End `lore web` with Ctrl-C and run "
    "it again: it prints a new link.\n"
)


class Session:
    """One browser that came in: its form token, and what to tell it on the next page."""

    __slots__ = ("csrf", "notice")

    def __init__(self) -> None:
        self.csrf = secrets.token_urlsafe(32)
        self.notice: dict[str, str] | None = None


class Doors:
    """The one-time token, the random path and the sessions that came of it."""

    def __init__(self) -> None:
        self.base = f"/{secrets.token_hex(6)}/"
        self.token: str | None = secrets.token_urlsafe(32)
        self.last_seen = time.monotonic()
        self._sessions: dict[str, Session] = {}

    def enter(self, token: str) -> str | None:
        """The cookie for the right token, which is worth nothing afterwards; else None."""
        if self.token is None or not _same(token, self.token):
            return None
        self.token = None
        key = secrets.token_urlsafe(32)
        if len(self._sessions) >= SESSIONS:
            self._sessions.pop(next(iter(self._sessions)))
        self._sessions[key] = Session()
        return key

    def session(self, cookies: str) -> Session | None:
        """The session that a Cookie header proves."""
        try:
            given = SimpleCookie(cookies).get(COOKIE)
        except CookieError:
            return None
        if given is None:
            return None
        found = None
        for key, session in self._sessions.items():
            if _same(given.value, key):
                found = session
        if found is not None:
            self.last_seen = time.monotonic()
        return found


class Gate:
    """The ASGI application around the pages; see the module for its checks."""

    def __init__(self, app: ASGIApp, doors: Doors, port: int) -> None:
        self._app, self._doors = app, doors
        suffix = "" if port == 80 else f":{port}"
        self._hosts = frozenset(name + suffix for name in ("127.0.0.1", "localhost"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # a websocket: closed by the server, we offer none

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message.setdefault("headers", []))
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("cache-control", "no-store")
            await send(message)

        answer = self._refuse(scope) or await self._admit(scope, receive)
        await (answer or self._app)(scope, receive, send_guarded)

    def _refuse(self, scope: Scope) -> Response | None:
        """Why this request is none of ours; checks 1, 2 and 4."""
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return PlainTextResponse("unknown host\n", 403)
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return PlainTextResponse("method not allowed\n", 405, {"allow": "GET, HEAD, POST"})
        if not scope["path"].startswith(self._doors.base):
            return PlainTextResponse(REFUSED, 404)
        foreign = headers.get("sec-fetch-site", "none") not in ("none", "same-origin")
        if foreign and headers.get("sec-fetch-mode") != "navigate":
            return PlainTextResponse("asked by another site\n", 403)
        return None

    async def _admit(self, scope: Scope, receive: Receive) -> Response | None:
        """The answer that ends here, or None for a request that may go on; checks 3 and 5."""
        path = scope["path"].removeprefix(self._doors.base)
        if _STATIC.fullmatch(path) and scope["method"] != "POST":
            return None
        if path == "enter" and scope["method"] == "GET":
            return self._enter(scope)
        headers = Headers(scope=scope)
        session = self._doors.session(headers.get("cookie", ""))
        if session is None:
            return PlainTextResponse(REFUSED, 403)
        scope[SESSION] = session
        if scope["method"] != "POST":
            return None
        if not self._is_own(headers):
            return PlainTextResponse("asked by another site\n", 403)
        form = await _read_form(headers, receive)
        if isinstance(form, Response):
            return form
        if not _same(form.pop("csrf", ""), session.csrf):
            return PlainTextResponse("the form is not of this session; reload the page\n", 403)
        scope[FORM] = form
        return None

    def _enter(self, scope: Scope) -> Response:
        given = dict(parse_qsl(scope["query_string"].decode("latin-1"), max_num_fields=8))
        key = self._doors.enter(given.get("token", ""))
        if key is None:
            return PlainTextResponse(REFUSED, 403)
        base = self._doors.base
        answer = HTMLResponse(ENTERED.format(base=base))
        answer.set_cookie(COOKIE, key, path=base, httponly=True, samesite="strict")
        return answer

    def _is_own(self, headers: Mapping[str, str]) -> bool:
        """Whether a POST comes from a page of ours."""
        origin, site = headers.get("origin", "null"), headers.get("sec-fetch-site")
        if site not in (None, "same-origin"):
            return False
        if origin == "null":
            return site == "same-origin"
        scheme, _, host = origin.partition("://")
        return scheme == "http" and host == headers["host"].lower()


async def _read_form(headers: Mapping[str, str], receive: Receive) -> dict[str, str] | Response:
    """The fields of a POST, the last of each name; or why they are not read."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        return PlainTextResponse("send a url-encoded form\n", 415)
    body = bytearray()
    while True:
        message: Any = await receive()
        if message["type"] != "http.request":
            return PlainTextResponse("hung up\n", 400)
        body += message.get("body", b"")
        if len(body) > FORM_BYTES:
            return PlainTextResponse("the form is too large\n", 413)
        if not message.get("more_body"):
            break
    try:
        return dict(
            parse_qsl(
                body.decode("ascii"),
                keep_blank_values=True,
                errors="strict",
                max_num_fields=FORM_FIELDS,
            )
        )
    except ValueError:
        return PlainTextResponse("the form cannot be read\n", 400)


def _same(given: str, secret: str) -> bool:
    return secrets.compare_digest(given.encode("utf-8", "replace"), secret.encode())
