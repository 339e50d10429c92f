"""The listening socket: taken from the supervisor, or bound by ourselves under the lock.

Access rests on the folder (0700, ours, no link), then on the socket's mode (0600), then on
the uid of each peer, which `rpc` checks. Only the holder of the lock may call `bind`: it
removes what is at the path, which is then a leftover. (asyncio's own bind by path removes a
live socket just the same and leaves mode 0755.)
"""

import contextlib
import ctypes
import errno
import os
import socket
import stat
import sys
from collections.abc import MutableMapping
from typing import Final, NamedTuple

from lored.runtime.refusal import Refused

BACKLOG: Final = 512
"""Connections the kernel holds while we start: 200 clients at once is the load bar."""

FIRST_FD: Final = 3
"""SD_LISTEN_FDS_START of sd_listen_fds(3)."""

LAUNCHD_NAME: Final = b"Listeners"
"""Key of the socket in our launchd property list."""


class Listener(NamedTuple):
    """A listening socket, its path, whether a supervisor owns it, and (device, inode)."""

    sock: socket.socket
    path: str
    activated: bool
    identity: tuple[int, int] | None

    def is_in_place(self) -> bool:
        """Whether the path still leads to this socket."""
        return self.identity is not None and _identify(self.path) == self.identity


def _identify(path: str) -> tuple[int, int] | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISSOCK(found.st_mode) else None


def prepare_directory(path: str) -> None:
    """Make ``path`` a folder that only we can enter, or say why it is not one.

    Raises `Refused` for a link, a foreign owner, group or other permissions, or a path that
    cannot be made.
    """
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        found = os.lstat(path)
    except OSError as error:
        raise Refused(f"socket folder {path}: cannot be made: {error.strerror}") from None
    if stat.S_ISLNK(found.st_mode):
        raise Refused(f"socket folder {path} is a symbolic link; name its target instead")
    if not stat.S_ISDIR(found.st_mode):
        raise Refused(f"socket folder {path} is not a folder")
    if found.st_uid != os.geteuid():
        raise Refused(
            f"socket folder {path} belongs to uid {found.st_uid}, not to you; "
            "set LORE_SOCKET to a path in a folder of your own"
        )
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise Refused(f"socket folder {path} is open to others; run: chmod 700 {path}")


def bind(path: str) -> Listener:
    """Put our socket at ``path``, in place of whatever leftover is there. Hold the lock.

    Raises `Refused`.
    """
    prepare_directory(os.path.dirname(path))
    found: os.stat_result | None = None
    with contextlib.suppress(FileNotFoundError):
        found = os.lstat(path)
    if found is not None and not stat.S_ISSOCK(found.st_mode):
        raise Refused(f"{path} is not a socket; move it away")
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        sock.bind(path)
    except OSError as error:
        sock.close()
        raise Refused(f"{path}: cannot listen there: {error.strerror}") from None
    finally:
        os.umask(before)
    sock.listen(BACKLOG)
    sock.setblocking(False)
    return Listener(sock, path, False, _identify(path))


def take_activated(env: MutableMapping[str, str] | None = None) -> Listener | None:
    """The socket that systemd or launchd opened for us; None without one.

    The variables are taken out of ``env`` (default: the process's own), so that no child
    believes them. Raises `Refused` when descriptors were passed but none is a listening Unix
    stream socket.
    """
    env = os.environ if env is None else env
    count, pid = env.pop("LISTEN_FDS", ""), env.pop("LISTEN_PID", "")
    env.pop("LISTEN_FDNAMES", None)
    fds: list[int] = []
    if count.isdecimal() and pid == str(os.getpid()):
        fds = list(range(FIRST_FD, FIRST_FD + min(int(count), 16)))
    elif sys.platform == "darwin":
        fds = _launchd_fds()
    chosen: socket.socket | None = None
    for fd in fds:
        with contextlib.suppress(OSError):
            os.set_inheritable(fd, False)
            sock = socket.socket(fileno=fd)
            if chosen is None and _is_listening_stream(sock):
                chosen = sock
            else:
                sock.close()
    if chosen is None:
        if fds:
            raise Refused("the supervisor passed no listening Unix stream socket; see lored.socket")
        return None
    chosen.setblocking(False)
    path = str(chosen.getsockname())
    return Listener(chosen, path, True, _identify(path))


def _is_listening_stream(sock: socket.socket) -> bool:
    if sock.family != socket.AF_UNIX or sock.type != socket.SOCK_STREAM:
        return False
    try:
        return bool(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
    except OSError as error:
        return error.errno == errno.ENOPROTOOPT  # macOS before 10.15 cannot be asked


def _launchd_fds() -> list[int]:
    """launch_activate_socket(3): ESRCH and friends mean that launchd did not start us."""
    try:
        activate = ctypes.CDLL(None).launch_activate_socket
    except AttributeError:
        return []
    fds, count = ctypes.POINTER(ctypes.c_int)(), ctypes.c_size_t(0)
    if activate(LAUNCHD_NAME, ctypes.byref(fds), ctypes.byref(count)) != 0:
        return []
    return [fds[i] for i in range(count.value)]


def is_answered(path: str, timeout_s: float = 0.5) -> bool:
    """Whether somebody listens at ``path``."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(timeout_s)
        try:
            probe.connect(path)
        except (BlockingIOError, TimeoutError):
            return True  # its queue is full: it lives
        except OSError:
            return False
        return True


def publish(pointer: str, path: str) -> None:
    """Write the socket's path into the pointer file, at once or not at all. Raises OSError."""
    temporary = f"{pointer}.{os.getpid()}"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    try:
        os.write(fd, os.fsencode(path) + b"\n")
    finally:
        os.close(fd)
    os.replace(temporary, pointer)


def remove(listener: Listener) -> None:
    """Remove our socket from the file system, unless it is the supervisor's or no longer ours."""
    if not listener.activated and listener.is_in_place():
        with contextlib.suppress(OSError):
            os.unlink(listener.path)
