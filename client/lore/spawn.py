"""Starting the daemon's process: by systemd where it manages our socket, else detached.

Only the start itself: whether and when is decided in launch.py, which imports this module
only when nobody listens.
"""

import importlib.util
import os
import shutil
import subprocess
import sys

from lore.errors import Unavailable
from lore.paths import Paths

SOCKET_UNIT, SERVICE_UNIT = "lored.socket", "lored.service"

REMEDY = "pip install 'lored[daemon]'"

_DAEMON_NEEDS = ("lored.main", "aiosqlite", "numpy", "orjson", "structlog")
"""Modules of the daemon extra that prove that it is installed in this interpreter."""

_NOT_INHERITED = (
    "JOURNAL_STREAM",
    "LISTEN_FDNAMES",
    "LISTEN_FDS",
    "LISTEN_PID",
    "LORE_NO_SPAWN",
    "NOTIFY_SOCKET",
    "WATCHDOG_PID",
    "WATCHDOG_USEC",
)
"""Variables that speak of the caller's own service, which the daemon would answer for."""

_SYSTEMCTL_SECONDS = 2.0


def start_by_systemd(paths: Paths) -> bool:
    """Ask the user's systemd for our units; False when it does not manage them.

    Only for the default paths, which are all that the units serve. An active socket unit that
    nobody can connect to has lost its socket file: it is restarted with its service.
    """
    if paths.realm or any(os.environ.get(name) for name in ("LORE_HOME", "LORE_SOCKET")):
        return False
    runtime = os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
    if not os.path.exists(runtime + "/systemd/private") or not shutil.which("systemctl"):
        return False
    shown = _systemctl("show", "--property=ActiveState,UnitFileState", SOCKET_UNIT)
    if shown is None:
        return False
    state = dict(line.split("=", 1) for line in shown.split() if "=" in line)
    if state.get("ActiveState") == "active":
        return _systemctl("restart", SOCKET_UNIT, SERVICE_UNIT) is not None
    if state.get("UnitFileState") in ("enabled", "enabled-runtime", "linked"):
        return _systemctl("start", SOCKET_UNIT) is not None
    return False


def _systemctl(*words: str) -> "str | None":
    try:
        done = subprocess.run(
            ["systemctl", "--user", *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SYSTEMCTL_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout


def can_start_own() -> bool:
    """Whether this interpreter has the daemon and what it needs, so that one started from
    here has this client's version."""
    return bool(sys.executable) and all(map(_has, _DAEMON_NEEDS))


def _has(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def command() -> list[str]:
    """The command line of the daemon: this interpreter's, else the `lored` on PATH.

    Raises `Unavailable` naming what to install. `-P` keeps the caller's directory, which may
    hold anything, off the module path.
    """
    if can_start_own():
        return [sys.executable, "-P", "-m", "lored.main", "run"]
    script = shutil.which("lored")
    own_scripts = os.path.dirname(sys.executable or "")
    if script is not None and os.path.dirname(script) != own_scripts:
        return [script, "run"]
    error = Unavailable(f"the memory daemon is not installed beside this client; run: {REMEDY}")
    error.retryable = False
    raise error


def start_detached(paths: Paths) -> int:
    """Start the daemon in a session of its own; returns its pid.

    A shell of one line starts it in the background and ends, so that the daemon's parent is
    init from the first moment. What it prints before it has a log goes to `output_file`.
    """
    words = command()
    env = {name: value for name, value in os.environ.items() if name not in _NOT_INHERITED}
    env["LORE_REALM"] = paths.realm
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    output = os.open(output_file(paths), flags, 0o600)
    try:
        shell = subprocess.run(
            ["/bin/sh", "-c", '"$@" >&2 & echo $!', "lored", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=output,
            cwd="/",
            env=env,
            start_new_session=True,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise Unavailable(f"cannot start {words[0]}: {error}") from None
    finally:
        os.close(output)
    return int(shell.stdout)


def is_alive(pid: int) -> bool:
    """Whether the process still runs (or is a zombie whose init does not reap)."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def holder(paths: Paths) -> "int | None":
    """The pid of the daemon that holds the lock, listening or not; None when it is free.

    The text of the lock file may be stale, so a living pid in it is believed only if the lock
    is really held. The moment for which a free lock is shared here is safe: starters among
    the clients are kept out by the spawn lock.
    """
    import fcntl
    import json

    try:
        with open(paths.lock, encoding="utf-8") as file:
            pid = int(json.loads(file.read(4096))["pid"])
            if not is_alive(pid):
                return None
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return pid
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return None


def output_file(paths: Paths) -> str:
    """Where the daemon's words before its log are kept; overwritten at each start."""
    return paths.state_dir + "/start.out"


def last_words(paths: Paths) -> str:
    """The last line a failed start printed, or where to look."""
    try:
        with open(output_file(paths), encoding="utf-8", errors="replace") as file:
            lines = [line.strip() for line in file.read(1 << 16).splitlines() if line.strip()]
    except OSError:
        lines = []
    return lines[-1] if lines else f"it said nothing; see {paths.log_file}"
