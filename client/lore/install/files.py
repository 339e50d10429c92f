"""Reading and writing other programs' files: whole or not at all, through symlinks, with
mode kept, and never one that is not ours to change.
"""

from __future__ import annotations

import os
import stat
from typing import NamedTuple

from lore.errors import Invalid

FILE_BYTES = 64 << 20
"""Largest file read; Claude Code's own state file reaches megabytes."""


class Found(NamedTuple):
    """A file as it is: real path, bytes (None when there is none), mode and identity."""

    real: str
    data: bytes | None
    mode: int
    stamp: tuple[int, int, int] | None


def look(path: str) -> Found:
    """Follow symlinks and read. Raises `Invalid` for what must not or cannot be written."""
    real = os.path.realpath(path)
    try:
        found = os.stat(real)
    except FileNotFoundError:
        return Found(real, None, 0o600, None)
    except OSError as error:
        raise Invalid(f"{path}: {error.strerror}") from None
    if not stat.S_ISREG(found.st_mode):
        raise Invalid(f"{path}: is not a file")
    if found.st_uid != os.getuid():
        raise Invalid(f"{path}: belongs to uid {found.st_uid}, not to you")
    if not found.st_mode & stat.S_IWUSR:
        raise Invalid(f"{path}: is read-only; make it writable: chmod u+w {real}")
    if found.st_size > FILE_BYTES:
        raise Invalid(f"{path}: is larger than {FILE_BYTES >> 20} MiB")
    try:
        with open(real, "rb") as file:
            data = file.read()
    except OSError as error:
        raise Invalid(f"{path}: {error.strerror}") from None
    return Found(real, data, stat.S_IMODE(found.st_mode), _stamp(found))


def _stamp(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_ino, found.st_size, found.st_mtime_ns


def text_of(path: str, data: bytes | None) -> str | None:
    """The bytes as text; raises `Invalid` when they are not UTF-8."""
    if data is None:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Invalid(f"{path}: is not UTF-8 (byte {error.start})") from None


def write(found: Found, data: bytes) -> None:
    """Replace the file by temp file, fsync and rename, keeping its mode; a file with several
    hard links is written in place, so that they stay one file.

    Raises `Invalid` when the file changed since it was looked at (its program was writing),
    or the folder cannot be written.
    """
    _check_unchanged(found)
    try:
        if found.stamp is not None and os.stat(found.real).st_nlink > 1:
            with open(found.real, "r+b") as file:
                file.write(data)
                file.truncate()
                file.flush()
                os.fsync(file.fileno())
            return
        draft = f"{found.real}.lore-{os.getpid()}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        descriptor = os.open(draft, flags, 0o600)
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fchmod(file.fileno(), found.mode)
                os.fsync(file.fileno())
            _check_unchanged(found)
            os.replace(draft, found.real)
        except BaseException:
            os.unlink(draft)
            raise
        _sync_folder(os.path.dirname(found.real))
    except OSError as error:
        raise Invalid(f"{found.real}: cannot be written: {error.strerror}") from None


def delete(found: Found) -> None:
    """Remove the file; raises `Invalid` as `write` does."""
    _check_unchanged(found)
    try:
        os.unlink(found.real)
        _sync_folder(os.path.dirname(found.real))
    except OSError as error:
        raise Invalid(f"{found.real}: cannot be removed: {error.strerror}") from None


def _check_unchanged(found: Found) -> None:
    try:
        now = _stamp(os.stat(found.real))
    except FileNotFoundError:
        now = None
    if now != found.stamp:
        raise Invalid(f"{found.real}: changed while it was edited; run the command again")


def _sync_folder(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folders(path: str) -> list[str]:
    """Make the folders of a file; returns those that were made, outermost first."""
    folder, missing = os.path.dirname(path), []
    while not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    made = list(reversed(missing))
    try:
        for name in made:
            os.mkdir(name, 0o755)
    except OSError as error:
        raise Invalid(f"{path}: cannot be made: {error.strerror}") from None
    return made


def remove_folders(folders: list[str]) -> None:
    """Remove folders that we made, innermost first, as far as they are empty."""
    for folder in reversed(folders):
        try:
            os.rmdir(folder)
        except OSError:
            return
