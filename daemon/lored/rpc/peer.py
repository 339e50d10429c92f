"""Who is at the other end of a Unix socket."""

import socket
import struct
import sys
from typing import Any


def peer_uid(sock: Any) -> int:
    """The uid of the process at the other end. Raises OSError."""
    if sys.platform == "darwin":
        # getsockopt(SOL_LOCAL, LOCAL_PEERCRED): struct xucred {version, uid, ...}; unix(4)
        raw = sock.getsockopt(0, 1, 76)
        return int(struct.unpack("=II", raw[:8])[1])
    raw = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return int(struct.unpack("=iII", raw)[1])
