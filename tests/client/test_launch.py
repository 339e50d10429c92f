"""Connect or start, with real processes: from nothing, over remains, past a failing daemon."""

import contextlib
import fcntl
import importlib.abc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from lore import Client, __version__, errors, handshake, launch, spawn, transport
from lore.paths import Paths, resolve
from support.daemon import environment, start_daemon

from .conftest import TinyDaemon

SECONDS = "20"
"""For a start on a machine with two noisy cores; a quiet one needs 0.4 s."""


@pytest.fixture
def spawning(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Paths]:
    """A private environment in which clients may start the daemon; it is stopped at the end."""
    for name in list(os.environ):
        if name.startswith(("LORE_", "XDG_")):
            monkeypatch.delenv(name)
    for name, value in environment(home).items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("LORE_NO_SPAWN")
    monkeypatch.setenv("LORE_START_SECONDS", SECONDS)
    where = resolve()
    yield where
    pid = spawn.holder(where)
    if pid is not None:
        os.kill(pid, signal.SIGTERM)
        with contextlib.suppress(psutil.NoSuchProcess):
            psutil.Process(pid).wait(10)
    assert spawn.holder(where) is None


def python(code: str, **env: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_client_starts_the_daemon_and_leaves_it_alone(spawning: Paths) -> None:
    notify = {"NOTIFY_SOCKET": "/nowhere", "LISTEN_FDS": "1", "LISTEN_PID": "1"}
    done = python("from lore import Client; print(Client().ping()['pong'])", **notify)
    assert (done.stdout, done.stderr) == ("True\n", "")
    pid = spawn.holder(spawning)
    assert pid is not None
    daemon = psutil.Process(pid)
    assert os.getsid(pid) not in (os.getsid(0), 0)
    assert daemon.ppid() != os.getpid()
    assert daemon.cwd() == "/"
    assert not notify.keys() & daemon.environ().keys()
    descriptors = {os.readlink(f"/proc/{pid}/fd/{n}") for n in (0, 1, 2)}
    assert descriptors == {"/dev/null", spawn.output_file(spawning)}
    assert daemon.terminal() is None
    with Client(start=False) as client:  # found again, not started twice
        assert client.ping()["pong"] is True
    assert spawn.holder(spawning) == pid


def test_clients_at_once_start_one_daemon(spawning: Paths) -> None:
    code = "from lore import Client; print(Client().server['instance'])"
    clients = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        for _ in range(6)
    ]
    answers = [client.communicate(timeout=60)[0] for client in clients]
    assert len(set(answers)) == 1
    assert answers[0].strip()


def test_the_socket_file_of_a_killed_daemon_is_no_hindrance(spawning: Paths) -> None:
    with Client() as client:
        first = client.server["instance"]
    pid = spawn.holder(spawning)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    psutil.wait_procs([psutil.Process(pid)] if psutil.pid_exists(pid) else [], 10)
    assert os.path.exists(spawning.socket)
    with Client() as client:
        assert client.server["instance"] != first


def test_a_call_outlives_its_daemon(spawning: Paths) -> None:
    with Client() as client:
        client.ping()
        pid = spawn.holder(spawning)
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(psutil.NoSuchProcess):
            psutil.Process(pid).wait(10)
        assert client.ping()["pong"] is True
        assert client.drain() == {"draining": True}
        assert client.ping()["pong"] is True  # a new daemon, after the old one is gone
    assert spawn.holder(spawning) != pid


def test_a_daemon_that_cannot_start_says_why(spawning: Paths) -> None:
    os.makedirs(spawning.config_dir)
    Path(spawning.config_file).write_text("no_such_setting = 1\n")
    started = time.monotonic()
    with pytest.raises(errors.Unavailable, match=r"ended while starting: .*no_such_setting"):
        Client()
    assert time.monotonic() - started < float(SECONDS) / 2


class Missing(importlib.abc.MetaPathFinder):
    """An interpreter without the daemon's extra."""

    def find_spec(self, name: str, *rest: Any) -> None:
        if name == "aiosqlite":
            raise ModuleNotFoundError(name)


def test_a_client_without_the_daemon_says_what_to_install(
    spawning: Paths, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "meta_path", [Missing(), *sys.meta_path])
    monkeypatch.delitem(sys.modules, "aiosqlite", raising=False)  # another test may have it
    monkeypatch.setenv("PATH", f"{os.path.dirname(sys.executable)}:/usr/bin:/bin")
    with pytest.raises(errors.Unavailable, match=r"pip install 'lored\[daemon\]'") as caught:
        Client()
    assert not caught.value.retryable
    script = tmp_path / "lored"  # another environment has it
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -P -m lored.main "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with Client() as client:
        assert client.ping()["pong"] is True


def older_daemon(version: str) -> list[str]:
    code = (
        f"import lored; lored.__version__ = {version!r}; "
        "import sys; from lored.main import main; sys.exit(main(['run']))"
    )
    return [sys.executable, "-P", "-c", code]


def test_a_newer_client_replaces_an_older_daemon_once(spawning: Paths, home: Path) -> None:
    with start_daemon(home, command=older_daemon("0.0.1"), may_be_dead=True) as old:
        with Client() as client:
            assert client.server["version"] == __version__
            assert client.ping()["pong"] is True
        assert old.process.wait(10) == 0
    with Client(start=False) as client:
        client.drain()
    wait_free(spawning)
    with (
        start_daemon(home, command=older_daemon("0.0.1"), may_be_dead=True) as old,
        Client() as client,  # the cap: two installations must not restart it in turn
    ):
        assert client.server["version"] == "0.0.1"
        assert client.ping()["pong"] is True
        assert old.process.poll() is None


def test_a_daemon_that_refuses_to_drain_is_kept(where: Paths, tiny: TinyDaemon) -> None:
    def refuse(peer: object, params: object) -> object:
        raise errors.Conflict("a restore is running")

    os.environ["LORE_NO_SPAWN"] = ""  # the fixture restores it
    os.makedirs(where.state_dir)
    tiny.scripts["hello"] = lambda peer, params: {"version": "0.0.1", "protocol": 1}
    tiny.scripts["drain"] = refuse
    started = time.monotonic()
    with Client() as client:
        assert client.ping() == {"pong": True}
    assert tiny.methods() == ["drain", "ping"]
    assert time.monotonic() - started < handshake.DRAIN_SECONDS


def wait_free(where: Paths) -> None:
    for _ in launch.pauses(time.monotonic() + 10):
        if spawn.holder(where) is None:
            return
    raise AssertionError("the daemon did not end")


@pytest.mark.parametrize("start", [False, True])
def test_an_older_daemon_is_kept_where_none_may_start(
    spawning: Paths, home: Path, monkeypatch: pytest.MonkeyPatch, start: bool
) -> None:
    if start:
        monkeypatch.setenv("LORE_NO_SPAWN", "1")
    with (
        start_daemon(home, command=older_daemon("0.0.1")),
        Client(start=start) as client,
    ):
        assert client.server["version"] == "0.0.1"


def test_versions_are_compared_by_number() -> None:
    assert handshake.is_newer("0.10.0", "0.9.9")
    assert not handshake.is_newer("0.1.0", "0.1.0")
    assert not handshake.is_newer("0.1.0", "1.0")
    assert not handshake.is_newer("1.0.0", "unknown")
    assert not handshake.is_newer("1.0.0rc1", "0.1.0")


def test_a_waiting_client_takes_the_daemon_another_one_starts(
    where: Paths, tiny: TinyDaemon
) -> None:
    os.environ["LORE_NO_SPAWN"] = "0"
    tiny.stop()
    os.makedirs(where.state_dir)
    with open(where.spawn_lock, "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        threading.Timer(0.1, tiny.start).start()
        launch.find_or_start(where, 10).close()
        tiny.stop()
        with pytest.raises(errors.Unavailable, match="another process is starting"):
            launch.find_or_start(where, 0.1)


def test_a_daemon_going_down_is_waited_for_and_named(where: Paths, tiny: TinyDaemon) -> None:
    os.environ["LORE_NO_SPAWN"] = ""
    tiny.stop()
    os.makedirs(where.state_dir)
    assert spawn.holder(where) is None
    with open(where.lock, "w") as lock:
        lock.write(f'{{"pid": {os.getpid()}}}')
        lock.flush()
        assert spawn.holder(where) is None  # text of the dead, lock free
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert spawn.holder(where) == os.getpid()
        with pytest.raises(errors.Unavailable, match=f"pid {os.getpid()}.*going down"):
            launch.find_or_start(where, 0.1)


def test_a_home_that_is_no_folder(where: Paths) -> None:
    os.environ["LORE_NO_SPAWN"] = ""
    Path(where.state_dir).touch()
    with pytest.raises(errors.Unavailable, match="none can start here") as caught:
        launch.find_or_start(where)
    assert "sandboxed" not in caught.value.data


def test_start_seconds_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for text, seconds in (("", 3.0), ("7.5", 7.5), ("-1", 0.0), ("soon", 3.0)):
        monkeypatch.setenv("LORE_START_SECONDS", text)
        assert launch._start_seconds() == seconds


def test_systemd_is_asked_only_for_the_default_paths(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A systemctl that records what it is asked; the real one is tested with the units."""
    record = tmp_path / "asked"
    script = tmp_path / "systemctl"
    script.write_text(f'#!/bin/sh\necho "$@" >> {record}\ncat {tmp_path}/state 2>/dev/null\n')
    script.chmod(0o755)
    (tmp_path / "systemd").mkdir()
    (tmp_path / "systemd" / "private").touch()
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("LORE_HOME", "/somewhere")
    assert not spawn.start_by_systemd(resolve())
    assert not record.exists()
    monkeypatch.delenv("LORE_HOME")
    assert not spawn.start_by_systemd(resolve())
    (tmp_path / "state").write_text("ActiveState=inactive\nUnitFileState=enabled\n")
    assert spawn.start_by_systemd(resolve())
    (tmp_path / "state").write_text("ActiveState=active\nUnitFileState=enabled\n")
    assert spawn.start_by_systemd(resolve())
    asked = [line.split()[1] for line in record.read_text().splitlines()]
    assert asked == ["show", "show", "start", "show", "restart"]
    script.write_text("#!/bin/sh\nexit 1\n")
    assert not spawn.start_by_systemd(resolve())
    (tmp_path / "systemd" / "private").unlink()
    assert not spawn.start_by_systemd(resolve())


def test_nothing_is_started_by_a_look(where: Paths) -> None:
    assert launch.find(where) is None
    assert not os.path.exists(where.state_dir)
    assert transport.connect(where.socket) is None
