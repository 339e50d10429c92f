"""The first steps of a daemon, before its event loop: each may refuse, with one sentence.

Order matters: folders, then the lock, then the socket, so that nobody who does not hold the
lock touches the socket's path. The socket listens before the stores are open: clients that
connect meanwhile wait in its queue instead of starting daemons of their own.
"""

import contextlib
import ctypes
import os
import resource
import signal
import sys
import time
from typing import Final, NamedTuple

from lore.errors import Invalid
from lore.paths import Paths, resolve
from lore.wire import codec
from lored import __version__
from lored.runtime import config, listen
from lored.runtime.listen import Listener
from lored.runtime.lock import Lock, read_holder
from lored.runtime.refusal import ALREADY_RUNNING, Refused
from lored.runtime.signals import HANDLED
from lored.services.settings import Settings

PROBE_SECONDS: Final = 0.3
"""A client that asks who holds the lock shares it for a moment; that is not a daemon."""

HANDOVER_SECONDS: Final = 6.0
"""For the daemon that an activated one replaces: its drain takes 5 s at most."""

PR_SET_DUMPABLE: Final = 4
"""linux/prctl.h."""

OPEN_FILES: Final = 8192
"""Descriptors wanted: 256 clients, 40 store files, transcripts; the default is often 1024."""


class Ground(NamedTuple):
    """What a daemon stands on."""

    paths: Paths
    settings: Settings
    lock: Lock
    listener: Listener


def locate() -> tuple[Paths, Settings]:
    """Paths and settings from the environment. Raises `Refused`."""
    try:
        paths = resolve()
        return paths, config.load(paths.config_file)
    except Invalid as error:
        raise Refused(error.message) from None


def check_codec() -> None:
    """Refuse msgpack without its C part: 49 s for one message of 20 MB."""
    if not codec.FAST:
        raise Refused(
            "msgpack runs in pure Python here, too slow for a daemon; "
            "run: pip install --force-reinstall msgpack"
        )


def take(paths: Paths, settings: Settings) -> Ground:
    """Lock and socket. Raises `Refused`; then nothing is left behind."""
    lock = Lock(paths.lock)
    activated = listen.take_activated()
    _take_lock(lock, activated is not None)
    # From here on there is something to clean up: a signal waits for its handlers
    # (Signals.install) instead of ending the process on the spot.
    signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED)
    try:
        listener = activated or listen.bind(paths.socket)
        describe(lock, listener)
    except BaseException:
        lock.release()
        raise
    with contextlib.suppress(OSError):  # a full disk: clients still find the rules' own path
        listen.publish(paths.pointer, listener.path)
    return Ground(paths, settings, lock, listener)


def describe(lock: Lock, listener: Listener) -> None:
    """Write into the lock file who holds it."""
    lock.describe(
        {
            "pid": os.getpid(),
            "version": __version__,
            "socket": listener.path,
            "activated": listener.activated,
        }
    )


def _take_lock(lock: Lock, activated: bool) -> None:
    if _acquire_within(lock, PROBE_SECONDS):
        return
    holder = read_holder(lock.path)
    pid = holder.get("pid")
    if activated and isinstance(pid, int) and pid > 1:
        # The supervisor owns the socket now, so the daemon that a client once started can no
        # longer be reached: it makes way.
        if not holder.get("activated"):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGTERM)
        if _acquire_within(lock, HANDOVER_SECONDS):
            return
    raise Refused(
        f"lored {holder.get('version', '')} runs already (pid {pid or 'unknown'}, socket "
        f"{holder.get('socket', 'unknown')}); stop it with: lore down",
        ALREADY_RUNNING,
    )


def _acquire_within(lock: Lock, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not lock.acquire():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def fill_standard_descriptors() -> None:
    """Open /dev/null for each of 0, 1, 2 that is closed: else a store file would get that
    number, and a message for stderr would be written into it."""
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, which is this one


SWITCH_SECONDS: Final = 0.001
"""How long a thread keeps Python from the others. A search asks for it again after each step of
its SQL, so beside a thread that stores what was read it would wait 5 ms (Python's own) each time:
p50 beside a busy thread 95 to 122 ms, with this 72 to 92."""


def limit_process() -> None:
    """Room for descriptors; short turns; no core dumps, since they would hold memory text."""
    sys.setswitchinterval(SWITCH_SECONDS)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
    if sys.platform == "linux":
        # A core that is piped to a program ignores the limit (core(5)). Not dumpable also means
        # that no other program of the user can attach to us or read our memory.
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
