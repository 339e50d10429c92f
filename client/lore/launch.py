"""Connect or start: find the daemon of this user, and bring it up when there is none.

The way, in order:

1. Connect to the socket of our paths, then to the one that a running daemon published in its
   pointer file (a shell with another XDG_RUNTIME_DIR resolves another path).
2. Only if nobody listens there (ENOENT, ECONNREFUSED), and `LORE_NO_SPAWN` does not forbid it:
   take the spawn lock, one starter per user; while waiting for it keep trying 1.
3. With the lock try 1 again: another starter may have won meanwhile.
4. If systemd manages our socket unit, let it start; else spawn the daemon detached: a session
   of its own, null input, its first words in a file, a parent that is already gone, so that
   it neither dies with the agent's process tree nor stays behind as a zombie.
5. Try 1 with doubling pauses until the daemon answers, 3 s in all.

Two daemons are not prevented here but by the daemon's own lock; the spawn lock only keeps
thirty clients from starting thirty processes. What fails is said with the remedy.
"""

import errno
import os
import time

from lore.errors import Unavailable
from lore.paths import Paths
from lore.transport import Stream, connect

TYPE_CHECKING = False  # as typing's, without its import
if TYPE_CHECKING:
    from collections.abc import Iterator

START_SECONDS = 3.0
"""From the first try to the answer; a cold start takes 0.1 to 0.5 s. `LORE_START_SECONDS`
raises it for a slow machine."""

_FIRST_PAUSE_S = 0.005
_LONGEST_PAUSE_S = 0.2
"""Pauses between tries double from the first to the longest."""

_GRACE_SECONDS = 0.5
"""After our child has ended, how long another daemon may still come up (it had the lock)."""

_READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM)
"""A home that cannot be written is a sandbox's: a daemon started inside could not serve."""


def find(paths: Paths, deadline: "float | None" = None) -> "Stream | None":
    """A connection to the running daemon, or None. Never starts one, never waits for one.

    Raises `Unavailable` as `transport.connect` does.
    """
    stream = connect(paths.socket, deadline)
    if stream is None:
        published = _published(paths.pointer)
        if published is not None and published != paths.socket:
            stream = connect(published, deadline)
    return stream


def find_or_start(paths: Paths, seconds: "float | None" = None) -> Stream:
    """A connection to the daemon, started if there is none, within `seconds` (default
    `START_SECONDS`). Raises `Unavailable` that names the remedy."""
    if seconds is None:
        seconds = _start_seconds()
    deadline = time.monotonic() + seconds
    stream = find(paths, deadline)
    if stream is not None:
        return stream
    if os.environ.get("LORE_NO_SPAWN", "") not in ("", "0"):
        raise absent(paths, "LORE_NO_SPAWN forbids starting one")
    import fcntl

    lock = _open_lock(paths)
    try:
        for _ in pauses(deadline):
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                stream = find(paths, deadline)
                if stream is not None:
                    return stream
        else:
            raise Unavailable(
                f"another process is starting the daemon but it did not answer within "
                f"{seconds:g} s; see {paths.log_file}"
            )
        return find(paths, deadline) or _start(paths, deadline, seconds)
    finally:
        os.close(lock)


def absent(paths: Paths, why: str) -> Unavailable:
    """The error for no daemon and no leave to start one."""
    return Unavailable(f"no memory daemon listens at {paths.socket} and {why}; run: lore up")


def _start(paths: Paths, deadline: float, seconds: float) -> Stream:
    """Steps 4 and 5. A daemon that holds its lock but does not listen is draining or still
    starting: it is waited for, as another one could not take over before."""
    from lore import spawn

    started, pid, ended_at = False, None, 0.0
    for _ in pauses(deadline):
        stream = find(paths, deadline)
        if stream is not None:
            return stream
        if not started:
            if spawn.holder(paths) is None:
                started = True
                pid = None if spawn.start_by_systemd(paths) else spawn.start_detached(paths)
        elif pid is not None and not spawn.is_alive(pid):
            ended_at = ended_at or time.monotonic()
            if time.monotonic() - ended_at > _GRACE_SECONDS:
                raise Unavailable(
                    f"the daemon ended while starting: {spawn.last_words(paths)}; "
                    "run `lored run` to watch it"
                )
    if not started:
        raise Unavailable(
            f"a daemon (pid {spawn.holder(paths)}) holds {paths.lock} but does not listen at "
            f"{paths.socket}: it is going down; try again in a moment"
        )
    raise Unavailable(
        f"the daemon did not answer within {seconds:g} s and may still be starting; "
        f"try again, or see {paths.log_file}"
    )


def pauses(deadline: float) -> "Iterator[None]":
    """Yield at once, then after each doubling pause, until the deadline has passed."""
    pause = _FIRST_PAUSE_S
    while True:
        yield
        left = deadline - time.monotonic()
        if left <= 0:
            return
        time.sleep(min(pause, left))
        pause = min(pause * 2, _LONGEST_PAUSE_S)


def _published(pointer: str) -> "str | None":
    """The socket path in the daemon's pointer file, if there is a believable one."""
    try:
        with open(pointer, encoding="utf-8", errors="surrogateescape") as file:
            path = file.readline(4096).strip()
    except OSError:
        return None
    return path if path.startswith("/") else None


def _open_lock(paths: Paths) -> int:
    try:
        os.makedirs(paths.state_dir, mode=0o700, exist_ok=True)
        return os.open(paths.spawn_lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        refusal = absent(paths, f"none can start here ({error.strerror}: {paths.spawn_lock})")
        refusal.retryable = False
        if error.errno in _READ_ONLY:
            refusal.data["sandboxed"] = True
        raise refusal from None


def _start_seconds() -> float:
    text = os.environ.get("LORE_START_SECONDS", "")
    try:
        return max(0.0, float(text)) if text else START_SECONDS
    except ValueError:
        return START_SECONDS
