"""One source root as the indexer sees it: its cursors, what a look at it found, how it is
watched, what is wrong with it.

A root is isolated: it is walked in a thread lent to it that the daemon never waits for
longer than a deadline. On a dead mount that thread hangs, this root says so, and all others
go on; it is walked again when the thread has come back.
"""

import asyncio
import os
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from lored.core.reconcile import COMPRESSED, Cursor, Plan, Seen, plain_name, reconcile
from lored.core.transcripts import PARSERS
from lored.ingest.discover import Listing, RootSpec, Walker, watch_places
from lored.ingest.exclusion import Exclusion
from lored.services.indexing.threads import THREADS
from lored.watch.hints import Hints, Watched

T = TypeVar("T")

WALK_SECONDS: Final = 300.0
"""A walk that takes longer is cut, and what it found is used; 10,000 files take 0.05 s."""

DEAD_SECONDS: Final = 10.0
"""A walk that does not get to the next file for so long hangs in the system."""

RECENT_SECONDS: Final = 3_600
"""Files changed within this are looked at more often where events are missing."""


class NotAnswering(Exception):
    """The file system of a root does not answer."""


@dataclass(slots=True)
class Root:
    """A root at work."""

    spec: RootSpec
    origin: str
    enabled: bool
    walker: Walker
    cursors: dict[str, Cursor] = field(default_factory=dict)
    by_inode: dict[tuple[int | None, int | None], str] = field(default_factory=dict)
    watched: Watched | None = None
    places: list[tuple[str, bool]] = field(default_factory=list)
    """What is watched: folder, whether with all below."""
    busy: threading.Event = field(default_factory=threading.Event)
    """A thread is in this root, perhaps for ever."""
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    exists: bool = False
    files: int = 0
    sidecars: int = 0
    folders: int = 0
    complete: bool = False
    waiting: int = 0
    errors: list[str] = field(default_factory=list)
    odd_names: int = 0
    links_out: int = 0
    swept_at: int | None = None
    progress_at: int | None = None
    hanging: bool = False
    limited: bool = False
    """Folders of it have no watch because the system's limit is reached."""

    @classmethod
    def make(cls, spec: RootSpec, origin: str, enabled: bool, exclusion: Exclusion) -> "Root":
        """A root with nothing known about it."""
        on = enabled and spec.agent not in exclusion.agents and not exclusion.path(spec.path)
        return cls(spec, origin, on, Walker(spec, exclusion))

    @property
    def key(self) -> tuple[str, str]:
        """(agent, path)."""
        return self.spec.agent, self.spec.path

    @property
    def mode(self) -> str:
        """How changes are noticed: events, poll, off, missing, hanging; starting before the
        first look."""
        if not self.enabled:
            return "off"
        if self.hanging:
            return "hanging"
        if not self.exists:
            return "starting" if self.swept_at is None else "missing"
        return "poll" if self.watched is None else self.watched.mode

    def know(self, cursor: Cursor) -> None:
        """Take over a cursor as it is stored now."""
        self.cursors[cursor.path] = cursor
        if cursor.inode:
            self.by_inode[cursor.device, cursor.inode] = cursor.path

    def forget(self, path: str) -> None:
        """A path has no cursor any more."""
        cursor = self.cursors.pop(path, None)
        if cursor is not None and self.by_inode.get((cursor.device, cursor.inode)) == path:
            del self.by_inode[cursor.device, cursor.inode]

    def version(self, path: str) -> int:
        """Version of the parser that reads ``path`` now."""
        name = self.walker.parser(path) or self.spec.agent
        return int(PARSERS[name].version) if name in PARSERS else 0

    def session(self, path: str) -> str | None:
        """The native session id of a transcript as far as its path tells it."""
        name = self.walker.parser(path)
        found: str | None = None if name is None else PARSERS[name].session_id(path, b"")
        return found

    def group(self, path: str) -> str | None:
        """What keeps the files of one session together: its native id as far as the path tells
        it, else the form, where sessions lie in pieces that name theirs only inside."""
        name = self.walker.parser(path)
        together: str | None = getattr(PARSERS.get(name or ""), "together", None)
        return self.session(path) or together

    async def sweep(self, hints: Hints | None, now: int, *, calm: bool = False) -> Plan:
        """Walk the whole root and say what is to be read; where events work, ``calm``ly if so
        wished (`Walker.walk`). Raises `NotAnswering`."""
        calm = calm and self.mode == "events" and not self.limited
        listing = await self._in_thread(lambda: self._walk(hints, calm=calm))
        self.exists, self.complete = listing.exists, listing.complete
        self.folders, self.errors = listing.folders, listing.errors
        self.odd_names, self.links_out = listing.odd_names, listing.links_out
        self.swept_at = now
        self.sidecars = sum(1 for path in listing.files if path in listing.owners)
        self.files = len(listing.files) - self.sidecars
        # A root that vanished as a whole is an unmounted disk rather than deleted sessions.
        complete = listing.complete and listing.exists
        plan = self._plan(listing.files, self.cursors, now, complete)
        self.waiting = plan.waiting
        return plan

    def _walk(self, hints: Hints | None, *, calm: bool = False) -> Listing:
        self._watch(hints)
        return self.walker.walk(WALK_SECONDS, calm=calm)

    def _watch(self, hints: Hints | None, made: Collection[str] = ()) -> bool:
        """Watch the places that are there now: before they are walked, so that nothing that
        comes meanwhile is missed. ``made``: folders that appeared, perhaps under the name of one
        whose watch ended with it. Returns whether all places are watched anew."""
        if hints is None or not os.path.isdir(self.spec.path):
            return False
        places = [place for place in watch_places(self.spec) if os.path.isdir(place[0])]
        again = any(place in made for place, _ in places)
        if places == self.places and self.watched is not None and not again:
            return False
        self.places = places
        self.watched = hints.watch(self.spec.path, places)
        return True

    async def look(self, paths: set[str], now: int, hints: Hints | None) -> Plan:
        """What is to be read of some paths (files or folders). Raises `NotAnswering`."""
        files, cursors = await self._in_thread(lambda: self._look(paths, hints))
        # The cursors are chosen so that what is not listed is really gone.
        return self._plan(files, cursors, now, complete=True)

    def _look(
        self, paths: set[str], hints: Hints | None
    ) -> tuple[dict[str, Seen], dict[str, Cursor]]:
        """The files of ``paths``, and all cursors that they may concern. A folder may be a place
        that is new: the agent made it, and will write below it from now on."""
        made = {path for path in paths if os.path.isdir(path)}
        if made and self._watch(hints, made):
            paths = {self.spec.path}  # anywhere something may have come in between
        files: dict[str, Seen] = {}
        wanted: set[str] = set()
        for path in paths:
            if os.path.isdir(path):
                files.update(self.walker.walk(WALK_SECONDS, below=path).files)
                continue
            plain = plain_name(path)
            wanted.update((path, path.removesuffix("-wal"), plain))
            wanted.update(self.walker.owners(path))
        for path in wanted:
            seen = self.walker.look(path)
            if seen is not None:
                files[path] = seen
        known = self.cursors
        cursors = {path: known[path] for path in (*files, *wanted) if path in known}
        for path, seen in files.items():
            for name in self._former_names(path, seen):
                if name in known and name not in files and not os.path.exists(name):
                    cursors[name] = known[name]
        return files, cursors

    def _former_names(self, path: str, seen: Seen) -> list[str]:
        plain = plain_name(path)
        names = [plain, *(plain + ending for ending in COMPRESSED)]
        former = self.by_inode.get((seen.device, seen.inode))
        return [name for name in (former, *names) if name is not None and name != path]

    def _plan(
        self, files: dict[str, Seen], cursors: dict[str, Cursor], now: int, complete: bool
    ) -> Plan:
        owners = {path: names for path, names in self.walker.all_owners() if path in files}
        return reconcile(
            files,
            cursors,
            now=now,
            complete=complete,
            outdated=self._outdated,
            sidecars=owners,
        )

    def _outdated(self, cursor: Cursor) -> bool:
        """Whether another version of its parser has read a file."""
        name = self.walker.parser(cursor.path)
        return name is not None and cursor.parser_version != PARSERS[name].version

    def recent(self, now: int) -> set[str]:
        """Paths that changed lately, for looking at them more often."""
        limit = (now - RECENT_SECONDS * 1_000_000) * 1_000
        return {
            path
            for path, cursor in self.cursors.items()
            if not cursor.gone
            and not cursor.blocked
            and (cursor.mtime_ns is None or cursor.mtime_ns > limit)
        }

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Run ``work`` in a thread of this root, one after the other."""
        async with self.turn:
            return await self._in_turn(work)

    async def _in_turn(self, work: Callable[[], T]) -> T:
        if self.busy.is_set():
            self.hanging = True
            raise NotAnswering(f"{self.spec.path} does not answer")
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()

        def settle(call: Callable[[Any], None], value: Any) -> None:
            if not done.done():
                call(value)

        def run() -> None:
            try:
                result = work()
            except Exception as error:
                self.busy.clear()
                _tell(loop, settle, done.set_exception, error)
            else:
                self.busy.clear()
                _tell(loop, settle, done.set_result, result)

        self.busy.set()
        THREADS.start(run, f"walk {self.spec.agent}")
        while True:
            steps = self.walker.steps
            try:
                async with asyncio.timeout(DEAD_SECONDS):
                    result = await asyncio.shield(done)
            except TimeoutError:
                if self.walker.steps != steps:
                    continue
                self.hanging = True
                raise NotAnswering(
                    f"{self.spec.path} does not answer for {DEAD_SECONDS:g} s (a dead mount?)"
                ) from None
            break
        self.hanging = False
        return result


def _tell(loop: asyncio.AbstractEventLoop, settle: Any, call: Any, value: Any) -> None:
    try:
        loop.call_soon_threadsafe(settle, call, value)
    except RuntimeError:
        return  # the daemon is stopping
