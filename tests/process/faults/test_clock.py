"""Clocks that jump, and machines that sleep: order, validity and timers hold."""

import os
import signal
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from support.claude import said, session_id, session_path
from support.daemon import start_daemon
from support.shim import faulty
from support.wire import RawClient

ONE = session_id(1)
DAY = 86_400


@pytest.mark.parametrize("jump", [400 * DAY, -400 * DAY], ids=["ahead", "back"])
def test_the_clock_jumps(home: Path, jump: int) -> None:
    clock = home / "clock"
    clock.write_text("0")
    path = session_path(home / "user", ONE)
    path.write_bytes(said(ONE, "the first aardvark", 0))
    env = faulty(home / "data", clock=clock)
    with start_daemon(home, env) as daemon, daemon.connect(60) as client:
        client.hello()
        client.call("subscribe", topics=["facts"])
        before = client.call("remember_fact", text="before the jump", scope="global")["fact"]
        client.call("index_wait")
        clock.write_text(str(jump))
        after = client.call("remember_fact", text="after the jump", scope="global")["fact"]
        told = datetime.fromisoformat(after["created_at"])
        assert abs(told - datetime.now(UTC) - timedelta(seconds=jump)) < timedelta(minutes=1)
        listed = client.call("facts", scope="global")["facts"]
        # What was stated by a clock that was ahead is not hidden until then.
        known = {"before the jump", "after the jump"}
        assert {one["text"] for one in listed} == known and all(one["active"] for one in listed)
        found = client.call("recall_fact", query="jump", scope="global")["facts"]
        assert {one["text"] for one in found} == known
        whole = client.call("facts", scope="global", include_superseded=True)["facts"]
        assert {one["text"] for one in whole} == known
        changed = client.call("update_fact", id=f"global:{before['id']}", text="replaced")
        assert changed["new"]["active"] and not changed["old"]["active"]
        client.wait_event(lambda _, e: e.get("action") == "updated")
        with path.open("ab") as file:
            file.write(said(ONE, "the second aardvark", 1))
        client.call("index_wait", ticket=client.call("index")["ticket"])
        assert client.call("session", id=ONE)["session"]["message_count"] == 2
        client.call("backup")
        clock.write_text("0")
        assert client.call("forget_fact", id=f"global:{after['id']}")["forgotten"]
        assert client.call("health")["ok"]
        assert_known(client, jump)
    with start_daemon(home) as daemon, daemon.connect(60) as client:
        client.hello()
        assert_known(client, jump)
        assert client.call("verify", deep=True)["ok"]


def assert_known(client: RawClient, jump: int) -> None:
    """All is kept, and what holds is in the current answers, whatever clock it was stated by."""
    whole = client.call("facts", scope="global", include_superseded=True)["facts"]
    assert {one["text"] for one in whole} == {"before the jump", "after the jump", "replaced"}
    now = client.call("facts", scope="global")["facts"]
    assert [one["text"] for one in now] == ["replaced"]
    then = (datetime.now(UTC) + timedelta(seconds=max(jump, 0), days=1)).isoformat()
    held = client.call("facts", scope="global", as_of=then)["facts"]
    assert [one["text"] for one in held] == ["replaced"]


def test_a_machine_that_slept(home: Path) -> None:
    """SIGSTOP and SIGCONT of the daemon and its worker: clients wait, nothing is dropped."""
    path = session_path(home / "user", ONE)
    path.write_bytes(b"".join(said(ONE, f"aardvark {n}", n) for n in range(3000)))
    with start_daemon(home) as daemon, daemon.connect(60) as client:
        client.hello()
        client.call("remember_fact", text="before sleep", scope="global")
        family = [daemon.pid, *(child.pid for child in daemon.children())]
        for pid in family:
            os.kill(pid, signal.SIGSTOP)
        asked = client.send("remember_fact", text="asked in its sleep", scope="global")
        time.sleep(0.5)  # the sleep itself
        for pid in family:
            os.kill(pid, signal.SIGCONT)
        assert client.wait(asked)["created"]
        client.call("index_wait")
        assert client.call("session", id=ONE)["session"]["message_count"] == 3000
        assert client.call("health")["ok"]
        assert "defect" not in daemon.log()
