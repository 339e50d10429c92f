"""The folders of the daemon: made, ours, closed to others, and on a file system that fits.

SQLite's WAL needs shared memory and locks between processes of one machine; network file
systems offer neither, and databases on them end corrupt (sqlite.org/wal.html). So the data
folder's file system is looked up and a remote one refused with the remedy. On Linux the type
is read from mountinfo, which tells `fuse.sshfs` from a local FUSE; macOS is asked by statfs.
"""

import ctypes
import os
import stat
import sys
from typing import Final

from lore.paths import Paths
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

_MNT_LOCAL: Final = 0x1000
"""macOS sys/mount.h: the file system is stored locally."""


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
    if name.startswith("fuse."):
        return any(word in name for word in _REMOTE_FUSE)
    return name in REMOTE


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
    """The type of the innermost mount above ``path`` in the text of proc(5) mountinfo."""
    best, kind = "", ""
    for line in table.splitlines():
        left, separator, right = line.partition(" - ")
        fields = left.split(" ")
        if not separator or len(fields) < 5:
            continue
        point = _unescape(fields[4])
        inside = point == "/" or path == point or path.startswith(point + "/")
        if inside and len(point) >= len(best):  # a later line covers an earlier one
            best, kind = point, right.split(" ")[0]
    return kind


def _unescape(text: str) -> str:
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, character)
    return text


def _macos_type(path: str) -> str:
    """statfs(2) of macOS with 64-bit inodes: f_flags at byte 64, f_fstypename at 72."""
    library = ctypes.CDLL(None, use_errno=True)
    statfs = getattr(library, "statfs$INODE64", None) or library.statfs
    buffer = ctypes.create_string_buffer(4096)
    if statfs(os.fsencode(path), buffer) != 0:
        return ""
    name = buffer.raw[72:88].split(b"\0")[0].decode("ascii", "replace")
    flags = int.from_bytes(buffer.raw[64:68], sys.byteorder)
    return name if flags & _MNT_LOCAL or name in REMOTE else "nfs"
