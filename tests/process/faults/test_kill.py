"""kill -9 of daemon and worker under load, at random moments: what was acknowledged is there."""

import contextlib
import os
import random
import shutil
import statistics
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from process.test_indexing import content, homes, quiet_run, same
from support.daemon import RunningDaemon, make_home, remove_home, start_daemon
from support.history import Writer
from support.machine import slowness
from support.wire import RawClient

ROUNDS = int(os.environ.get("LORE_ROUNDS") or (500 if os.environ.get("LORE_FULL") else 6))
TOLD = 25
"""Rounds after which a long run says how far it is."""
LOAD_SECONDS = 0.6
"""Longest time under load in one round; the moment of the kill lies anywhere in it."""

START_SECONDS = 2.0
"""From the start after a kill to the first answer (resource contract)."""


def samples() -> list[tuple[Path, str]]:
    """(file, place below a home) of every sample."""
    return [
        (path, str(path.relative_to(folder)))
        for folder in homes(everything=ROUNDS > 100)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "growth" not in path.parts
    ]


def bring(home: Path, files: list[tuple[Path, str]]) -> None:
    for path, place in files:
        target = home / "user" / place
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target)


def kill_worker(client: RawClient) -> None:
    worker = client.call("index_status").get("worker")
    if worker:
        with contextlib.suppress(psutil.NoSuchProcess):
            psutil.Process(worker).kill()


def load(daemon: RunningDaemon, writers: list[Writer], seconds: float, victim: str) -> None:
    """All writers at once until the kill."""
    ended = threading.Event()
    threads = [
        threading.Thread(target=one.run, args=(daemon.socket, ended), daemon=True)
        for one in writers
    ]
    with daemon.connect() as client:
        client.hello()
        for thread in threads:
            thread.start()
        ended.wait(seconds)
        daemon.remember_family()
        if victim == "worker":
            kill_worker(client)
        else:
            daemon.kill()
    ended.set()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


def assert_sound(client: RawClient) -> None:
    checks = client.call("verify", deep=True)
    assert checks["ok"], [one for one in checks["checks"] if not one["ok"]]


@pytest.mark.timeout(120 + 30 * ROUNDS)  # on a machine that is busy with other things, too
def test_nothing_acknowledged_is_lost(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chance = random.Random(20260528)
    project = home / "user" / "project"
    project.mkdir(parents=True)
    local: dict[str, Any] = {"scope": "workspace", "workspace": str(project)}
    writers = [
        Writer("ada", 1, scope="global"),
        Writer("bob", 2, **local),
        Writer("cyd", 3, **local),
    ]
    files = samples()
    chance.shuffle(files)
    starts: list[float] = []
    kills = 0
    for number in range(ROUNDS):
        bring(home, files[number::ROUNDS])
        began = time.monotonic()
        with start_daemon(home, may_be_dead=True) as daemon, daemon.connect(60) as client:
            client.hello()
            starts.append(time.monotonic() - began)
            for writer in writers:
                writer.check(client)
            victim = chance.choice(["daemon", "daemon", "daemon", "worker"])
            kills += victim == "daemon"
            load(daemon, writers, chance.random() * LOAD_SECONDS, victim)
            if victim == "worker":
                assert client.call("ping")["pong"]
        if number % TOLD == TOLD - 1:
            told = sum(one.acknowledged for one in writers)
            with capsys.disabled():
                print(f"{number + 1} rounds, {kills} kills of the daemon, {told} acknowledged")
    with start_daemon(home) as daemon, daemon.connect(120) as client:
        client.hello()
        for writer in writers:
            writer.check(client)
        assert client.call("index_wait")["failed"] == 0
        assert_sound(client)
        assert not client.call("status")["degraded"]
        sessions = daemon.paths.sessions_db
    acknowledged = sum(one.acknowledged for one in writers)
    assert kills > ROUNDS // 4 and acknowledged > ROUNDS
    killed = content(home, sessions)
    fresh = make_home()
    try:
        bring(fresh, files)
        same(killed, quiet_run(fresh)[0])
    finally:
        remove_home(fresh)
    with capsys.disabled():
        print(
            f"\n{ROUNDS} rounds, {kills} kills of the daemon, {acknowledged} writes acknowledged, "
            f"start to first answer: median {statistics.median(starts):.2f} s, "
            f"nine of ten below {statistics.quantiles(starts, n=10)[8]:.2f} s, "
            f"longest {max(starts):.2f} s"
        )
    assert statistics.median(starts) < START_SECONDS * slowness()
