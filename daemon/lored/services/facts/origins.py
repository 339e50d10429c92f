"""Facts and the sessions that stated them, tied both ways."""

from collections import OrderedDict
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import structlog

from lore.errors import LoreError
from lored.core.batches import Stated
from lored.core.clock import SECOND, Micros
from lored.core.facts import normal_form
from lored.core.spoken import stated_text
from lored.services.app import App
from lored.services.facts.scopes import GLOBAL, Target, opened
from lored.services.facts.views import Map, View
from lored.services.moments import now
from lored.store.database import StoreBusy
from lored.store.driver import Connection, Error
from lored.store.facts import changes, collisions, origins

if TYPE_CHECKING:
    from lored.services.facts.front import Facts

AWAITED: Final = 256
"""Calls remembered at a time."""

AWAIT_SECONDS: Final = 120

log = structlog.get_logger()

FACTS: Final = 200
"""Facts of one session that are shown."""

COLLISIONS: Final = 3
"""Shown of each of them; `fact` shows the rest."""


class Awaited:
    """Statements seen in transcripts whose facts are not there yet: some agents write the call
    down before they make it. The fact that comes within `AWAIT_SECONDS` is tied at once."""

    def __init__(self) -> None:
        self._calls: OrderedDict[tuple[str | None, str], tuple[Micros, str, str | None]] = (
            OrderedDict()
        )

    def expect(
        self, stated: Stated, message_id: str | None, workspace: str | None, at: Micros
    ) -> None:
        """Wait for the fact of a call that was made just now; older calls are history."""
        if stated.at is None or not 0 <= at - stated.at < AWAIT_SECONDS * SECOND:
            return
        key = (workspace, normal_form(stated.text))
        self._calls[key] = (stated.at, stated.session, message_id)
        while len(self._calls) > AWAITED:
            self._calls.popitem(last=False)

    def claim(self, text: str, workspace: str | None, at: Micros) -> tuple[str, str | None] | None:
        """The session and message that said ``text`` just now, for the fact that is stated in
        ``workspace`` (None: global)."""
        if not self._calls:
            return None
        said = normal_form(text)
        for key in [key for key in self._calls if key[1] == said and workspace in (None, key[0])]:
            made, session, message = self._calls.pop(key)
            if at - made < AWAIT_SECONDS * SECOND:
                return session, message
        return None


async def link(
    app: App,
    tool_call: Map,
    session_id: str,
    message_id: str | None,
    workspace: str | None,
) -> Map | None:
    """Tie the fact that ``tool_call`` stated to its session and message.

    ``tool_call`` as `core.spoken.stated_text` reads it, ``workspace`` a workspace id. The fact is
    the one with exactly that text in the workspace's facts, else in the global ones, that is
    not tied to another session. Returns {id, scope, uid}, None when nothing was tied. A
    transcript may be read again: that ties nothing anew.
    """
    text = stated_text(tool_call)
    if text is None:
        return None
    targets = [GLOBAL]
    if workspace and app.registry.has_facts(workspace):
        targets.insert(0, Target("workspace", workspace))
    for target in targets:
        async with opened(app, target) as database:
            found = await database.read(lambda c: origins.unlinked(c, text, session_id))
            if found is None:
                continue
            await database.write(
                partial(
                    origins.link,
                    fact_id=found.id,
                    session_id=session_id,
                    message_id=message_id,
                )
            )
            return {"id": f"F{found.number}", "scope": target.scope, "uid": found.uid}
    return None


async def link_batch(app: App, agent: str, stated: Sequence[Stated]) -> None:
    """Tie the facts that a batch of a transcript states, once its rows are stored. An error is
    logged: it is no failure of the transcript."""
    service = app.services.get("facts")
    if service is None:
        return
    for one in stated:
        try:
            workspace, message = await app.registry.sessions.read(
                partial(
                    origins.place_of,
                    agent=agent,
                    native_id=one.session,
                    message_key=one.message,
                )
            )
            call = {"tool": "remember", "arguments": {"text": one.text}}
            tied = await service.link_statement(call, one.session, message, workspace)
            if tied is None:
                service.awaited.expect(one, message, workspace, now())
        except (LoreError, Error, StoreBusy, OSError) as error:
            log.warning("fact not tied to its session", session=one.session, error=str(error))


async def of_session(
    app: App, service: "Facts", session_id: str, workspace: str | None
) -> list[Map]:
    """Facts that a session stated, oldest first, in wire form; those that were replaced since
    carry `successor`, the fact that holds now, and active ones `collisions`, the facts in memory
    that stand against them, at most `COLLISIONS`, and `collision_count`, how many there are.

    Looks into the global facts and those of ``workspace`` (id), of all workspaces without it.
    """
    names = [workspace] if workspace else app.registry.known_workspaces()
    targets = [Target("workspace", name) for name in names if app.registry.has_facts(name)]
    at = now()
    found: list[Map] = []
    for target in [GLOBAL, *targets]:
        view = service.view(target, at)

        def read(conn: Connection, view: View = view) -> list[Map]:
            rows = origins.of_session(conn, session_id, FACTS)
            shown = view.facts(conn, rows)
            for row, fact in zip(rows, shown, strict=True):
                if row.successor is not None:
                    end = changes.chain_end(conn, row)
                    fact["successor"] = view.fact(conn, end)
                against = collisions.find(conn, row, COLLISIONS)
                if against.total:
                    fact["collision_count"] = against.total
                    fact["collisions"] = view.collisions(conn, row, against.listed)
            return shown

        async with opened(app, target) as database:
            found += await database.read(read)
    found.sort(key=lambda fact: fact["created_at"])
    return found[:FACTS]
