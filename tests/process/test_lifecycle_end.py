"""Ending: in time whatever hangs, with nothing lost and nobody left behind."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lore import paths
from lored import __version__
from lored.runtime.refusal import SOFTWARE
from support.daemon import STOP_SECONDS, RunningDaemon, environment, start_daemon
from support.fixtures import ODD
from support.wire import Hangup, RawClient, Refusal


def test_sigterm_is_a_clean_and_quick_end(home: Path) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        with start_daemon(home, may_be_dead=True) as daemon, daemon.connect() as client:
            client.hello()
            client.call("subscribe", topics=["facts"])
            assert daemon.stop(number) < STOP_SECONDS
            assert daemon.process.returncode == 0
            client.wait_hangup()
            assert not os.path.exists(daemon.socket)
            assert Path(daemon.paths.lock).read_text() == ""
            left = sorted(path.name for path in Path(daemon.paths.data_dir).glob("*.db*"))
            assert left == ["global.db", "sessions.db"]  # checkpointed: no -wal, no -shm
            assert f"stopping reason={signal.Signals(number).name}" in daemon.log()


def test_open_requests_finish_and_new_ones_hear_why_not(home: Path) -> None:
    with start_daemon(home, command=ODD, may_be_dead=True) as daemon:
        client = daemon.connect()
        client.hello()
        asked = client.send("test.sleep_long", seconds=1.0, name="work")
        while "began work" not in client.call("test.seen")["log"]:
            pass
        daemon.process.terminate()
        daemon.readiness.wait("STOPPING=1", 5, daemon.process)
        with pytest.raises(Refusal) as refusal:
            client.call("test.seen")
        assert refusal.value.code == "shutting_down" and refusal.value.wire["retryable"]
        with pytest.raises(ConnectionRefusedError):
            daemon.connect()
        assert client.wait(asked) == {"slept": "work"}
        client.wait_hangup()
        assert daemon.process.wait(5) == 0


def test_a_connection_that_comes_during_the_drain_is_refused_or_closed(home: Path) -> None:
    with start_daemon(home, command=ODD, may_be_dead=True) as daemon, daemon.connect() as client:
        client.hello()
        client.send("test.sleep_long", seconds=1.0)
        client.call("test.seen")
        daemon.process.terminate()
        daemon.readiness.wait("STOPPING=1", 5, daemon.process)
        deadline = time.monotonic() + 5
        while daemon.process.poll() is None and time.monotonic() < deadline:
            with socket.socket(socket.AF_UNIX) as sock:
                sock.settimeout(5)
                try:
                    sock.connect(daemon.socket)
                    sock.sendall(b"\x94\x00\x01\xa4ping\x90")
                    assert sock.recv(1000) in (b"",)
                except (ConnectionError, FileNotFoundError):
                    pass
        assert daemon.process.wait(5) == 0


HANGS = {
    "handler": ("test.hang", {}),
    "search": ("test.sleep_long", {"seconds": 600}),
    "writer": ("test.stick", {"seconds": 600}),
    "loop": ("test.block", {"seconds": 600}),
    "child": ("test.child", {}),
    "stopped child": ("test.child", {"name": "stopped"}),
}


@pytest.mark.parametrize("what", HANGS)
def test_sigterm_ends_it_within_5_s_whatever_hangs(home: Path, what: str) -> None:
    method, params = HANGS[what]
    with start_daemon(home, command=ODD, may_be_dead=True) as daemon, daemon.connect() as client:
        client.hello()
        asked = client.send(method, **params)
        if "child" in what:
            client.wait(asked)
        elif what != "loop":
            client.call("test.seen")
        daemon.remember_family()
        assert daemon.stop() < STOP_SECONDS
        if what in ("loop", "writer"):
            assert daemon.process.returncode in (0, SOFTWARE)
        else:
            assert daemon.process.returncode == 0
        if what == "search":
            with pytest.raises(Refusal, match="shutting_down"):
                client.wait(asked)
    # A store whose daemon was ended by force opens as if nothing had been.
    with start_daemon(home) as again, again.connect() as client:
        assert client.hello()["version"] == __version__


def test_a_second_signal_ends_it_at_once(home: Path) -> None:
    with start_daemon(home, command=ODD, may_be_dead=True) as daemon, daemon.connect() as client:
        client.hello()
        client.send("test.sleep_long", seconds=600)
        client.call("test.seen")
        daemon.process.terminate()
        daemon.readiness.wait("STOPPING=1", 5, daemon.process)
        began = time.monotonic()
        daemon.process.terminate()
        assert daemon.process.wait(5) == SOFTWARE
        assert time.monotonic() - began < 2
        assert "forced_end" in daemon.log()


def test_drain_by_a_client(home: Path) -> None:
    with start_daemon(home, may_be_dead=True) as daemon, daemon.connect() as client:
        client.hello(version=__version__)
        assert client.call("drain", reason="test") == {"draining": True}
        client.wait_hangup()
        assert daemon.process.wait(STOP_SECONDS) == 0
        assert "test: test" in daemon.log()


OLD = """
import sys, lored
lored.__version__ = "0.0.1"
from lored.main import main
sys.exit(main(["run"]))
"""

NEWCOMER = """
from lore.client import Client
with Client(name="newcomer") as client:
    answer = client.call("status")
    print(answer["version"], answer["pid"])
"""


def test_a_newer_client_replaces_an_older_daemon(home: Path) -> None:
    with start_daemon(home, command=[sys.executable, "-c", OLD], may_be_dead=True) as old:
        with old.connect() as client:
            assert client.hello()["version"] == "0.0.1"
        env = environment(home, {"LORE_START_SECONDS": "60"})
        del env["LORE_NO_SPAWN"]
        done = subprocess.run(
            [sys.executable, "-P", "-c", NEWCOMER],
            env=env,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        version, pid = done.stdout.split()
        try:
            assert version == __version__ and int(pid) != old.pid
            assert old.process.wait(STOP_SECONDS) == 0
        finally:
            os.kill(int(pid), signal.SIGTERM)
            deadline = time.monotonic() + STOP_SECONDS
            while os.path.exists(paths.resolve(env).socket) and time.monotonic() < deadline:
                time.sleep(0.01)
        assert not os.path.exists(paths.resolve(env).socket)


def write_config(daemon: RunningDaemon, text: str) -> None:
    path = Path(daemon.paths.config_file)
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)


def hang_up(daemon: RunningDaemon) -> None:
    """SIGHUP, and wait until it is done with it."""
    daemon.readiness.said.clear()
    daemon.process.send_signal(signal.SIGHUP)
    daemon.readiness.wait("RELOADING=1", 10, daemon.process)
    daemon.readiness.wait("READY=1", 10, daemon.process)


def test_sighup_reads_the_settings_and_a_wrong_file_changes_nothing(
    daemon: RunningDaemon, client: RawClient
) -> None:
    def degraded() -> list[str]:
        return [one["name"] for one in client.call("status")["degraded"]]

    write_config(daemon, 'log_level = "debug"')
    hang_up(daemon)
    client.call("status")
    client.call("ping")  # the line about a call follows its answer
    assert " debug   call method=status" in daemon.log()
    client.call("subscribe", topics=["status"])
    write_config(daemon, "log_level = 7")
    hang_up(daemon)
    assert "settings" in degraded()
    told = client.wait_event(lambda name, params: params.get("topic") == "status")
    assert "settings" in [one["name"] for one in told["degraded"]]
    assert all(one["remedy"] for one in told["degraded"])
    write_config(daemon, "")
    hang_up(daemon)
    assert "settings" not in degraded()


@pytest.mark.parametrize("swept", ["socket", "folder", "dead socket"])
def test_a_vanished_socket_is_bound_again(daemon: RunningDaemon, swept: str) -> None:
    with daemon.connect() as before:
        before.call("ping")
        os.unlink(daemon.socket)
        if swept == "folder":
            os.rmdir(daemon.paths.runtime_dir)
        elif swept == "dead socket":
            with socket.socket(socket.AF_UNIX) as sock:
                sock.bind(daemon.socket)
        hang_up(daemon)
        with daemon.connect() as after:
            assert after.call("ping")["pong"]
        assert before.call("ping")["pong"]  # whoever was connected stays so
        assert os.stat(daemon.socket).st_mode & 0o777 == 0o600


def test_it_leaves_when_somebody_else_serves_its_path(home: Path) -> None:
    with start_daemon(home, may_be_dead=True) as daemon:
        os.unlink(daemon.socket)
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(daemon.socket)
            other.listen()
            daemon.process.send_signal(signal.SIGHUP)
            assert daemon.process.wait(STOP_SECONDS) == 0
            assert os.path.exists(daemon.socket)  # not ours to remove


def test_runtime_directory_gone_for_good_means_another_place(home: Path) -> None:
    """Logout removes XDG_RUNTIME_DIR; the rules then name the state directory."""
    runtime = home / "xdg"
    runtime.mkdir(mode=0o700)
    env = {
        "LORE_HOME": "",
        "XDG_RUNTIME_DIR": str(runtime),
        "XDG_STATE_HOME": str(home / "st"),
        "XDG_DATA_HOME": str(home / "da"),
        "XDG_CONFIG_HOME": str(home / "co"),
    }
    with start_daemon(home, env) as daemon:
        assert daemon.socket == str(runtime / "lore" / "lore.sock")
        os.unlink(daemon.socket)
        os.rmdir(runtime / "lore")
        os.rmdir(runtime)
        hang_up(daemon)
        published = Path(daemon.paths.pointer).read_text().strip()
        assert published != daemon.socket
        with RawClient(published) as client:
            assert client.call("status")["socket"] == published
        with pytest.raises((FileNotFoundError, Hangup)):
            daemon.connect()
