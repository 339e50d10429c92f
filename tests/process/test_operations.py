"""Long operations on a real daemon: progress for whoever listens, hanging up in the middle."""

import json
import time
from pathlib import Path
from typing import Any

from lore import Client
from lore.wire.codec import encode_request
from support.cli import Lore
from support.daemon import RunningDaemon, start_daemon

SECONDS = 60.0
FACTS = 3_000
"""Enough that an import lasts for some of the events that come four times a second."""


def facts_file(folder: Path, count: int = FACTS) -> Path:
    path = folder / "many.jsonl"
    lines = (
        json.dumps({"id": f"F{n}", "text": f"service {n} listens on port {n + 1024}"})
        for n in range(1, count + 1)
    )
    path.write_text("\n".join(lines) + "\n")
    return path


def listening(running: RunningDaemon) -> Client:
    client = Client(where=running.paths, start=False, timeout=SECONDS)
    client.subscribe(topics=["progress"])
    return client


def ask(client: Client, method: str, **params: Any) -> None:
    """Send a request and do not wait for its answer."""
    link = client._live()
    data = encode_request(link.take_id(), method, params)
    link.stream.send(data, time.monotonic() + SECONDS)


def until(client: Client, wanted: Any) -> list[dict[str, Any]]:
    """Operation events up to the first that ``wanted`` accepts."""
    seen: list[dict[str, Any]] = []
    for event in client.events(timeout=SECONDS):
        if "operation" in event:
            seen.append(event)
            if wanted(event):
                return seen
    raise AssertionError(f"no such event; heard {seen}")


def test_the_caller_and_others_hear_how_far_it_is(home: Path) -> None:
    with start_daemon(home) as running, listening(running) as caller, listening(running) as other:
        own: list[dict[str, Any]] = []
        file = str(facts_file(home))
        params = {"path": file, "scope": "global"}
        caller.call("import", params, timeout=SECONDS, on_event=own.append)
        mine = [event for event in own if "operation" in event]
        assert mine and all(event["own"] for event in mine)
        heard = until(other, lambda event: "outcome" in event)
        assert {event["operation"] for event in heard} == {"import"}
        assert not any("own" in event for event in heard)
        middle = [event for event in heard if event["step"] == "taking in"]
        assert any(0 < event["done"] < event["total"] == FACTS for event in middle)
        assert heard[-1]["outcome"] == "done" and heard[-1]["done"] == FACTS
        for method, params in (
            ("verify", {"deep": True}),
            ("redact", {"fix": True}),
            ("backup", {}),
            ("reindex", {"text": True}),
            ("maintain", {}),
            ("forget_fact", {"id": "global:F7", "hard": True}),
        ):
            caller.call(method, params, timeout=SECONDS)
            last = until(other, lambda event: "outcome" in event)[-1]
            assert (last["operation"], last["outcome"]) == (method, "done"), last
            assert last["done"] == last["total"], last


def test_an_import_whose_caller_hangs_up_takes_nothing_in(home: Path) -> None:
    with start_daemon(home) as running, listening(running) as other:
        file = str(facts_file(home, 8_000))
        with Client(where=running.paths, start=False) as caller:
            ask(caller, "import", path=file, scope="global")
            until(other, lambda event: event["done"] > 0 and event["step"] == "taking in")
            (shown,) = other.status()["operations"]
            assert shown["operation"] == "import" and shown["total"] == 8_000
        assert until(other, lambda event: "outcome" in event)[-1]["outcome"] == "stopped"
        assert other.facts(scope="global")["total"] == 0
        again = str(facts_file(home, 10))
        done = other.call("import", {"path": again, "scope": "global"}, timeout=SECONDS)
        assert done["created"] == 10


def test_a_removal_that_was_begun_is_done_to_its_end(home: Path) -> None:
    with start_daemon(home) as running, listening(running) as other:
        secret = "the launch code of the Nightingale is 4711-0815"
        other.remember_fact(text=secret, scope="global")
        other.backup(timeout=SECONDS)
        until(other, lambda event: "outcome" in event)
        with Client(where=running.paths, start=False) as caller:
            ask(caller, "forget_fact", id="global:F1", hard=True)
            until(other, lambda event: event["operation"] == "forget_fact")
        assert until(other, lambda event: "outcome" in event)[-1]["outcome"] == "done"
        kept = [
            path
            for path in home.rglob("*")
            if path.is_file() and not path.is_symlink() and secret.encode() in path.read_bytes()
        ]
        assert kept == []


def test_status_in_words_names_what_runs(home: Path) -> None:
    with start_daemon(home) as running, listening(running) as other:
        file = str(facts_file(home, 8_000))
        with Client(where=running.paths, start=False, name="importer") as caller:
            ask(caller, "import", path=file, scope="global")
            until(other, lambda event: event["done"] > 0 and event["step"] == "taking in")
            out = Lore(home)("status").out
        assert "running   import: taking in, " in out and "(for importer)" in out
        until(other, lambda event: "outcome" in event)
