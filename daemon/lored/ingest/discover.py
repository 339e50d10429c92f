"""What stands in a source root: the folders that can hold transcripts are walked and stated.

Excluded paths are left out before they are opened. A folder is listed again only when its
own time changed, since a sweep runs every minute for ever; files are stated each time, because
an append does not touch the folder. Only a *calm* walk (where events tell of appends, and the
sweep is there for those that get lost) takes folders in which nothing changed for `QUIET_NS`
as they were, `CALM_WALKS` times in a row. A name that is no UTF-8 is counted, not read.

Links. A folder that is a link is followed: people keep sessions on another disk. A file that
is a link is read only when it leads to a place in the same root: whoever can write into a
session folder must not make us read any file of the user's. Others are counted.

Blocking: call `Walker.walk` in a thread, one at a time; on a dead mount it may never return.
"""

import fnmatch
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from lored.core.reconcile import FRESH_NS, Seen
from lored.core.transcripts import PARSERS, classify, parser_name
from lored.ingest.documents import look_at_database
from lored.ingest.exclusion import Exclusion

DEPTH: Final = 24
"""Deepest folder below a root: a loop of links is noticed at the latest here."""

QUIET_NS: Final = 3_600 * 1_000_000_000
"""An agent at work writes within an hour."""

CALM_WALKS: Final = 4
"""So a lost event in an old session costs at most five sweeps, and idling a third."""

ERRORS: Final = 20
"""Unreadable folders that are named."""


class RootSpec(NamedTuple):
    """A source root: agent, absolute path, patterns of files relative to it, and whether the
    user added it."""

    agent: str
    path: str
    patterns: tuple[str, ...]
    added: bool = False


@dataclass(slots=True)
class Listing:
    """What one walk found. ``owners``: sidecar -> its transcripts; ``complete`` is False when a
    folder could not be read or the deadline passed; ``exists``: whether the root is there."""

    files: dict[str, Seen] = field(default_factory=dict)
    owners: dict[str, list[str]] = field(default_factory=dict)
    folders: int = 0
    exists: bool = True
    complete: bool = True
    errors: list[str] = field(default_factory=list)
    odd_names: int = 0
    links_out: int = 0


class _Entry(NamedTuple):
    path: str
    database: bool


@dataclass(slots=True)
class _Folder:
    mtime_ns: int
    looked_at: int
    files: list[_Entry]
    folders: list[tuple[str, str]]
    odd_names: int = 0
    links_out: int = 0
    seen: dict[str, Seen] = field(default_factory=dict)
    """The files as they were when they were stated."""
    newest_ns: int = 0
    taken: int = 0
    """Calm walks since then."""

    def state(self) -> int:
        """Look at the files; how many."""
        self.seen = {}
        for entry in self.files:
            _look(entry, self.seen)
        self.newest_ns = max((one.mtime_ns for one in self.seen.values()), default=0)
        self.taken = 0
        return len(self.files)

    def is_quiet(self, now_ns: int) -> bool:
        """Whether its files may be taken as they were."""
        return self.taken < CALM_WALKS and now_ns - self.newest_ns > QUIET_NS


class Walker:
    """Lists one root again and again."""

    def __init__(self, spec: RootSpec, exclusion: Exclusion) -> None:
        self.spec = spec
        self._exclusion = exclusion
        self._patterns = [pattern.split("/") for pattern in spec.patterns]
        self._folders: dict[str, _Folder] = {}
        self._owners: dict[str, list[str]] = {}
        self._parsers: dict[str, str] = {}
        self.steps = 0
        """Counts what was looked at: whether a walk gets on."""

    def parser(self, path: str) -> str | None:
        """Name of the parser of a listed transcript, None for anything else."""
        return self._parsers.get(path)

    def walk(self, deadline_s: float, below: str | None = None, *, calm: bool = False) -> Listing:
        """Everything in the root, or in its folder ``below``. A listing of only a part, or
        one that the deadline cut, is not ``complete``. ``calm``: see the module."""
        listing = Listing(owners=self._owners)
        end = time.monotonic() + deadline_s
        start = below or self.spec.path
        relative = os.path.relpath(start, self.spec.path)
        stack = [(start, "" if relative == "." else relative)]
        linked: set[tuple[int, int]] = set()
        seen_folders = set()
        while stack:
            path, relative = stack.pop()
            self.steps += 1
            if time.monotonic() > end:
                listing.complete = False
                break
            folder = self._list(path, relative, listing, linked)
            if folder is None:
                continue
            seen_folders.add(path)
            listing.folders += 1
            listing.odd_names += folder.odd_names
            listing.links_out += folder.links_out
            if calm and folder.seen and folder.is_quiet(time.time_ns()):
                folder.taken += 1
            else:
                self.steps += folder.state()
            listing.files.update(folder.seen)
            stack.extend(folder.folders)
        if below is not None:
            listing.complete = False
        elif listing.complete:
            for path in self._folders.keys() - seen_folders:
                del self._folders[path]
        return listing

    def look(self, path: str) -> Seen | None:
        """One file as a walk would list it, None when it is not to be read."""
        relative = os.path.relpath(path, self.spec.path)
        kind = classify(self.spec.agent, relative)
        if kind is None or self._exclusion.path(path) or self._leads_out(path):
            return None
        if kind == "transcript":
            self._know(path, relative)
        found: dict[str, Seen] = {}
        _look(_Entry(path, self._is_database(path)), found)
        return found.get(path)

    def owners(self, path: str) -> list[str]:
        """The transcripts that a sidecar belongs to."""
        return self._owners.get(path, [])

    def all_owners(self) -> Iterable[tuple[str, list[str]]]:
        """Every place where a sidecar may be, and the transcripts that it would belong to."""
        return self._owners.items()

    def sidecars(self, path: str) -> list[str]:
        """Where the sidecars of a listed transcript would be."""
        name = self._parsers.get(path)
        find = None if name is None else getattr(PARSERS[name], "sidecars", None)
        return [] if find is None else list(find(path))

    def _list(
        self, path: str, relative: str, listing: Listing, linked: set[tuple[int, int]]
    ) -> _Folder | None:
        known = self._folders.get(path)
        try:
            looked_at = time.time_ns()
            mtime_ns = os.stat(path).st_mtime_ns
            fresh = known is not None and known.looked_at - known.mtime_ns <= FRESH_NS
            if known is None or known.mtime_ns != mtime_ns or fresh:
                known = self._scan(path, relative, linked)
                known.mtime_ns, known.looked_at = mtime_ns, looked_at
                self._folders[path] = known
        except FileNotFoundError:
            if path == self.spec.path:
                listing.exists = False
            return None
        except NotADirectoryError:
            return None
        except OSError as error:
            listing.complete = False
            if len(listing.errors) < ERRORS:
                listing.errors.append(f"{path}: {error.strerror}")
            return None
        return known

    def _scan(self, path: str, relative: str, linked: set[tuple[int, int]]) -> _Folder:
        folder = _Folder(0, 0, [], [])
        depth = relative.count("/") + bool(relative)
        with os.scandir(path) as entries:
            for entry in entries:
                try:
                    entry.name.encode()
                except UnicodeEncodeError:
                    folder.odd_names += 1
                    continue
                below = f"{relative}/{entry.name}" if relative else entry.name
                if entry.is_dir():
                    if depth >= DEPTH or not self._may_hold(below.split("/")):
                        continue
                    if entry.is_symlink():
                        found = entry.stat()
                        if (found.st_dev, found.st_ino) in linked:
                            continue
                        linked.add((found.st_dev, found.st_ino))
                    if not self._exclusion.path(entry.path):
                        folder.folders.append((entry.path, below))
                    continue
                kind = classify(self.spec.agent, below)
                if kind is None or self._exclusion.path(entry.path):
                    continue
                if entry.is_symlink() and self._leads_out(entry.path):
                    folder.links_out += 1
                    continue
                if kind == "transcript":
                    self._know(entry.path, below)
                folder.files.append(_Entry(entry.path, self._is_database(entry.path)))
        return folder

    def _leads_out(self, path: str) -> bool:
        """Whether a file is a link to a place outside this root."""
        if not os.path.islink(path):
            return False
        return not os.path.realpath(path).startswith(os.path.realpath(self.spec.path) + "/")

    def _know(self, path: str, relative: str) -> None:
        """Remember the parser and the sidecars of a transcript."""
        name = parser_name(self.spec.agent, relative)
        if name is None or name not in PARSERS or self._parsers.get(path) == name:
            return
        self._parsers[path] = name
        sidecars = getattr(PARSERS[name], "sidecars", None)
        for sidecar in sidecars(path) if sidecars is not None else ():
            owners = self._owners.setdefault(sidecar, [])
            if path not in owners:
                owners.append(path)

    def _is_database(self, path: str) -> bool:
        name = self._parsers.get(path)
        return name is not None and hasattr(PARSERS[name], "parse_database")

    def _may_hold(self, folder: Sequence[str]) -> bool:
        """Whether files below ``folder`` (names from the root on) can match a pattern."""
        for pattern in self._patterns:
            for index, name in enumerate(folder):
                if index < len(pattern) and pattern[index] == "**":
                    return True
                if index >= len(pattern) - 1 or not fnmatch.fnmatchcase(name, pattern[index]):
                    break
            else:
                return True
        return False


def _look(entry: _Entry, files: dict[str, Seen]) -> None:
    path, database = entry
    try:
        if database:
            files[path] = Seen(*look_at_database(path))
            return
        found = os.stat(path)
    except OSError:
        return  # gone since the folder was listed
    files[path] = Seen(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


def watch_places(spec: RootSpec) -> list[tuple[str, bool]]:
    """Where events of a root can come from: (folder, with all below). The root itself, and the
    folders on the way, are only watched for what appears in them; below, only what can hold
    transcripts."""
    places: dict[str, bool] = {spec.path: False}
    for pattern in spec.patterns:
        fixed: list[str] = []
        for name in pattern.split("/")[:-1]:
            if any(sign in name for sign in "*?["):
                break
            fixed.append(name)
            places.setdefault("/".join([spec.path, *fixed]), False)
        deep = len(fixed) < pattern.count("/")
        place = "/".join([spec.path, *fixed])
        places[place] = places.get(place, False) or deep
    return sorted(places.items())
