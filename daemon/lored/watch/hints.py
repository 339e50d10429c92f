"""File events as hints: which paths to look at, never what happened to them.

watchdog's events only mark paths; what is true is found out by looking. Every way in which
events get lost ends in "look at everything": an overflow of the kernel's queue (watchdog
logs it and drops what it missed, so its log is listened to) and errors of its threads. What
it does not even log is that folders are missing because the limit of watches is reached: so
watches are counted in `/proc` and compared with the folders that should have one.

Threads of watchdog only add to a set and wake the loop once; the loop does the rest.
"""

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from watchdog.events import (
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers import Observer

from lored.mounts import file_system
from lored.watch.bursts import ALL_PATHS, Bursts
from lored.watch.eventless import sends_events

Mode = Literal["events", "poll"]

_EVENTS: Final[list[type[FileSystemEvent]]] = [
    FileCreatedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileDeletedEvent,
    DirCreatedEvent,
    DirMovedEvent,
    DirDeletedEvent,
]
"""Not opening and closing: our own reading would be an event."""

_LOGGERS: Final = ("watchdog.observers.inotify_c", "watchdog.observers.inotify")
_LIMIT_FILE: Final = "/proc/sys/fs/inotify/max_user_watches"

OnHints = Callable[[set[str], bool], None]
"""(paths to look at, whether to look at everything), called on the loop."""


@dataclass(slots=True)
class Watched:
    """How one root is watched. ``reason``: why it is polled, or which events may be missing."""

    mode: Mode
    reason: str = ""
    places: list[Any] = field(default_factory=list)


class Hints:
    """All watches of the daemon. Methods are for the loop's thread, except `watch`, which
    blocks on the file system and may run in another thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, on_hints: OnHints) -> None:
        self._loop = loop
        self._on_hints = on_hints
        self._bursts = Bursts()
        self._timer: asyncio.TimerHandle | None = None
        self._marked: set[str] = set()
        self._lost = False
        self._woken = False
        self._lock = threading.Lock()
        self._watching = threading.Lock()
        self._observer: Any = None
        self._stopped = False
        self._log = _LossHandler(self._lose)
        self.roots: dict[str, Watched] = {}
        self.overflows = 0
        for name in _LOGGERS:
            logging.getLogger(name).addHandler(self._log)

    def watch(self, root: str, places: list[tuple[str, bool]]) -> Watched:
        """Watch ``places`` (folder, with all below) of a root; again replaces what was watched
        before. Never raises: where events cannot be had, the root is polled."""
        with self._watching:
            self._unwatch(root)
            kind = file_system(os.path.realpath(root))
            if not sends_events(kind):
                return self._keep(root, Watched("poll", f"{kind} sends no events"))
            watched = Watched("events")
            for place, deep in places:
                real = os.path.realpath(place)
                if os.path.isdir(real):
                    problem = self._schedule(watched, place, real, deep)
                    if problem:
                        watched.mode, watched.reason = "poll", problem
                        break
            return self._keep(root, watched)

    def _keep(self, root: str, watched: Watched) -> Watched:
        self.roots[root] = watched
        return watched

    def _schedule(self, watched: Watched, place: str, real: str, deep: bool) -> str:
        if self._stopped:
            return "stopping"
        try:
            if self._observer is None:
                self._observer = Observer()
                self._observer.start()
            watched.places.append(
                self._observer.schedule(
                    _Marker(self._mark, real, place), real, recursive=deep, event_filter=_EVENTS
                )
            )
        except (OSError, RuntimeError) as error:
            return f"no events: {error}"
        return ""

    def unwatch(self, root: str) -> None:
        """Stop watching a root."""
        with self._watching:
            self._unwatch(root)

    def _unwatch(self, root: str) -> None:
        watched = self.roots.pop(root, None)
        for place in watched.places if watched is not None else ():
            try:
                self._observer.unschedule(place)
            except (KeyError, OSError, RuntimeError):
                continue  # its folder is gone, and with it the watch

    def stop(self) -> None:
        """End the threads; no hint comes after this."""
        self._stopped = True
        for name in _LOGGERS:
            logging.getLogger(name).removeHandler(self._log)
        if self._timer is not None:
            self._timer.cancel()
        observer, self._observer = self._observer, None
        if observer is not None:
            observer.stop()
            observer.join(1.0)

    def look_at_all(self) -> None:
        """Make everything due, as if events had been lost."""
        self._lose()

    # -- in watchdog's threads ---------------------------------------------------------------

    def _mark(self, path: str) -> None:
        with self._lock:
            if len(self._marked) < 2 * ALL_PATHS:
                self._marked.add(path)
            else:
                self._lost = True
        self._wake()

    def _lose(self) -> None:
        with self._lock:
            self._lost = True
        self._wake()

    def _wake(self) -> None:
        with self._lock:
            if self._woken or self._stopped:
                return
            self._woken = True
        try:
            self._loop.call_soon_threadsafe(self._collect)
        except RuntimeError:
            self._stopped = True  # the loop is closed

    # -- in the loop -------------------------------------------------------------------------

    def _collect(self) -> None:
        with self._lock:
            marked, self._marked = self._marked, set()
            lost, self._lost, self._woken = self._lost, False, False
        now = time.monotonic()
        for path in marked:
            self._bursts.add(path, now)
        if lost:
            self.overflows += 1
            self._bursts.add_all(now)
        self._arm(now)

    def _arm(self, now: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = self._bursts.next_due()
        if due is not None and not self._stopped:
            self._timer = self._loop.call_later(max(0.0, due - now), self._fire)

    def _fire(self) -> None:
        self._timer = None
        now = time.monotonic()
        paths, everything = self._bursts.take(now)
        if paths or everything:
            self._on_hints(paths, everything)
        self._arm(now)


class _Marker(FileSystemEventHandler):
    """Marks the paths of events, in the spelling of the place that was asked for."""

    def __init__(self, mark: Callable[[str], None], real: str, place: str) -> None:
        self._mark, self._real, self._place = mark, real, place

    def on_any_event(self, event: FileSystemEvent) -> None:
        for path in (event.src_path, event.dest_path):
            if path:
                text = os.fsdecode(path)
                if self._real != self._place and text.startswith(self._real):
                    text = self._place + text[len(self._real) :]
                self._mark(text)


class _LossHandler(logging.Handler):
    """watchdog's log of lost events and broken watches."""

    def __init__(self, lose: Callable[[], None]) -> None:
        super().__init__(logging.WARNING)
        self._lose = lose

    def emit(self, record: logging.LogRecord) -> None:
        self._lose()


def count_watches() -> int | None:
    """inotify watches that this process has; None where that cannot be told."""
    total = 0
    try:
        for number in os.listdir("/proc/self/fd"):
            try:
                if os.readlink(f"/proc/self/fd/{number}") != "anon_inode:inotify":
                    continue
                with open(f"/proc/self/fdinfo/{number}", encoding="ascii") as file:
                    total += sum(line.startswith("inotify ") for line in file)
            except OSError:
                continue  # closed meanwhile
    except OSError:
        return None
    return total


def watch_limit() -> int | None:
    """The most watches one user may have; None where there is no such limit."""
    try:
        with open(_LIMIT_FILE, encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        return None
