"""The lock that makes one daemon per user: `flock` held for life on a file never unlinked.

Whoever holds it owns the stores and the socket path. The kernel drops it at any death, so
there is nothing stale to judge; the text inside (pid, version, socket) is for people and for
the take-over by an activated daemon, never the proof that somebody lives.

The file must be ours, plain and with one name: a link planted by somebody else could make us
lock, truncate or hand out another file.
"""

import contextlib
import fcntl
import json
import os
import stat
from typing import Any, Final

from lored.runtime.refusal import Refused

TEXT_BYTES: Final = 4096
"""Most bytes read back; we write about 200."""

ATTEMPTS: Final = 5
"""Rounds when the file is replaced between open and lock; more is not a race but a fault."""


class Lock:
    """The lock file at ``path``; not yet taken."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._fd = -1

    def acquire(self) -> bool:
        """Take the lock without waiting; False when another process holds it.

        Raises `Refused` when the file is not a plain file of ours.
        """
        for _ in range(ATTEMPTS):
            fd = self._open()
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(fd)
                return False
            except OSError as error:
                os.close(fd)
                raise Refused(f"{self.path}: cannot be locked: {error.strerror}") from None
            if self._is_current(fd):
                self._fd = fd
                return True
            os.close(fd)  # somebody removed the file meanwhile: lock the one that is there
        raise Refused(f"{self.path} keeps being replaced; find out by whom and start again")

    def _open(self) -> int:
        try:
            fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise Refused(f"{self.path}: cannot be opened: {error.strerror}") from None
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_nlink > 1:
            os.close(fd)
            raise Refused(f"{self.path} is not a plain file of this user; remove it")
        return fd

    def _is_current(self, fd: int) -> bool:
        try:
            found = os.stat(self.path, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return os.path.samestat(found, os.fstat(fd))

    def describe(self, about: dict[str, Any]) -> None:
        """Write who holds the lock (pid, version, socket, ...) as one line of JSON."""
        if self._fd < 0:
            raise RuntimeError("the lock is not held")
        text = json.dumps(about).encode() + b"\n"
        with contextlib.suppress(OSError):  # a full disk must not stop a daemon: text for people
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, text, 0)

    def release(self) -> None:
        """Clear the text and drop the lock; the file stays."""
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, 0)
            os.close(self._fd)
            self._fd = -1


def read_holder(path: str) -> dict[str, Any]:
    """What the holder of the lock at ``path`` wrote about itself; {} when nothing usable."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return {}
    try:
        about = json.loads(os.read(fd, TEXT_BYTES))
    except (OSError, ValueError):
        return {}
    finally:
        os.close(fd)
    return about if isinstance(about, dict) else {}
