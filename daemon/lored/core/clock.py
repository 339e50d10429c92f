"""Instants as text and numbers. Pure: "now" is always an argument or the caller's clock.

Stored instants are integer microseconds since the epoch, UTC; on the wire they are ISO-8601
UTC with `Z`. Wire form has whole seconds when the fraction is zero, else milliseconds.
"""

import re
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Final

Micros = int
SECOND: Final = 1_000_000
DAY: Final = 86_400 * SECOND
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_RELATIVE: Final = re.compile(
    r"^(?:(?:in the )?last\s+)?(\d+|an?|one)\s*"
    r"(s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|weeks?|months?|mo|y|years?)"
    r"(?:\s+ago)?$"
)
_UNIT_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def to_micros(moment: datetime) -> Micros:
    """An aware datetime as microseconds since the epoch."""
    delta = moment - _EPOCH
    return (delta.days * 86_400 + delta.seconds) * SECOND + delta.microseconds


def from_micros(at: Micros) -> datetime:
    """Microseconds as an aware UTC datetime, clamped to years 1-9999."""
    try:
        return _EPOCH + timedelta(microseconds=at)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC) if at > 0 else datetime.min.replace(tzinfo=UTC)


def to_wire(at: Micros) -> str:
    """ISO-8601 UTC text for answers."""
    days, rest = divmod(at, DAY)
    seconds, micros = divmod(rest, SECOND)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    fraction = f".{micros // 1000:03d}" if micros else ""
    return f"{_wire_day(days)}T{hour:02d}:{minute:02d}:{second:02d}{fraction}Z"


@lru_cache(1024)
def _wire_day(days: int) -> str:
    """The date that is so many days after the epoch: answers show the same few."""
    return from_micros(days * DAY).date().isoformat()


def parse_instant(value: object) -> Micros | None:
    """A timestamp as found in transcripts: ISO text of any shape, epoch seconds or
    milliseconds (numbers above 10^11 are milliseconds). None when unusable."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        if value != value or not 0 < value < 1e16:
            return None
        return int(value * 1_000 if value > 1e11 else value * SECOND)
    if not isinstance(value, str) or len(value) < 8:
        return None
    try:
        moment = datetime.fromisoformat(value.strip())
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    try:
        return to_micros(moment.astimezone(UTC))
    except OverflowError:
        return None


def parse_when(text: str, *, now: Micros, zone: tzinfo, end: bool = False) -> Micros:
    """A date as a person writes it, in their zone: ISO date or instant, `today`, `yesterday`,
    `now`, `3d`, `2 weeks ago`, `last month`, a month (`2026-05`), a year.

    A whole day (month, year) means its first instant, or with ``end`` the first instant after
    it. Raises ValueError with what is understood.
    """
    raw = text.strip().lower()
    here = from_micros(now).astimezone(zone)
    today = here.date()
    days = {"today": 0, "yesterday": -1, "tomorrow": 1}
    if raw == "now":
        return now
    if raw in days:
        return _day(today + timedelta(days=days[raw]), zone, end)
    if raw in ("last week", "last month", "last year"):
        raw = "1 " + raw.split()[1] + " ago"
    match = _RELATIVE.match(raw)
    if match:
        count = 1 if match[1] in ("a", "an", "one") else int(match[1])
        return _back(here, count, match[2], raw)
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}", raw):
        return _day(_date(raw, text), zone, end)
    if re.fullmatch(r"\d{4}-\d{2}", raw):
        first = _date(raw + "-01", text)
        after = (first.replace(day=28) + timedelta(days=4)).replace(day=1)
        return _day(after if end else first, zone, False)
    if re.fullmatch(r"\d{4}", raw):
        first = _date(raw + "-01-01", text)
        return _day(date(first.year + 1, 1, 1) if end else first, zone, False)
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(
            f"{text!r} is not a date: use 2026-05-28, 2026-05-28T10:00Z, yesterday, 3d, 2 weeks ago"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone)
    return to_micros(moment.astimezone(UTC))


def _date(raw: str, text: str) -> date:
    try:
        return date.fromisoformat(raw)
    except ValueError:
        raise ValueError(f"{text!r} is not a day of the calendar") from None


def _day(day: date, zone: tzinfo, end: bool) -> Micros:
    if end:
        day += timedelta(days=1)
    return to_micros(datetime(day.year, day.month, day.day, tzinfo=zone).astimezone(UTC))


def _back(here: datetime, count: int, unit: str, raw: str) -> Micros:
    if unit.startswith(("mo", "y")):
        months = count * (12 if unit.startswith("y") else 1)
        index = here.year * 12 + here.month - 1 - months
        if index < 12:
            raise ValueError(f"{raw!r} is before year 1")
        year, month = divmod(index, 12)
        last = [
            31,
            29 if year % 4 == 0 and (year % 100 or year % 400 == 0) else 28,
            31,
            30,
            31,
            30,
            31,
            31,
            30,
            31,
            30,
            31,
        ][month]
        return to_micros(
            here.replace(year=year, month=month + 1, day=min(here.day, last)).astimezone(UTC)
        )
    try:
        return to_micros((here - timedelta(seconds=count * _UNIT_SECONDS[unit[0]])).astimezone(UTC))
    except OverflowError:
        raise ValueError(f"{raw!r} is before year 1") from None
