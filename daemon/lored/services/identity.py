"""Which directory is the workspace of a path: looks at the file system, stores nothing.

The rule, in order: the real path; inside git, the main work tree of the common directory (so
all worktrees share one memory); else the nearest ancestor with `.recursive/`; else the path
itself. `$HOME`, `/` and the temporary directories themselves are never a workspace: a
dotfiles repository in `$HOME`, or the global `~/.recursive`, must not collect everything
below it. All functions here block on the file system; call them in a thread with a deadline.
"""

import os
from collections.abc import Collection
from typing import NamedTuple

import blake3

ID_DIGITS = 12
"""Recursive names its workspace folders by this many hex digits (src/paths.rs)."""

GIT_FILE_BYTES = 4096
"""Read at most of a `.git` or `commondir` file: it holds one path."""


class Found(NamedTuple):
    """A workspace root, how it was found in words, the work tree if it is not the root, and the
    root's device and inode."""

    root: str
    how: str
    worktree: str | None
    device: int | None
    inode: int | None


def workspace_id(root: str) -> str:
    """Recursive's id of a canonical path: 12 hex digits of BLAKE3 over its bytes."""
    return blake3.blake3(os.fsencode(root)).hexdigest()[:ID_DIGITS]


def barren_directories(home: str) -> frozenset[str]:
    """Directories that are never a workspace, as real paths."""
    names = {"/", "/tmp", "/var/tmp", "/dev/shm", "/private/tmp", os.path.dirname(home) or "/"}  # noqa: S108
    names.update(value for name in ("TMPDIR", "TEMP") if (value := os.environ.get(name)))
    return frozenset(os.path.realpath(name) for name in (*names, home))


def find(path: str, *, barren: Collection[str], splits: Collection[str] = ()) -> Found | None:
    """The workspace of an existing path, None when it has none.

    ``splits`` are directories declared to be workspaces of their own. Raises
    FileNotFoundError for a path that does not exist.
    """
    real = os.path.realpath(path, strict=True)
    if not os.path.isdir(real):
        real = os.path.dirname(real)
    for folder in _upwards(real):
        if folder in splits:
            return _made(folder, "split off as a workspace of its own")
    for folder in _upwards(real):
        git = _git_root(folder)
        if git is not None:
            if git in barren:
                break
            if git == folder:
                return _made(git, "git work tree")
            return _made(git, f"main work tree of git worktree {folder}", worktree=folder)
    for folder in _upwards(real):
        if folder not in barren and os.path.isdir(folder + "/.recursive"):
            return _made(folder, "nearest folder with .recursive/")
    if real in barren:
        return None
    return _made(real, "the folder itself (no git, no .recursive/)")


def _made(root: str, how: str, worktree: str | None = None) -> Found:
    found = os.stat(root)
    return Found(root, how, worktree, found.st_dev, found.st_ino)


def _upwards(path: str) -> list[str]:
    folders = [path]
    while path != "/":
        path = os.path.dirname(path)
        folders.append(path)
    return folders


def _git_root(folder: str) -> str | None:
    """Main work tree of the repository whose `.git` lies in ``folder``; None if none does."""
    marker = folder + "/.git"
    if os.path.isdir(marker):
        # An empty .git folder is no repository; git itself asks for HEAD.
        return folder if os.path.exists(marker + "/HEAD") else None
    line = _first_line(marker)
    if line is None or not line.startswith("gitdir:"):
        return None
    git_dir = os.path.realpath(os.path.join(folder, line[len("gitdir:") :].strip()))
    common = _first_line(git_dir + "/commondir")
    if common is None:
        return folder  # a submodule, or `git init --separate-git-dir`: its own workspace
    common_dir = os.path.realpath(os.path.join(git_dir, common))
    if not os.path.isdir(common_dir):
        return folder
    # A bare repository has no main work tree; its own folder stands for all work trees.
    return os.path.dirname(common_dir) if os.path.basename(common_dir) == ".git" else common_dir


def _first_line(path: str) -> str | None:
    try:
        with open(path, "rb") as file:
            data = file.read(GIT_FILE_BYTES).replace(b"\0", b"")  # of a hostile repository
    except OSError:
        return None
    return os.fsdecode(data.split(b"\n", 1)[0].strip()) or None
