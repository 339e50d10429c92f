"""Reading one file: what the worker is asked, what becomes of its batches and outcomes.

Each batch is one transaction (rows, index rows, cursor). Between batches requests go first:
while a search waits for this store, the next batch waits, up to `YIELD_SECONDS`. An error of
the store that is not about the content is no failure of the file: it is read on later.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import structlog

from lored.core.batches import Batch
from lored.core.reconcile import SETTLE_SECONDS, Cursor, plain_name
from lored.core.transcripts import PARSERS
from lored.ingest.pipeline import Broken, Outcome, Pipeline
from lored.ingest.reading import Job
from lored.services.app import App
from lored.services.facts import origins
from lored.services.indexing.backlog import Item
from lored.services.indexing.progress import Progress
from lored.services.indexing.roots import Root
from lored.services.moments import now as clock
from lored.store import driver
from lored.store.database import Database, StoreBusy
from lored.store.driver import Connection
from lored.store.sessions import cursors, voids, writes
from lored.store.sessions.known import known
from lored.store.sessions.written import FileRef, Written

YIELD_SECONDS: Final = 0.2
"""Longest wait of a batch for requests: under a flood of searches the index still moves."""

YIELD_STEP_SECONDS: Final = 0.004

SLICE_BYTES: Final = 8 << 20
"""Read at most before a file that changes now may go first: about a quarter of a second."""

FAILURES: Final = ("failed", "crashed")
"""Outcomes that count against the file."""

KILLS_FORGIVEN: Final = 2
"""Kills of the worker from outside in a row (without a slice read in between) that do not count
against the file: whoever ends a process means no file. One that is too much for the machine's
memory gets it killed each time, and must not hold up the others."""

log = structlog.get_logger()


@dataclass(slots=True)
class Reading:
    """What the reading of one file did so far."""

    kind: str = "done"
    text: str = ""
    sessions: dict[int, bool] = field(default_factory=dict)
    messages: int = 0
    again: list[str] = field(default_factory=list)
    """Other files of the session that must be read again too."""


class FileReading:
    """Reads items of the backlog, one at a time."""

    def __init__(self, app: App, pipeline: Pipeline, progress: Progress) -> None:
        self._app = app
        self._pipeline = pipeline
        self._progress = progress
        self.exclude: list[str] = []
        self._asked = self.exclude
        """The rules under which the file at hand is read."""
        self._storing = asyncio.Lock()
        self.custom: list[Any] = []
        """Exclude rules and custom formats in force, for the worker."""
        self.barred_workspaces: Callable[[str], bool] = lambda workspace: False

    async def use_rules(self, rules: list[str]) -> None:
        """Exclude by ``rules`` from now on: nothing that was read under others is stored after
        this returns; it is read again."""
        self.exclude = rules
        async with self._storing:
            pass

    async def read(self, item: Item, root: Root) -> Reading:
        """Read one item as far as its slice goes. `Reading.kind` is an outcome of the worker.

        Raises `pipeline.Broken`, and the driver's errors when the store cannot be written.
        """
        try:
            return await self._read(item, root)
        except Exception as error:
            own = not isinstance(error, driver.Error) or isinstance(error, driver.IntegrityError)
            if not own or isinstance(error, (Broken, StoreBusy, OSError)):
                raise
            # A defect that this file brings to light must not hold up all others.
            log.error("file failed by a defect", path=item.step.path, exc_info=error)
            reading, failed = Reading(), Outcome("failed", f"defect: {type(error).__name__}")
            await self._conclude(root, item, failed, reading, root.version(item.step.path))
            return reading

    async def _read(self, item: Item, root: Root) -> Reading:
        step, reading = item.step, Reading()
        self._asked = self.exclude
        database = self._app.registry.sessions
        path = step.path
        parser = root.walker.parser(path)
        version = root.version(path)
        document = parser is not None and hasattr(PARSERS[parser], "parse_document")
        former = await self._former(item, root)

        def prepare(conn: Connection) -> tuple[dict[str, Any], list[str], str | None]:
            other = cursors.take_over(conn, path)
            cursors.ensure(conn, path, root.spec.agent, root.spec.path, version)
            again: list[str] = []
            if item.whole or step.change in ("touched", "reparse", "forced"):
                again = cursors.reset(conn, path)
            elif document:
                if cursors.shares_session(conn, path):
                    cursors.rewind(conn, path)
                else:
                    cursors.reset(conn, path)
            fields = cursors.resume(conn, former) if former else {}
            fields = fields or cursors.resume(conn, path)
            fields["void_from"] = voids.void_from(
                conn, root.spec.agent, root.session(path) or "", path, fields["offset"]
            )
            return fields, [name for name in again if name != path], other

        fields, reading.again, other = await database.write(prepare)
        if other is not None:
            root.forget(other)
        job = Job(
            path,
            root.spec.agent,
            parser or root.spec.agent,
            **fields,
            settle=clock() * 1_000 - step.seen.mtime_ns > SETTLE_SECONDS * 1_000_000_000,
            slice_bytes=SLICE_BYTES,
            sidecar=parser is None,
            known=_known_sidecars(root, path),
        )
        done, outdated = fields["offset"], False

        async def on_batch(batch: Batch) -> None:
            nonlocal done, former, outdated
            await self._yield()
            async with self._storing:
                outdated = outdated or self._asked != self.exclude
                if not outdated:
                    await store(batch)

        async def store(batch: Batch) -> None:
            nonlocal done, former
            if former is not None:
                await self._move(root, former, path)
                former = None
            # Into that same store: one that took its place has nothing of what came before.
            await self._store(database, root, item, batch, reading)
            if batch.place.offset > done:
                self._progress.advance(batch.place.offset - done)
                done = batch.place.offset
            self._progress.publish("indexing")

        outcome = await self._pipeline.run(
            job,
            self._options(),
            on_batch=on_batch,
            on_ask=lambda name: self._known(root.spec.agent, name),
            on_beat=lambda place: self._progress.publish("indexing"),
        )
        self._progress.bytes_read += outcome.bytes_read
        if database is not self._app.registry.sessions:
            raise StoreBusy("the store was replaced while a file was read")
        if outdated:
            reading.kind = "more"
            return reading
        if outcome.kind == "killed":
            if item.kills < KILLS_FORGIVEN:
                reading.kind = "killed"
                return reading
            outcome = outcome._replace(kind="crashed")
        if former is not None:
            if outcome.kind == "anew":  # only the number of its inode is that of the other file
                await self._part(root, former)
                reading.kind = "anew"
                return reading
            await self._move(root, former, path)
        await self._conclude(root, item, outcome, reading, version)
        return reading

    async def _former(self, item: Item, root: Root) -> str | None:
        """The name under which the file was known, when its content must still show that it is
        that file. (Another form of the same name is the same session: `cursors.take_over`.)"""
        step = item.step
        former = step.path if step.cursor is None else step.cursor.path
        if plain_name(former) == plain_name(step.path):
            return None
        parser = root.walker.parser(step.path)
        stored = await self._app.registry.sessions.read(lambda c: cursors.get(c, former))
        blank = stored is None or not stored.offset  # nothing to know the file again by
        if item.whole or blank or parser is None or not hasattr(PARSERS[parser], "parse"):
            await self._part(root, former)
            return None
        return former

    async def _move(self, root: Root, former: str, path: str) -> None:
        await self._app.registry.sessions.write(lambda c: cursors.move(c, former, path))
        root.forget(former)

    async def _part(self, root: Root, former: str) -> None:
        """The file is none that was known: the one under its former name is gone."""

        def part(conn: Connection) -> Cursor | None:
            cursor = cursors.get(conn, former)
            cursors.mark_gone(conn, [] if cursor is None else [cursor.id], clock())
            return cursors.get(conn, former)

        cursor = await self._app.registry.sessions.write(part)
        if cursor is not None:
            root.know(cursor)

    def _options(self) -> dict[str, Any]:
        settings = self._app.settings
        return {
            "redact": settings.redact_enabled,
            "embed": settings.embed_enabled,
            "exclude": self._asked,
            "custom": self.custom,
        }

    async def _known(self, agent: str, name: str) -> dict[str, Any]:
        found = await self._app.registry.sessions.read(lambda c: known(c, agent, name))
        workspace = found["fields"].get("workspace")
        if workspace is not None and self.barred_workspaces(workspace):
            found["barred"] = True
        return found

    async def _yield(self) -> None:
        """Let waiting requests go first."""
        database = self._app.registry.sessions
        end = time.monotonic() + YIELD_SECONDS
        while database.queue_depths["reads"] and time.monotonic() < end:  # noqa: ASYNC110
            await asyncio.sleep(YIELD_STEP_SECONDS)

    async def _store(
        self, database: Database, root: Root, item: Item, batch: Batch, reading: Reading
    ) -> None:
        places: dict[str, tuple[str | None, str | None]] = {}
        for patch in batch.patches.values():
            cwd = patch.get("cwd")
            if cwd and cwd not in places:
                places[cwd] = await self._place(cwd)
        path, now = item.step.path, clock()
        file = FileRef(path, root.spec.agent, root.spec.path, item.step.seen.mtime_ns // 1_000)

        def write(conn: Connection) -> tuple[Written, Cursor | None]:
            written = writes.apply(conn, file, batch, workspaces=places, now=now)
            return written, cursors.get(conn, path)

        written, cursor = await database.write(write)
        if cursor is not None:
            root.know(cursor)
        for seen in batch.sidecars:
            stored = await self._app.registry.sessions.read(
                lambda c, name=seen.path: cursors.get(c, name)  # type: ignore[misc]
            )
            if stored is not None:
                root.know(stored)
        root.progress_at = now
        for session, is_new in written.sessions.items():
            reading.sessions[session] = reading.sessions.get(session, False) or is_new
        reading.messages += written.messages
        reading.again += written.again
        self._progress.messages += written.messages
        self._progress.redacted(batch.redactions)
        if batch.stated:
            await origins.link_batch(self._app, root.spec.agent, batch.stated)

    async def _place(self, cwd: str) -> tuple[str | None, str | None]:
        """Workspace id and work tree of a session's directory."""
        workspaces = self._app.workspaces
        found = await workspaces.identify(cwd)
        worktree = None
        if found is not None and cwd.startswith("/"):
            try:
                workspace = await workspaces.resolve(cwd)
            except Exception:  # the directory is gone: then there is no work tree either
                workspace = None
            worktree = None if workspace is None else workspace.worktree
        return found, worktree

    async def _conclude(
        self, root: Root, item: Item, outcome: Outcome, reading: Reading, version: int
    ) -> None:
        """Put the outcome into the cursor."""
        reading.kind, reading.text = outcome.kind, outcome.text
        path, now = item.step.path, clock()
        if outcome.kind == "barred" and self._asked != self.exclude:
            reading.kind = "anew"  # by rules that changed meanwhile
        if reading.kind == "anew":

            def conclude(conn: Connection) -> Any:
                reading.again = [name for name in cursors.reset(conn, path) if name != path]

        elif outcome.kind == "ignored":

            def conclude(conn: Connection) -> Any:
                cursors.settle(conn, path, item.step.seen, version, now)

        elif outcome.kind == "barred":

            def conclude(conn: Connection) -> Any:
                cursors.block(conn, path, cursors.EXCLUDED)

        elif outcome.kind == "gone":

            def conclude(conn: Connection) -> Any:
                cursor = cursors.get(conn, path)
                cursors.mark_gone(conn, [] if cursor is None else [cursor.id], now)

        elif outcome.kind in FAILURES:

            def conclude(conn: Connection) -> Any:
                cursors.fail(conn, path, outcome.text, version, now)

            log.warning("file failed", path=path, kind=outcome.kind, error=outcome.text)
        else:
            return

        def write(conn: Connection) -> Cursor | None:
            conclude(conn)
            return cursors.get(conn, path)

        cursor = await self._app.registry.sessions.write(write)
        if cursor is not None:
            root.know(cursor)


def _known_sidecars(root: Root, path: str) -> list[list[Any]]:
    """The sidecars of a transcript as they were when they were last read."""
    found = []
    for name in root.walker.sidecars(path):
        cursor = root.cursors.get(name)
        if cursor is not None:
            found.append([name, cursor.device, cursor.inode, cursor.size, cursor.mtime_ns])
    return found
