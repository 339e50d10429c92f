"""The files of the mirror: where they are, reading them whole, replacing them safely.

Blocking; called in threads. A workspace belongs to whoever cloned it, so nothing in it is
trusted: a symlink or a folder of another user on the way is refused, never followed. Recursive
writes its file in place, so a reader can meet half a file; `read` says when it looks torn.
"""

import os
import stat
import tempfile
from collections.abc import Sequence
from typing import Final, NamedTuple

from lored.core import jsonl

FILE_BYTES: Final = 256 << 20
"""A larger file is refused: 500 active facts of some kilobytes is what Recursive keeps."""

Signature = tuple[int, int, int, int] | None
"""device, inode, size, mtime in ns; None = no file."""


class Read(NamedTuple):
    """One look at a file: its bytes, its signature, and whether somebody seems to be writing."""

    data: bytes
    signature: Signature
    torn: bool


class Refused(Exception):
    """The place is not safe to use; the text says why."""


def global_folder(under_home: bool) -> str:
    """Folder of Recursive's global data: RECURSIVE_HOME, else `$HOME/.recursive`. Real
    Recursive 0.8 keeps *facts* under `$HOME` even when RECURSIVE_HOME is set (``under_home``)."""
    moved = os.environ.get("RECURSIVE_HOME", "")
    if moved.startswith("/") and not under_home:
        return moved.rstrip("/")
    return os.path.expanduser("~") + "/.recursive"


def signature(path: str) -> Signature:
    """The signature of a regular file. Raises `Refused` for anything else."""
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not stat.S_ISREG(found.st_mode):
        raise Refused(f"{path} is not a regular file")
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def check_place(root: str, path: str) -> None:
    """Raise `Refused` unless every folder between ``root`` and ``path`` is a real folder of
    ours (or missing)."""
    folder = os.path.dirname(path)
    while len(folder) > len(root):
        try:
            found = os.lstat(folder)
        except FileNotFoundError:
            pass
        else:
            if not stat.S_ISDIR(found.st_mode):
                raise Refused(f"{folder} is a link or a file, not a folder")
            if found.st_uid != os.getuid():
                raise Refused(f"{folder} belongs to another user")
        folder = os.path.dirname(folder)


def read(path: str) -> Read:
    """The whole file, or empty when there is none."""
    before = signature(path)
    if before is None:
        return Read(b"", None, False)
    if before[2] > FILE_BYTES:
        raise Refused(f"{path} has {before[2]} bytes, more than {FILE_BYTES}")
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with open(handle, "rb") as file:
        data = file.read(FILE_BYTES + 1)
    after = signature(path)
    last = data.rsplit(b"\n", 1)[-1]
    torn = (
        before != after
        or not data
        or bool(last and jsonl.parse(last)[-1:] and jsonl.parse(last)[-1].record is None)
    )
    return Read(data, after, torn)


def replace(path: str, data: bytes, expected: Signature) -> Signature:
    """Write ``data`` beside ``path``, sync and rename it into place; returns its signature. None
    when the file is no longer the one read (``expected``); then nothing happened."""
    folder = os.path.dirname(path)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    handle, draft = tempfile.mkstemp(prefix=".facts.", suffix=".tmp", dir=folder)
    try:
        with open(handle, "wb") as file:
            file.write(data)
            file.flush()
            if expected is not None:
                os.fchmod(file.fileno(), stat.S_IMODE(os.lstat(path).st_mode))
            os.fsync(file.fileno())
        made = signature(draft)  # a rename keeps it; a look at `path` could meet another's edit
        if signature(path) != expected:
            os.unlink(draft)
            return None
        os.rename(draft, path)
    except FileNotFoundError:
        # The file went away between two looks: as if it had changed.
        if os.path.exists(draft):
            os.unlink(draft)
        return None
    except BaseException:
        if os.path.exists(draft):
            os.unlink(draft)
        raise
    parent = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(parent)
    finally:
        os.close(parent)
    return made


def patch(path: str, changes: Sequence[jsonl.Change], expected: Signature) -> Signature:
    """Make the lines of ``changes`` anew in the file with the signature ``expected``; returns
    its signature then. None when the file is another one or has to be composed as a whole."""
    found = read(path)
    data = None if found.signature != expected else jsonl.patch(found.data, changes)
    if data is None:
        return None
    if data == found.data:
        return expected
    return replace(path, data, expected)
