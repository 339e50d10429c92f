"""What the stores of one release hold, asked over the wire; and the recorder of such stores.

The files under `tests/data/schemas/<version>/` were made by that release, and stay for ever:

    PYTHONPATH=<folder with that wheel, unpacked> python tests/support/release.py

(`pip install --no-deps --target <folder> <wheel>`). It runs that daemon over generated facts and
one sample transcript, and writes its stores and its own answers.
"""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.daemon import make_home, remove_home, start_daemon
from support.history import all_facts
from support.wire import RawClient

DATA = Path(__file__).parents[1] / "data"
SAMPLE = ".claude/projects/-path-to-Demo/1af7fc5e-8455-4414-9ccd-011d40f70b2a.jsonl"
KEPT = ("id", "uid", "text", "tags", "entities", "kind", "source", "created_at", "valid_from",
        "valid_to", "superseded_by", "cluster", "state")  # fmt: skip
"""Of a fact, what no release may change."""


def fill(client: RawClient) -> None:
    """Facts of every state in both scopes, a conflict, a session."""
    for scope in ("global", "workspace"):
        for number in range(12):
            client.call(
                "remember_fact",
                text=f"{scope} service {number} listens on port {5000 + number}",
                scope=scope,
                tags=["port"],
                entities=[f"service:{scope}-{number % 6}"],
                kind=("fact", "decision", "assumption")[number % 3],
                source="docs/ports.md",
            )
        client.call("update_fact", id=f"{scope}:F2", text=f"{scope} service 1 moved to port 6001")
        client.call("forget_fact", id=f"{scope}:F3")
        client.call("forget_fact", id=f"{scope}:F4", hard=True)
        ops = 'conflict fact_a=F5 fact_b=F11 severity=high note="which one?"'
        client.call("apply", ops=ops, scope=scope)
    client.call("index_wait")


def ask(client: RawClient) -> dict[str, Any]:
    """All facts by scope, open conflicts, sessions with their messages, and a search."""
    found: dict[str, Any] = {}
    for scope in ("global", "workspace"):
        facts = all_facts(client, scope=scope)
        found[scope] = [
            {key: fact[key] for key in KEPT if key in fact}
            for fact in sorted(facts, key=lambda one: int(one["id"].lstrip("F")))
        ]
        open_ones = client.call("conflicts", scope=scope)["conflicts"]
        found[f"{scope} conflicts"] = [
            [one["id"], one["fact_a"]["id"], one["fact_b"]["id"], one["severity"]]
            for one in open_ones
        ]
    found["sessions"] = []
    for one in client.call("sessions", everywhere=True)["sessions"]:
        messages = client.call("session_messages", id=one["id"], limit=200)["messages"]
        texts = [[message["role"], message.get("text", "")[:80]] for message in messages]
        found["sessions"].append({"id": one["id"], "agent": one["agent"], "messages": texts})
    return found


def put_sample(home: Path) -> None:
    """The transcript into the home."""
    target = home / "user" / SAMPLE
    target.parent.mkdir(parents=True)
    shutil.copy(DATA / "transcripts" / "claude" / SAMPLE, target)


def record() -> None:
    """Make the files of the release that Python finds."""
    import lored

    target = DATA / "schemas" / lored.__version__
    home = make_home()
    try:
        put_sample(home)
        project = home / "user" / "project"
        project.mkdir()
        env = {"PYTHONPATH": str(Path(lored.__file__).parents[1]), "LORE_MIRROR_ENABLED": "0"}
        with start_daemon(home, env) as daemon, daemon.connect(60) as client:
            client.hello(workspace=str(project))
            fill(client)
            (known,) = (home / "data" / "workspaces").glob("*.db")
            answers = ask(client) | {"workspace_id": known.stem}
        (target / "workspaces").mkdir(parents=True)
        for name in ("global.db", "sessions.db", f"workspaces/{known.name}"):
            shutil.copy(home / "data" / name, target / name)
        (target / "answers.json").write_text(json.dumps(answers, indent=1, ensure_ascii=False))
    finally:
        remove_home(home)


if __name__ == "__main__":
    record()
