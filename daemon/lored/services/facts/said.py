"""What a session asked to remember and memory does not hold so: facts that stand against it.

A statement whose text is a fact (now, or before it was forgotten) needs nothing: the fact is
tied to its session (`origins`). For any other the one rule of collisions is asked by a trial
of `remember` that is taken back. Entities are those of the call, else those that the text
names and the scope knows.
"""

from collections.abc import Sequence
from typing import Any, Final

from lore.errors import LoreError
from lored.services.app import App, Call
from lored.services.facts import groups
from lored.services.facts.scopes import GLOBAL, Target, opened
from lored.services.facts.views import Map
from lored.store.database import StoreBusy
from lored.store.driver import Error
from lored.store.facts import origins

TRIED: Final = 20
"""Statements of one session that are tried, the latest; each is one short transaction."""

SUGGESTED: Final = 5
"""Entities taken from a text whose call names none."""

_SHOWN: Final = ("fact", "similarity", "shared", "why")


async def against(
    app: App, call: Call, statements: Sequence[Map], workspace: str | None
) -> list[Map]:
    """``statements`` (of `store.sessions.statements`) that no fact says, with `collisions`:
    the facts of ``workspace`` (id) and the global ones that stand against each."""
    targets = [GLOBAL]
    if workspace and app.registry.has_facts(workspace):
        targets.insert(0, Target("workspace", workspace))
    found: list[Map] = []
    for statement in reversed(statements):
        if len(found) == TRIED:
            break
        if not await _is_held(app, targets, statement["text"]):
            found.insert(0, dict(statement))
    for statement in found:
        statement["collisions"] = [
            one
            for target in targets
            for one in await _collisions(app, call, statement, target, workspace)
        ]
    return found


async def _is_held(app: App, targets: Sequence[Target], text: str) -> bool:
    for target in targets:
        async with opened(app, target) as database:
            if await database.read(lambda c: origins.is_held(c, text)):
                return True
    return False


async def _collisions(
    app: App, call: Call, statement: Map, target: Target, workspace: str | None
) -> list[Map]:
    params: dict[str, Any] = {"scope": target.scope, "workspace": workspace}
    names = list(statement["entities"])
    try:
        if not names:
            known = await groups.suggest(app, call, params, statement["text"], SUGGESTED)
            names = [one["id"] for one in known if one["scope"] == target.scope]
        op = {"op": "remember", "text": statement["text"], "entities": names}
        trial = {**params, "ops": [op], "dry_run": True}
        (result,) = (await app.get("triage").apply(call, trial))["results"]
    except (LoreError, Error, StoreBusy):
        return []  # what cannot be remembered stands against nothing
    return [{name: one[name] for name in _SHOWN} for one in result.get("collisions", ())]
