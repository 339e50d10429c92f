"""A blocking Unix stream with deadlines, to a peer that is proved to be ours.

Bytes only: no messages (wire/codec.py), no starting of daemons (launch.py). Deadlines are
instants of `time.monotonic`; None waits for ever. It uses the C module `_socket` under
`socket`, whose import of enum and selectors would cost as much as a whole call (10 ms).
"""

import _socket
import errno
import os
import stat
import sys
import time

from lore.errors import Unavailable
from lore.wire.limits import READ_BYTES

_BACKLOG_PAUSE_S = 0.002
"""Wait before connecting again when the daemon's accept queue is full (EAGAIN)."""

_REFUSED_HERE = (errno.EPERM, errno.EACCES, errno.EAFNOSUPPORT)
"""How sandboxes say no: seccomp and Seatbelt, AppArmor, systemd's RestrictAddressFamilies."""

ABSENT = (errno.ENOENT, errno.ECONNREFUSED)
"""How a path says that nobody listens: the only two that may start a daemon."""


class Stream:
    """One open connection. Not for use by two threads at once."""

    __slots__ = ("_socket",)

    def __init__(self, connected: _socket.socket) -> None:
        self._socket = connected

    def send(self, data: bytes, deadline: "float | None" = None) -> None:
        """Write all of `data`. Raises `TimeoutError` or another `OSError`; then the peer
        never sees the whole, as a failing write leaves bytes out."""
        self._socket.settimeout(_remaining(deadline))
        self._socket.sendall(data)

    def receive(self, deadline: "float | None" = None) -> bytes:
        """The next bytes, at most 64 KiB; empty at the end of the stream. Raises
        `TimeoutError` or another `OSError`."""
        self._socket.settimeout(_remaining(deadline))
        return self._socket.recv(READ_BYTES)

    def is_dead(self) -> bool:
        """Whether the peer has already hung up, found without waiting or taking bytes."""
        try:
            self._socket.setblocking(False)
            return self._socket.recv(1, _socket.MSG_PEEK) == b""
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            return True

    def fileno(self) -> int:
        """The descriptor, for select and poll."""
        return self._socket.fileno()

    def detach(self) -> int:
        """Give the descriptor away; the stream is of no use after."""
        return self._socket.detach()

    def close(self) -> None:
        """Hang up; any number of times."""
        self._socket.close()


def connect(path: str, deadline: "float | None" = None) -> "Stream | None":
    """Connect to the socket at `path`; None when nobody listens there.

    Raises `Unavailable`: with ``data['sandboxed']`` where Unix sockets are refused (read the
    stores directly then), and for a directory or a peer that is not ours. A full accept queue
    is waited for until `deadline`.
    """
    if not _is_ours(os.path.dirname(path)):
        return None
    try:
        connected = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    except OSError as error:
        raise _refused(path, error) from None
    try:
        connected.setblocking(False)  # a Unix connect succeeds, fails or is EAGAIN at once
        while True:
            try:
                connected.connect(path)
                break
            except BlockingIOError:
                _remaining(deadline)
                time.sleep(_BACKLOG_PAUSE_S)
        peer = _peer_uid(connected)
        if peer != os.getuid():
            raise _final(f"{path} is served by uid {peer}, not by you; set LORE_SOCKET elsewhere")
    except TimeoutError:
        connected.close()
        raise Unavailable(f"the daemon at {path} takes no connection; try again") from None
    except OSError as error:
        connected.close()
        if error.errno in ABSENT:
            return None
        raise _refused(path, error) from None
    except BaseException:
        connected.close()
        raise
    return Stream(connected)


def _remaining(deadline: "float | None") -> "float | None":
    if deadline is None:
        return None
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _is_ours(directory: str) -> bool:
    """Whether the socket's directory exists, is ours and nobody else can write there; the
    permission of the socket itself is ignored by some systems."""
    try:
        found = os.lstat(directory)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise _refused(directory, error) from None
    if not stat.S_ISDIR(found.st_mode):
        raise _final(f"socket directory {directory} is not a directory; remove it")
    if found.st_uid != os.getuid():
        raise _final(
            f"socket directory {directory} belongs to uid {found.st_uid}, not to you; "
            "set LORE_SOCKET to a path in a directory of your own"
        )
    if found.st_mode & 0o022:
        raise _final(f"others can write to socket directory {directory}; run chmod 700 on it")
    return True


def _peer_uid(connected: _socket.socket) -> int:
    if sys.platform == "darwin":
        # struct xucred: u_int version, uid_t uid, ...; SOL_LOCAL 0, LOCAL_PEERCRED 1.
        return int.from_bytes(connected.getsockopt(0, 1, 76)[4:8], sys.byteorder)
    # struct ucred: pid, uid, gid.
    credentials = connected.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
    return int.from_bytes(credentials[4:8], sys.byteorder)


def _refused(path: str, error: OSError) -> Unavailable:
    if error.errno in _REFUSED_HERE:
        refusal = _final(f"Unix sockets are refused here ({error.strerror}: {path})")
        refusal.data["sandboxed"] = True
        return refusal
    return Unavailable(f"cannot connect to {path}: {error.strerror}")


def _final(message: str) -> Unavailable:
    error = Unavailable(message)
    error.retryable = False
    return error
