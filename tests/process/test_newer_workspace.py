"""A workspace whose store is newer than this release: only that workspace stands still.

What runs in the background (mirror, spool, backup, vectors) goes through all workspaces and must
not end at the one that it may not open.
"""

import contextlib
import json
import os
import sqlite3
import time
from pathlib import Path

import pytest

from lore import Client, errors, spool
from support.daemon import RunningDaemon, start_daemon


def client_of(running: RunningDaemon, project: Path) -> Client:
    return Client(where=running.paths, workspace=str(project), start=False, timeout=20)


@pytest.fixture
def projects(home: Path) -> tuple[Path, Path]:
    """A workspace of a newer release and one of ours, both with a fact in store and mirror."""
    newer, ours = (home / "user" / name for name in ("newer", "ours"))
    with start_daemon(home) as running:
        for project in (newer, ours):
            project.mkdir(parents=True)
            with client_of(running, project) as client:
                client.remember_fact(text=f"stated in {project.name}", scope="workspace")
                workspace = client.call("workspace")["id"]
            if project == newer:
                path = home / "data" / "workspaces" / f"{workspace}.db"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 999")
    return newer, ours


def test_the_mirror_and_the_spool_of_others_go_on(home: Path, projects: tuple[Path, Path]) -> None:
    newer, ours = projects
    with start_daemon(home) as running, client_of(running, ours) as client:
        client.subscribe(topics=["facts"])
        assert client.facts(scope="workspace")["total"] == 1
        path = ours / ".recursive" / "memory" / "facts.jsonl"
        (record,) = [json.loads(line) for line in path.read_text().splitlines()]
        record |= {"id": "F2", "text": "stated by Recursive", "created_at": "2026-11-30T10:00:00Z"}
        record.pop("uid", None)
        with path.open("a") as file:
            file.write(json.dumps(record) + "\n")
        assert any(event.get("action") == "imported" for event in client.events(timeout=20))
        with client_of(running, newer) as refused, pytest.raises(errors.LoreError, match="upgrade"):
            refused.facts(scope="workspace")
        for project in (newer, ours):
            params = {"text": f"left for {project.name}", "scope": "workspace"}
            spool.put(running.paths, "remember_fact", params, str(project), "test")
        folder = running.paths.spool_dir
        deadline = time.monotonic() + 20
        while any(name.endswith(".json") for name in os.listdir(folder)):
            assert time.monotonic() < deadline, "the spool was not taken in"
            time.sleep(0.05)
        (reason,) = Path(folder, "refused").glob("*.reason")
        assert "upgrade" in reason.read_text()
        assert "left for ours" in {fact["text"] for fact in client.facts()["facts"]}


def test_a_backup_holds_the_others_and_says_what_it_left_out(
    home: Path, projects: tuple[Path, Path]
) -> None:
    _, ours = projects
    with start_daemon(home) as running, client_of(running, ours) as client:
        done = client.call("backup")
        assert len(done["files"]) == 2  # global, ours
        (left,) = done["left_out"]
        assert "upgrade" in left["reason"]
        checks = {one["name"]: one for one in client.call("verify")["checks"]}
        wrong = [one for one in checks.values() if not one["ok"]]
        assert any("upgrade" in one["detail"] for one in wrong)
        assert checks[f"facts of {ours}"]["ok"]
        degraded = client.call("status")["degraded"]
        assert any(left["name"] in one["reason"] for one in degraded if one["name"] == "backup")
