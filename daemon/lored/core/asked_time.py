"""The time that a question names, as a soft signal: what was said then ranks a little higher.

Never a filter: people misremember dates, speak of things days after they happened, and `March`
may be a title. Understood are a day or month by name (`3 May 2023`, `June 23`, `in March`),
`today`, `yesterday`, `last week`, `last Tuesday`, `two weeks ago`. Pure.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from typing import Final

from lored.core.clock import DAY, SECOND, Micros, from_micros, parse_when

SLACK_DAYS: Final = 10
"""Outside of the time named the signal falls to 0 within so many days: talk of a day comes
after it, and of a plan before."""

YEARS: Final = 10
"""A month without a year is that of any of the last ones."""

_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
_WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_COUNTS: Final = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_NAMED: Final = re.compile(
    rf"\b(?:(\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?)?({'|'.join(_MONTHS)})\b"
    r"(?:\s+(\d{1,2})(?:st|nd|rd|th)?\b)?(?:,?\s+(20\d\d)\b)?"
)
_SAID_OF: Final = re.compile(r"\b(?:in|of|on|since|until|by|before|after|during|last|early|late) $")
_WEEKDAY: Final = re.compile(rf"\b(?:last|on|this)\s+({'|'.join(_WEEKDAYS)})\b", re.IGNORECASE)
_NEAR: Final = re.compile(r"\b(today|yesterday|last (week|month|year))\b", re.IGNORECASE)
_AGO: Final = re.compile(
    rf"\b(\d{{1,3}}|an?|{'|'.join(_COUNTS)})\s+(day|week|month|year)s?\s+ago\b", re.IGNORECASE
)
_HALF_DAYS: Final = {"day": 0.5, "week": 3.5, "month": 15, "year": 183}


@dataclass(frozen=True, slots=True)
class AskedTime:
    """Spans of instants (from, until) that a question names; microseconds UTC."""

    spans: tuple[tuple[Micros, Micros], ...]

    def fit(self, at: Micros | None) -> float:
        """1 in one of the spans, falling to 0 within `SLACK_DAYS` of it; 0 without a time."""
        if at is None:
            return 0.0
        away = min(max(since - at, at - until, 0) for since, until in self.spans)
        return max(0.0, 1 - away / (SLACK_DAYS * DAY))


def asked_time(question: str, *, now: Micros, zone: tzinfo) -> AskedTime | None:
    """The time that ``question`` names, seen from ``now`` in ``zone``; None when it names none."""
    here = from_micros(now).astimezone(zone)
    spans = [*_named(question, here, zone), *_relative(question, now, here, zone)]
    return AskedTime(tuple(spans)) if spans else None


def _named(question: str, here: datetime, zone: tzinfo) -> Sequence[tuple[Micros, Micros]]:
    found = []
    for match in _NAMED.finditer(question):
        number = match[1] or match[3]
        if not (number or match[4] or _SAID_OF.search(question[: match.start()].lower())):
            continue  # May I ask? March on!
        years = [int(match[4])] if match[4] else range(here.year - YEARS + 1, here.year + 1)
        month = _MONTHS.index(match[2]) + 1
        for year in years:
            first = date(year, month, 1)
            after = (first + timedelta(days=31)).replace(day=1)
            if number:
                if not 1 <= int(number) <= (after - first).days:
                    continue
                first = first.replace(day=int(number))
                after = first + timedelta(days=1)
            found.append((_instant(first, zone), _instant(after, zone)))
    return found


def _relative(
    question: str, now: Micros, here: datetime, zone: tzinfo
) -> Sequence[tuple[Micros, Micros]]:
    found = []
    for match in _WEEKDAY.finditer(question):
        back = (here.weekday() - _WEEKDAYS.index(match[1].lower()) - 1) % 7 + 1
        day = here.date() - timedelta(days=back)
        found.append((_instant(day, zone), _instant(day + timedelta(days=1), zone)))
    for match in _NEAR.finditer(question):
        if match[2]:
            found.append(_around(match[0].lower(), match[2].lower(), now, zone))
        else:
            start = parse_when(match[1], now=now, zone=zone)
            found.append((start, parse_when(match[1], now=now, zone=zone, end=True)))
    for match in _AGO.finditer(question):
        count = match[1].lower()
        if count in _COUNTS:
            count = str(_COUNTS.index(count) + 1)
        found.append(_around(f"{count} {match[2].lower()}s ago", match[2].lower(), now, zone))
    return found


def _around(text: str, unit: str, now: Micros, zone: tzinfo) -> tuple[Micros, Micros]:
    middle = parse_when(text, now=now, zone=zone)
    half = int(_HALF_DAYS[unit] * DAY)
    return middle - half, middle + half


def _instant(day: date, zone: tzinfo) -> Micros:
    return int(datetime(day.year, day.month, day.day, tzinfo=zone).timestamp()) * SECOND
