"""Geometry of the plots: numbers in, positions for a template out. Pure; draws nothing.

Units are those of the SVG view box, one per CSS pixel at full width. Levels and hues are
class names, the colours stand in the style sheet.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from lore.cli import times

CELL: Final = 13
"""Side of a day in the calendar with its gap."""

LEVELS: Final = 4
"""Shades of the calendar beside empty."""

WIDTH: Final = 720
"""A plot that has the page to itself."""

HALF: Final = 460
"""A plot beside another one."""

HEIGHT: Final = 200
LEFT: Final = 44
"""Room for the numbers of the axis."""

TOP: Final = 8
FOOT: Final = 22
"""Room for the dates below."""

ROW: Final = 26
"""Height of one fact in a chart of validity."""

LINES: Final = 4
"""Most grid lines above zero."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A label of an axis at a position along it."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Cell:
    """One day of the calendar."""

    x: int
    y: int
    level: int
    day: date
    count: int


@dataclass(frozen=True, slots=True)
class Calendar:
    """Days in columns of weeks."""

    width: int
    height: int
    cells: list[Cell]
    months: list[Tick]
    total: int


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle with the name of what it stands for and its number."""

    x: float
    y: float
    width: float
    height: float
    name: str
    count: float


@dataclass(frozen=True, slots=True)
class Plot:
    """Bars or a line over time, with both axes."""

    width: int
    boxes: list[Box]
    line: str
    area: str
    rows: list[Tick]
    columns: list[Tick]


@dataclass(frozen=True, slots=True)
class Span:
    """One fact's time of validity; ``open`` when it still holds."""

    x: float
    y: float
    width: float
    open: bool
    fact: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Spans:
    """Facts one below the other over a common time axis."""

    height: float
    spans: list[Span]
    columns: list[Tick]


def calendar(counts: Mapping[date, int], end: date, weeks: int) -> Calendar:
    """``weeks`` columns of seven days, Monday on top, the last one holding ``end``."""
    first = end - timedelta(days=end.weekday(), weeks=weeks - 1)
    days = [first + timedelta(days=n) for n in range((end - first).days + 1)]
    most = max((counts.get(day, 0) for day in days), default=0)
    cells, months = [], []
    for number, day in enumerate(days):
        column, row = divmod(number, 7)
        count = counts.get(day, 0)
        level = -(-count * LEVELS // most) if count else 0
        cells.append(Cell(column * CELL, row * CELL, level, day, count))
        if row == 0 and day.day <= 7:
            months.append(Tick(column * CELL, day.strftime("%b")))
    total = sum(cell.count for cell in cells)
    return Calendar(weeks * CELL, 7 * CELL, cells, months, total)


def stacked(columns: Sequence[tuple[str, Mapping[str, int]]], order: Sequence[str]) -> Plot:
    """One bar for each (label, name -> count), its parts in ``order`` from the bottom."""
    top = _ceiling(max((sum(parts.values()) for _, parts in columns), default=0))
    step = (WIDTH - LEFT) / max(len(columns), 1)
    boxes = []
    for number, (_, parts) in enumerate(columns):
        y = float(HEIGHT - FOOT)
        for name in order:
            count = parts.get(name, 0)
            if count:
                height = _scale(count, top)
                y -= height
                x = LEFT + number * step + step * 0.12
                boxes.append(Box(_r(x), _r(y), _r(step * 0.76), _r(height), name, count))
    return Plot(WIDTH, boxes, "", "", _rows(top), _columns([name for name, _ in columns], step))


def cumulative(points: Sequence[tuple[str, float]], width: int = HALF) -> Plot:
    """A line with its area through (label, value), at even distances."""
    top = _ceiling(max((value for _, value in points), default=0))
    step = (width - LEFT) / max(len(points) - 1, 1)
    floor = HEIGHT - FOOT
    spots = [
        (_r(LEFT + number * step), _r(floor - _scale(value, top)))
        for number, (_, value) in enumerate(points)
    ]
    line = "M" + " L".join(f"{x} {y}" for x, y in spots) if spots else ""
    area = f"{line} L{spots[-1][0]} {floor} L{spots[0][0]} {floor} Z" if spots else ""
    boxes = [
        Box(x, y, 0, 0, name, value) for (x, y), (name, value) in zip(spots, points, strict=True)
    ]
    return Plot(
        width, boxes, line, area, _rows(top), _columns([name for name, _ in points], step, 0, 4)
    )


def validity(facts: Sequence[Mapping[str, Any]], now: datetime) -> Spans:
    """When each of ``facts`` (wire form) held, from the first of them to now, or to the last end
    that lies ahead."""
    windows = []
    for fact in facts:
        start = times.local(str(fact.get("valid_from") or fact["created_at"])) or now
        end = times.local(str(fact["valid_to"])) if fact.get("valid_to") else None
        windows.append((fact, start, end))
    low = min((start for _, start, _ in windows), default=now)
    high = max([now, *(end for _, _, end in windows if end is not None)])
    whole = max((high - low).total_seconds(), 1.0)

    def at(moment: datetime) -> float:
        return (moment - low).total_seconds() / whole * WIDTH

    spans = []
    for number, (fact, start, end) in enumerate(windows):
        x = at(start)
        width = max(at(end or high) - x, 3.0)
        # A bar of the minimum width at the right edge stays inside.
        spans.append(Span(_r(min(x, WIDTH - width)), number * ROW, _r(width), end is None, fact))
    short = high - low < timedelta(days=2)
    ticks = [
        Tick(
            _r(part * WIDTH),
            (low + (high - low) * part)
            .astimezone()
            .strftime("%d %b %H:%M" if short else "%d %b %Y"),
        )
        for part in (0.0, 0.5, 1.0)
    ]
    return Spans(len(spans) * ROW, spans, ticks)


def _ceiling(most: float) -> int:
    """The end of an axis: a round number not below ``most``, at least `LINES`."""
    if most <= LINES:
        return LINES
    unit = 1
    while True:
        for factor in (1, 2, 4, 5, 8):
            if factor * unit * LINES >= most:
                return factor * unit * LINES
        unit *= 10


def _scale(value: float, top: int) -> float:
    return value / top * (HEIGHT - FOOT - TOP)


def _rows(top: int) -> list[Tick]:
    return [
        Tick(_r(HEIGHT - FOOT - _scale(top * n / LINES, top)), f"{top * n // LINES:,}")
        for n in range(LINES + 1)
    ]


def _columns(names: Sequence[str], step: float, shift: float = 0.5, most: int = 6) -> list[Tick]:
    """At most ``most`` labels, evenly spread."""
    every = max(-(-len(names) // most), 1)
    return [
        Tick(_r(LEFT + (n + shift) * step), name) for n, name in enumerate(names) if n % every == 0
    ]


def _r(value: float) -> float:
    return round(value, 1)


def today() -> date:
    """The date in the local zone."""
    return datetime.now(UTC).astimezone().date()
