"""When the web view ends: on signals, without anybody looking, with its terminal or parent."""

import fcntl
import json
import os
import pty
import signal
import subprocess
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from support.cli import LORE
from support.daemon import RunningDaemon, environment, make_home, remove_home, start_daemon
from support.web import SECONDS, Visitor, serve


@pytest.fixture(scope="module")
def daemon() -> Iterator[RunningDaemon]:
    """One daemon for all views of this file."""
    home = make_home()
    try:
        with start_daemon(home) as running:
            yield running
    finally:
        remove_home(home)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_well_even_with_open_pages(
    daemon: RunningDaemon, number: signal.Signals
) -> None:
    import http.client

    with serve(daemon.home, daemon.home / "user") as view:
        visitor = Visitor(view)
        stream = http.client.HTTPConnection(view.host, timeout=SECONDS)
        path = f"{view.base}events?topics=facts"
        stream.request("GET", path, headers={"Cookie": visitor.cookie})
        assert stream.getresponse().readline()
        view.process.send_signal(number)
        began = time.monotonic()
        assert view.process.wait(SECONDS) == 0
        assert time.monotonic() - began < 10  # 3 s on a quiet machine
        stream.close()
        with pytest.raises(ConnectionRefusedError):
            view.ask("sessions")


def test_nobody_looking_ends_it(daemon: RunningDaemon) -> None:
    with serve(daemon.home, daemon.home / "user", "--idle", "0.03") as view:
        assert view.process.wait(SECONDS) == 0
    assert "nobody looked" in (daemon.home / "web-errors").read_text()


def test_an_open_page_keeps_it(daemon: RunningDaemon) -> None:
    import http.client

    with serve(daemon.home, daemon.home / "user", "--idle", "0.03") as view:
        visitor = Visitor(view)
        stream = http.client.HTTPConnection(view.host, timeout=SECONDS)
        path = f"{view.base}events?topics=facts"
        stream.request("GET", path, headers={"Cookie": visitor.cookie})
        answer = stream.getresponse()
        assert answer.readline()
        with pytest.raises(subprocess.TimeoutExpired):
            view.process.wait(3.6)  # twice the idle time
        answer.close()
        stream.close()
        assert view.process.wait(SECONDS) == 0


def test_the_end_of_its_terminal_ends_it(daemon: RunningDaemon) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*LORE, "web"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment(daemon.home, {"TERM": "xterm"}),
        cwd=daemon.home / "user",
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(theirs)
    try:
        shown = b""
        while b"Ctrl-C" not in shown:
            shown += os.read(ours, 4096)
        assert b"http://127.0.0.1:" in shown
        os.close(ours)
        assert process.wait(SECONDS) == 0
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def test_the_end_of_its_parent_ends_it(daemon: RunningDaemon, tmp_path: Path) -> None:
    # A shell that starts the view, says its pid, and is then killed without a chance to act.
    script = '"$@" >"$OUT" 2>/dev/null & echo $!; wait'
    parent = subprocess.Popen(
        ["/bin/sh", "-c", script, "sh", *LORE, "web", "--json"],
        stdout=subprocess.PIPE,
        env=environment(daemon.home, {"OUT": str(tmp_path / "out")}),
        cwd=daemon.home / "user",
    )
    assert parent.stdout is not None
    child = psutil.Process(int(parent.stdout.readline()))
    try:
        deadline = time.monotonic() + SECONDS
        while not (tmp_path / "out").exists() or not (tmp_path / "out").read_text():
            assert time.monotonic() < deadline
            time.sleep(0.05)  # a file that another process writes has no event here
        assert json.loads((tmp_path / "out").read_text())["data"]["url"]
        parent.kill()
        parent.wait()
        while child.is_running() and child.status() != psutil.STATUS_ZOMBIE:
            assert time.monotonic() < deadline
            time.sleep(0.05)  # nor has the end of somebody else's child
    finally:
        parent.stdout.close()
        if child.is_running():
            child.kill()
