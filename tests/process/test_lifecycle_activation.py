"""Socket activation, idle exit, hand-over, watchdog: with the supervisor's real tools."""

import asyncio
import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lored.runtime import listen, selfcheck
from lored.runtime.notify import Notifier
from support.daemon import Readiness, environment, start_daemon
from support.fixtures import ODD
from support.wire import RawClient

RUN = [sys.executable, "-P", "-m", "lored.main", "run"]
needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-socket-activate") is None, reason="no systemd-socket-activate here"
)


@contextlib.contextmanager
def activated(
    home: Path, path: Path, extra: dict[str, str] | None = None
) -> Iterator["subprocess.Popen[bytes]"]:
    """systemd's own activator on ``path``: it becomes the daemon at the first connection."""
    env = environment(home, extra)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    process = subprocess.Popen(
        [
            "systemd-socket-activate",
            f"--listen={path}",
            *(f"--setenv={name}={value}" for name, value in env.items()),
            *RUN,
        ],
        env=env,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 10
        while not path.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
        assert process.wait(5) is not None


@needs_systemd
def test_the_first_connection_starts_it_and_its_end_keeps_the_socket(home: Path) -> None:
    path = home / "run" / "lore.sock"
    with activated(home, path) as process:
        inode = os.stat(path).st_ino
        with RawClient(str(path), timeout_s=30) as client:
            status = client.call("status")
            assert status["activated"] is True and status["pid"] == process.pid
            assert status["socket"] == str(path)
        process.terminate()
        assert process.wait(5) == 0
        assert os.stat(path).st_ino == inode


@needs_systemd
def test_it_leaves_when_idle_and_not_while_a_client_is_there(home: Path) -> None:
    path = home / "run" / "lore.sock"
    quick = {"LORE_IDLE_EXIT_SECONDS": "1"}
    with activated(home, path, quick) as process:
        with RawClient(str(path), timeout_s=30) as client:
            client.call("ping")
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(2.5)
            assert client.call("ping")["pong"]
        assert process.wait(10) == 0
        assert "reason=idle" in (home / "state" / "lored.log").read_text()
        assert path.exists()


def test_a_daemon_that_nobody_would_start_again_stays(home: Path) -> None:
    env = {"LORE_IDLE_EXIT_SECONDS": "1"}
    with start_daemon(home, env) as daemon, pytest.raises(subprocess.TimeoutExpired):
        daemon.process.wait(2.0)


@needs_systemd
def test_a_daemon_of_a_client_makes_way_for_the_activated_one(home: Path) -> None:
    with start_daemon(home, may_be_dead=True) as first:
        with first.connect() as client:
            client.call("ping")
        path = home / "run" / "activated.sock"
        with activated(home, path) as process:
            with RawClient(str(path), timeout_s=30) as client:
                assert client.call("status")["pid"] == process.pid
            assert first.process.wait(5) == 0
            assert Path(first.paths.pointer).read_text().strip() == str(path)


def test_descriptors_for_another_process_are_not_taken(home: Path) -> None:
    env = {"LISTEN_FDS": "1", "LISTEN_PID": "1"}
    with start_daemon(home, env) as daemon, daemon.connect() as client:
        assert client.call("status")["activated"] is False
        assert client.call("status")["socket"] == daemon.socket


def test_a_descriptor_that_is_no_listening_socket_is_refused(home: Path) -> None:
    script = (
        "import os, socket, sys\n"
        "a, b = socket.socketpair()\n"
        "os.dup2(a.fileno(), 3)\n"
        "os.environ.update(LISTEN_FDS='1', LISTEN_PID=str(os.getpid()))\n"
        f"os.execv(sys.executable, {RUN!r})"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment(home),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 78 and "no listening Unix stream socket" in done.stderr


def test_variables_of_the_supervisor_do_not_reach_children() -> None:
    env = {"LISTEN_FDS": "1", "LISTEN_PID": "1", "LISTEN_FDNAMES": "x", "OTHER": "kept"}
    assert listen.take_activated(env) is None
    assert env == {"OTHER": "kept"}


def test_beats_come_while_it_works_and_stop_while_the_loop_hangs(home: Path) -> None:
    env = {"WATCHDOG_USEC": "300000"}
    with start_daemon(home, env, command=ODD) as daemon, daemon.connect() as client:
        client.hello()
        for _ in range(3):
            daemon.readiness.said.clear()
            daemon.readiness.wait("WATCHDOG=1", 5, daemon.process)
        asked = client.send("test.block", seconds=1.2)
        with pytest.raises(TimeoutError):
            client.sock.settimeout(0.3)
            client.wait(asked)
        drain_now(daemon.readiness)
        with pytest.raises(AssertionError, match="no WATCHDOG"):
            daemon.readiness.wait("WATCHDOG=1", 0.5, daemon.process)
        client.sock.settimeout(10)
        client.wait(asked)
        daemon.readiness.wait("WATCHDOG=1", 5, daemon.process)


def drain_now(said: Readiness) -> None:
    """Forget what was said until now."""
    said.sock.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            said.sock.recv(4096)
    said.said.clear()


async def test_beats_end_when_a_writer_is_stuck(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selfcheck, "STUCK_SECONDS", 0.2)
    said = Readiness(home)
    notifier = Notifier({"NOTIFY_SOCKET": said.path, "WATCHDOG_USEC": "60000"})
    stuck: list[str] = []

    async def ask(seconds: float) -> list[str]:
        return stuck

    task = asyncio.create_task(selfcheck.beat(notifier, ask))
    await asyncio.to_thread(said.wait, "WATCHDOG=1", 5, None)
    stuck.append("global")
    await asyncio.sleep(0.3)
    drain_now(said)
    with pytest.raises(AssertionError, match="no WATCHDOG"):
        await asyncio.to_thread(said.wait, "WATCHDOG=1", 0.3, None)
    stuck.clear()
    await asyncio.to_thread(said.wait, "WATCHDOG=1", 5, None)
    task.cancel()
    said.close()


def test_readiness_reaches_an_abstract_socket_too() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(f"\0lored-test-{os.getpid()}")
        sock.settimeout(5)
        Notifier({"NOTIFY_SOCKET": f"@lored-test-{os.getpid()}"}).ready("here")
        assert sock.recv(4096).decode().splitlines()[:2] == ["READY=1", "STATUS=here"]
    Notifier({"NOTIFY_SOCKET": "/nowhere/at/all"}).ready("nobody hears")
    assert Notifier({"WATCHDOG_USEC": "100"}).watchdog_seconds is None
