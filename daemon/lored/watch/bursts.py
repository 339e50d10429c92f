"""Many events -> few paths to look at: pure, time is an argument.

A path that was quiet is due almost at once, so that one append is searchable within a
quarter of a second; one that keeps changing is due at most every `EVERY_SECONDS`. When more
than `FOLDER_PATHS` paths of one folder wait, the folder stands for them, and more than
`ALL_PATHS` in all mean "look at everything". Such bursts wait until they are over
(`QUIET_SECONDS` without another event), but no longer than `CEILING_SECONDS`. So what is held
is bounded, whatever happens in the file system. (The numbers of folders, all, quiet and
ceiling follow syncthing's watch aggregator.)
"""

import os.path
from typing import Final

AT_ONCE_SECONDS: Final = 0.01
"""One write is often several events; they are taken together."""

EVERY_SECONDS: Final = 0.15
"""A file that is written to all the time: with the time to read it, still below 250 ms."""

QUIET_SECONDS: Final = 0.3
CEILING_SECONDS: Final = 2.0
FOLDER_PATHS: Final = 128
ALL_PATHS: Final = 512

REMEMBERED: Final = 1_024
"""Paths whose last look is remembered."""


class Bursts:
    """What waits to be looked at. All times are monotonic seconds."""

    def __init__(self) -> None:
        self._paths: dict[str, float] = {}
        self._folders: dict[str, tuple[float, float]] = {}
        self._all: tuple[float, float] | None = None
        self._counts: dict[str, int] = {}
        self._looked: dict[str, float] = {}

    def add(self, path: str, now: float) -> None:
        """Something happened to ``path``."""
        if self._all is not None:
            self._all = (self._all[0], now)
            return
        folder = os.path.dirname(path)
        if folder in self._folders:
            self._folders[folder] = (self._folders[folder][0], now)
            return
        if path in self._paths:
            return
        self._paths[path] = max(now + AT_ONCE_SECONDS, self._looked.get(path, 0) + EVERY_SECONDS)
        self._counts[folder] = self._counts.get(folder, 0) + 1
        if self._counts[folder] > FOLDER_PATHS:
            self._collapse(folder, now)
        if len(self._paths) + len(self._folders) > ALL_PATHS:
            self.add_all(now)

    def add_all(self, now: float) -> None:
        """Anything may have happened anywhere."""
        self._paths.clear()
        self._folders.clear()
        self._counts.clear()
        self._all = (now if self._all is None else self._all[0], now)

    def _collapse(self, folder: str, now: float) -> None:
        for path in [path for path in self._paths if os.path.dirname(path) == folder]:
            del self._paths[path]
        del self._counts[folder]
        self._folders[folder] = (now, now)

    def next_due(self) -> float | None:
        """When `take` has something to give, None when nothing waits."""
        times = list(self._paths.values())
        bursts = list(self._folders.values())
        if self._all is not None:
            bursts.append(self._all)
        times += [_due(burst) for burst in bursts]
        return min(times, default=None)

    def take(self, now: float) -> tuple[set[str], bool]:
        """What is due: paths (files and folders) and whether everything is; no longer held."""
        everything = self._all is not None and _due(self._all) <= now
        if everything:
            self._all = None
        due = {path for path, at in self._paths.items() if at <= now}
        for path in due:
            del self._paths[path]
            folder = os.path.dirname(path)
            self._counts[folder] -= 1
            if not self._counts[folder]:
                del self._counts[folder]
            self._looked.pop(path, None)
            self._looked[path] = now
        while len(self._looked) > REMEMBERED:
            del self._looked[next(iter(self._looked))]
        folders = {path for path, burst in self._folders.items() if _due(burst) <= now}
        for path in folders:
            del self._folders[path]
        return due | folders, everything


def _due(burst: tuple[float, float]) -> float:
    first, last = burst
    return min(last + QUIET_SECONDS, first + CEILING_SECONDS)
