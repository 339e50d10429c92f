"""`activity`: when agents worked, and how the memory grew."""

import asyncio
from collections import Counter
from datetime import date, timedelta
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from lore.cli import times
from lore.web import plots, site
from lore.web.forms import scope_of
from lore.web.memory import Map, Memory
from lore.web.pages.facts import reads

WEEKS: Final = 53

PAGES: Final = 15
"""Pages of 200 sessions that are read for the plots: 3,000 sessions, about 2 MB."""

KEPT_SECONDS: Final = 30.0
"""How long the sessions read for the plots are reused."""

POINTS: Final = 14
"""Dates at which facts are counted, about one a month."""

PLACES: Final = 20
"""Workspaces whose facts are counted when all are asked for: 300 quick counts at most."""


async def activity(request: Request) -> Response:
    """Calendar, weeks by agent, growth of facts and messages."""
    memory = site.of(request).memory
    at = await site.where(request, default_home=False)
    today = plots.today()
    begin = today - timedelta(days=today.weekday(), weeks=WEEKS - 1)
    sessions, total = await _sessions(memory, at.workspace, begin)
    dated = [(day, one) for one in sessions if (day := _day(one)) is not None and day >= begin]
    grown, left_out = await _facts(memory, at.workspace, begin)
    agents = [name for name, _ in Counter(one["agent"] for _, one in dated).most_common()]
    return site.page(
        request,
        "activity.html",
        title="Activity",
        here="activity",
        at=at,
        topics=(),
        calendar=plots.calendar(Counter(day for day, _ in dated), today, WEEKS),
        weeks=(weekly := _weeks(dated, begin)),
        bars=plots.stacked([(label, parts) for label, parts, _ in weekly], agents),
        agents=agents,
        per_agent=_per_agent(sessions),
        messages=plots.cumulative(_messages(weekly)),
        facts=plots.cumulative(grown),
        left_out=left_out,
        shown=len(sessions),
        total=total,
        begin=begin.isoformat(),
        workspaces=await memory.workspaces(),
    )


async def _sessions(memory: Memory, workspace: str | None, begin: date) -> tuple[list[Map], int]:
    """Sessions since ``begin`` with those of subagents, newest first, and how many there are."""

    async def ask() -> tuple[list[Map], int]:
        found: list[Map] = []
        after, total = None, 0
        for _ in range(PAGES):
            answer = await memory.call(
                "sessions",
                workspace=workspace,
                everywhere=workspace is None,
                since=begin.isoformat(),
                subagents=True,
                limit=200,
                after=after,
            )
            found += answer["sessions"]
            total = max(total, answer["total"])
            after = answer.get("next")
            if not after:
                break
        return found, total

    known: tuple[list[Map], int] = await memory.kept(f"activity:{workspace}", KEPT_SECONDS, ask)
    return known


def _day(session: Map) -> date | None:
    text = times.day(session.get("started_at") or session.get("ended_at"))
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


Week = tuple[str, Counter[str], int]


def _weeks(dated: list[tuple[date, Map]], begin: date) -> list[Week]:
    """For each week its Monday, sessions by agent, and messages."""
    found: list[Week] = []
    for number in range(WEEKS):
        monday = begin + timedelta(weeks=number)
        inside = [one for day, one in dated if 0 <= (day - monday).days < 7]
        parts = Counter(one["agent"] for one in inside)
        count = sum(one.get("message_count", 0) for one in inside)
        found.append((monday.strftime("%d %b"), parts, count))
    return found


def _messages(weeks: list[Week]) -> list[tuple[str, float]]:
    points: list[tuple[str, float]] = []
    whole = 0
    for label, _, count in weeks:
        whole += count
        points.append((label, whole))
    return points


def _per_agent(sessions: list[Map]) -> list[dict[str, Any]]:
    """Sums for each agent, most sessions first."""
    found: dict[str, dict[str, Any]] = {}
    for one in sessions:
        row = found.setdefault(
            one["agent"],
            {"agent": one["agent"], "sessions": 0, "messages": 0, "actions": 0, "tokens": 0},
        )
        row["sessions"] += 1
        row["messages"] += one.get("message_count", 0)
        row["actions"] += one.get("action_count", 0)
        tokens = one.get("tokens") or {}
        row["tokens"] += tokens.get("input", 0) + tokens.get("output", 0)
    return sorted(found.values(), key=lambda row: -row["sessions"])


async def _facts(
    memory: Memory, workspace: str | None, begin: date
) -> tuple[list[tuple[str, float]], int]:
    """Facts recorded by each of some dates from ``begin`` to today; how many workspaces were
    left out when all are asked for."""
    if workspace:
        places, left_out = [workspace], 0
    else:
        having = [one["id"] for one in await memory.workspaces() if one.get("facts")]
        places, left_out = ["global", *having[:PLACES]], max(len(having) - PLACES, 0)
    whole = (plots.today() - begin).days
    days = [begin + timedelta(days=whole * n // (POINTS - 1)) for n in range(POINTS)]

    async def count(place: str, day: date) -> int:
        where = reads(place) if workspace else scope_of(place)
        answer = await memory.call(
            "facts", until=f"{day}T23:59:59", include_superseded=True, limit=1, **where
        )
        return int(answer["total"])

    counts = await asyncio.gather(*(count(place, day) for day in days for place in places))
    sums = [sum(counts[n : n + len(places)]) for n in range(0, len(counts), len(places))]
    return [(f"{day:%d %b}", number) for day, number in zip(days, sums, strict=True)], left_out
