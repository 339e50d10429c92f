"""Real daemons for tests: each in a private short directory, with proof that nothing is left.

    with start_daemon(home) as daemon:
        with daemon.connect() as client:
            client.call("ping")

The start is awaited by the daemon's own readiness message (sd_notify). At the end the daemon
gets SIGTERM and must exit within 5 s with code 0, and no process of it may be left. Nothing of
the user's own environment is seen: HOME is `<home>/user`, LORE_HOME is `<home>`, so a test puts
transcripts under `<home>/user/.claude` and the like.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import psutil

from lore.paths import Paths, resolve
from support.wire import RawClient

READY_SECONDS = 120.0
"""For the start on a machine that is busy with other things; a quiet one needs 0.3 s, and 13 s
were seen beside a load of 8 under `nice`."""

STOP_SECONDS = 5.0
"""The contract of the daemon: from SIGTERM to its end, whatever hangs."""

_KEPT = ("PATH", "LANG", "LC_ALL", "TZ", "TMPDIR", "LORE_SQLITE", "LORE_SQLITE_VEC")


def make_home() -> Path:
    """A private directory with a path short enough for a socket below it."""
    home = Path(tempfile.mkdtemp(prefix="lr", dir="/tmp"))
    (home / "user").mkdir()
    return home


def environment(home: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The whole environment of a daemon or client under test."""
    env = {name: os.environ[name] for name in _KEPT if name in os.environ}
    env |= {"HOME": str(home / "user"), "LORE_HOME": str(home), "LORE_NO_SPAWN": "1"}
    return env | dict(extra or {})


class Readiness:
    """A NOTIFY_SOCKET: collects what the daemon says about itself."""

    def __init__(self, home: Path) -> None:
        self.path = str(home / f"notify{time.monotonic_ns()}")
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock.bind(self.path)
        self.said: list[str] = []

    def wait(self, word: str, seconds: float, alive: "subprocess.Popen[bytes] | None") -> None:
        """Until a line ``word`` comes. Raises AssertionError if it does not, or if the
        process ends first."""
        deadline = time.monotonic() + seconds
        self.sock.settimeout(0.1)
        while word not in self.said:
            try:
                self.said += self.sock.recv(4096).decode().splitlines()
            except TimeoutError:
                if alive is not None and alive.poll() is not None:
                    raise AssertionError(f"daemon ended with {alive.returncode}") from None
                if time.monotonic() > deadline:
                    raise AssertionError(f"no {word} within {seconds} s: {self.said}") from None

    def close(self) -> None:
        """No more."""
        self.sock.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)


class RunningDaemon:
    """A daemon process under test."""

    def __init__(
        self, process: "subprocess.Popen[bytes]", home: Path, env: dict[str, str], said: Readiness
    ) -> None:
        self.process, self.home, self.env, self.readiness = process, home, env, said
        self.paths: Paths = resolve(env)
        self.pid = process.pid
        self._family: set[int] = set()

    @property
    def socket(self) -> str:
        """Where it listens."""
        return self.paths.socket

    def connect(self, timeout_s: float = 20.0) -> RawClient:
        """A bare connection, without hello."""
        return RawClient(self.socket, timeout_s)

    def log(self) -> str:
        """All of the current log file."""
        path = Path(self.paths.log_file)
        return path.read_text() if path.exists() else ""

    def children(self) -> list[psutil.Process]:
        """Its children now."""
        try:
            return psutil.Process(self.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []

    def kill(self) -> None:
        """kill -9, and wait for the end."""
        self.process.kill()
        self.process.wait(STOP_SECONDS)

    def stop(self, number: int = signal.SIGTERM) -> float:
        """Send a signal; the seconds until the process has ended (at most `STOP_SECONDS`)."""
        began = time.monotonic()
        if self.process.poll() is None:
            self.process.send_signal(number)
        self.process.wait(STOP_SECONDS)
        return time.monotonic() - began

    def remember_family(self) -> None:
        """Note the children, to prove later that none is left."""
        self._family |= {child.pid for child in self.children()}

    def assert_no_orphans(self) -> None:
        """No process that was a child of the daemon outlives it (for more than 2 s)."""
        deadline = time.monotonic() + 2.0
        while True:
            left = [pid for pid in self._family if _runs(pid)]
            if not left:
                return
            if time.monotonic() > deadline:
                for pid in left:
                    os.kill(pid, signal.SIGKILL)
                raise AssertionError(f"left behind: {left}")
            time.sleep(0.02)


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@contextlib.contextmanager
def start_daemon(
    home: Path,
    env: Mapping[str, str] | None = None,
    command: Sequence[str] | None = None,
    *,
    may_be_dead: bool = False,
) -> Iterator[RunningDaemon]:
    """Run a daemon over ``home`` until the block ends.

    ``env`` is added to its environment; ``command`` replaces `lored run`. With ``may_be_dead``
    the block may end it by itself (kill, drain), else it must still run at the end.
    """
    (home / "user").mkdir(exist_ok=True)
    said = Readiness(home)
    full = environment(home, env)
    words = list(command or [sys.executable, "-P", "-m", "lored.main", "run"])
    with open(home / "output", "ab") as output:
        process = subprocess.Popen(
            words,
            env=full | {"NOTIFY_SOCKET": said.path},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    daemon = RunningDaemon(process, home, full, said)
    try:
        try:
            said.wait("READY=1", READY_SECONDS, process)
        except AssertionError as error:
            words_said = (home / "output").read_text(errors="replace")[-4000:]
            raise AssertionError(f"{error}\n{words_said}\n{daemon.log()[-4000:]}") from None
        yield daemon
        daemon.remember_family()
        if not may_be_dead:
            assert process.poll() is None, f"daemon died: {daemon.log()[-4000:]}"
        daemon.stop()
        if not may_be_dead:
            assert process.returncode == 0, f"exit {process.returncode}: {daemon.log()[-4000:]}"
        daemon.assert_no_orphans()
    finally:
        daemon.remember_family()
        if process.poll() is None:
            process.kill()
        process.wait()
        said.close()
        daemon.assert_no_orphans()


def remove_home(home: Path) -> None:
    """Take a private directory away, whatever modes a test left in it."""
    shutil.rmtree(home, ignore_errors=True)
