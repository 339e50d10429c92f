"""The time that a question names, and how near to it a message is."""

import random
import string
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from lored.core.asked_time import asked_time
from lored.core.clock import DAY, to_micros

NOW = to_micros(datetime(2026, 6, 18, 12, tzinfo=UTC))  # a Thursday


def at(year: int, month: int, day: int, hour: int = 12) -> int:
    return to_micros(datetime(year, month, day, hour, tzinfo=UTC))


@pytest.mark.parametrize(
    ("question", "inside", "outside"),
    [
        ("what did we decide on 3 May 2026?", at(2026, 5, 3), at(2026, 6, 3)),
        ("what did we decide on May 3rd, 2025?", at(2025, 5, 3), at(2026, 5, 3)),
        ("which release came in March", at(2025, 3, 31), at(2025, 5, 1)),
        ("why did the build fail yesterday", at(2026, 6, 17), at(2026, 6, 1)),
        ("what broke last Tuesday", at(2026, 6, 16), at(2026, 6, 1)),
        ("what broke on thursday", at(2026, 6, 11), at(2026, 5, 28)),  # not today
        ("what did I ask two weeks ago", at(2026, 6, 4), at(2026, 4, 4)),
        ("what was tried last month", at(2026, 5, 18), at(2026, 3, 1)),
        ("who wrote it 3 days ago", at(2026, 6, 15), at(2026, 5, 1)),
    ],
)
def test_what_was_said_then_fits(question: str, inside: int, outside: int) -> None:
    asked = asked_time(question, now=NOW, zone=UTC)
    assert asked is not None
    assert asked.fit(inside) == 1.0 and asked.fit(outside) == 0.0 and asked.fit(None) == 0.0


def test_it_fades_with_the_days_between() -> None:
    asked = asked_time("the dump of 3 May 2026", now=NOW, zone=UTC)
    assert asked is not None
    fits = [asked.fit(at(2026, 5, 4, 0) + days * DAY) for days in range(12)]
    assert fits[:2] == [1.0, 0.9] and fits == sorted(fits, reverse=True) and fits[10:] == [0, 0]


def test_days_are_those_of_the_zone() -> None:
    late = to_micros(datetime(2026, 5, 3, 23, tzinfo=UTC))  # the fourth in Tokyo
    there = asked_time("on 4 May 2026", now=NOW, zone=ZoneInfo("Asia/Tokyo"))
    here = asked_time("on 4 May 2026", now=NOW, zone=UTC)
    assert there is not None and here is not None
    assert there.fit(late) == 1.0 and here.fit(late) < 1.0


@pytest.mark.parametrize(
    "question",
    [
        "May I merge this?",
        "March on with the plan",
        "how long did the tests take",
        "31 February 2026",
        "the last build",
        "",
    ],
)
def test_no_time_is_read_into_a_question(question: str) -> None:
    assert asked_time(question, now=NOW, zone=UTC) is None


def test_any_question_is_read() -> None:
    pieces = ["in May", "999 years ago", "0 days ago", "40 June", "last", "2099", " ", "on friday"]
    dice = random.Random(5)
    for _ in range(2_000):
        words = dice.choices([*pieces, *string.printable], k=6)
        asked = asked_time(" ".join(words), now=NOW, zone=UTC)
        assert asked is None or 0.0 <= asked.fit(NOW) <= 1.0
