"""Lists in pages: the hint is the command line that goes on, to be pasted; lists that are cut say
so. And what `workspace list` counts."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from client.test_cli_sessions import put_samples
from support.cli import Done, Lore
from support.daemon import make_home, remove_home, start_daemon


@pytest.fixture(scope="module")
def lore() -> Iterator[Lore]:
    home = make_home()
    put_samples(home)
    try:
        with start_daemon(home):
            lore = Lore(home)
            lore("index", "--wait")
            for number in range(7):
                lore("remember", f"port {number} is taken", "-t", "two words", "--global")
            lore("remember", "not about ports", "--global")
            (home / "user" / "project").mkdir()
            lore("remember", "the project's own", cwd=home / "user" / "project")
            yield lore
    finally:
        remove_home(home)


def pasted(done: Done) -> list[str] | None:
    """The words after `lore` of the hint, None without one."""
    hint = re.search(r"lore (.*) goes on$", done.err, re.M)
    return None if hint is None else shlex.split(hint[1])


def walk(lore: Lore, *words: str) -> list[Done]:
    """All pages, each by the hint of the one before."""
    pages = [lore(*words)]
    while (following := pasted(pages[-1])) is not None:
        pages.append(lore(*following))
        assert len(pages) < 100
    return pages


def test_sessions_go_on_with_the_flags_given(lore: Lore) -> None:
    words = ("sessions", "--everywhere", "--agent", "codex", "--since", "2020-01-01")
    total = lore.json(*words, "-n", "200")["total"]
    assert total > 3
    pages = walk(lore, *words, "-n", "2")
    assert len(pages) == -(-total // 2)
    heads = [line for page in pages for line in page.out.splitlines() if line[:1] not in (" ", "")]
    assert len(heads) == total and len(set(heads)) == total
    assert all(" codex " in head for head in heads)


def test_facts_go_on_with_the_flags_given(lore: Lore) -> None:
    pages = walk(lore, "facts", "--global", "-t", "two words", "-n", "3")
    told = "".join(page.out for page in pages)
    assert len(pages) == 3 and all(f"port {number} is taken" in told for number in range(7))
    assert "not about ports" not in told


def test_messages_go_on_to_the_end_of_the_span(lore: Lore) -> None:
    found = lore.json("sessions", "--everywhere", "-n", "200")["sessions"]
    longest = max(found, key=lambda one: one["message_count"])
    assert longest["message_count"] > 6
    span = ("session", longest["id"], "--messages", "1-60")
    there = [one["position"] for one in lore.json(*span, "-n", "200")["messages"]]
    pages = walk(lore, *span, "-n", "3")
    assert len(pages) == -(-len(there) // 3) > 1
    told = [line for page in pages for line in page.out.splitlines() if line[:1] == "#"]
    assert [line.split()[0] for line in told] == [f"#{position}" for position in there]


def test_a_list_without_pages_says_that_it_was_cut(lore: Lore) -> None:
    cut = lore("history", "--global", "-n", "2")
    assert "the first 2; lore history --limit 200 --global shows more" in cut.err
    assert lore("history", "--global").err == ""


def test_workspaces_with_what_they_hold(lore: Lore) -> None:
    out = lore("workspace", "list").out.splitlines()
    assert out[0].split()[:3] == ["id", "facts", "sessions"]
    folder = str(lore.cwd / "project")
    (own,) = (line for line in out if line.endswith(folder))
    assert own.split()[1:3] == ["1", "0"] and "just now" in own
    found = lore.json("workspace", "list")["workspaces"]
    assert sum(one["sessions"] for one in found) > 3
    times = [one.get("last_at", "") for one in found]
    assert times == sorted(times, reverse=True) and Path(found[0]["root"]) == Path(folder)
