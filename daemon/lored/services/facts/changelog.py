"""The change log as callers see it: list it, take entries and batches back."""

from typing import Any

from lore.errors import Conflict, Invalid, NotFound
from lored.core import ids
from lored.services.app import App, Call
from lored.services.facts import news
from lored.services.facts.news import News
from lored.services.facts.reading import log_subject
from lored.services.facts.scopes import asked_scope, for_read, for_write, one_number, opened
from lored.services.facts.views import Map
from lored.services.moments import instant, now
from lored.store.driver import Connection
from lored.store.facts import log
from lored.store.facts import undo as facts_undo
from lored.store.facts.log import Batch, Entry


async def undo(app: App, call: Call, params: Map) -> Map:
    """Take back one entry or a whole batch; without an id the last batch that stands."""
    at = now()
    name = params.get("id")
    scope, wanted = _log_ref(name)
    asked = asked_scope(params)
    if scope and asked and scope != asked:
        raise Invalid(f"{name} is {scope}, but scope={asked} was given")
    target = await for_write(app, call, {**params, "scope": asked or scope})
    if target.workspace is not None and not app.registry.has_facts(target.workspace):
        raise NotFound("nothing to undo here: this workspace has no facts of its own")
    async with opened(app, target) as database:

        def write(conn: Connection) -> tuple[Map, list[News]]:
            entries = _to_undo(conn, wanted, name)
            batch = Batch(conn, now=at, actor=call.client)
            for entry in reversed(entries):
                facts_undo.undo(conn, batch, entry, rules=app.get("facts").rules)
            view = app.get("facts").view(target, at)
            undone = [log.entry(conn, entry.id) or entry for entry in reversed(entries)]
            subjects = [subject for entry in undone for subject in entry.subjects]
            touched = {one: "updated" for kind, one in subjects if kind == log.FACT}
            disputed = {one: "updated" for kind, one in subjects if kind == log.CONFLICT}
            return {
                "undone": view.entries(conn, undone),
                "batch": ids.spell("batch", batch.number or 0),
                "revision": f"{database.uuid}:{batch.revision}",
            }, news.gather(conn, view, touched, disputed)

        answer, told = await database.write(write)
        news.tell(app, target, told)
    return answer


async def listing(app: App, call: Call, params: Map) -> Map:
    """The change log, newest first, of the scopes of the call."""
    at = now()
    limit = one_number(params, 50)
    since = instant(params, "since", at)
    name = params.get("id")
    found: list[tuple[int, Map]] = []
    known = name is None
    for target in await for_read(app, call, _scoped(params, name)):
        view = app.get("facts").view(target, at)

        def read(conn: Connection, view: Any = view) -> tuple[bool, list[tuple[int, Map]]]:
            subject = None if name is None else log_subject(conn, name)
            if name is not None and subject is None:
                return False, []
            rows = log.listing(conn, limit=limit, subject=subject, since=since)
            shown = view.entries(conn, rows)
            return True, [(row.at, one) for row, one in zip(rows, shown, strict=True)]

        async with opened(app, target) as database:
            there, part = await database.read(read)
        known |= there
        found += part
    if not known:
        raise NotFound(f"no fact or conflict {name} here", {"id": name})
    found.sort(key=lambda pair: -pair[0])
    return {"entries": [entry for _, entry in found[:limit]]}


def _log_ref(name: str | None) -> tuple[ids.Scope | None, ids.Ref | None]:
    if name is None:
        return None, None
    letter = name.strip().rsplit(":", 1)[-1][:1].upper()
    ref = ids.parse(name, "batch" if letter == "B" or "batch" in name.lower() else "log")
    return ref.scope, ref


def _to_undo(conn: Connection, wanted: ids.Ref | None, name: str | None) -> list[Entry]:
    """The entries that an undo is about, oldest first."""
    if wanted is None:
        last = log.last(conn)
        if last is None:
            raise NotFound("nothing to undo here")
        return [one for one in log.of_batch(conn, last.batch) if one.undone_by is None]
    if wanted.kind == "log":
        entry = log.entry(conn, wanted.number or 0)
        if entry is None:
            raise NotFound(f"no log entry {name}; `lore history` lists them", {"id": name})
        return [entry]
    entries = log.of_batch(conn, wanted.number or 0)
    if not entries:
        raise NotFound(f"no batch {name}; `lore history` lists them", {"id": name})
    standing = [one for one in entries if one.undone_by is None]
    if not standing:
        raise Conflict(f"{name} is undone already")
    return standing


def _scoped(params: Map, name: str | None) -> Map:
    """Parameters with the scope that a qualified id names."""
    if name is None or params.get("scope"):
        return params
    head = name.split(":", 1)[0].strip().lower()
    return {**params, "scope": head} if head in ("global", "workspace") else params
