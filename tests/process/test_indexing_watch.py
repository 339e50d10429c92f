"""Watching when it does not work: lost events, no watches left, dead mounts, hostile files."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from support.claude import said, session_id, session_path
from support.daemon import RunningDaemon, start_daemon
from support.wire import RawClient

ONE, TWO = session_id(1), session_id(2)
DEADLINE = 60.0
NO_SWEEP = {"LORE_SWEEP_SECONDS": "3600"}
SUPPORT = Path(__file__).parents[1] / "support"
DAEMON = [sys.executable, "-P", "-m", "lored.main", "run"]


def until(check: Callable[[], Any], what: str) -> Any:
    end = time.monotonic() + DEADLINE
    while not (found := check()):
        assert time.monotonic() < end, f"not within {DEADLINE:g} s: {what}"
        time.sleep(0.02)
    return found


def texts(client: RawClient, session: str) -> list[str]:
    return [m["text"] for m in client.call("session_messages", id=session)["messages"]]


def root_of(client: RawClient, agent: str = "claude-code") -> dict[str, Any]:
    roots = client.call("index_status")["roots"]
    return next(root for root in roots if root["agent"] == agent)


def test_events_that_the_kernel_dropped_are_made_good(home: Path) -> None:
    """More events than the kernel's queue holds, while the daemon does not read them."""
    limit = Path("/proc/sys/fs/inotify/max_queued_events")
    if not limit.exists() or int(limit.read_text()) > 100_000:
        pytest.skip("no small inotify queue here")
    path = session_path(home / "user", ONE)
    path.write_bytes(said(ONE, "before", 1))
    with start_daemon(home, NO_SWEEP) as daemon, daemon.connect(60) as client:
        client.hello()
        client.call("index_wait")
        folder = path.parent
        os.kill(daemon.pid, signal.SIGSTOP)
        try:
            for number in range(int(limit.read_text()) + 100):
                (folder / f"{number}.junk").touch()
            with path.open("ab") as file:  # this event finds the queue full
                file.write(said(ONE, "after", 2))
        finally:
            os.kill(daemon.pid, signal.SIGCONT)
        until(lambda: texts(client, ONE) == ["before", "after"], "the append without an event")
        until(lambda: client.call("index_status")["events_lost"], "the loss is counted")
        shutil.rmtree(folder)


def test_folders_that_the_agent_makes_later_are_watched(home: Path) -> None:
    """An agent's first session ever, and one after all of its folders were removed."""
    root = home / "user" / ".claude"
    root.mkdir(parents=True)
    with start_daemon(home, NO_SWEEP) as daemon, daemon.connect(60) as client:
        client.hello()
        client.call("index_wait")

        def told(name: str, text: str) -> None:
            # Below a folder of its own each time: found by a watch on all below, or not at all.
            path = root / "projects" / f"-{name}" / f"{name}.jsonl"
            path.parent.mkdir(parents=True)
            path.write_bytes(said(name, text, 1))

            def known() -> bool:
                sessions = client.call("sessions", everywhere=True)["sessions"]
                return name in {session["id"] for session in sessions}

            until(known, text)

        for number in (1, 2):
            told(session_id(number), f"session {number}")
        shutil.rmtree(root / "projects")
        for number in (3, 4):
            told(session_id(number), f"session {number}")


@pytest.mark.skipif(sys.platform != "linux", reason="namespaces of Linux")
def test_folders_without_a_watch_are_said_and_polled(home: Path) -> None:
    enough = 12
    probe = subprocess.run(
        ["unshare", "-U", "-r", "sh", "-c", "echo 5 > /proc/sys/user/max_inotify_watches"],
        capture_output=True,
        check=False,
    )
    if probe.returncode != 0:
        pytest.skip("no user namespaces here")
    user = home / "user"
    for number in range(3 * enough):
        name = session_id(number)
        session_path(user, name, f"-folder-{number}").write_bytes(said(name, "hello", 1))
    script = f"echo {enough} > /proc/sys/user/max_inotify_watches; exec {' '.join(DAEMON)}"
    command = ["unshare", "-U", "-r", "sh", "-c", script]
    with start_daemon(home, NO_SWEEP, command) as daemon, daemon.connect(60) as client:
        client.hello()
        client.call("index_wait")
        until(lambda: root_of(client)["warnings"], "a warning")
        assert any("max_user_watches" in text for text in root_of(client)["warnings"])
        names = {mode["name"] for mode in client.call("status")["degraded"]}
        assert "watch_limit" in names
        for number in range(3 * enough):  # those without a watch are found by looking
            name = session_id(number)
            with session_path(user, name, f"-folder-{number}").open("ab") as file:
                file.write(said(name, "again", 2))
        until(
            lambda: all(len(texts(client, session_id(n))) == 2 for n in range(3 * enough)),
            "appends in folders without a watch",
        )


@pytest.mark.skipif(os.getuid() != 0, reason="needs the right to mount")
def test_a_dead_mount_stops_only_itself(home: Path) -> None:
    user = home / "user"
    dead = user / ".codex"
    dead.mkdir()
    probe = subprocess.run(
        ["unshare", "-m", sys.executable, str(SUPPORT / "deadmount.py"), str(dead), "/bin/true"],
        capture_output=True,
        text=True,
        check=False,
    )
    if probe.returncode != 0:
        pytest.skip(f"cannot mount here: {probe.stderr.strip()}")
    path = session_path(user, ONE)
    path.write_bytes(said(ONE, "alive", 1))
    command = ["unshare", "-m", sys.executable, str(SUPPORT / "deadmount.py"), str(dead), *DAEMON]
    with start_daemon(home, NO_SWEEP, command, may_be_dead=True) as daemon:
        with daemon.connect(60) as client:
            client.hello()
            until(lambda: client.call("sessions", everywhere=True)["total"] == 1, "the other root")
            with path.open("ab") as file:
                file.write(said(ONE, "and kicking", 2))
            until(lambda: texts(client, ONE) == ["alive", "and kicking"], "an append")
            until(
                lambda: any(
                    mode["name"] == "root_hangs" and str(dead) in mode["reason"]
                    for mode in client.call("status")["degraded"]
                ),
                "the dead root is named",
            )
            assert root_of(client, "claude-code")["mode"] == "events"
        assert daemon.stop() < 5


def test_a_poisoned_file_costs_only_itself(home: Path) -> None:
    """A file whose reading kills the worker each time is set aside and said; others go on."""
    user = home / "user"
    poison = session_path(user, ONE)
    poison.write_bytes(said(ONE, "x " * 30_000, 1) * 400)
    session_path(user, TWO).write_bytes(said(TWO, "healthy", 1))
    os.utime(poison)
    with start_daemon(home, NO_SWEEP) as daemon, daemon.connect(60) as client:
        client.hello()
        killed: set[int] = set()

        def kill_while_it_reads_the_poison() -> bool:
            status = client.call("index_status")
            worker = status.get("worker")
            reads = status["progress"].get("current") == str(poison)
            if reads and worker and worker not in killed:
                killed.add(worker)
                psutil.Process(worker).kill()
            quarantined = any(root["quarantined"] for root in status["roots"])
            return quarantined and status["state"] == "idle"

        until(kill_while_it_reads_the_poison, "quarantine")
        assert len(killed) >= 2
        root = root_of(client)
        assert root["failing"][0]["path"] == str(poison)
        assert any(str(poison) in warning for warning in root["warnings"])
        assert texts(client, TWO) == ["healthy"]
        # Asked for, it is tried again at once; nobody kills the worker now.
        done = client.call("index", paths=[str(poison)], force=True)
        assert client.call("index_wait", ticket=done["ticket"])["failed"] == 0
        assert root_of(client)["quarantined"] == 0


def test_a_fifo_or_folder_named_like_a_transcript_hangs_nobody(
    daemon: RunningDaemon, client: RawClient
) -> None:
    user = daemon.home / "user"
    path = session_path(user, ONE)
    path.write_bytes(said(ONE, "fine", 1))
    os.mkfifo(path.with_name(f"{TWO}.jsonl"))
    path.with_name(f"{session_id(3)}.jsonl").mkdir()
    os.symlink(path.parent, path.parent / "loop")
    os.symlink("/nowhere/at/all.jsonl", path.with_name(f"{session_id(4)}.jsonl"))
    client.call("index_wait")
    assert texts(client, ONE) == ["fine"]
    assert client.call("sessions", everywhere=True)["total"] == 1


def test_a_full_disk_is_waited_for(home: Path) -> None:
    """The store cannot be written: nothing is lost, nothing is blamed on the files."""
    if os.getuid() != 0:
        pytest.skip("needs the right to mount")
    session_path(home / "user", ONE).write_bytes(
        b"".join(
            said(ONE, " ".join(os.urandom(3).hex() for _ in range(2_000)), n) for n in range(300)
        )
    )
    data = home / "data"
    data.mkdir(mode=0o700)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m,mode=0700", "tmpfs", str(data)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip("cannot mount here")
    try:
        with start_daemon(home, NO_SWEEP) as daemon, daemon.connect(60) as client:
            client.hello()
            until(lambda: client.call("index_status")["state"] == "waiting", "the disk is full")
            assert {mode["name"] for mode in client.call("status")["degraded"]} & {"index_waits"}
            subprocess.run(["mount", "-o", "remount,size=200m", str(data)], check=True)
            assert client.call("index_wait")["failed"] == 0
            assert client.call("sessions", everywhere=True)["sessions"][0]["message_count"] == 300
    finally:
        subprocess.run(["umount", "-l", str(data)], check=False)


def test_after_a_week_off_all_changes_are_found(home: Path) -> None:
    user = home / "user"
    for number in range(4):
        name = session_id(number)
        session_path(user, name).write_bytes(said(name, "before the holidays", 1))
    with start_daemon(home) as daemon, daemon.connect(60) as client:
        client.hello()
        client.call("index_wait")
    grown, gone, new, same = (session_id(n) for n in (0, 1, 7, 2))
    with session_path(user, grown).open("ab") as file:
        file.write(said(grown, "after the holidays", 2))
    session_path(user, gone).unlink()
    session_path(user, new).write_bytes(said(new, "met on the way", 1))
    with start_daemon(home) as daemon, daemon.connect(60) as client:
        client.hello()
        client.call("index_wait")
        assert texts(client, grown) == ["before the holidays", "after the holidays"]
        assert texts(client, gone) == ["before the holidays"]
        assert texts(client, new) == ["met on the way"]
        assert texts(client, same) == ["before the holidays"]
        assert root_of(client)["gone"] == 1


@pytest.mark.full
@pytest.mark.timeout(600)
def test_giant_lines_and_sparse_files_stay_below_the_memory_bar(home: Path) -> None:
    if os.environ.get("LORE_FULL") != "1":
        pytest.skip("LORE_FULL=1 runs the long form")
    _giants(home, line_bytes=2 << 30, sparse_bytes=10 << 30)


def test_large_lines_and_sparse_files_stay_below_the_memory_bar(home: Path) -> None:
    _giants(home, line_bytes=96 << 20, sparse_bytes=10 << 30)


def _giants(home: Path, *, line_bytes: int, sparse_bytes: int) -> None:
    user = home / "user"
    image, text = session_path(user, ONE), session_path(user, TWO)
    start, end = said(ONE, "MARK", 2).split(b"MARK")
    for path, name, piece in (
        (image, ONE, b"iVBORw0KGgo" * 95_325),
        (text, TWO, b"words of a log that nobody reads " * 31_775),
    ):
        with path.open("wb") as file:
            file.write(said(name, "before", 1) + start)
            for _ in range(line_bytes // len(piece)):
                file.write(piece)
            file.write(end + said(name, "after", 3))
    sparse = session_path(user, session_id(3))
    with sparse.open("wb") as file:
        file.write(said(session_id(3), "before", 1))
        file.truncate(sparse_bytes)
        file.seek(0, os.SEEK_END)
        file.write(b"\n" + said(session_id(3), "after", 2))
    with start_daemon(home, NO_SWEEP) as daemon, daemon.connect(500) as client:
        client.hello()
        peaks = {"daemon": 0, "worker": 0}
        ticket = client.call("index")["ticket"]
        asked = client.send("index_wait", ticket=ticket)
        client.sock.settimeout(0.05)
        while asked not in client.order:
            try:
                client.read()
            except TimeoutError:
                _measure(daemon, peaks)
        client.sock.settimeout(60)
        assert client.wait(asked)["failed"] == 0
        for name in (ONE, TWO, session_id(3)):
            found = texts(client, name)
            assert found[0] == "before" and found[-1] == "after", name
        damage = root_of(client)["damage"]
        assert damage["nul"] == 1
    assert peaks["worker"] and peaks["worker"] < 300 << 20, peaks
    assert peaks["daemon"] < 150 << 20, peaks


def _measure(daemon: RunningDaemon, peaks: dict[str, int]) -> None:
    for process in daemon.children():
        try:
            if any("ingest.worker" in word for word in process.cmdline()):
                peaks["worker"] = max(peaks["worker"], process.memory_info().rss)
        except psutil.Error:
            continue
    peaks["daemon"] = max(peaks["daemon"], psutil.Process(daemon.pid).memory_info().rss)
