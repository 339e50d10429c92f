"""`lore hook`: never an error, never long, the right form for each agent."""

import json
import os
import signal
import socket
import subprocess
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lore.hooks import events
from lore.ignore import ignored
from support.cli import LORE, Lore
from support.daemon import RunningDaemon, environment, start_daemon

LIMIT_SECONDS = 2.0
"""What an agent grants (`lore install` writes it); our own budget is 0.15 s, which a loaded
machine may stretch, since even the start of Python takes that long there."""


@pytest.fixture
def lore(home: Path) -> Lore:
    return Lore(home)


def run_hook(
    lore: Lore, agent: str, event: str, given: Any = None, **env: str
) -> subprocess.CompletedProcess[str]:
    """Run one hook as an agent does."""
    return subprocess.run(
        [*LORE, "hook", agent, event],
        input=given if isinstance(given, str) else json.dumps(given or {}),
        capture_output=True,
        text=True,
        env=environment(lore.home, env),
        cwd=lore.cwd,
        timeout=LIMIT_SECONDS * 5,
        check=False,
    )


def assert_silent(done: subprocess.CompletedProcess[str]) -> None:
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("event", ["session-start", "SessionStart", "prompt-submit", "stop", "x"])
def test_without_a_daemon_nothing_happens(lore: Lore, event: str) -> None:
    assert_silent(run_hook(lore, "claude-code", event, {"cwd": "/srv", "prompt": "hello"}))


def test_cursor_gets_a_document_even_when_there_is_nothing_to_say(lore: Lore) -> None:
    done = run_hook(lore, "cursor", "sessionStart", {"workspace_roots": ["/srv"]})
    assert (done.returncode, done.stdout, done.stderr) == (0, "{}\n", "")


@pytest.mark.parametrize("given", ["", "{", "[1]", "null", '{"cwd": 3}', "\x00\xff" * 100])
def test_odd_input_is_no_error(lore: Lore, given: str) -> None:
    assert_silent(run_hook(lore, "codex", "session-start", given))


def test_a_daemon_that_does_not_answer_costs_the_budget_only(lore: Lore) -> None:
    (lore.home / "run").mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as mute:
        mute.bind(str(lore.home / "run" / "lore.sock"))
        mute.listen(4)
        run_hook(lore, "claude-code", "session-start", {"cwd": "/srv"})  # compiles, fills caches
        began = time.monotonic()
        assert_silent(run_hook(lore, "claude-code", "session-start", {"cwd": "/srv"}))
        assert time.monotonic() - began < LIMIT_SECONDS


def test_an_agent_that_keeps_its_end_open_costs_the_budget_only(lore: Lore) -> None:
    process = subprocess.Popen(
        [*LORE, "hook", "claude-code", "session-start"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment(lore.home),
    )
    began = time.monotonic()
    assert process.wait(LIMIT_SECONDS) == 0
    assert time.monotonic() - began < LIMIT_SECONDS
    assert process.stdout is not None
    assert process.stdout.read() == b""
    assert process.stdin is not None
    process.stdin.close()
    process.stdout.close()


def test_lore_off_is_immediate(lore: Lore) -> None:
    assert_silent(run_hook(lore, "claude-code", "session-start", {"cwd": "/srv"}, LORE_OFF="1"))


def test_hook_without_words_is_usage(lore: Lore) -> None:
    assert "AGENT" in lore("hook", code=2).err
    assert "session-start" in lore("hook", "--help").out


def test_a_session_start_without_a_daemon_starts_one_for_later(home: Path) -> None:
    lore = Lore(home)
    env = {**environment(home), "LORE_NO_SPAWN": "0", "LORE_HOOK_SECONDS": "2"}
    done = subprocess.run(
        [*LORE, "hook", "claude-code", "session-start"],
        input=b"{}",
        capture_output=True,
        env=env,
        cwd=lore.cwd,
        timeout=LIMIT_SECONDS * 5,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    deadline = time.monotonic() + 30
    while lore("ping", code=None).code != 0:
        assert time.monotonic() < deadline, "no daemon came up"
        time.sleep(0.1)
    assert lore("down").code == 0


@settings(max_examples=50)
@given(
    st.dictionaries(
        st.text(max_size=12),
        st.recursive(
            st.none() | st.text() | st.integers(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner),
            max_leaves=8,
        ),
    )
)
def test_any_map_is_read(fields: dict[str, Any]) -> None:
    given_input = events.Input(fields, "/cwd")
    assert given_input.cwd


def test_what_agents_send_is_understood() -> None:
    claude = {
        "session_id": "s1",
        "transcript_path": "/t.jsonl",
        "cwd": "/srv/app",
        "hook_event_name": "PreToolUse",
        "tool_name": "Edit",
        "tool_input": {"file_path": "/srv/app/a.py", "old_string": "x"},
    }
    read = events.Input(claude, None)
    assert (read.cwd, read.session, read.transcript) == ("/srv/app", "s1", "/t.jsonl")
    assert read.subject == "/srv/app/a.py"
    assert events.Input({"source": "resume"}, "/").resumed
    cursor = {"conversation_id": "c1", "workspace_roots": ["/srv/app", "/x"]}
    assert events.Input(cursor, "/home").cwd == "/srv/app"
    assert events.Input(cursor, "/home").session == "c1"
    codex = {"tool_input": {"command": ["bash", "-lc", "cargo test"]}}
    assert events.Input(codex, "/").subject == "bash -lc cargo test"
    assert events.Input({"prompt": "fix it " * 1000}, "/").subject is not None


@pytest.mark.parametrize(
    ("name", "event"),
    [
        ("SessionStart", events.START),
        ("sessionStart", events.START),
        ("session-start", events.START),
        ("UserPromptSubmit", events.PROMPT),
        ("BeforeAgent", events.PROMPT),
        ("PreToolUse", events.TOOL),
        ("before-edit", events.TOOL),
        ("before-command", events.TOOL),
        ("PreCompact", events.REST),
        ("PreCompress", events.REST),
        ("Stop", events.REST),
        ("SessionEnd", events.REST),
        ("Notification", None),
    ],
)
def test_event_names(name: str, event: str | None) -> None:
    assert events.known(name) == event


def test_each_agent_gets_its_form() -> None:
    text = '# Facts\n• [F1] "quoted" 日本'
    for agent in ("claude-code", "codex", "gemini-cli"):
        answer = json.loads(events.answer(agent, events.START, text))
        assert answer == {
            "hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": text}
        }
    gemini = json.loads(events.answer("gemini-cli", events.PROMPT, text))
    assert gemini["hookSpecificOutput"]["hookEventName"] == "BeforeAgent"
    assert json.loads(events.answer("cursor", events.START, text)) == {"additional_context": text}
    assert events.answer("opencode", events.START, text) == text + "\n"


EVERYWHERE = {"", "secret", "secret/a", "secret/x/deep", "public", "other/a/b"}
IGNORE_FILES = [
    ("", EVERYWHERE),
    ("*\n", EVERYWHERE),
    ("codex  # only here\n", EVERYWHERE),
    ("claude-code\n", set()),
    ("secret/\n", {"secret", "secret/a", "secret/x/deep"}),
    ("# note\n\nsecret/**/deep\n", {"secret/x/deep"}),
    ("s*t\n", {"secret", "secret/a", "secret/x/deep"}),
    ("*/b\n", {"other/a/b"}),
]


@pytest.mark.parametrize(("content", "expected"), IGNORE_FILES)
def test_ignore_files(tmp_path: Path, content: str, expected: set[str]) -> None:
    (tmp_path / ".loreignore").write_text(content)
    found = set()
    for below in EVERYWHERE:
        folder = tmp_path / below
        folder.mkdir(parents=True, exist_ok=True)
        if ignored(str(folder), "codex"):
            found.add(below)
    assert found == expected


def state_facts(daemon: RunningDaemon, project: Path) -> None:
    lore = Lore(daemon.home, project)
    lore("remember", "Cache TTL is 300s", "-e", "tool:redis", "-t", "cache")


@pytest.fixture
def project(home: Path) -> Path:
    folder = home / "user" / "project"
    folder.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


def test_with_a_daemon_a_session_starts_with_context(home: Path, project: Path) -> None:
    with start_daemon(home) as daemon:
        state_facts(daemon, project)
        lore = Lore(home, project)
        start = {"cwd": str(project), "session_id": "s1", "source": "startup"}
        # What is said is tested here; that it comes in time is measured by the benchmarks.
        hook = partial(run_hook, LORE_HOOK_SECONDS="2")
        done = hook(lore, "claude-code", "SessionStart", start)
        assert done.stderr == ""
        text = json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"]
        assert "• [F1] Cache TTL is 300s" in text
        assert len(text.encode()) <= 1024
        plain = hook(lore, "opencode", "session-start", start)
        assert "# Facts" in plain.stdout
        assert_silent(hook(lore, "claude-code", "SessionStart", {**start, "source": "resume"}))
        lore("context", "--query", "cache TTL")  # the first search loads its tables
        # What a session was given at its start is not said again; so another one asks.
        asked = {**start, "session_id": "s2", "prompt": "what is the cache TTL?"}
        prompt = hook(lore, "claude-code", "UserPromptSubmit", asked)
        assert "Cache TTL" in prompt.stdout
        assert_silent(hook(lore, "claude-code", "UserPromptSubmit", start))
        assert_silent(hook(lore, "claude-code", "Stop", {**start, "transcript_path": "/no.jsonl"}))
        (project / ".loreignore").write_text("")
        assert_silent(hook(lore, "claude-code", "SessionStart", start))


def test_a_stopped_daemon_does_not_hold_up_an_agent(home: Path, project: Path) -> None:
    with start_daemon(home) as daemon:
        lore = Lore(home, project)
        os.kill(daemon.pid, signal.SIGSTOP)
        try:
            began = time.monotonic()
            assert_silent(run_hook(lore, "codex", "session-start", {"cwd": str(project)}))
            assert time.monotonic() - began < LIMIT_SECONDS
        finally:
            os.kill(daemon.pid, signal.SIGCONT)
