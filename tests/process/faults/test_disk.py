"""Full and read-only disks: the caller hears why, nothing acknowledged is lost, it goes on."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.daemon import RunningDaemon, environment, start_daemon
from support.history import all_facts
from support.wire import RawClient, Refusal

RUN = [sys.executable, "-P", "-m", "lored.main", "run"]
LONG = "a long statement about nothing much, to fill the disk sooner; " * 60


@contextlib.contextmanager
def small_disk(home: Path, megabytes: int) -> Iterator[Path]:
    """The data folder on a disk of its own."""
    data = home / "data"
    data.mkdir(mode=0o700)
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=0700", "tmpfs", str(data)],
        capture_output=True,
        check=False,
    )
    if done.returncode != 0:
        pytest.skip("needs the right to mount")
    try:
        yield data
    finally:
        subprocess.run(["umount", "-l", str(data)], check=True)


def fill_up(client: RawClient) -> tuple[set[str], Refusal]:
    """State facts until one is refused: those acknowledged, and the refusal."""
    kept: set[str] = set()
    while True:
        text = f"number {len(kept)}: {LONG}".strip()
        try:
            client.call("remember_fact", text=text, scope="global")
        except Refusal as refusal:
            return kept, refusal
        kept.add(text)
        assert len(kept) < 5000, "the disk never filled"


def degraded(client: RawClient, name: str) -> bool:
    return any(one["name"] == name and one["remedy"] for one in client.call("status")["degraded"])


def assert_kept(daemon: RunningDaemon, kept: set[str]) -> None:
    with daemon.connect(60) as client:
        client.hello()
        assert {fact["text"] for fact in all_facts(client, scope="global")} == kept
        assert client.call("verify", deep=True)["ok"]


def test_a_full_disk_refuses_and_goes_on_when_there_is_room(home: Path) -> None:
    with small_disk(home, 12) as data:
        ballast = data / "ballast"
        ballast.write_bytes(b"\0" * (5 << 20))
        with start_daemon(home) as daemon, daemon.connect(60) as client:
            client.hello()
            kept, refusal = fill_up(client)
            assert kept and refusal.code == "unavailable", refusal.wire
            assert "disk is full" in refusal.wire["message"]
            assert degraded(client, "disk_full")
            assert len(all_facts(client, scope="global")) == len(kept)
            ballast.unlink()
            client.call("remember_fact", text="there is room again", scope="global")
            kept.add("there is room again")
        with start_daemon(home) as daemon:
            assert_kept(daemon, kept)


def fill(data: Path) -> Path:
    """A file that leaves the disk no byte; its path."""
    crumbs = data / "crumbs"
    with contextlib.suppress(OSError), crumbs.open("wb", 0) as file:
        while file.write(b"\0" * 4096):
            pass
    return crumbs


@pytest.mark.parametrize("end", ["killed", "stopped"])
def test_started_on_a_full_disk_it_reads_and_writes_once_there_is_room(
    home: Path, end: str
) -> None:
    with small_disk(home, 12) as data:
        ballast = data / "ballast"
        ballast.write_bytes(b"\0" * (4 << 20))
        maybe = {"may_be_dead": end == "killed"}
        with start_daemon(home, **maybe) as daemon, daemon.connect(60) as client:
            client.hello()
            kept, _ = fill_up(client)
            if end == "killed":
                fill(data)
                daemon.remember_family()
                daemon.kill()
        crumbs = fill(data)
        with start_daemon(home) as daemon, daemon.connect(60) as client:
            client.hello()
            assert {fact["text"] for fact in all_facts(client, scope="global")} == kept
            assert client.call("recall_fact", query="number 0", scope="global")["facts"]
            # Opening may have given back a page or two: what still fits is acknowledged and kept.
            more, refusal = fill_up(client)
            kept |= more
            assert "disk is full" in refusal.wire["message"]
            assert refusal.code == "unavailable" and refusal.wire["retryable"]
            assert degraded(client, "disk_full")
            crumbs.unlink()
            ballast.unlink()
            client.call("remember_fact", text="there is room again", scope="global")
            kept.add("there is room again")
            assert {fact["text"] for fact in all_facts(client, scope="global")} == kept
            assert client.call("index_wait")["failed"] == 0
        with start_daemon(home) as daemon, daemon.connect(60) as client:
            assert not degraded(client, "disk_full")
            assert_kept(daemon, kept)


def test_a_store_without_room_begins_to_write_by_itself(home: Path) -> None:
    with small_disk(home, 8) as data:
        with start_daemon(home) as daemon, daemon.connect(60) as client:
            client.hello()
            client.call("remember_fact", text="before", scope="global")
        crumbs = fill(data)
        with start_daemon(home) as daemon, daemon.connect(60) as client:
            client.hello()
            assert degraded(client, "disk_full")
            crumbs.unlink()
            deadline = time.monotonic() + 60
            while degraded(client, "disk_full"):
                assert time.monotonic() < deadline
            left = {one["name"] for one in client.call("health")["reasons"]}
            assert left <= {"backup"}, "one that was due on the full disk is made later"
            assert "defect" not in daemon.log()


def refused_start(home: Path) -> str:
    """The one sentence of a daemon that may not start."""
    done = subprocess.run(
        RUN, env=environment(home), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode not in (0, 70)
    assert done.stderr.count("\n") == 1 and "Traceback" not in done.stderr
    return done.stderr


def test_a_file_size_limit_is_a_full_disk(home: Path) -> None:
    """For those who cannot mount: the same through RLIMIT_FSIZE."""
    limit = 3 << 20

    command = [
        sys.executable,
        "-P",
        "-c",
        "import os, resource, signal, sys; "
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit})); "
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])",
        *RUN,
    ]
    with start_daemon(home, command=command) as daemon, daemon.connect(60) as client:
        client.hello()
        kept, refusal = fill_up(client)
        assert refusal.code == "unavailable", refusal.wire
        assert {fact["text"] for fact in all_facts(client, scope="global")} == kept
    with start_daemon(home) as daemon:
        assert_kept(daemon, kept)


def test_a_read_only_data_folder_is_one_sentence(home: Path) -> None:
    with small_disk(home, 8) as data:
        subprocess.run(["mount", "-o", "remount,ro", str(data)], check=True)
        said = refused_start(home)
    assert str(data) in said and "read-only" in said.lower()


def test_few_descriptors_lose_nothing(home: Path) -> None:
    """Workspaces beyond what the limit allows are refused by name; the rest goes on."""
    command = ["/bin/sh", "-c", 'ulimit -n 64; exec "$@"', "sh", *RUN]
    env = {"LORE_INDEX_ENABLED": "0"}
    kept, refusals = set(), []
    with start_daemon(home, env, command=command) as daemon, daemon.connect(60) as client:
        client.hello()
        for number in range(12):
            project = home / "user" / f"p{number}"
            project.mkdir()
            try:
                client.call("remember_fact", text=f"port {number}", workspace=str(project))
                kept.add(number)
            except Refusal as refusal:
                refusals.append(refusal)
        assert client.call("ping")["pong"]
        assert kept
        assert {one.code for one in refusals} <= {"unavailable"}, [one.wire for one in refusals]
    with start_daemon(home, env) as daemon, daemon.connect(60) as client:
        client.hello()
        for number in kept:
            where = {"scope": "workspace", "workspace": str(home / "user" / f"p{number}")}
            assert [fact["text"] for fact in all_facts(client, **where)] == [f"port {number}"]
    assert os.listdir(home / "data" / "workspaces")
