"""On which file systems events can be trusted.

inotify and FSEvents see what this machine does to a local file system. Network and pass-
through file systems change behind our back: there only looking helps.
"""

from typing import Final

from lored.mounts import NOT_LOCAL

# fmt: off
NO_EVENTS: Final = frozenset((
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "drvfs", "vboxsf", "prl_fs", "vmhgfs", "afs",
    "ceph", "lustre", "gpfs", "beegfs", "glusterfs", "ocfs2", "gfs2", "orangefs", "pvfs2",
    "ncpfs", "coda", "davfs", "autofs", "webdav", "acfs", "sshfs", "osxfs", "grpcfuse",
))
# fmt: on
"""File system types that change without local events. `fuse` and all `fuse.*` are as well."""


def sends_events(kind: str) -> bool:
    """Whether changes on a file system of type ``kind`` are all seen as events."""
    return (
        kind not in NO_EVENTS and kind not in ("fuse", NOT_LOCAL) and not kind.startswith("fuse.")
    )
