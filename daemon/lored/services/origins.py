"""Facts and the sessions that stated them, tied both ways."""

from functools import partial
from typing import TYPE_CHECKING, Final

from lored.core.spoken import stated_text
from lored.services.app import App
from lored.services.fact_views import Map, View
from lored.services.moments import now
from lored.services.scopes import GLOBAL, Target, opened
from lored.store import facts_changes, facts_collisions, facts_origins
from lored.store.driver import Connection

if TYPE_CHECKING:
    from lored.services.facts import Facts

FACTS: Final = 200
"""Facts of one session that are shown."""


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
            found = await database.read(lambda c: facts_origins.unlinked(c, text, session_id))
            if found is None:
                continue
            await database.write(
                partial(
                    facts_origins.link,
                    fact_id=found.id,
                    session_id=session_id,
                    message_id=message_id,
                )
            )
            return {"id": f"F{found.number}", "scope": target.scope, "uid": found.uid}
    return None


async def of_session(
    app: App, service: "Facts", session_id: str, workspace: str | None
) -> list[Map]:
    """Facts that a session stated, oldest first, in wire form; those that were replaced since
    carry `successor`, the fact that holds now, and active ones `collision_count`, how many
    facts in memory stand against them.

    Looks into the global facts and those of ``workspace`` (id), of all workspaces without it.
    """
    names = [workspace] if workspace else app.registry.known_workspaces()
    targets = [Target("workspace", name) for name in names if app.registry.has_facts(name)]
    at = now()
    found: list[Map] = []
    for target in [GLOBAL, *targets]:
        view = service.view(target, at)

        def read(conn: Connection, view: View = view) -> list[Map]:
            rows = facts_origins.of_session(conn, session_id, FACTS)
            shown = view.facts(conn, rows)
            for row, fact in zip(rows, shown, strict=True):
                if row.successor is not None:
                    end = facts_changes.chain_end(conn, row)
                    fact["successor"] = view.fact(conn, end)
                count = facts_collisions.count(conn, row)
                if count:
                    fact["collision_count"] = count
            return shown

        async with opened(app, target) as database:
            found += await database.read(read)
    found.sort(key=lambda fact: fact["created_at"])
    return found[:FACTS]
