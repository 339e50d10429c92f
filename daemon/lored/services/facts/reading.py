"""Reads of facts that are no search: one fact, its chain, lists in pages, what changed."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from lore.errors import Invalid
from lored.core import ids
from lored.core.clock import Micros
from lored.core.validity import Moment
from lored.services.app import App, Call
from lored.services.facts import freshness, revisions
from lored.services.facts.scopes import (
    GLOBAL,
    Target,
    for_read,
    locate,
    one_number,
    opened,
)
from lored.services.facts.views import Map, View
from lored.services.moments import instant, now, zone
from lored.store.driver import Connection
from lored.store.facts import bindings, conflicts, find, log
from lored.store.facts import changes as facts_changes
from lored.store.facts import rows as facts
from lored.store.facts.rows import Fact
from lored.store.sessions import reading

if TYPE_CHECKING:
    from lored.services.facts.front import Facts

CHAIN: Final = 200
"""Facts of one chain that are shown."""

CHANGES: Final = 500
"""Changes of one answer of `changes`."""

LISTED: Final = 20
"""Facts of a listing when the caller does not say."""


def moment(params: dict[str, Any], at: Micros) -> Moment:
    """What `as_of` and `known_at` ask for."""
    return Moment(at, instant(params, "as_of", at), instant(params, "known_at", at))


def make_filter(conn: Connection, params: dict[str, Any], wanted: Moment) -> find.Filter:
    """The filter in the parameters of a read."""
    return find.make(
        conn,
        wanted,
        tags=params.get("tags", ()),
        entities=params.get("entities", ()),
        kind=params.get("kind"),
        since=instant(params, "since", wanted.now),
        until=instant(params, "until", wanted.now, end=True),
        include_superseded=bool(params.get("include_superseded")),
    )


async def unverified(found: dict[int, list[bindings.Binding]]) -> dict[int, str]:
    """Internal id -> why a fact is unverified."""
    return await freshness.changed(found) if found else {}


def mark(shown: list[Map], rows: list[Fact], reasons: dict[int, str]) -> None:
    """Write the reasons into facts in wire form."""
    for fact, row in zip(shown, rows, strict=True):
        if row.id in reasons:
            fact["unverified"] = {"reason": reasons[row.id]}


async def one(app: App, service: "Facts", call: Call, params: dict[str, Any]) -> Map:
    """`fact`: the fact, its chain, its conflicts of any state, the session that stated it."""
    at = now()
    target, found = await locate(app, call, params, params["id"])
    view = service.view(target, at)

    def read(conn: Connection) -> tuple[Map, dict[int, list[bindings.Binding]]]:
        row = facts.by_ids(conn, [found.id])[found.id]
        chain = facts_changes.history(conn, row, CHAIN)
        disputes = conflicts.of_facts(conn, [row.id], status=None)
        undecided = facts_changes.undecided(conn, row, app.settings.fact_collision_max_results)
        answer: Map = {
            "fact": view.fact(conn, row),
            "history": view.facts(conn, chain),
            "conflicts": view.conflicts(conn, disputes),
            "collisions": view.collisions(conn, row, undecided),
        }
        return answer, bindings.of(conn, [row.id])

    async with opened(app, target) as database:
        answer, bound = await database.read(read)
    mark([answer["fact"]], [found], await unverified(bound))
    service.access.note(target.workspace, [found.id], at)
    if found.session_id is not None:
        brief = await _session(app, found.session_id)
        if brief is not None:
            answer["session"] = brief
    return answer


async def _session(app: App, name: str) -> Map | None:
    """The brief of the session that stated a fact; None when it was never read here."""

    def read(conn: Connection) -> Map | None:
        for ref in reading.find(conn, name):
            if ref.native_id == name:
                return reading.briefs(conn, [ref.id], zone()).get(ref.id)
        return None

    return await app.registry.sessions.read(read)


async def history(app: App, service: "Facts", call: Call, params: dict[str, Any]) -> Map:
    """`fact_history`: the chain oldest first, and the log of its facts."""
    target, found = await locate(app, call, params, params["id"])
    view = service.view(target, now())

    def read(conn: Connection) -> Map:
        chain = facts_changes.history(conn, found, CHAIN)
        entries = {
            entry.id: entry
            for row in chain
            for entry in log.listing(conn, limit=CHAIN, subject=(log.FACT, row.id))
        }
        return {
            "history": view.facts(conn, chain),
            "log": view.entries(conn, [entries[number] for number in sorted(entries)]),
        }

    async with opened(app, target) as database:
        return await database.read(read)


async def listing(app: App, service: "Facts", call: Call, params: dict[str, Any]) -> Map:
    """`facts`: newest first over both scopes, merged by the time of recording, in pages."""
    at = now()
    limit = one_number(params, LISTED)
    wanted = moment(params, at)
    places = _places(params.get("after"))
    merged: list[tuple[Micros, Target, Fact, Map]] = []
    total, more = 0, False
    for target in await for_read(app, call, params):
        view = service.view(target, at)

        def read(
            conn: Connection, target: Target = target, view: View = view
        ) -> tuple[find.Page, list[Map], int, dict[int, list[bindings.Binding]]]:
            asked = make_filter(conn, params, wanted)
            page = find.page(conn, asked, limit, places.get(target.scope))
            return (
                page,
                view.facts(conn, page.facts),
                find.total(conn, asked),
                bindings.of(conn, [row.id for row in page.facts]),
            )

        async with opened(app, target) as database:
            page, shown, count, bound = await database.read(read)
        rows = page.facts
        mark(shown, rows, await unverified(bound))
        total += count
        more |= page.after is not None
        merged += [
            (row.created_at, target, row, fact) for row, fact in zip(rows, shown, strict=True)
        ]
    merged.sort(key=lambda item: (item[0], item[1].scope == "workspace", item[2].id), reverse=True)
    answer: Map = {"facts": [item[3] for item in merged[:limit]], "total": total}
    if more or len(merged) > limit:
        answer["next"] = _next(places, merged[:limit])
    return answer


def _places(after: str | None) -> dict[str, tuple[Micros, int]]:
    """Where each scope goes on: `global=<micros>.<id>,workspace=<micros>.<id>`."""
    found: dict[str, tuple[Micros, int]] = {}
    for part in (after or "").split(","):
        scope, _, place = part.partition("=")
        at, _, fact = place.partition(".")
        if not part:
            continue
        if scope not in ("global", "workspace") or not (
            at.lstrip("-").isdigit() and fact.isdigit()
        ):
            raise Invalid("after: not a page; use the `next` of the answer before")
        found[scope] = (int(at), int(fact))
    return found


def _next(
    places: dict[str, tuple[Micros, int]], shown: list[tuple[Micros, Target, Fact, Map]]
) -> str:
    last = dict(places)
    for at, target, row, _ in shown:
        last[target.scope] = (at, row.id)
    return ",".join(f"{scope}={at}.{fact}" for scope, (at, fact) in sorted(last.items()))


# -- changes -------------------------------------------------------------------------------


async def changes(app: App, service: "Facts", since: str, workspace: str | None, limit: int) -> Map:
    """What changed after a revision token; ``fresh`` when a store is not the one that the token
    knows (replaced, or never seen): then everything counts as changed."""
    known = revisions.parse(since)
    at = now()
    targets = [GLOBAL]
    if workspace and app.registry.has_facts(workspace):
        targets.append(Target("workspace", workspace))
    found: list[Map] = []
    pairs: list[str] = []
    fresh = False
    unmatched = len(known)
    for target in targets:
        async with opened(app, target) as database:
            start = known.get(database.uuid, 0)
            unmatched -= database.uuid in known
            # A workspace that had no store when the token was made is not a replaced one: all
            # of it is simply new.
            fresh |= database.uuid not in known and (target.scope == "global" or unmatched > 0)
            view = service.view(target, at)
            left = max(0, limit - len(found))
            part, revision = await database.read(_changed(view, start, left))
            found += part
            pairs.append(f"{database.uuid}:{revision}")
    return {"changes": found, "revision": ",".join(pairs), "fresh": fresh}


def _changed(view: View, since: int, limit: int) -> Callable[[Connection], tuple[list[Map], int]]:
    def read(conn: Connection) -> tuple[list[Map], int]:
        if limit == 0:
            return [], since
        rows, revision = log.changed_since(conn, since, limit)
        subjects = [row.subject for row in rows if row.kind == log.FACT]
        known = facts.by_ids(conn, subjects)
        texts = dict(zip(known, view.facts(conn, list(known.values())), strict=True))
        disputed = {
            row.subject: one
            for row in rows
            if row.kind == log.CONFLICT and (one := conflicts.by_id(conn, row.subject)) is not None
        }
        shown = dict(zip(disputed, view.conflicts(conn, list(disputed.values())), strict=True))
        found: list[Map] = []
        for row in rows:
            head: Map = {"op": row.op, "revision": row.revision, "scope": view.target.scope}
            if row.kind == log.FACT and row.subject in texts:
                found.append({**head, "kind": "fact", "fact": texts[row.subject]})
            elif row.kind == log.CONFLICT and row.subject in shown:
                found.append({**head, "kind": "conflict", "conflict": shown[row.subject]})
        return found, revision

    return read


def log_subject(conn: Connection, text: str) -> tuple[int, int] | None:
    """(kind, internal id) of the fact or conflict that the change log is asked about; None when
    this store does not have it."""
    if "conflict" in text.lower():
        number = ids.parse(text, "conflict").number or 0
        return (log.CONFLICT, number) if conflicts.by_id(conn, number) else None
    ref = ids.parse(text, "fact")
    row = (
        facts.by_uid(conn, ref.uid)
        if ref.uid is not None
        else facts.by_number(conn, ref.number or 0)
    )
    return None if row is None else (log.FACT, row.id)
