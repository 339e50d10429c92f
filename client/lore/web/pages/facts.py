"""`facts`, `entities`, `entity`, `cluster`: facts in groups, now or at another time."""

import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from lore.cli import times
from lore.errors import NotFound
from lore.web import plots, site
from lore.web.forms import scope_of
from lore.web.memory import Map, Memory
from lore.wire.methods import KINDS

SHOWN: Final = 100
"""Facts on one page."""

SPAN_SECONDS: Final = 60.0
"""How long the first day of the sliders is remembered; it hardly ever changes."""

FIRST_DAY: Final = date(2000, 1, 1)
"""No slider begins earlier; earlier times are reached by writing a date."""

NEWEST: Final = 200
"""Facts whose beginning is looked at for the sliders: one answer."""

_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}")


async def facts(request: Request) -> Response:
    """Facts newest first, grouped by cluster; with a query the best matches."""
    memory = site.of(request).memory
    at = await site.where(request, default_home=True)
    asked = site.fields(request, "q", "kind", "tag", "entity", "after")
    superseded = bool(request.query_params.get("superseded"))
    time = await travel(request, memory, at.workspace)
    filters: Map = {
        **reads(at.workspace),
        "kind": asked["kind"],
        "tags": [asked["tag"]] if asked["tag"] else [],
        "entities": [asked["entity"]] if asked["entity"] else [],
        "include_superseded": superseded,
        **time["params"],
    }
    if asked["q"]:
        answer = await memory.call("recall_fact", query=asked["q"], limit=SHOWN, **filters)
        groups = [{"facts": answer["facts"], "name": None}] if answer["facts"] else []
        total, following = len(answer["facts"]), None
    else:
        answer = await memory.call("facts", limit=SHOWN, after=asked["after"], **filters)
        groups = by_cluster(answer["facts"])
        total, following = answer["total"], answer.get("next")
    return site.page(
        request,
        "facts.html",
        title="Facts",
        here="facts",
        at=at,
        topics=("facts", "conflicts"),
        asked=asked,
        superseded=superseded,
        time=time,
        groups=groups,
        total=total,
        following=following,
        kinds=KINDS,
        workspaces=await memory.workspaces(),
    )


async def entities(request: Request) -> Response:
    """What facts are about."""
    memory = site.of(request).memory
    at = await site.where(request, default_home=True)
    found: list[Map] = (await memory.call("entities", limit=200, **reads(at.workspace)))["entities"]
    kinds: dict[str, list[Map]] = {}
    for one in found:
        kinds.setdefault(one["type"], []).append(one)
    return site.page(
        request,
        "entities.html",
        title="Entities",
        here="facts",
        at=at,
        topics=("facts",),
        kinds=sorted(kinds.items(), key=lambda item: -len(item[1])),
        workspaces=await memory.workspaces(),
    )


async def entity(request: Request) -> Response:
    """One entity: its facts at a time, when each held, its clusters and conflicts."""
    memory = site.of(request).memory
    at = await site.where(request, default_home=True)
    name = request.query_params.get("name", "")
    time = await travel(request, memory, at.workspace)
    view = f"entity:{name}"
    answer = await memory.call("snapshot", scopes=[view], workspace=at.workspace, **time["params"])
    found: Map = answer[view.strip()]
    if "error" in found:
        raise NotFound(found["error"])
    whole = await memory.call(
        "facts", entities=[name], include_superseded=True, limit=50, **reads(at.workspace)
    )
    history = sorted(whole["facts"], key=lambda fact: str(fact["valid_from"]))
    return site.page(
        request,
        "entity.html",
        title=found["entities"][0]["entity"],
        here="facts",
        at=at,
        topics=("facts", "conflicts"),
        name=name,
        found=found,
        time=time,
        chart=plots.validity(history, datetime.now(UTC)),
    )


async def cluster(request: Request) -> Response:
    """One cluster: its facts, and when each of them held."""
    memory = site.of(request).memory
    place, name = request.path_params["place"], request.path_params["name"]
    found: Map = (await memory.call("clusters", id=name, **scope_of(place)))["clusters"][0]
    history = found["facts"] + found["superseded_facts"]
    history.sort(key=lambda fact: str(fact["valid_from"]))
    return site.page(
        request,
        "cluster.html",
        title=found["title"],
        here="facts",
        topics=("facts", "conflicts"),
        cluster=found,
        place=place,
        chart=plots.validity(history[-50:], datetime.now(UTC)),
    )


def reads(workspace: str | None) -> Map:
    """Parameters of a read: that workspace and the global facts, or the global ones alone."""
    return {"workspace": workspace} if workspace else {"scope": "global"}


def by_cluster(facts: Iterable[Map]) -> list[Map]:
    """Facts grouped by cluster, in the order in which clusters first appear, each group with the
    entities that all of its facts share."""
    groups: dict[tuple[str, str], list[Map]] = {}
    for fact in facts:
        place = str(fact.get("workspace") or fact["scope"])
        groups.setdefault((place, str(fact.get("cluster", fact["id"]))), []).append(fact)
    found = []
    for (place, name), members in groups.items():
        shared = [
            entity
            for entity in members[0].get("entities", ())
            if all(entity in fact.get("entities", ()) for fact in members)
        ]
        found.append({"name": name, "place": place, "facts": members, "shared": shared})
    return found


async def travel(request: Request, memory: Memory, workspace: str | None) -> dict[str, Any]:
    """The time that a page is asked for, from the sliders (`valid_day`, `known_day`: days after
    the first one) or from dates (`as_of`, `known_at`), and what the form needs.

    A date means the end of that day, in the local zone, as people mean it. The last position of
    a slider is now.
    """
    first = await first_day(memory, workspace)
    last = max((plots.today() - first).days, 1)
    found: dict[str, Any] = {"first": first.isoformat(), "last": last, "params": {}}
    for slider, name in (("valid_day", "as_of"), ("known_day", "known_at")):
        text = request.query_params.get(name, "").strip()
        steps = request.query_params.get(slider, "")
        if not text and steps.isdecimal() and int(steps[:9]) < last:
            text = (first + timedelta(days=int(steps))).isoformat()
        found[name] = text
        position = last
        if _DAY.fullmatch(text):
            found["params"][name] = text + "T23:59:59"
            position = min(max((_date(text, first) - first).days, 0), last)
        elif text:
            found["params"][name] = text
        found[slider] = position
    return found


def _date(text: str, default: date) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return default  # the daemon's own refusal says what is wrong with it


async def first_day(memory: Memory, workspace: str | None) -> date:
    """Where the sliders begin: the day on which the oldest fact here was recorded, found by
    halving (about 14 counts, which the daemon makes from an index), or the day since when one of
    the newest facts is true, if that is earlier. Today without any fact."""
    everything: Map = {**reads(workspace), "include_superseded": True}

    async def ask() -> date:
        low, high = FIRST_DAY, plots.today()
        while low < high:
            middle = low + (high - low) / 2
            until = f"{middle}T23:59:59"
            if (await memory.call("facts", until=until, limit=1, **everything))["total"]:
                high = middle
            else:
                low = middle + timedelta(days=1)
        newest = (await memory.call("facts", limit=NEWEST, **everything))["facts"]
        since = [_date(times.day(str(fact["valid_from"])), low) for fact in newest]
        return max(min([low, *since]), FIRST_DAY)

    found: date = await memory.kept(f"first:{workspace}", SPAN_SECONDS, ask)
    return found
