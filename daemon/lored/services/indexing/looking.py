"""Looking at the source roots: sweeps, hints, polls. What a look finds goes to a planner.

A sweep of all roots at the start and every `sweep_seconds` is what guarantees completeness.
File events name paths to look at in between; where events cannot be trusted, recently
changed files are looked at every `POLL_SECONDS`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

import structlog

from lored.core.reconcile import Cursor, Plan, Seen, Step
from lored.services.indexing.projects import Projects
from lored.services.indexing.roots import NotAnswering, Root
from lored.services.indexing.sources import Sources
from lored.services.indexing.tickets import Ticket
from lored.services.moments import now
from lored.watch.hints import Hints, count_watches, watch_limit

POLL_SECONDS: Final = 5.0
"""Looks at recently changed files where events are missing: some stats, no reading."""

WATCH_SHARE: Final = 0.98
"""With fewer watches than this share of the folders, the limit is reached (folders come and
go while we count)."""

AT_ONCE: Final = 2
"""Roots swept at once: one may hang until its deadline, once."""

Planner = Callable[[Root, Plan, bool, Ticket | None], Awaitable[None]]
"""(root, plan, whether it changes now, ticket that waits for it)."""

log = structlog.get_logger()


class Looking:
    """All roots and the looks at them."""

    def __init__(
        self,
        sources: Sources,
        projects: Projects,
        sweep_seconds: float,
        take: Planner,
        adopt: Callable[[Root], None],
        looked: Callable[[], None],
    ) -> None:
        """``take`` is given the plans, ``adopt`` each root that is found later on;
        ``looked`` is called after the first look at everything."""
        self.sources = sources
        self._projects = projects
        self._adopt = adopt
        self.roots: dict[tuple[str, str], Root] = {}
        self.hints: Hints | None = None
        self.swept = False
        """Whether all roots were looked at once."""
        self.watches: int | None = None
        self.limit: int | None = None
        self._sweep_seconds = sweep_seconds
        self._take = take
        self._looked = looked
        """Called once all roots were looked at: there may be nothing to take."""
        self._tasks: set[asyncio.Task[Any]] = set()
        self._turns = asyncio.Semaphore(AT_ONCE)

    def start(self) -> None:
        """Begin sweeps, hints and polls."""
        self.hints = Hints(asyncio.get_running_loop(), self._hinted)
        self.limit = watch_limit()
        self.spawn(self._sweep_for_ever())
        self.spawn(self._poll_for_ever())

    async def stop(self) -> None:
        """No look and no hint comes after this."""
        for task in self._tasks:
            task.cancel()
        if self.hints is not None:
            self.hints.stop()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        """Run ``work`` until `stop`."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("a look failed", exc_info=task.exception())

    def make_roots(self) -> list[Root]:
        """(Re)make the roots from the sources, keeping what is known of those that stay.
        Returns the roots that were there before."""
        exclusion = self.sources.exclusion()
        made: dict[tuple[str, str], Root] = {}
        for source in self.sources.roots():
            root = Root.make(source.spec, source.origin, source.enabled, exclusion)
            old = self.roots.get(root.key)
            if old is not None:
                root.cursors, root.by_inode = old.cursors, old.by_inode
                root.busy, root.turn = old.busy, old.turn
            made[root.key] = root
        before = list(self.roots.values())
        for root in before:
            if self.hints is not None:
                self.hints.unwatch(root.spec.path)
        self.roots = made
        return before

    def forget(self, homeless: dict[tuple[str, str], list[Cursor]]) -> None:
        """Nothing was read of any file, of our roots and of those that are not there."""
        homeless.clear()
        for root in self.roots.values():
            root.cursors.clear()
            root.by_inode.clear()

    def _add_roots(self) -> None:
        """Take up roots that are new in the sources."""
        exclusion = self.sources.exclusion()
        for source in self.sources.roots():
            root = Root.make(source.spec, source.origin, source.enabled, exclusion)
            if root.key not in self.roots:
                self.roots[root.key] = root
                self._adopt(root)

    async def _sweep_for_ever(self) -> None:
        while True:
            try:
                await self.sweep(calm=self.swept)
                self.swept = True
                self._looked()
                self._compare_watches()
            except Exception as error:  # the sweep is the truth: the next one must come
                log.error("a sweep failed", exc_info=error)
            await asyncio.sleep(self._sweep_seconds)

    async def sweep(
        self, ticket: Ticket | None = None, *, whole: bool = False, calm: bool = False
    ) -> None:
        """Look at all enabled roots; with ``whole`` everything is read from its start, ``calm``
        leaves out what is quiet (`Walker.walk`)."""
        hot = self.swept
        await self._projects.look()
        self.sources.projects = self._projects.found
        if not self._projects.found.keys() <= self.roots.keys():
            self._add_roots()
        await asyncio.gather(
            *(
                self._sweep(root, ticket, whole, hot, calm)
                for root in self.roots.values()
                if root.enabled
            )
        )

    async def _sweep(
        self, root: Root, ticket: Ticket | None, whole: bool, hot: bool, calm: bool
    ) -> None:
        try:
            async with self._turns:
                plan = await root.sweep(self.hints, now(), calm=calm)
        except NotAnswering as error:
            log.warning("root does not answer", root=root.spec.path, error=str(error))
            return
        if whole:
            _read_whole(root, plan, root.spec.path)
        await self._take(root, plan, hot, ticket)

    async def look(
        self, root: Root, paths: set[str], ticket: Ticket | None = None, *, whole: bool = False
    ) -> None:
        """Look at some files or folders of a root."""
        if not paths:
            return
        try:
            plan = await root.look(paths, now(), self.hints)
        except NotAnswering:
            return
        if whole:
            for path in paths:
                _read_whole(root, plan, path)
        await self._take(root, plan, True, ticket)

    async def _poll_for_ever(self) -> None:
        while True:
            await asyncio.sleep(POLL_SECONDS)
            for root in list(self.roots.values()):
                if root.enabled and root.exists and (root.mode == "poll" or root.limited):
                    try:
                        await self.look(root, root.recent(now()))
                    except Exception as error:
                        log.error("a look failed", exc_info=error)

    def _hinted(self, paths: set[str], everything: bool) -> None:
        if everything:
            self.spawn(self.sweep())
            return
        for root in self.roots.values():
            inside = {path for path in paths if path.startswith(root.spec.path + "/")}
            if inside and root.enabled:
                self.spawn(self.look(root, inside))

    def _compare_watches(self) -> None:
        """Whether all folders have a watch: watchdog does not say when the limit is reached."""
        watched = [root for root in self.roots.values() if root.enabled and root.mode == "events"]
        self.watches = count_watches() if watched else None
        folders = sum(root.folders for root in watched)
        short = self.watches is not None and self.watches < folders * WATCH_SHARE
        for root in watched:
            root.limited = short


def _read_whole(root: Root, plan: Plan, below: str) -> None:
    """Let everything at and below a path be read from its start, also what did not change."""
    planned = {step.path for step in plan.steps}
    for path, cursor in root.cursors.items():
        inside = path == below or path.startswith(below + "/")
        if not inside or path in planned or cursor.gone or cursor.blocked:
            continue
        if root.walker.parser(path) is not None:
            plan.steps.append(Step("forced", path, as_seen(cursor), cursor))
            plan.waiting -= cursor.failures > 0
    plan.steps = [
        step._replace(change="forced") if step.change == "retry" else step for step in plan.steps
    ]


def as_seen(cursor: Any) -> Seen:
    """A file as it was when it was last looked at."""
    return Seen(cursor.device or 0, cursor.inode or 0, cursor.size, cursor.mtime_ns or 0)
