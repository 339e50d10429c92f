"""Past sessions for callers: lists, one session whole, spans of messages, news about them.

Forgetting is in `services.sessions.forget`.
"""

from collections.abc import Mapping
from typing import Any, Final

from lore.errors import Ambiguous, Invalid, NotFound
from lored.services.app import App, Call
from lored.services.moments import instant, now, zone
from lored.store.driver import Connection
from lored.store.sessions import listing, reading, statements
from lored.store.sessions.listing import Filters
from lored.store.sessions.reading import SessionRef

LIMIT: Final = 50
"""Sessions or messages in one answer by default."""

LIMIT_MOST: Final = 200

ACTIONS: Final = 500
"""Newest actions shown of one session."""

STATEMENTS: Final = 100
"""Newest statements of one session that are compared with facts."""

TEXT_BUDGET: Final = 2_000_000
"""Characters of message text in one answer; well below the response limit of 8 MiB."""

STATUSES: Final = ("completed", "failed", "interrupted", "active")


class Sessions:
    """The service `sessions`."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def resolve(self, name: str) -> SessionRef:
        """The session that an id or a unique beginning of one means. Raises `NotFound`,
        `Ambiguous` with the candidates."""
        name = name.strip()
        if not name:
            raise Invalid("a session id must not be empty")
        found = await self._app.registry.sessions.read(lambda c: reading.find(c, name))
        if not found:
            raise NotFound(f"no session {name!r}; `lore sessions` lists them")
        if len(found) > 1:
            names = [f"{one.agent}:{one.native_id}" for one in found]
            shown = names[: reading.CANDIDATES]
            count = f"more than {len(shown)}" if len(names) > len(shown) else str(len(names))
            raise Ambiguous(
                f"session {name!r} may be any of {count}: write more of the id, such as {names[0]}",
                {"candidates": shown},
            )
        return found[0]

    async def workspace_of(self, params: dict[str, Any], call: Call) -> str | None:
        """The workspace id that a call asks about; None for everywhere."""
        if params.get("everywhere"):
            return None
        found = await self._app.workspaces.resolve(params.get("workspace") or call.workspace)
        return None if found is None else found.id

    async def filters(self, params: dict[str, Any], call: Call) -> Filters:
        """The session filters of a call. Raises `Invalid`."""
        at = now()
        status = params.get("status")
        if status is not None and status not in STATUSES:
            raise Invalid(f"status {status!r}: use {', '.join(STATUSES)}")
        return Filters(
            workspace=await self.workspace_of(params, call),
            agent=params.get("agent"),
            since=instant(params, "since", at),
            until=instant(params, "until", at),
            status=status,
            file=params.get("file"),
            command=params.get("command"),
            commit=params.get("commit"),
            failed=bool(params.get("failed")),
            subagents=bool(params.get("subagents")),
        )

    async def list(self, params: dict[str, Any], call: Call) -> dict[str, Any]:
        """A page of sessions, newest first."""
        filters = await self.filters(params, call)
        limit = bounded(params.get("limit"), LIMIT)
        after = params.get("after")

        def read(conn: Connection) -> tuple[listing.Page, dict[int, dict[str, Any]]]:
            page = listing.page(conn, filters, after=after, limit=limit)
            return page, reading.briefs(conn, page.ids, zone())

        try:
            page, briefs = await self._app.registry.sessions.read(read)
        except ValueError:
            raise Invalid(f"after={after!r} is not the `next` of an answer") from None
        return {
            "sessions": [briefs[number] for number in page.ids if number in briefs],
            "total": page.total,
            "next": page.next,
        }

    async def one(self, name: str, call: Call) -> dict[str, Any]:
        """One session whole: brief, summary, actions, compactions, lineage, facts that it
        stated, and statements of it that memory does not hold so."""
        ref = await self.resolve(name)

        def read(conn: Connection) -> dict[str, Any]:
            found = reading.briefs(conn, [ref.id], zone()).get(ref.id)
            if found is None:
                raise NotFound(f"session {ref.native_id} was forgotten meanwhile")
            found["summary"] = _settled(reading.summary(conn, ref.id), found)
            found["actions"] = reading.actions(conn, ref.id, ACTIONS)
            found["compactions"] = reading.compactions(conn, ref.id)
            found["lineage"] = reading.lineage(conn, ref.id)
            found["statements"] = statements.of_session(conn, ref.id, STATEMENTS)
            return found

        session = await self._app.registry.sessions.read(read)
        facts = self._app.get("facts")
        workspace = session.get("workspace")
        session["facts"] = await facts.facts_of_session(ref.native_id, workspace)
        session["statements"] = await facts.statements_of_session(
            call, session["statements"], workspace
        )
        return {"session": session}

    async def messages(self, params: dict[str, Any]) -> dict[str, Any]:
        """A span of messages of one session."""
        ref = await self.resolve(params["id"])
        limit = bounded(params.get("limit"), LIMIT)
        around = params.get("around")
        low, high = params.get("from"), params.get("to")
        for label, value in (("from", low), ("to", high)):
            if value is not None and value < 0:
                raise Invalid(f"{label} must not be negative")
        if around is not None and not (around.isascii() and around.isdigit()):
            raise Invalid(f"around={around!r} is not a message id (a number from an answer)")

        def read(conn: Connection) -> reading.Span:
            first, last = low or 0, 1 << 62 if high is None else high
            if around is not None:
                position = reading.position_of(conn, ref.id, int(around))
                if position is None:
                    raise NotFound(f"session {ref.native_id} has no message {around}")
                first, last = reading.span_around(conn, ref.id, position, limit)
            return reading.span(conn, ref.id, low=first, high=last, limit=limit, budget=TEXT_BUDGET)

        span = await self._app.registry.sessions.read(read)
        return {"messages": span.messages, "next": span.next}

    async def announce(self, changed: Mapping[int, bool]) -> None:
        """Tell subscribers that sessions (row id -> whether it is new) were added or grew."""
        briefs = await self._app.registry.sessions.read(
            lambda conn: reading.briefs(conn, changed, zone())
        )
        for number, brief in briefs.items():
            action = "added" if changed[number] else "grown"
            self._app.events.publish(
                "sessions", {"action": action, "session": brief}, brief.get("workspace")
            )


def bounded(value: int | None, default: int) -> int:
    """The limit of a call. Raises `Invalid` outside 1 to `LIMIT_MOST`."""
    if value is None:
        return default
    if not 1 <= value <= LIMIT_MOST:
        raise Invalid(f"limit {value}: use 1 to {LIMIT_MOST}")
    return value


def _settled(told: dict[str, Any], brief: dict[str, Any]) -> dict[str, Any]:
    """The stored summary with the outcome of now: a session that its agent just left says
    `active` in the store until its file grows again, and `interrupted` after its quiet time."""
    line = brief["summary"].get("line")
    if not told or not line:
        return told
    text = str(told.get("text", "")).replace(str(told.get("line", "")), line, 1)
    return {**told, "status": brief["status"], "line": line, "text": text}
