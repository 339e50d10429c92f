"""On which file systems events can be trusted, told from the mount table without touching
the mount (a dead one would never answer).

inotify and FSEvents see what this machine does to a local file system. Network and pass-
through file systems change behind our back: there only looking helps.
"""

import re
import sys
from typing import Final

# fmt: off
NO_EVENTS: Final = frozenset((
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "drvfs", "vboxsf", "prl_fs", "vmhgfs", "afs",
    "ceph", "lustre", "gpfs", "beegfs", "glusterfs", "ocfs2", "gfs2", "orangefs", "pvfs2",
    "ncpfs", "coda", "davfs", "autofs", "webdav", "acfs", "sshfs", "osxfs", "grpcfuse",
))
# fmt: on
"""File system types that change without local events. `fuse` and all `fuse.*` are as well."""

_ESCAPE: Final = re.compile(r"\\([0-7]{3})")


def file_system(path: str, table: str | None = None) -> str:
    """The type of the file system that holds the absolute ``path``; "" when it is not known.

    ``table``: the text of `/proc/self/mountinfo`, read when None.
    """
    if table is None:
        if sys.platform != "linux":
            return ""
        try:
            with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
                table = file.read()
        except OSError:
            return ""
    best, found = "", ""
    for line in table.splitlines():
        before, dash, after = line.partition(" - ")
        parts = before.split(" ")
        if not dash or len(parts) < 5:
            continue
        point = _ESCAPE.sub(lambda match: chr(int(match[1], 8)), parts[4])
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        # Of two mounts on one point the later one is on top.
        if inside and len(point) >= len(best):
            best, found = point, after.split(" ", 1)[0]
    return found


def sends_events(kind: str) -> bool:
    """Whether changes on a file system of type ``kind`` are all seen as events."""
    return kind not in NO_EVENTS and kind != "fuse" and not kind.startswith("fuse.")
