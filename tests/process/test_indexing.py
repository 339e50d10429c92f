"""Indexing in a real daemon: events, kills, forgetting, exclusion, on real transcripts."""

import contextlib
import json
import os
import shutil
import sqlite3
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from lored.core.stored_text import decode
from support.claude import said, session_id, session_path
from support.daemon import RunningDaemon, make_home, remove_home, start_daemon
from support.transcripts import SAMPLES, SHARED
from support.wire import RawClient, Refusal

ONE = session_id(1)
TWO = session_id(2)
AGENTS = ("claude", "codex", "recursive")
DEADLINE = 60.0


def homes(*, everything: bool = False) -> list[Path]:
    """Folders laid out as home directories with transcripts of the first three agents."""
    found = [SAMPLES / agent for agent in AGENTS if (SAMPLES / agent).is_dir()]
    if SHARED is not None and everything:
        found += [SHARED / agent for agent in AGENTS]
    return found


def copy_samples(home: Path, *, everything: bool = False) -> None:
    for folder in homes(everything=everything):
        shutil.copytree(
            folder, home / "user", dirs_exist_ok=True, ignore=shutil.ignore_patterns("growth")
        )


def until(check: Callable[[], Any], what: str) -> Any:
    """The first true answer of ``check``, asked again and again."""
    end = time.monotonic() + DEADLINE
    while not (found := check()):
        assert time.monotonic() < end, f"not within {DEADLINE:g} s: {what}"
        time.sleep(0.01)
    return found


TABLES = {
    "sessions": "SELECT agent, native_id, parent, forked_from, is_subagent, workspace, cwd, "
    "branch, commit_id, model, title, agent_version, status, started_at, ended_at, cost_usd, "
    "tokens, message_count, user_count, action_count, positions, shared, born_at, fold, summary, "
    "extra FROM sessions",
    "messages": "SELECT s.native_id, m.key, m.record_key, m.position, m.role, m.at, m.text, "
    "m.truncated_bytes, m.flags FROM messages m JOIN sessions s ON s.id = m.session",
    "message_links": "SELECT s.native_id, l.position, m.key FROM message_links l "
    "JOIN sessions s ON s.id = l.session JOIN messages m ON m.id = l.message",
    "actions": "SELECT s.native_id, a.key, a.position, a.kind, a.tool, a.target, a.command, "
    "a.status, a.exit_code, a.started_at, a.ended_at, a.excerpt, a.commit_id, c.key, o.key "
    "FROM actions a JOIN sessions s ON s.id = a.session LEFT JOIN messages c ON c.id = a.message "
    "LEFT JOIN messages o ON o.id = a.output",
    "compactions": "SELECT s.native_id, c.key, c.position, c.at, c.summary, c.kept_facts, "
    "c.next_steps FROM compactions c JOIN sessions s ON s.id = c.session",
    "files": "SELECT replace(f.path, :home, ''), f.agent, s.native_id, f.size, f.offset, "
    "f.scanned, f.head_hash, f.tail_hash, f.parser_version, f.state, f.anew, f.records, f.damage, "
    "f.failures, f.blocked, f.gone_at IS NULL "
    "FROM files f LEFT JOIN sessions s ON s.id = f.session",
    "words": "SELECT m.key, d.sz FROM message_stems_docsize d JOIN messages m ON m.id = d.id",
    "vectors": "SELECT m.key, v.vector FROM message_vectors v JOIN messages m ON m.id = v.message",
}
"""Everything that is stored, by names instead of row numbers, without times of indexing."""


def _meant(value: Any) -> Any:
    """JSON objects say the same whatever the order of their keys, which SQLite keeps."""
    if isinstance(value, str) and value.startswith("{"):
        with contextlib.suppress(ValueError):
            return json.dumps(json.loads(value), sort_keys=True)
    return value


def content(home: Path, path: str) -> dict[str, list[tuple[Any, ...]]]:
    """The content of a sessions store, comparable between homes."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return {
            name: sorted(
                (tuple(map(_meant, row)) for row in connection.execute(sql, {"home": str(home)})),
                key=repr,
            )
            for name, sql in TABLES.items()
        }
    finally:
        connection.close()


def same(one: dict[str, Any], other: dict[str, Any]) -> None:
    for name in TABLES:
        assert len(one[name]) == len(other[name]), name
        for mine, theirs in zip(one[name], other[name], strict=True):
            assert mine == theirs, name


def quiet_run(home: Path) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """What is stored after one undisturbed run, the answer of the wait and the status."""
    with start_daemon(home) as daemon:
        with daemon.connect(400) as client:
            client.hello()
            answer = client.call("index_wait")
            status = client.call("index_status")
        path = daemon.paths.sessions_db
    return content(home, path), answer, status


@pytest.fixture(scope="module")
def undisturbed() -> Any:
    """The store after one quiet run over our samples."""
    home = make_home()
    try:
        copy_samples(home)
        yield quiet_run(home)[0]
    finally:
        remove_home(home)


@pytest.mark.timeout(420)
def test_every_sample_is_read_whole(home: Path) -> None:
    copy_samples(home, everything=True)
    stored, answer, status = quiet_run(home)
    assert answer["failed"] == 0
    names = [
        (home / "user" / ".claude"),
        (home / "user" / ".codex"),
        (home / "user" / ".recursive"),
    ]
    on_disk = {
        str(path).replace(str(home), "")
        for folder in names
        for path in folder.rglob("*")
        if path.is_file() and (path.name.endswith(".jsonl") or path.name.endswith(".jsonl.zst"))
    }
    read = {row[0]: row for row in stored["files"]}
    for name in on_disk:
        if name.endswith(("journal.jsonl", "history.jsonl", "session_index.jsonl")):
            continue
        row = read[name]
        data = (home / name.lstrip("/")).read_bytes()
        # One sample ends in the middle of a line: that waits until the file has been quiet.
        torn = not name.endswith(".zst") and not data.endswith(b"\n")
        whole = data.rfind(b"\n") + 1 if torn else row[5]
        assert row[4] in (whole, row[5]), f"{name}: an unfinished line is left"
        if not name.endswith(".zst") and not torn:
            assert row[4] == (home / name[1:]).stat().st_size, name
        assert row[13] == 0 and row[15] == 1
    for root in status["roots"]:
        assert root["quarantined"] == 0
        # What is not recovered is the torn end of a file, counted as such.
        assert set(root.get("damage", {})) <= {"glued", "spliced", "torn"}, root["agent"]

    with_words = {row[0] for row in stored["words"]}
    for _, key, _, _, role, _, text, _, _ in stored["messages"]:
        decoded = decode(text)
        decoded.encode()
        if role in (0, 1, 3) and decoded.strip():
            assert key in with_words


@pytest.mark.timeout(300)
@pytest.mark.parametrize("victim", ["worker", "daemon"])
def test_kill_9_in_the_middle_changes_nothing(undisturbed: Any, victim: str, home: Path) -> None:
    """Killed several times at different moments, the end is that of the quiet run."""
    expected = undisturbed
    copy_samples(home)
    path = ""
    for share in (0.1, 0.4, 0.8):
        kill_at = int(share * len(expected["messages"]))
        with start_daemon(home, may_be_dead=victim == "daemon") as daemon:
            path = daemon.paths.sessions_db
            with daemon.connect(120) as client:
                client.hello()

                def stored(client: RawClient = client, kill_at: int = kill_at) -> Any:
                    status = client.call("index_status")
                    total = sum(root.get("messages", 0) for root in status["roots"])
                    return status if total >= kill_at or status["state"] == "idle" else None

                try:
                    status = until(stored, f"{kill_at} messages")
                except AssertionError as error:
                    raise AssertionError(f"{error}: {client.call('index_status')}") from None
                if victim == "daemon":
                    worker = status.get("worker")
                    daemon.kill()
                    if worker:
                        until(
                            lambda worker=worker: not psutil.pid_exists(worker), "worker died too"
                        )
                elif status.get("worker"):
                    with contextlib.suppress(psutil.NoSuchProcess):
                        psutil.Process(status["worker"]).kill()
                    assert client.call("index_wait")["failed"] == 0
    with start_daemon(home) as daemon, daemon.connect(120) as client:
        client.hello()
        assert client.call("index_wait")["failed"] == 0
    same(content(home, path), expected)


def reading(client: RawClient, but: list[int]) -> int | None:
    """The process that reads now, none of ``but``."""
    status = client.call("index_status")
    worker: int | None = status.get("worker")
    return worker if worker not in but and status["state"] == "indexing" else None


@pytest.mark.timeout(300)
def test_kills_of_the_worker_from_outside_are_no_failures_of_the_file(home: Path) -> None:
    """Met in 108 rounds of faults/test_kill.py: a large file that was being read at the second
    kill was left alone for a minute, and `index_wait` called it failed."""
    path = session_path(home / "user", ONE)
    with path.open("wb") as file:
        for number in range(12_000):
            file.write(said(ONE, f"word{number} " + "and so it went on " * 60, number))
    for round_number in range(2):
        with start_daemon(home) as daemon, daemon.connect(120) as client:
            client.hello()
            victims = [0]
            for _ in range(2):
                victims.append(until(partial(reading, client, victims), "a worker that reads"))
                psutil.Process(victims[-1]).kill()
            if round_number:
                answer = client.call("index_wait")
                assert answer["failed"] == 0
                root = client.call("index_status")["roots"][0]
                assert root["quarantined"] == 0 and root["messages"] == 12_000


def test_an_append_is_searchable_at_once_and_said(daemon: RunningDaemon, client: RawClient) -> None:
    path = session_path(daemon.home / "user", ONE)
    path.write_bytes(said(ONE, "the first aardvark", 0))
    client.call("index_wait")
    with daemon.connect() as listener:
        listener.hello()
        listener.call("subscribe", topics=["sessions"])
        for number in range(1, 4):
            with path.open("ab") as file:
                file.write(said(ONE, f"another aardvark {number}", number))
            until(
                lambda number=number: (
                    len(client.call("session_messages", id=ONE)["messages"]) == number + 1
                ),
                "the appended message",
            )
        until(lambda: listener.call("ping") and listener.events, "an event")
        topic, event = listener.events[-1]
        assert topic == "event" and event["topic"] == "sessions"
    status = client.call("index_status")
    root = next(r for r in status["roots"] if r["agent"] == "claude-code")
    assert root["mode"] == "events" and root["messages"] == 4
    assert status["progress"]["latency_ms"] < 5_000
    # One that comes with the time it had elsewhere says nothing of how fast it was read.
    other = session_path(daemon.home / "user", TWO)
    aside = daemon.home / "aside.jsonl"
    aside.write_bytes(said(TWO, "an old aardvark", 0))
    os.utime(aside, (1_600_000_000, 1_600_000_000))
    aside.rename(other)
    client.call("index_wait", ticket=client.call("index")["ticket"])
    until(
        lambda: len(client.call("session_messages", id=TWO)["messages"]) == 1, "the moved session"
    )
    assert client.call("index_status")["progress"]["latency_ms"] < 60_000


def test_growth_reads_only_what_grew(daemon: RunningDaemon, client: RawClient) -> None:
    series = [f for base in homes(everything=True) for f in (base / "growth").glob("*")]
    if not series:
        pytest.skip("no growth series here")
    for folder in series:
        steps = sorted(folder.glob("step*.jsonl"))
        if "migrated" in folder.name:
            continue
        codex = folder.name.startswith("codex")
        name = folder.name.split("-", 1)[1]
        if codex:
            target = (
                daemon.home
                / "user/.codex/sessions/2026/06/18"
                / (f"rollout-2026-06-18T00-00-00-{name}-0000-7000-8000-000000000000.jsonl")
            )
        else:
            target = (
                daemon.home / f"user/.claude/projects/-g/{name}-0000-4000-8000-000000000000.jsonl"
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        done = 0
        for step in steps:
            data = step.read_bytes()
            before = client.call("index_status")["progress"]["bytes_read"]
            with target.open("ab") as file:
                file.write(data[done:])
            client.call("index_wait")
            read = client.call("index_status")["progress"]["bytes_read"] - before
            grown, done = len(data) - done, len(data)
            assert read < grown + 200_000, f"{step}: {read} bytes read for {grown}"


def test_what_is_excluded_is_never_stored(daemon: RunningDaemon, client: RawClient) -> None:
    user = daemon.home / "user"
    secret, open_one, ignored = session_id(2), session_id(3), session_id(4)
    workspace = user / "client-work"
    (workspace / "sub").mkdir(parents=True)
    quiet = user / "quiet"
    quiet.mkdir()
    (quiet / ".loreignore").write_text("# not for others\n")
    client.call("exclude", add=f"workspace:{workspace}")
    client.call("exclude", add="path:*/-private/*")
    session_path(user, secret).write_bytes(said(secret, "hush", 1, cwd=str(workspace / "sub")))
    session_path(user, ignored).write_bytes(said(ignored, "hush", 1, cwd=str(quiet)))
    session_path(user, session_id(5), "-private").write_bytes(said(session_id(5), "hush", 1))
    session_path(user, open_one).write_bytes(said(open_one, "heard", 1))
    client.call("index_wait")
    shown = client.call("sessions", everywhere=True)["sessions"]
    assert [session["id"] for session in shown] == [open_one]
    connection = sqlite3.connect(f"file:{daemon.paths.sessions_db}?mode=ro", uri=True)
    assert connection.execute("SELECT count(*) FROM messages").fetchone() == (1,)
    connection.close()
    rules = client.call("exclude", remove=f"workspace:{workspace}")["rules"]
    assert rules == ["path:*/-private/*"]
    client.call("index_wait")
    shown = client.call("sessions", everywhere=True)["sessions"]
    assert {session["id"] for session in shown} == {open_one, secret}
    with pytest.raises(Refusal, match="workspace:PATH"):
        client.call("exclude", add="everything")


def test_forgetting_is_for_good_and_proved(daemon: RunningDaemon, client: RawClient) -> None:
    user = daemon.home / "user"
    path = session_path(user, ONE)
    words = "the unmistakable platypus protocol was agreed upon in the evening"
    path.write_bytes(said(ONE, words, 1) + said(ONE, f"{words}, at length: " + "so " * 400, 2))
    other = session_id(2)
    session_path(user, other).write_bytes(said(other, "nothing to hide here", 1))
    client.call("index_wait")
    planned = client.call("forget_session", id=ONE, dry_run=True)
    assert planned["removed"]["messages"] == 2 and planned["dry_run"]
    assert len(client.call("sessions", everywhere=True)["sessions"]) == 2
    done = client.call("forget_session", id=ONE)
    assert done["removed"]["messages"] == 2
    assert done["proof"]["found"] == 0 and done["proof"]["looked_for"] == 2
    assert done["transcripts"] == [str(path)]
    client.call("index", force=True)
    with path.open("ab") as file:
        file.write(said(ONE, "and one more word", 3))
    client.call("index_wait")
    assert [s["id"] for s in client.call("sessions", everywhere=True)["sessions"]] == [other]
    with pytest.raises(Refusal, match="no session"):
        client.call("session", id=ONE)
    for name in os.listdir(daemon.paths.data_dir):
        whole = Path(daemon.paths.data_dir) / name
        if whole.is_file():
            assert b"platypus" not in whole.read_bytes(), name


def test_forgetting_by_words_takes_what_holds_them_literally(
    daemon: RunningDaemon, client: RawClient
) -> None:
    user = daemon.home / "user"
    texts = {
        ONE: "we call it Project Nightingale for now",
        session_id(2): "the bird that sings at night is a nightingale-like thing",
        session_id(3): "an unrelated project of a singing bird, by night",
    }
    for name, text in texts.items():
        session_path(user, name).write_bytes(said(name, text, 1))
    client.call("index_wait")
    planned = client.call("forget_session", query="NIGHTINGALE", dry_run=True)
    assert sorted(planned["sessions"]) == sorted([ONE, session_id(2)])
    done = client.call("forget_session", query="project nightin")
    assert done["sessions"] == [ONE] and done["proof"]["found"] == 0
    left = {s["id"] for s in client.call("sessions", everywhere=True)["sessions"]}
    assert left == {session_id(2), session_id(3)}
    with pytest.raises(Refusal, match="too short"):
        client.call("forget_session", query="a ")


def test_a_start_with_nothing_new_to_read_ends_idle(home: Path) -> None:
    session_path(home / "user", ONE).write_bytes(said(ONE, "hello", 1))
    for _ in range(2):
        with start_daemon(home) as daemon, daemon.connect(60) as client:
            client.hello()
            client.call("index_wait")
            until(lambda: client.call("index_status")["state"] == "idle", "idle")


def test_a_package_replaced_under_the_daemon_is_said_and_loses_nothing(home: Path) -> None:
    session_path(home / "user", ONE).write_bytes(said(ONE, "hello", 1))
    code = (
        "import lored; lored.__version__ = '0.0.1'; "
        "import sys; from lored.main import main; sys.exit(main(['run']))"
    )
    command = [sys.executable, "-P", "-c", code]
    with start_daemon(home, command=command) as old, old.connect(60) as client:
        client.hello()

        def reason() -> Any:
            modes = client.call("status")["degraded"]
            return next((mode for mode in modes if mode["name"] == "index_waits"), None)

        assert until(reason, "the reason")["remedy"] == "lore restart"
        assert client.call("remember_fact", text="facts go on")["created"]
    with start_daemon(home) as daemon, daemon.connect(60) as client:
        client.hello()
        assert client.call("index_wait")["failed"] == 0
        assert [s["id"] for s in client.call("sessions", everywhere=True)["sessions"]] == [ONE]


def test_sources_are_switched_and_kept_over_a_restart(home: Path) -> None:
    user = home / "user"
    session_path(user, ONE).write_bytes(said(ONE, "hello there", 1))
    second = session_id(2)
    extra = home / "elsewhere"
    with start_daemon(home) as daemon, daemon.connect(60) as client:
        client.hello()
        client.call("index_wait")
        client.call("sources", disable="claude-code")
        session_path(user, second).write_bytes(said(second, "unheard", 1))
        client.call("index_wait")
        assert len(client.call("sessions", everywhere=True)["sessions"]) == 1
        with pytest.raises(Refusal, match="unknown agent"):
            client.call("sources", enable="nobody")
        with pytest.raises(Refusal, match="is not a directory"):
            client.call("sources", add=f"codex={extra}")
    with start_daemon(home) as daemon, daemon.connect(60) as client:
        client.hello()
        roots = client.call("sources")["roots"]
        assert [r["mode"] for r in roots if r["agent"] == "claude-code"] == ["off"]
        client.call("sources", enable="claude-code")
        client.call("index_wait")
        assert len(client.call("sessions", everywhere=True)["sessions"]) == 2
        projects = extra / ".claude-work" / "projects"
        third = session_id(3)
        session_path(extra / ".claude-work", third)  # below .claude/projects; moved by hand
        shutil.rmtree(extra)
        (projects / "-x").mkdir(parents=True)
        (projects / "-x" / f"{third}.jsonl").write_bytes(said(third, "over there", 1))
        client.call("sources", add=f"claude-code={projects}")
        client.call("index_wait")
        assert len(client.call("sessions", everywhere=True)["sessions"]) == 3


def test_session_names_prefixes_and_spans(daemon: RunningDaemon, client: RawClient) -> None:
    user = daemon.home / "user"
    for number in (1, 2):
        name = session_id(number)
        session_path(user, name).write_bytes(
            b"".join(said(name, f"message {n}", n) for n in range(120))
        )
    client.call("index_wait")
    with pytest.raises(Refusal) as caught:
        client.call("session", id="00000000")
    assert caught.value.code == "ambiguous"
    assert len(caught.value.wire["data"]["candidates"]) == 2
    assert client.call("session", id=ONE)["session"]["message_count"] == 120
    seen: list[str] = []
    params: dict[str, Any] = {}
    while True:
        page = client.call("session_messages", id=ONE, limit=50, **params)
        seen += [message["text"] for message in page["messages"]]
        if "next" not in page:
            break
        params = {"from": page["next"]}
    assert seen == [f"message {n}" for n in range(120)]
    middle = client.call("session_messages", id=ONE, limit=50)["messages"][30]["message_id"]
    around = client.call("session_messages", id=ONE, around=middle, limit=5)["messages"]
    assert [message["text"] for message in around] == [f"message {n}" for n in range(28, 33)]
    page = client.call("sessions", everywhere=True, limit=1)
    assert page["total"] == 2
    rest = client.call("sessions", everywhere=True, limit=1, after=page["next"])
    assert {page["sessions"][0]["id"], rest["sessions"][0]["id"]} == {ONE, session_id(2)}
    assert "next" not in rest
    for bad in ({"limit": 0}, {"after": "x"}, {"status": "sleeping"}, {"since": "someday"}):
        with pytest.raises(Refusal):
            client.call("sessions", everywhere=True, **bad)


def test_no_worker_is_left_when_idle_or_stopped(home: Path) -> None:
    session_path(home / "user", ONE).write_bytes(said(ONE, "hello", 1))
    with start_daemon(home, may_be_dead=True) as daemon:
        with daemon.connect(60) as client:
            client.hello()
            client.call("index_wait")
            worker = client.call("index_status")["worker"]
            assert psutil.Process(worker).nice() >= 5
        assert daemon.stop() < 5
        # On a busy machine it may still have been killed by the daemon's own end, a moment ago.
        until(lambda: not psutil.pid_exists(worker), "the worker ended too")
