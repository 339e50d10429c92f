"""The folders of the daemon: made, ours, closed to others, and on a file system that fits.

SQLite's WAL needs shared memory and locks between processes of one machine; network file
systems offer neither, and databases on them end corrupt (sqlite.org/wal.html). So the data
folder's file system is looked up and a remote one refused with the remedy.
"""

import os
import stat
from typing import Final

from lore.paths import Paths
from lored.mounts import NOT_LOCAL, file_system
from lored.runtime.refusal import Refused

# fmt: off
REMOTE: Final = frozenset({
    "9p", "afpfs", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "gfs2", "glusterfs", "gpfs",
    "lustre", "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "pvfs2", "smb", "smb2", "smb3", "smbfs",
    "webdav",
})
# fmt: on
"""File system types on which WAL is unsafe or unproven."""

_REMOTE_FUSE: Final = ("sshfs", "glusterfs", "davfs", "rclone", "s3fs", "gcsfuse", "ceph", "smb")


def prepare(paths: Paths) -> None:
    """Make the data and state folders and check them. Raises `Refused`.

    A folder of ours that others can read is closed with a chmod: the stores are older than
    this start, so refusing would protect nothing.
    """
    for path in (paths.data_dir, paths.state_dir):
        try:
            os.makedirs(path, mode=0o700, exist_ok=True)
            found = os.stat(path)
            if found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) & 0o077:
                os.chmod(path, 0o700)
        except OSError as error:
            raise Refused(f"folder {path}: cannot be made: {error.strerror}") from None
    check(paths)


def check(paths: Paths) -> None:
    """Whether the folders, as far as they exist, can hold stores. Raises `Refused`."""
    for path in (paths.data_dir, paths.state_dir):
        try:
            found = os.stat(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise Refused(f"folder {path}: {error.strerror}") from None
        if found.st_uid != os.geteuid():
            raise Refused(
                f"folder {path} belongs to uid {found.st_uid}, not to you; "
                "set LORE_HOME to a folder of your own"
            )
        if not os.access(path, os.W_OK | os.X_OK):
            raise Refused(f"folder {path} cannot be written; is its file system read-only?")
    kind = file_system(paths.data_dir)
    if is_remote(kind):
        raise Refused(
            f"the data folder {paths.data_dir} is on a network file system ({kind}), where "
            "databases get corrupted; set LORE_HOME or XDG_DATA_HOME to a folder on a local disk"
        )


def is_remote(kind: str) -> bool:
    """Whether a file system type is a network one."""
    name = kind.lower()
    if name == NOT_LOCAL:
        return True
    if name.startswith("fuse."):
        return any(word in name for word in _REMOTE_FUSE)
    return name in REMOTE
