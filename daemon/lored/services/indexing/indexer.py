"""Always-on indexing: keeps the backlog of files to read, reads it, and says how it stands.

Looks at the roots (`looking`) give plans; what is to be read joins the backlog: first
what changes now, then newest first. One file at a time is read through the worker
(`file_reading`), a slice at a time, so a file that changes now waits for a slice and
not for a gigabyte.

States: `starting`, `indexing`, `idle`, `waiting` (for the store or the worker), `off`.
"""

import asyncio
import os
from typing import Any, Final

import structlog

from lore.errors import Invalid
from lored.core.reconcile import Cursor, Plan, Step
from lored.ingest.pipeline import Broken, Pipeline
from lored.services.app import App
from lored.services.indexing.backlog import Backlog, Item, keep_sessions_together
from lored.services.indexing.file_reading import FAILURES, FileReading, Reading
from lored.services.indexing.looking import Looking, as_seen
from lored.services.indexing.progress import Progress
from lored.services.indexing.projects import Projects
from lored.services.indexing.refolding import refold
from lored.services.indexing.report import IndexReport
from lored.services.indexing.roots import Root
from lored.services.indexing.sources import Sources
from lored.services.indexing.tickets import Ticket, Tickets
from lored.services.moments import now
from lored.store import driver
from lored.store.database import StoreBusy
from lored.store.registry import SESSIONS_DB
from lored.store.sessions import cursors

PAUSE_SECONDS: Final = (1.0, 5.0, 15.0, 60.0)
"""Waits after the store refused a batch (disk full, read-only), growing."""

EVENT_BACKLOG: Final = 32
"""While more files wait than this, single sessions are not announced: progress is."""

log = structlog.get_logger()


class Indexing:
    """The service `indexing`."""

    def __init__(self, app: App) -> None:
        self._app = app
        self.format_problems: dict[str, str] = {}
        self.sources = Sources(
            os.path.join(app.paths.data_dir, "sources.json"),
            app.settings,
            os.environ,
            os.path.expanduser("~"),
            realm=app.paths.realm,
        )
        self._work = asyncio.Event()
        self.looking = Looking(
            self.sources,
            Projects(lambda: [str(one["root"]) for one in app.workspaces.known()]),
            app.settings.sweep_seconds,
            self._take,
            self._adopt,
            self._work.set,
        )
        self._homeless: dict[tuple[str, str], list[Cursor]] = {}
        """Cursors of roots that are not there (yet)."""
        self.backlog = Backlog()
        self.progress = Progress(app.events)
        self.pipeline = Pipeline(app.settings.worker_memory_bytes, log)
        self.tickets = Tickets()
        self.state = "off"
        self.trouble = ""
        """Why reading waits, empty when it does not."""
        self.current: Item | None = None
        """What is being read."""
        self._files = FileReading(app, self.pipeline, self.progress)
        self._ready = asyncio.Event()
        self._report = IndexReport(self, app)

    @property
    def roots(self) -> dict[tuple[str, str], Root]:
        """All source roots by (agent, path)."""
        return self.looking.roots

    async def start(self) -> None:
        """Load what is known and begin; returns at once, the first sweep follows."""
        self.format_problems = self.sources.load()
        self._make_roots()
        for cursor in await self._app.registry.sessions.read(cursors.load):
            self._know(cursor)
        if self._app.settings.index_enabled and not self.sources.problem:
            self.state = "starting"
            self.looking.start()
            self.looking.spawn(self._read_for_ever())

    async def stop(self) -> None:
        """End at once: what was read is stored, the rest is read after the next start."""
        self.state = "off"
        await self.looking.stop()
        await self.pipeline.stop()

    def _make_roots(self) -> None:
        self._files.exclude, self._files.custom = self.sources.rules(), self.sources.custom
        for root in self.looking.make_roots():
            paths = {item.step.path for item in self.backlog.of_root(root.key)}
            self.backlog.drop(paths)
            self.tickets.drop(paths)

    def _know(self, cursor: Cursor) -> None:
        root = self.roots.get((cursor.agent, cursor.root))
        if root is None:
            self._homeless.setdefault((cursor.agent, cursor.root), []).append(cursor)
        else:
            root.know(cursor)

    def _adopt(self, root: Root) -> None:
        for cursor in self._homeless.pop(root.key, ()):
            root.know(cursor)

    # -- planning -----------------------------------------------------------------------------

    async def _take(self, root: Root, plan: Plan, hot: bool, ticket: Ticket | None) -> None:
        """Put a plan into the backlog (and what ``ticket`` waits for); mark what is gone."""
        await self._mark(plan)
        if ticket is not None:
            ticket.failed += plan.waiting
        noticed = now()
        items = [
            (Item(step, root.key, hot, noticed), root.group(step.path))
            for step in plan.steps
            if cursors.storable(step.path)
        ]
        keep_sessions_together(items)
        if items and not self.backlog and self.current is None:
            self.progress.begin(noticed)
        for item, _ in items:
            item.whole |= item.step.change == "forced"
            if root.walker.parser(item.step.path) is None:
                # Read last: it speaks about sessions that should be there.
                item.hot, item.order = False, (1, 0)
            if ticket is not None:
                ticket.pending.add(item.step.path)
            if not self._is_current(item):
                self.backlog.add(item)
        if items:
            self._work.set()

    def _is_current(self, item: Item) -> bool:
        """Whether just that is being read."""
        current = self.current
        return (
            current is not None
            and not item.whole
            and (current.step.path, current.step.seen) == (item.step.path, item.step.seen)
        )

    async def _mark(self, plan: Plan) -> None:
        """Write down which files are gone, and which are there again."""
        if not plan.gone and not plan.back:
            return
        try:
            await self._app.registry.sessions.write(lambda c: cursors.mark(c, plan, now()))
        except (driver.Error, StoreBusy) as error:
            log.warning("cannot mark files as gone", error=repr(error))
            return  # the next sweep sees them again
        for cursor in plan.gone:
            cursor.gone = True
        for cursor in plan.back:
            cursor.gone = False
        paths = {cursor.path for cursor in plan.gone}
        self.backlog.drop(paths)
        self.tickets.drop(paths)

    # -- reading ------------------------------------------------------------------------------

    async def _read_for_ever(self) -> None:
        pause = 0
        for cursor in (behind := await refold(self._app.registry.sessions, self.roots.values())):
            self._know(cursor)
        self._ready.set()
        if behind:
            self.looking.spawn(self.looking.sweep())
        while True:
            item = self.backlog.pop()
            if item is None:
                self._rest()
                await self._work.wait()
                continue
            root = self.roots.get(item.root)
            if root is None or not root.enabled:
                self.tickets.drop({item.step.path})
                continue
            self.state, self.current = "indexing", item
            self._show()
            try:
                reading = await self._files.read(item, root)
            except (Broken, driver.Error, StoreBusy, OSError) as error:
                self.current = None
                self.backlog.add(item)
                wait = PAUSE_SECONDS[min(pause, len(PAUSE_SECONDS) - 1)]
                pause += 1
                self.trouble, self.state = str(error) or type(error).__name__, "waiting"
                log.warning("indexing waits", seconds=wait, error=repr(error))
                await asyncio.sleep(wait)
                continue
            self.current = None
            pause, self.trouble = 0, ""
            await self._finish(item, root, reading)

    def _rest(self) -> None:
        """Nothing waits."""
        self._work.clear()
        if self.state != "starting" or self.looking.swept:
            was, self.state = self.state, "idle"
            if was != "idle":
                self._show()
                self.progress.publish("idle", force=True)
        self.tickets.check()

    async def _finish(self, item: Item, root: Root, reading: Reading) -> None:
        """What follows from a slice that was read."""
        path = item.step.path
        cursor = root.cursors.get(path)
        step = Step("retry", path, item.step.seen, cursor)
        if cursor is None and reading.kind in ("killed", "more"):
            step = item.step  # renamed perhaps, and not looked into yet
        again = Item(step, root.key, item.hot, item.noticed_at, item.order)
        for other in reading.again:
            known = root.cursors.get(other)
            if known is not None:
                step = Step("retry", other, as_seen(known), known)
                self.backlog.add(Item(step, root.key, item.hot, now()))
        failed = reading.kind in FAILURES
        heard = set(reading.sessions) if reading.messages else set()  # not what is only named
        again.kills = item.kills + 1 if reading.kind in ("killed", "crashed") else 0
        if reading.kind in ("more", "anew", "killed"):
            self.backlog.add(again)
            self.tickets.stored(path, heard, reading.messages)
        elif path in self.backlog:  # it changed while it was read
            self.tickets.stored(path, heard, reading.messages)
        elif failed and cursor is not None and cursor.failures == 1:
            self.backlog.add(again)  # it may have been killed from outside
        else:
            self.progress.files_done += 1
            if item.hot and not failed:
                self.progress.latency_ms = (
                    now() - item.changed_at(self._app.settings.sweep_seconds)
                ) / 1_000
            self.tickets.read(path, failed=failed, sessions=heard, messages=reading.messages)
        if reading.sessions and len(self.backlog) <= EVENT_BACKLOG:
            await self._app.get("sessions").announce(reading.sessions)
        self._show()
        self.progress.publish(self.state)

    def _show(self) -> None:
        self.progress.files_left = len(self.backlog) + (self.current is not None)
        self.progress.bytes_left = self.backlog.bytes
        self.progress.current = "" if self.current is None else self.current.step.path

    # -- what others ask ----------------------------------------------------------------------

    async def index(self, paths: list[str] | None, *, force: bool) -> str:
        """Look now, at everything or at ``paths``; with ``force`` read it all again. Returns a
        ticket for `wait`. Raises `Invalid` for a path that is in no root."""
        if self.looking.hints is None:
            raise Invalid(self._report.off_reason())
        chosen: dict[tuple[str, str], set[str]] = {}
        for path in paths or ():
            clean = os.path.normpath(os.path.expanduser(path))
            homes = [r for r in self.roots.values() if (clean + "/").startswith(r.spec.path + "/")]
            if not homes:
                raise Invalid(f"{path} is in no source root; see: lore sources --add AGENT=PATH")
            for root in homes:
                chosen.setdefault(root.key, set()).add(clean)
        name, ticket = self.tickets.issue()
        self.looking.spawn(self._list(ticket, chosen, force))
        return name

    async def _list(
        self, ticket: Ticket, chosen: dict[tuple[str, str], set[str]], force: bool
    ) -> None:
        try:
            await self._ready.wait()
            if self.current is not None and not chosen:
                ticket.pending.add(self.current.step.path)
            for key, paths in chosen.items():
                await self.looking.look(self.roots[key], paths, ticket, whole=force)
            if not chosen:
                await self.looking.sweep(ticket, whole=force)
        finally:
            ticket.listed = True
            self.tickets.check()

    async def wait(self, name: str | None) -> dict[str, Any]:
        """Until the ticket is kept (None: a new one for everything); what was read for it."""
        return await self.tickets.wait(name or await self.index(None, force=False))

    async def status(self) -> dict[str, Any]:
        """The answer of `index_status`."""
        return await self._report.status()

    def degraded(self) -> list[dict[str, str]]:
        """Degraded modes with reason and remedy, for `status`."""
        return self._report.degraded()

    async def verify(self, *, deep: bool, fix: bool) -> list[dict[str, Any]]:
        """Checks of index against sources, for `verify`."""
        return await self._report.verify(deep=deep, fix=fix)

    async def change_sources(self, **changes: str | None) -> None:
        """Apply the parameters of `sources` and look anew."""
        if any(changes.values()):
            self.sources.change(**changes)
            self._begin_anew()

    async def change_rules(self, *, add: str | None, remove: str | None) -> list[str]:
        """Apply the parameters of `exclude`; the rules in force."""
        if add is not None or remove is not None:
            self.sources.exclude(add=add, remove=remove)
            await self._files.use_rules(self.sources.rules())
            if remove is not None:
                sessions = self._app.registry.sessions
                await sessions.write(lambda c: cursors.unblock(c, cursors.EXCLUDED))
                for cursor in await sessions.read(cursors.load):
                    self._know(cursor)
            self._begin_anew()
        return self.sources.rules()

    async def store_replaced(self, name: str) -> None:
        """The sessions are in another, empty store: everything is read again."""
        if name == SESSIONS_DB:
            self.looking.forget(self._homeless)
            self._begin_anew()

    def _begin_anew(self) -> None:
        self._make_roots()
        if self.looking.hints is not None:
            self.looking.spawn(self.looking.sweep())

    async def reload(self, paths: list[str]) -> None:
        """Cursors of ``paths`` were changed in the store by another service."""
        database = self._app.registry.sessions
        self.backlog.drop(paths)
        for cursor in await database.read(lambda c: [cursors.get(c, path) for path in paths]):
            if cursor is not None:
                self._know(cursor)
