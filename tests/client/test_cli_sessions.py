"""`up`, transcripts and sessions against a real daemon with real transcripts."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.agents import mcp_session, text_of
from support.cli import Lore
from support.daemon import RunningDaemon, make_home, remove_home, start_daemon

DATA = Path(__file__).parents[1] / "data" / "transcripts"
SAMPLES = ("claude/.claude", "codex/.codex", "recursive/.recursive")


def put_samples(home: Path) -> None:
    """The sessions of three agents in a home directory."""
    for sample in SAMPLES:
        shutil.copytree(DATA / sample, home / "user" / Path(sample).name)


@pytest.fixture(scope="module")
def served() -> Iterator[RunningDaemon]:
    """One daemon that has indexed the samples, by `lore up`."""
    home = make_home()
    put_samples(home)
    try:
        with start_daemon(home) as daemon:
            Lore(home)("up")
            yield daemon
    finally:
        remove_home(home)


@pytest.fixture
def lore(served: RunningDaemon) -> Lore:
    return Lore(served.home)


def test_up_says_what_it_found_and_what_next(lore: Lore) -> None:
    done = lore("up")
    assert "lored 0." in done.out
    assert "everything is searchable" in done.out
    for agent in ("claude-code", "codex", "recursive"):
        line = next(line for line in done.out.splitlines() if line.startswith(agent))
        assert "sessions" in line
        assert "since 20" in line
    assert "for example: lore recall" in done.out
    assert "lore install" in done.out
    data = lore.json("up")
    assert {item["agent"] for item in data["agents"]} >= {"claude-code", "codex", "recursive"}
    assert all(item["sessions"] > 0 for item in data["agents"])
    assert data["example"]["answer"]["sessions"]


def test_the_example_finds_what_it_promises(lore: Lore) -> None:
    query = lore.json("up")["example"]["query"]
    assert lore("recall", "--everywhere", *query.split()).out


def test_sessions_are_listed_newest_first(lore: Lore) -> None:
    found = lore.json("sessions", "--everywhere", "-n", "200")["sessions"]
    times = [s.get("ended_at") or s["started_at"] for s in found]
    assert times == sorted(times, reverse=True)
    text = lore("sessions", "--everywhere", "-n", "3")
    first = found[0]
    assert first["id"][:8] in text.out
    # The head has the day and the outcome already; the line below it tells the rest.
    assert "Session 20" not in text.out
    assert "goes on" in text.err
    only = lore.json("sessions", "--everywhere", "--agent", "recursive")["sessions"]
    assert {s["agent"] for s in only} == {"recursive"}
    none = lore("sessions", "--everywhere", "--agent", "hal9000", code=1)
    assert none.out == ""
    assert "agents are aider" in none.err
    old = lore.json("sessions", "--everywhere", "--until", "2025-09-01", code=None)["sessions"]
    assert all(s["started_at"] < "2025-09-01T23" for s in old)


def test_here_means_this_workspace(lore: Lore) -> None:
    project = lore.home / "user" / "quiet"
    project.mkdir()
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    done = lore("sessions", code=1, cwd=project)
    assert "--everywhere" in done.err
    assert lore("sessions", "--everywhere", cwd=project).out


def test_one_session_in_full_and_its_messages(lore: Lore) -> None:
    listed = lore.json("sessions", "--everywhere", "--agent", "codex")["sessions"]
    session = next(one for one in listed if one["action_count"])
    text = lore("session", session["id"]).out
    assert text.startswith(session["id"])
    assert "Session 20" in text
    assert "actions" in text
    first = lore("session", session["id"], "--messages", "0").out
    assert first.startswith("#0 user")
    span = lore.json("session", session["id"], "--messages", "0-2")["messages"]
    assert {0} <= {m["position"] for m in span} <= {0, 1, 2}
    assert lore("session", session["id"][:13]).out == text
    missing = lore("session", "ffffffff", code=3)
    assert "ffffffff" in missing.err
    ambiguous = lore("session", "0", code=3)
    assert ambiguous.err.startswith("lore: ")


def test_recall_shows_sessions_with_excerpts(lore: Lore) -> None:
    done = lore("recall", "--everywhere", "--sessions", "marketplace", "plugin", "remove")
    assert "sessions" in done.out
    assert "#" in done.out
    data = lore.json("recall", "--everywhere", "--explain", "marketplace plugin")
    assert data["sessions"][0]["excerpts"]
    assert "explain" in json.dumps(data)
    nothing = lore("recall", "--everywhere", "--agent", "hal9000", "plugin", code=1)
    assert "nothing found" in nothing.err
    assert nothing.out == ""
    for odd in ('"', "a AND", "NEAR(", "-x*", "日本語", "POL-358", "c++"):
        assert lore("recall", "--everywhere", "--", odd, code=None).code in (0, 1), odd


async def test_recall_over_mcp_is_short_and_tells_the_whole_on_request(lore: Lore) -> None:
    async with mcp_session(lore.home, lore.cwd) as client:
        found = await client.call_tool(
            "recall", {"query": "marketplace plugin", "everywhere": True}
        )
        first = found.structured_content["sessions"][0]
        assert text_of(found).startswith("From lore")
        assert first["id"] in text_of(found)
        assert len(text_of(found)) < 12_000
        assert len(json.dumps(found.structured_content)) < 20_000
        assert set(first["excerpts"][0]) <= {"position", "role", "at", "text"}
        listed = await client.call_tool("sessions", {"everywhere": True, "limit": 3})
        assert len(listed.structured_content["sessions"]) == 3
        whole = await client.call_tool("sessions", {"id": first["id"]})
        assert whole.structured_content["session"]["id"] == first["id"]
        deeds = await client.call_tool("recall", {"command": "git status", "everywhere": True})
        done = deeds.structured_content["sessions"][0]["deeds"][-1]
        assert "git status" in done["command"]
        assert f"#{done['position']} " in text_of(deeds)
        by_recall = await client.call_tool("recall", {"id": first["id"]})
        assert text_of(by_recall) == text_of(whole)
        words = await client.call_tool("sessions", {"id": first["id"], "messages": "0-5"})
        assert words.structured_content["messages"][0]["position"] == 0
        prompt = await client.get_prompt("recall", {"topic": "marketplace plugin"})
        assert "What do we know" in prompt.messages[0].content.text
        resource = await client.read_resource(f"lore://session/{first['id']}")
        assert resource.contents[0].text == text_of(whole)


def test_recall_by_file_and_command(lore: Lore) -> None:
    data = lore.json("recall", "--everywhere", "--command", "git status", "branch", code=None)
    assert "sessions" in data or data == {"facts": [], "sessions": []}
    found = lore.json("sessions", "--everywhere", "--command", "git status")["sessions"]
    assert found


def test_recall_by_deed_needs_no_words(lore: Lore) -> None:
    found = lore.json("recall", "--everywhere", "--command", "git status")
    assert found["facts"] == []
    for hit in found["sessions"]:
        assert 1 <= len(hit["deeds"]) <= 3
        assert all("git status" in deed["command"] for deed in hit["deeds"])
        assert [deed["position"] for deed in hit["deeds"]] == sorted(
            deed["position"] for deed in hit["deeds"]
        )
    failed = lore.json("recall", "--everywhere", "--failed")["sessions"]
    assert failed and all(d["status"] == "failed" for hit in failed for d in hit["deeds"])
    text = lore("recall", "--everywhere", "--failed").out
    assert "failed" in text and f"#{failed[0]['deeds'][-1]['position']}" in text
    assert "--failed" in lore("recall", "--everywhere", code=2).err


def test_new_text_is_found_after_index_wait(lore: Lore) -> None:
    folder = lore.home / "user" / ".claude" / "projects" / "-tmp-new"
    folder.mkdir(parents=True)
    session = "11111111-2222-4333-8444-555555555555"
    record = {
        "type": "user",
        "uuid": "u1",
        "parentUuid": None,
        "sessionId": session,
        "cwd": "/tmp/new",
        "timestamp": "2026-05-01T10:00:00.000Z",
        "version": "2.1.0",
        "message": {"role": "user", "content": "please polish the quixotic zeppelin"},
    }
    (folder / f"{session}.jsonl").write_text(json.dumps(record) + "\n")
    done = lore("index", "--wait")
    assert "everything is searchable" in done.out
    assert "zeppelin" in lore("recall", "--everywhere", "quixotic", "zeppelin").out


def test_sources_and_exclusion(lore: Lore, tmp_path: Path) -> None:
    table = lore("sources").out
    assert "claude-code" in table
    assert str(lore.home / "user" / ".claude") in table
    lore("exclude", "path:*/secret/*")
    assert lore("exclude").out.strip() == "path:*/secret/*"
    assert "exclude rule" in lore("exclude", "nonsense", code=3).err
    lore("exclude", "--remove", "path:*/secret/*")
    assert "nothing is excluded" in lore("exclude", code=1).err
    lore("sources", "--disable", "recursive")
    assert "off" in next(x for x in lore("sources").out.splitlines() if "recursive" in x)
    lore("sources", "--enable", "recursive")


def test_an_empty_answer_says_what_narrowed_it_and_what_others_hold(lore: Lore) -> None:
    elsewhere = lore.home / "user" / "elsewhere"
    (elsewhere / ".git").mkdir(parents=True)
    lore = Lore(lore.home, elsewhere)
    here = lore("sessions", code=1).err
    assert "no session found in this workspace; --everywhere finds" in here
    since = lore("sessions", "--since", "2099-01-01", code=1).err
    assert "no session found with --since here or in another workspace" in since
    words = lore("up").out.partition("lore recall --everywhere ")[2].splitlines()[0].split()
    assert "--everywhere finds" in lore("recall", *words, code=1).err
    nothing = lore("recall", "x", "--everywhere", "--file", "/no/such/file", code=1).err
    assert "nothing found for 'x' with --file" in nothing
    assert "agents are aider" in lore("recall", "x", "--agent", "hal9000", code=1).err


def test_passages_are_few_until_more_is_asked(lore: Lore) -> None:
    words = ("recall", "test", "--everywhere", "--sessions", "-n", "1")
    brief, full = lore(*words), lore(*words, "--full")
    session = lore.json(*words)["sessions"][0]
    passages = [line for line in brief.out.splitlines() if line.startswith("    #")]
    assert 1 <= len(passages) <= 3
    assert len([line for line in full.out.splitlines() if line.startswith("    #")]) == len(
        session["excerpts"]
    )
    first = session["excerpts"][0]["position"]
    assert f"--messages {first}-" in brief.err


def test_secrets_are_looked_for_in_all_that_is_stored(lore: Lore) -> None:
    """Also in the outputs of tools of agents that have no message for them: stored packed."""
    shutil.copytree(DATA / "gemini" / ".gemini", lore.home / "user" / ".gemini")
    lore("index", "--wait")
    assert lore("redact", code=None).code in (0, 1)


def test_a_session_ended_the_same_way_in_list_and_page(lore: Lore) -> None:
    for brief in lore.json("sessions", "--everywhere")["sessions"]:
        whole = lore.json("session", brief["id"])["session"]
        assert whole["summary"]["line"] == brief["summary"]["line"]
        assert whole["summary"]["text"].startswith(brief["summary"]["line"])
        assert whole["summary"]["status"] == brief["status"]


def test_care(lore: Lore, tmp_path: Path) -> None:
    status = lore.json("status")
    assert {"pid", "version", "protocol", "socket", "stores", "roots", "degraded"} <= set(status)
    assert "claude-code" in lore("status").out
    assert "lored_" in lore("metrics").out
    lore("remember", "--global", "Backed up")
    made = lore.json("backup", str(tmp_path / "copy"))
    assert any(f["name"] == "global.db" for f in made["files"])
    assert "--yes" in lore("restore", str(tmp_path / "copy"), code=2).err
    lore("remember", "--global", "After the backup")
    lore("restore", str(tmp_path / "copy"), "--yes")
    assert "After the backup" not in lore("facts").out
    lore("maintain")
    doctor = lore("doctor", code=None)
    assert "daemon" in doctor.out
    assert lore.json("doctor", code=None)["checks"]
    figures = lore.json("bench", "--rounds", "3")["figures"]
    assert {row["name"] for row in figures} >= {"ping", "recall_fact", "lore ping (process)"}


def test_watching_events(lore: Lore, served: RunningDaemon) -> None:
    from support.cli import LORE
    from support.daemon import environment

    watcher = subprocess.Popen(
        [*LORE, "watch", "facts", "--everywhere", "--count", "1", "--json"],
        stdout=subprocess.PIPE,
        env=environment(served.home),
        cwd=lore.cwd,
    )
    try:
        deadline = 100
        while watcher.poll() is None and deadline:
            lore("remember", "--global", f"Seen by the watcher {deadline}")
            deadline -= 1
            try:
                watcher.wait(0.2)
            except subprocess.TimeoutExpired:
                continue
        assert watcher.stdout is not None
        event = json.loads(watcher.stdout.readline())
    finally:
        watcher.kill()
        watcher.wait()
        if watcher.stdout is not None:
            watcher.stdout.close()
    assert event["schema"] == "lore.watch/1"
    assert event["data"]["topic"] == "facts"
    assert "Seen by the watcher" in event["data"]["fact"]["text"]


def test_from_nothing_on_a_terminal(home: Path) -> None:
    """The main job of a new user: one command, nothing running before."""
    put_samples(home)
    lore = Lore(home)
    try:
        code, shown = lore.on_terminal("up", env={"LORE_NO_SPAWN": "0"})
        assert code == 0, shown
        assert "indexing" in shown  # the progress bar
        assert "what the memory knows now" in shown
        assert "claude-code" in shown
        restarted = lore("restart", env={"LORE_NO_SPAWN": "0"})
        assert "runs" in restarted.out
        assert lore("ping").out.startswith("lored ")
    finally:
        lore("down")
    assert lore("ping", code=4).out == ""


@pytest.mark.skipif(sys.platform != "linux", reason="compares with an empty Python on Linux")
def test_ping_costs_no_more_than_three_empty_pythons(lore: Lore) -> None:
    import statistics
    import time

    from support.cli import LORE
    from support.daemon import environment

    env = environment(lore.home)

    def median(words: list[str]) -> float:
        times = []
        for _ in range(11):
            began = time.perf_counter()
            subprocess.run(words, env=env, check=True, stdout=subprocess.DEVNULL)
            times.append(time.perf_counter() - began)
        return statistics.median(times)

    # The console script has no `-m`; it imports the same main.
    script = [sys.executable, "-c", "from lore.cli.main import main; raise SystemExit(main())"]
    assert LORE[0] == sys.executable
    for last_try in (False, True):
        bare = median([sys.executable, "-I", "-c", "pass"])
        ours = median([*script, "ping"])
        if ours <= 3 * bare:
            return
        assert not last_try, f"{ours * 1000:.1f} ms against {bare * 1000:.1f} ms"


def test_ping_loads_nothing_heavy(served: RunningDaemon) -> None:
    from support.daemon import environment

    code = (
        "import sys; from lore.cli.main import main; main(['ping']); "
        "print(*sorted(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(served.home),
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(done.stderr.split())
    assert not loaded & {"argparse", "json", "asyncio", "dataclasses", "typing", "re", "socket"}


def test_forget_sessions_by_workspace_and_words(lore: Lore) -> None:
    folder = lore.home / "user" / ".claude" / "projects" / "-tmp-forget"
    folder.mkdir(parents=True)
    place = lore.home / "user" / "client"
    place.mkdir()
    names = [f"{n}{n}{n}{n}{n}{n}{n}{n}-2222-4333-8444-555555555555" for n in (7, 8)]
    for name, text in zip(names, ("the Okapi clause", "another matter"), strict=True):
        record = {
            "type": "user",
            "uuid": f"u-{name}",
            "parentUuid": None,
            "sessionId": name,
            "cwd": str(place),
            "timestamp": "2026-05-01T10:00:00Z",
            "message": {"role": "user", "content": text},
        }
        (folder / f"{name}.jsonl").write_text(json.dumps(record) + "\n")
    lore("index", "--wait")
    plan = lore.json("forget", "query", "okapi", "clause", "--dry-run")
    assert plan["sessions"] == [names[0]] and plan["dry_run"]
    assert "Say so with --yes" in lore("forget", "query", "okapi clause", code=2).err
    shown = lore("forget", "query", "okapi clause", "--yes").out
    assert names[0] in shown and "1 session removed for good" in shown
    assert str(folder / f"{names[0]}.jsonl") in shown, "the agent's own file is named"
    assert lore("forget", "query", "okapi clause", code=1).err.strip() == "no session fits"
    gone = lore.json("forget", "workspace", str(place), "--yes")
    assert gone["sessions"] == [names[1]] and gone["proof"]["found"] == 0
    assert lore.json("sessions", "-C", str(place), code=1)["sessions"] == []
    assert "say which" in lore("forget", "session", code=2).err
    assert "one fact at a time" in lore("forget", "F1", "F2", code=2).err
