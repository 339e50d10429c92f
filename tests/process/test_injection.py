"""Injection through a real daemon that has indexed real transcripts."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.daemon import RunningDaemon, start_daemon
from support.wire import RawClient

SAMPLES = Path(__file__).parents[1] / "data" / "transcripts"


@pytest.fixture
def indexed(home: Path) -> Iterator[RunningDaemon]:
    """A daemon that has read one workspace's Recursive sessions and a Claude Code one."""
    shutil.copytree(SAMPLES / "recursive" / ".recursive", home / "user" / ".recursive")
    claude = "projects/-Users-devb-Work-entire-devenv-cli"
    shutil.copytree(SAMPLES / "claude" / ".claude" / claude, home / "user" / ".claude" / claude)
    with start_daemon(home, env={"TZ": "UTC"}) as running:
        with running.connect() as client:
            client.hello()
            ticket = client.call("index")["ticket"]
            assert client.call("index_wait", ticket=ticket)["done"]
        yield running


@pytest.fixture
def asking(indexed: RunningDaemon) -> Iterator[RawClient]:
    with indexed.connect() as client:
        client.hello()
        yield client


def test_facts_and_last_session_of_a_workspace(asking: RawClient) -> None:
    listed = asking.call("sessions", agent="recursive", everywhere=True)["sessions"]
    newest = next(one for one in listed if "T00-38-43Z" in one["id"])
    workspace = newest["workspace"]
    asking.call("remember_fact", text="themes live in dark.json", tags=["theme"], scope="global")
    answer = asking.call("context", workspace=workspace)
    assert answer["text"] == (
        "# Facts\n"
        "• [F1] themes live in dark.json  [tags: theme]\n"
        "\n"
        "# Episodic recall\n"
        "Session 2025-11-21: Fucking hell, the vs code shit still looks the same for all gray "
        "levels. Interrupted.\n"
        "Key actions: edited coding-agent/src/theme/dark.json and "
        "coding-agent/test/test-theme-colors.ts."
    )
    assert answer["receipt"]["episodes"] == [{"id": newest["id"]}]


def test_summary_of_the_last_sessions_everywhere(asking: RawClient) -> None:
    answer = asking.call("episodic_recall_summary", last=3)
    lines = answer["text"].split("\n")
    assert lines[0] == "# Episodic recall" and len(answer["sessions"]) == 3
    assert "2026-01-21" in lines[1]
    assert any(
        line.startswith("Session 2026-01-13: Updated CLAUDE.md to reflect the new multi session")
        and line.endswith("Completed.")
        for line in lines
    )
    bad = asking.send("episodic_recall_summary", last=99)
    with pytest.raises(Exception, match="1 to 20"):
        asking.wait(bad)


def test_a_prompt_gets_what_it_is_about_and_nothing_else(asking: RawClient) -> None:
    listed = asking.call("sessions", agent="claude-code", everywhere=True)["sessions"]
    workspace = listed[0]["workspace"]
    asking.call("remember_fact", text="gemini hooks need --local-dev in tests", scope="global")
    ask = {"workspace": workspace, "session_id": "some-session"}
    answer = asking.call("context", query="orphaned sessions after git reset", **ask)
    assert "# Episodic recall" in answer["text"], answer
    again = asking.call("context", query="orphaned sessions after git reset", **ask)
    assert again["text"] == ""
    about = asking.call("context", query="do gemini hooks need --local-dev in tests?", **ask)
    assert "• [F1] gemini hooks need --local-dev" in about["text"], about
    other = asking.call("context", query="a poem about the sea in spring", **ask)
    assert other["text"] == "", other
    huge = asking.call("context", query="unrelated words " * 5_000, **ask)
    assert huge["text"] == "", huge
