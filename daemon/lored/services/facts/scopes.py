"""Which store a call means: one for a write, one or both for a read, the one that has an id.

A write goes to the workspace when the caller has one, else to the global facts. A read merges
both unless a scope is named. An id that exists in both scopes is ambiguous until qualified.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from lore.errors import Ambiguous, Invalid, NotFound
from lored.core import ids
from lored.services.app import App, Call
from lored.store.database import Database
from lored.store.driver import Connection
from lored.store.facts import rows
from lored.store.facts.rows import Fact

CANDIDATE_CHARS = 80
"""Of each candidate's text in an ambiguity error: enough to tell them apart."""


class Target(NamedTuple):
    """One facts store: its scope, and the workspace's id and root (None: global)."""

    scope: ids.Scope
    workspace: str | None = None
    root: str | None = None

    def spelled(self) -> str:
        """`the global facts` or `the facts of workspace /home/u/app`."""
        if self.workspace is None:
            return "the global facts"
        return f"the facts of workspace {self.root or self.workspace}"


GLOBAL = Target("global")


@asynccontextmanager
async def opened(app: App, target: Target) -> AsyncIterator[Database]:
    """The store of ``target``, open while the context lasts."""
    async with app.registry.facts(target.workspace) as database:
        yield database


async def workspace_target(app: App, call: Call, params: dict[str, Any]) -> Target | None:
    """The caller's workspace as a target, None when it has none."""
    found = await app.workspaces.resolve(params.get("workspace") or call.workspace)
    return None if found is None else Target("workspace", found.id, found.root)


def asked_scope(params: dict[str, Any]) -> ids.Scope | None:
    """The scope that the parameters name, Recursive's `global: true` included."""
    scope: ids.Scope | None = params.get("scope")
    if scope not in (None, "global", "workspace"):
        raise Invalid(f"scope {scope!r}: global or workspace", {"parameter": "scope"})
    if params.get("global"):
        if scope == "workspace":
            raise Invalid("global=true and scope=workspace exclude each other")
        return "global"
    return scope


async def for_write(app: App, call: Call, params: dict[str, Any]) -> Target:
    """Where a statement goes. Raises `Invalid` for scope=workspace without a workspace."""
    scope = asked_scope(params)
    if scope == "global":
        return GLOBAL
    found = await workspace_target(app, call, params)
    if found is None and scope == "workspace":
        raise Invalid(
            "scope=workspace, but there is no workspace here: give one (a path inside a project), "
            "or use scope=global"
        )
    return found or GLOBAL


async def for_read(app: App, call: Call, params: dict[str, Any]) -> list[Target]:
    """Stores that a read looks into, global first; a workspace that has no facts is left out,
    since a read must not create its store."""
    scope = asked_scope(params)
    if scope == "global":
        return [GLOBAL]
    found = await workspace_target(app, call, params)
    if found is None and scope == "workspace":
        raise Invalid("scope=workspace, but there is no workspace here: give one, or leave it out")
    there = [found] if found and app.registry.has_facts(found.workspace or "") else []
    return there if scope == "workspace" else [GLOBAL, *there]


def lookup(conn: Connection, ref: ids.Ref) -> Fact | None:
    """The fact that ``ref`` names in this store."""
    if ref.uid is not None:
        return rows.by_uid(conn, ref.uid)
    return None if ref.number is None else rows.by_number(conn, ref.number)


def narrowed(targets: list[Target], ref: ids.Ref) -> list[Target]:
    """The targets that a qualified name allows."""
    return [target for target in targets if ref.scope in (None, target.scope)]


async def locate(app: App, call: Call, params: dict[str, Any], text: str) -> tuple[Target, Fact]:
    """The one fact that ``text`` names among the stores of the call.

    Raises `Ambiguous` with candidates when both scopes have it, `NotFound` when none has.
    """
    ref = ids.parse(text, "fact")
    scope = asked_scope(params)
    if ref.scope and scope and ref.scope != scope:
        raise Invalid(f"{text} is {ref.scope}, but scope={scope} was given")
    targets = narrowed(await for_read(app, call, {**params, "scope": scope or ref.scope}), ref)
    found: list[tuple[Target, Fact]] = []
    for target in targets:
        async with opened(app, target) as database:
            fact = await database.read(lambda c: lookup(c, ref))
        if fact is not None:
            found.append((target, fact))
    if len(found) > 1:
        raise ambiguous(text, found)
    if not found:
        places = " and ".join(target.spelled() for target in targets) or "this workspace"
        raise NotFound(f"no fact {text} in {places}; `lore facts` lists them", {"id": text})
    return found[0]


def ambiguous(text: str, found: list[tuple[Target, Fact]]) -> Ambiguous:
    """The error for a name that both scopes have."""
    names = [ids.fact(fact.number, target.scope) for target, fact in found]
    return Ambiguous(
        f"{text} exists in both scopes: say {' or '.join(names)}",
        {
            "candidates": [
                {
                    "id": name,
                    "scope": target.scope,
                    "uid": fact.uid,
                    "text": fact.text[:CANDIDATE_CHARS],
                }
                for name, (target, fact) in zip(names, found, strict=True)
            ]
        },
    )


def one_number(params: dict[str, Any], default: int, highest: int = 200) -> int:
    """The `limit` of a call, 1 to ``highest``."""
    value: int = params.get("limit", default)
    if not 1 <= value <= highest:
        raise Invalid(f"limit {value}: 1 to {highest}", {"parameter": "limit"})
    return value
