"""facts.jsonl and a real daemon: both directions, other programs, branches, bad places."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lore import Client
from support.daemon import RunningDaemon, start_daemon

DATA = Path(__file__).parent.parent / "data" / "recursive"
SHARED = Path(__file__).parents[3] / "shared" / "data" / "recursive"
FOLDERS = [DATA, *([SHARED] if SHARED.is_dir() else [])]


@pytest.fixture
def project(home: Path) -> Path:
    folder = home / "user" / "project"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def connected(daemon: RunningDaemon, project: Path) -> Iterator[Client]:
    with Client(where=daemon.paths, workspace=str(project), timeout=20, start=False) as client:
        yield client


def mirror_of(folder: Path) -> Path:
    return folder / ".recursive" / "memory" / "facts.jsonl"


def put(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".new")
    draft.write_bytes(data)
    draft.rename(path)


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def until(client: Client, topic: str, wanted: str) -> dict[str, Any]:
    """The next event of a topic whose payload has the key or action ``wanted``."""
    for event in client.events(timeout=20):
        if event["topic"] == topic and (wanted in event or event.get("action") == wanted):
            return dict(event)
    raise AssertionError(f"no event {topic} {wanted}")


def test_a_stated_fact_stands_in_the_file_in_the_seed_s_record(
    connected: Client, project: Path, home: Path
) -> None:
    connected.subscribe(topics=["status"])
    connected.remember_fact(text="Ziel ist 42 — 日本", tags=["a", "B"], scope="workspace")
    until(connected, "status", "mirrored")
    (line,) = mirror_of(project).read_text().splitlines()
    assert list(json.loads(line))[:8] == [
        "id", "text", "tags", "source", "created_at", "last_accessed", "access_count",
        "superseded_by",
    ]  # fmt: skip
    assert line.startswith('{"id":"F1","text":"Ziel ist 42 — 日本","tags":["a","B"],"source":null,')
    connected.remember_fact(text="global one", scope="global")
    until(connected, "status", "mirrored")
    assert records(mirror_of(home / "user"))[0]["text"] == "global one"


@pytest.mark.parametrize("folder", FOLDERS, ids=["generated", "real"][: len(FOLDERS)])
@pytest.mark.parametrize(
    "name",
    [
        "facts-single.jsonl",
        "facts-supersede-chain.jsonl",
        "facts-malformed.jsonl",
        "facts-id-collision-branch-a.jsonl",
        "facts-id-collision-branch-b.jsonl",
    ],
)
def test_real_files_come_in_whole_and_keep_their_bytes(
    connected: Client, project: Path, folder: Path, name: str
) -> None:
    data = (folder / name).read_bytes()
    put(mirror_of(project), data)
    facts = connected.facts(include_superseded=True, scope="workspace")["facts"]
    assert {(fact["id"], fact["text"]) for fact in facts} == {
        (record["id"], record["text"]) for record in records(folder / name)
    }
    assert mirror_of(project).read_bytes() == data
    connected.recall_fact(query="uvx gate sandbox", scope="workspace")
    connected.verify()
    assert mirror_of(project).read_bytes() == data


def test_contradictions_of_the_real_file_come_back_as_collisions(
    connected: Client, project: Path
) -> None:
    put(mirror_of(project), (DATA / "facts-supersede-chain.jsonl").read_bytes())
    pending = connected.snapshot(scopes=["pending"])["pending"]
    pairs = {
        frozenset((item["fact"]["id"], other["fact"]["id"]))
        for item in pending["facts"]
        for other in item["collisions"]
    }
    assert frozenset(("F2", "F5")) in pairs and frozenset(("F9", "F12")) in pairs
    shown = connected.recall_fact(query="baseline", scope="workspace")["facts"]
    assert "F4" not in {fact["id"] for fact in shown}, "superseded facts are no current answer"


def test_an_edit_by_another_program_is_taken_in_and_nothing_of_ours_is_lost(
    connected: Client, project: Path
) -> None:
    connected.subscribe(topics=["status", "facts"])
    connected.remember_fact(text="TTL is 300s", entities=["tool:redis"], scope="workspace")
    until(connected, "status", "mirrored")
    path = mirror_of(project)
    (record,) = records(path)
    # Recursive drops keys that it does not know and counts its own reads.
    mine = {key: record[key] for key in list(record)[:8]} | {"access_count": 7}
    theirs = {
        **mine,
        "id": "F2",
        "text": "stated by Recursive",
        "created_at": "2026-11-30T10:00:00Z",
    }
    put(path, b"".join(json.dumps(one).encode() + b"\n" for one in (mine, theirs)))
    until(connected, "facts", "imported")
    facts = {fact["id"]: fact for fact in connected.facts(scope="workspace")["facts"]}
    assert facts["F1"]["entities"] == ["tool:redis"]
    assert facts["F2"]["text"] == "stated by Recursive"
    # The next of ours does not disturb their lines.
    before = path.read_bytes()
    connected.remember_fact(text="third", scope="workspace")
    until(connected, "status", "mirrored")
    assert path.read_bytes().startswith(before)


def test_forgotten_superseded_and_evicted_in_the_file_hold_here(
    connected: Client, project: Path
) -> None:
    base = {"tags": [], "source": None, "created_at": "2026-01-01T00:00:00Z",
            "last_accessed": "2026-01-01T00:00:00Z", "access_count": 0}  # fmt: skip
    states = {"F1": "F2", "F2": None, "F3": "__forgotten__", "F4": "__evicted__", "F5": "F99"}
    lines = [
        json.dumps({"id": key, "text": f"alpha {key}", **base, "superseded_by": state})
        for key, state in states.items()
    ]
    put(mirror_of(project), ("\n".join(lines) + "\n").encode())
    assert [f["id"] for f in connected.recall_fact(query="alpha")["facts"]] == ["F2"]
    history = connected.fact_history(id="F2", scope="workspace")["history"]
    assert [fact["id"] for fact in history] == ["F1", "F2"]
    assert mirror_of(project).read_text() == "\n".join(lines) + "\n"


def test_one_id_on_two_branches_is_kept_twice(connected: Client, project: Path) -> None:
    put(mirror_of(project), (DATA / "facts-id-collision-branch-a.jsonl").read_bytes())
    (first,) = connected.facts(scope="workspace")["facts"]
    connected.subscribe(topics=["status"])
    put(mirror_of(project), (DATA / "facts-id-collision-branch-b.jsonl").read_bytes())
    until(connected, "status", "mirrored")
    facts = connected.facts(scope="workspace", include_superseded=True)["facts"]
    assert {fact["id"] for fact in facts} == {"F3", "F4"}
    assert first["text"] in {fact["text"] for fact in facts}
    (line,) = records(mirror_of(project))
    assert line["id"] == "F4" and line["note"] == "was F3 on another branch"


def test_a_merge_conflict_in_the_file_hides_nothing(connected: Client, project: Path) -> None:
    good = (DATA / "facts-single.jsonl").read_bytes()
    marks = b"<<<<<<< HEAD\n" + good + b"=======\n>>>>>>> other\n"
    put(mirror_of(project), marks)
    assert len(connected.facts(scope="workspace")["facts"]) == 1
    connected.subscribe(topics=["status"])
    connected.remember_fact(text="new", scope="workspace")
    until(connected, "status", "mirrored")
    assert mirror_of(project).read_bytes().startswith(marks), "damaged lines stay verbatim"


def test_a_link_as_folder_is_refused_and_the_fact_is_kept(
    connected: Client, project: Path, home: Path
) -> None:
    outside = home / "outside"
    outside.mkdir()
    (project / ".recursive").symlink_to(outside)
    connected.remember_fact(text="kept", scope="workspace")
    check = {c["name"]: c for c in connected.verify()["checks"]}["facts.jsonl"]
    assert not check["ok"] and "link" in check["detail"]
    assert list(outside.iterdir()) == []
    assert connected.facts(scope="workspace")["facts"][0]["text"] == "kept"


def test_killed_between_store_and_file_loses_nothing(home: Path, project: Path) -> None:
    slow = {"LORE_MIRROR_DEBOUNCE_SECONDS": "60"}
    with start_daemon(home, slow, may_be_dead=True) as running:
        with Client(where=running.paths, workspace=str(project), start=False) as client:
            client.remember_fact(text="acknowledged", scope="workspace")
        running.kill()
    assert not mirror_of(project).exists()
    with start_daemon(home) as running, Client(where=running.paths, start=False) as client:
        client.verify()
        assert records(mirror_of(project))[0]["text"] == "acknowledged"


def test_git_sees_one_line_per_change(connected: Client, project: Path) -> None:
    put(mirror_of(project), (DATA / "facts-supersede-chain.jsonl").read_bytes())
    connected.facts(scope="workspace")
    env = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null"}
    subprocess.run(["git", "init", "-q"], cwd=project, check=True, env=env)
    subprocess.run(["git", "add", "-A"], cwd=project, check=True, env=env)
    connected.subscribe(topics=["status"])
    connected.update_fact(id="workspace:F9", text="replaced")
    until(connected, "status", "mirrored")
    diff = subprocess.run(
        ["git", "diff", "--numstat"], cwd=project, check=True, env=env, capture_output=True
    ).stdout.decode()
    assert diff.split()[:2] == ["2", "1"]
