"""Writes left in the spool by clients in a sandbox, and a real daemon that takes them in."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lore import Client, spool
from lore.paths import Paths, resolve
from support.daemon import RunningDaemon, environment, start_daemon


@pytest.fixture
def paths(home: Path) -> Paths:
    return resolve(environment(home))


@pytest.fixture
def project(home: Path) -> Path:
    folder = home / "user" / "project"
    folder.mkdir(parents=True)
    return folder


def client_of(running: RunningDaemon, project: Path) -> Client:
    return Client(where=running.paths, workspace=str(project), start=False, timeout=20)


def until_empty(paths: Paths) -> None:
    deadline = time.monotonic() + 20
    while any(name.endswith(".json") for name in os.listdir(paths.spool_dir)):
        assert time.monotonic() < deadline, "the spool was not taken in"
        time.sleep(0.05)


def test_waiting_writes_are_there_at_the_first_answer(
    home: Path, paths: Paths, project: Path
) -> None:
    for number in range(5):
        text = f"statement {number}"
        spool.put(paths, "remember_fact", {"text": text}, str(project), "test")
    with start_daemon(home) as running, client_of(running, project) as client:
        facts = client.facts()["facts"]
        assert sorted(fact["text"] for fact in facts) == [f"statement {n}" for n in range(5)]
        assert {fact["id"] for fact in facts} == {f"F{n}" for n in range(1, 6)}
    assert os.listdir(paths.spool_dir) == []


def test_a_write_is_taken_while_the_daemon_runs(
    daemon: RunningDaemon, paths: Paths, project: Path
) -> None:
    with client_of(daemon, project) as client:
        subscription = client.events(["facts"], timeout=20)
        told = client.remember_fact(text="by socket")
        assert next(subscription)["fact"]["id"] == told["fact"]["id"]
        spool.put(paths, "update_fact", {"id": "F1", "text": "by spool"}, str(project), "test")
        assert [next(subscription)["action"] for _ in range(2)] == ["superseded", "updated"]
        assert [fact["text"] for fact in client.facts()["facts"]] == ["by spool"]


def test_the_same_file_twice_counts_once(home: Path, paths: Paths, project: Path) -> None:
    spool.put(paths, "remember_fact", {"text": "once"}, str(project), "test")
    (name,) = os.listdir(paths.spool_dir)
    copy = Path(paths.spool_dir, name).read_bytes()
    with start_daemon(home) as running, client_of(running, project) as client:
        # As after a crash between the commit and the removal of the file.
        Path(paths.spool_dir, name).write_bytes(copy)
        until_empty(paths)
        assert len(client.facts()["facts"]) == 1


def test_times_are_those_of_the_statement(home: Path, paths: Paths, project: Path) -> None:
    params = {"text": "old news", "valid_from": "yesterday"}
    spool.put(paths, "remember_fact", params, str(project), "test")
    (name,) = os.listdir(paths.spool_dir)
    path = Path(paths.spool_dir, name)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"at": "2026-03-02T12:00:00Z"}))
    with start_daemon(home, {"TZ": "UTC"}) as running, client_of(running, project) as client:
        assert client.facts()["facts"][0]["valid_from"] == "2026-03-01T00:00:00Z"


BAD: list[Any] = [
    b"{torn",
    b"[]",
    b'{"format": 99}',
    b'{"format":1,"method":"drain","params":{},"at":"2026-01-01T00:00:00Z"}',
    b'{"format":1,"method":"remember_fact","params":{"txet":"x"},"at":"2026-01-01T00:00:00Z"}',
    b'{"format":1,"method":"forget_fact","params":{"id":"F9"},"at":"2026-01-01T00:00:00Z"}',
    b"[" * 100_000,
    b"\xff\xfe",
]


@pytest.fixture
def spoiled(paths: Paths) -> Iterator[Path]:
    folder = Path(paths.spool_dir)
    folder.mkdir(parents=True)
    for number, data in enumerate(BAD):
        (folder / f"{number:020d}-1-bad.json").write_bytes(data)
    yield folder


def test_what_can_never_be_a_write_is_kept_with_its_reason_and_hides_nothing(
    home: Path, paths: Paths, project: Path, spoiled: Path
) -> None:
    spool.put(paths, "remember_fact", {"text": "good"}, str(project), "test")
    with start_daemon(home) as running, client_of(running, project) as client:
        assert [fact["text"] for fact in client.facts()["facts"]] == ["good"]
        status = client.status()
        assert status["spool"]["refused"] == len(BAD)
        (mode,) = [one for one in status["degraded"] if one["name"] == "spool"]
        assert "refused" in mode["remedy"]
    kept = sorted(path.name for path in (spoiled / "refused").iterdir())
    assert len(kept) == 2 * len(BAD)
    assert all((spoiled / "refused" / name).stat().st_size for name in kept)


def test_a_link_in_the_spool_is_not_followed(home: Path, paths: Paths, project: Path) -> None:
    secret = home / "secret"
    secret.write_text(
        '{"format":1,"method":"remember_fact","params":{"text":"s"},"at":"2026-01-01"}'
    )
    Path(paths.spool_dir).mkdir(parents=True)
    Path(paths.spool_dir, "00000000000000000000-1-link.json").symlink_to(secret)
    spool.put(paths, "remember_fact", {"text": "good"}, str(project), "test")
    with start_daemon(home) as running, client_of(running, project) as client:
        assert [fact["text"] for fact in client.facts()["facts"]] == ["good"]
    assert secret.exists()
