"""Text forms: cleaning, widths, tables, times, sizes; all pure."""

import io
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.cli import render, times, views
from lore.cli.render import Screen


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@given(st.text())
def test_cleaned_text_holds_nothing_that_steers_a_terminal(text: str) -> None:
    shown = render.clean(text)
    for char in shown:
        assert char in "\t\n" or not (ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0)
        assert char not in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f"
    assert "\n" not in render.one_line(text)


def test_escape_sequences_become_visible() -> None:
    assert render.clean("a\x1b[2Jb\x07") == "a\\x1b[2Jb\\x07"
    assert render.clean("x\u202egnp.exe") == "x\\u202egnp.exe"


@given(st.text(max_size=80), st.integers(min_value=2, max_value=60))
def test_cut_never_exceeds_the_columns(text: str, columns: int) -> None:
    line = render.one_line(text)
    assert render.width_of(render.cut(line, columns)) <= columns


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=300))
def test_wrap_loses_no_word(text: str) -> None:
    words = " ".join(render.wrap(text, 40, "  ")).split()
    assert words == render.clean(text).split()


def test_wide_characters_take_two_columns() -> None:
    assert render.width_of("日本語") == 6
    assert render.width_of("e\u0301") == 1


def test_tables_align_wide_text_and_are_whole_in_a_pipe() -> None:
    out = io.StringIO()
    screen = Screen(out=out, err=io.StringIO())
    screen.table([("日本", "x"), ("abc", "y" * 300)], head=("name", "text"), shrink=1)
    first, second, third = out.getvalue().splitlines()
    assert first == "name  text"
    assert second == "日本  x"
    assert third.endswith("y" * 300)


def test_a_terminal_is_never_overfull(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    out = Terminal()
    Screen(out=out, err=io.StringIO()).table([("a", "word " * 40, "z")], shrink=1)
    assert all(render.width_of(line) <= 50 for line in out.getvalue().splitlines())


def test_colour_only_where_it_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert Screen(out=Terminal(), err=io.StringIO()).paint("x", "red") == "\x1b[31mx\x1b[0m"
    assert Screen(out=io.StringIO(), err=io.StringIO()).paint("x", "red") == "x"
    monkeypatch.setenv("NO_COLOR", "1")
    assert Screen(out=Terminal(), err=io.StringIO()).paint("x", "red") == "x"
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert Screen(out=Terminal(), err=io.StringIO()).paint("x", "red") == "x"


@pytest.mark.usefixtures("zone")
def test_days_are_those_of_the_local_calendar() -> None:
    # 23:30 UTC on the 1st is 08:30 on the 2nd in Tokyo.
    assert times.day("2026-05-01T23:30:00Z") == "2026-05-02"
    assert times.stamp("2026-05-01T23:30:00Z") == "2026-05-02 08:30"
    now = datetime(2026, 5, 2, 11, 0, tzinfo=UTC)  # 20:00 the same day there
    assert times.ago("2026-05-01T23:30:00Z", now) == "11 h ago"


def test_ago_in_one_unit() -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    noon = now.astimezone().replace(hour=12, minute=0, second=0)

    def said(**before: float) -> str:
        return times.ago((noon - timedelta(**before)).astimezone(UTC).isoformat(), noon)

    assert said(seconds=20) == "just now"
    assert said(minutes=5) == "5 min ago"
    assert said(hours=3) == "3 h ago"
    assert said(days=1) == "yesterday"
    assert said(days=5) == "5 days ago"
    assert said(days=21) == "3 weeks ago"
    assert said(days=120) == "4 months ago"
    assert said(days=900) == "2 years ago"
    assert said(minutes=-5) == "in 5 min"


@given(st.datetimes(timezones=st.just(UTC)))
def test_any_instant_has_an_age(moment: datetime) -> None:
    assert times.ago(moment.isoformat())


@given(st.text(max_size=30))
def test_what_is_no_instant_is_shown_as_it_is(text: str) -> None:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        assert times.ago(text) == text
        assert times.day(text) == text


def test_durations_and_sizes() -> None:
    assert [times.seconds(s) for s in (0.25, 45, 300, 12_000)] == [
        "0.2 s",
        "45 s",
        "5 min",
        "3 h 20 min",
    ]
    assert [times.size(n) for n in (12, 1_400_000, 3e12)] == ["12 B", "1.4 MB", "3.0 TB"]


def test_ids_that_clash_carry_their_scope() -> None:
    facts = [{"id": "F1", "scope": "global"}, {"id": "F1", "scope": "workspace"}, {"id": "F2"}]
    doubles = views.qualified(facts)
    assert [views.fact_name(f, doubles) for f in facts] == ["global:F1", "workspace:F1", "F2"]


@pytest.mark.parametrize("name", ["F3", "F123456", "workspace:F12"])
def test_a_long_id_eats_no_text(name: str) -> None:
    out = io.StringIO()
    screen = Screen(out=out, err=io.StringIO())
    views.show_brief(screen, {"id": name, "text": "The cache lives for 300 s"})
    views.show_fact(screen, {"id": name, "scope": "global", "text": "The cache lives for 300 s"})
    for line in out.getvalue().splitlines()[:2]:
        assert line.split(maxsplit=1) == [name, "The cache lives for 300 s"]


def test_short_session_ids_stay_unique() -> None:
    assert views.short_id("9d01b0a4-5c51-4a3c-9d5c-6a1f2b3c4d5e") == "9d01b0a4"
    assert views.short_id("019a3f4e-1b2c-7a3c-9d5c-6a1f2b3c4d5e") == "019a3f4e-1b2c"
    assert views.short_id("ses_4f3a") == "ses_4f3a"
