"""On which kind of file system a path is.

On Linux the type is read from proc(5) mountinfo: that tells `fuse.sshfs` from a local FUSE and
touches no mount, since a dead one would never answer. macOS is asked by statfs(2).
"""

import ctypes
import os
import re
import sys
from typing import Final

NOT_LOCAL: Final = "network"
"""A type of macOS that we do not know by name and that the system says is not a local disk."""

_ESCAPE: Final = re.compile(r"\\([0-7]{3})")

_MNT_LOCAL: Final = 0x1000
"""macOS sys/mount.h: the file system is stored locally."""

_NAMED: Final = frozenset(("afpfs", "nfs", "smbfs", "webdav"))
"""Types of macOS that are not local and have a name of their own."""


def file_system(path: str) -> str:
    """The type of the file system that holds ``path`` ("ext4", "nfs4"); "" when unknown."""
    if sys.platform == "darwin":
        return _macos_type(path)
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            table = file.read()
    except OSError:
        return ""
    return type_in_mountinfo(table, os.path.realpath(path))


def type_in_mountinfo(table: str, path: str) -> str:
    """The type of the innermost mount above the absolute ``path`` in the text of mountinfo."""
    best, found = "", ""
    for line in table.splitlines():
        left, separator, right = line.partition(" - ")
        fields = left.split(" ")
        if not separator or len(fields) < 5:
            continue
        point = _ESCAPE.sub(lambda match: chr(int(match[1], 8)), fields[4])
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):  # a later line covers an earlier one
            best, found = point, right.split(" ", 1)[0]
    return found


def _macos_type(path: str) -> str:
    """statfs(2) with 64-bit inodes: f_flags at byte 64, f_fstypename at 72."""
    library = ctypes.CDLL(None, use_errno=True)
    statfs = getattr(library, "statfs$INODE64", None) or library.statfs
    buffer = ctypes.create_string_buffer(4096)
    if statfs(os.fsencode(path), buffer) != 0:
        return ""
    name = buffer.raw[72:88].split(b"\0")[0].decode("ascii", "replace")
    flags = int.from_bytes(buffer.raw[64:68], sys.byteorder)
    return name if flags & _MNT_LOCAL or name in _NAMED else NOT_LOCAL
