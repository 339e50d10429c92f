"""`retention_days` on a real daemon."""

import json
from pathlib import Path

from lore import Client
from support.daemon import start_daemon


def session(home: Path, name: str, day: str) -> None:
    folder = home / "user" / ".claude" / "projects" / "-p"
    folder.mkdir(parents=True, exist_ok=True)
    line = {
        "type": "user", "uuid": f"{name}-1", "parentUuid": None, "sessionId": name,
        "timestamp": f"{day}T10:00:00Z", "cwd": "/gone/p", "version": "2.1.0",
        "isSidechain": False, "message": {"role": "user", "content": f"work of {name}"},
    }  # fmt: skip
    (folder / f"{name}.jsonl").write_text(json.dumps(line) + "\n")


def test_old_sessions_go_and_stay_away(home: Path) -> None:
    session(home, "old11111", "2020-01-01")
    session(home, "new22222", "2126-01-01")
    with start_daemon(home) as running, Client(where=running.paths, start=False) as client:
        client.index_wait(ticket=client.index()["ticket"], timeout=60)
        assert client.sessions(everywhere=True)["total"] == 2
    with (
        start_daemon(home, {"LORE_RETENTION_DAYS": "30"}) as running,
        Client(where=running.paths, start=False) as client,
    ):
        steps = client.maintain(timeout=60)["steps"]
        assert any("dropped 1 sessions" in step for step in steps)
        client.index_wait(ticket=client.index(force=True)["ticket"], timeout=60)
        (left,) = client.sessions(everywhere=True)["sessions"]
        assert left["id"] == "new22222"
        found = client.episodic_recall(query="work of old11111", everywhere=True)["sessions"]
        assert "old11111" not in {one["session"]["id"] for one in found}
