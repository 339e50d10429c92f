"""facts.jsonl and the fact stores, kept in step in both directions.

One `sync` of one scope: read the file; take in what others changed (one transaction); compose
the file as it should be; if that differs, write it beside and rename; then record the
agreement (second transaction). A crash between any two steps repeats work, never loses it:
the agreement is recorded last, so the next run sees the store's change as still unwritten.

Writes are debounced after a change of facts. Outside edits are noticed by looking at the
file's signature: every `LOOK_SECONDS` for scopes in use, and when a workspace is first asked
for. A file that looks half written is read again before it is believed.
"""

import asyncio
import contextlib
import os
import secrets
import time
from functools import partial
from typing import Any, Final, NamedTuple

from lore.errors import NotFound
from lored.core import clock, ids, jsonl
from lored.services.app import App
from lored.services.events import Event
from lored.services.exchange import mirror_files
from lored.services.exchange.mirror_files import Refused, Signature
from lored.services.exchange.mirror_state import MirrorState
from lored.services.workspaces import Workspace
from lored.store.driver import Connection
from lored.store.facts import intake, mirror, mirror_news
from lored.store.facts.log import Batch
from lored.store.registry import SESSIONS_DB, workspace_of

START_SECONDS: Final = 1.0
"""A start waits so long for the global file; some thousand facts take less."""

LOOK_SECONDS: Final = 2.0
"""An edit by another program is seen within this; one stat per scope in use."""

TORN_TRIES: Final = 5
TORN_SECONDS: Final = 0.2
"""How often and after what pause a half-written file is read again: Recursive rewrites its file
in place within milliseconds."""

RACES: Final = 5
"""Times that somebody may change the file while we prepare ours, per sync."""

FILE_SECONDS: Final = 10.0
"""Longest wait for the file system of one workspace."""

MEMORY: Final = "/memory/facts.jsonl"


class Taken(NamedTuple):
    """What came in, the file as it should be, the record of each fact in it, and the entry of
    the change log up to which it speaks."""

    report: intake.Intake
    data: bytes
    written: dict[int, dict[str, Any]]
    mark: int


class Mirror:
    """The mirror of all scopes; `None` is the global one."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._locks: dict[str | None, asyncio.Lock] = {}
        self._seen: dict[str | None, Signature] = {}
        self._state = MirrorState()
        self._marks: dict[str | None, int] = {}
        """Per scope up to which entry of the change log its file is in step."""
        self._dirty: dict[str | None, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._looking: asyncio.Task[None] | None = None
        self._unlisten: Any = None

    async def start(self) -> None:
        """Sync the global scope and all workspaces that have facts, then keep looking. A file
        so large that it takes longer than a start may is gone on with behind the first answers."""
        if not self._app.settings.mirror_enabled:
            return
        self._unlisten = self._app.events.listen(self._hear)
        self._app.workspaces.on_arrival = self.arrive
        first = asyncio.create_task(self._try_sync(None))
        self._tasks.add(first)
        first.add_done_callback(self._tasks.discard)
        await asyncio.wait([first], timeout=START_SECONDS)
        self._looking = asyncio.create_task(self._look(), name="mirror")

    async def stop(self) -> None:
        """Write what waits and end."""
        if self._unlisten is not None:
            self._unlisten()
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait([self._looking])
        waiting, self._dirty = list(self._dirty.items()), {}
        for scope, handle in waiting:
            handle.cancel()
            await self._try_sync(scope)
        if self._tasks:
            await asyncio.wait(self._tasks)

    # -- when ------------------------------------------------------------------------------

    def _hear(self, event: Event) -> None:
        if event.topic in ("facts", "conflicts") and event.payload.get("action") != "imported":
            self.touch(event.workspace)

    def touch(self, scope: str | None) -> None:
        """The store of a scope changed: write its file soon."""
        if scope in self._dirty or not self._app.settings.mirror_enabled:
            return
        loop = asyncio.get_running_loop()
        delay = self._app.settings.mirror_debounce_seconds
        self._dirty[scope] = loop.call_later(delay, self._due, scope)

    async def store_replaced(self, name: str) -> None:
        """A store was restored: what its file knows and the backup does not is taken in now."""
        if name != SESSIONS_DB and self._app.settings.mirror_enabled:
            await self._try_sync(workspace_of(name), whole=True)  # the marks are of another log

    def _due(self, scope: str | None) -> None:
        self._dirty.pop(scope, None)
        task = asyncio.get_running_loop().create_task(self._try_sync(scope))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def arrive(self, workspace: Workspace) -> None:
        """First use of a workspace: what its file holds must be there for this very call."""
        if workspace.id not in self._seen:
            await self._try_sync(workspace.id)

    async def _look(self) -> None:
        for workspace_id in self._app.registry.known_workspaces():
            await self._try_sync(workspace_id)
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            for scope in list(self._seen):
                if scope in self._dirty:
                    continue
                with contextlib.suppress(NotFound, Refused, OSError, TimeoutError):
                    path = self.path(scope)
                    if path is not None and await _threaded(
                        mirror_files.signature, path
                    ) != self._seen.get(scope):
                        await self._try_sync(scope)

    # -- where -----------------------------------------------------------------------------

    def path(self, scope: str | None) -> str | None:
        """The file of a scope; None when it has none (setting, gone directory, realm)."""
        if scope is None:
            if self._app.paths.realm:
                return None  # a realm's global facts stay within its walls
            return (
                mirror_files.global_folder(self._app.settings.recursive_global_under_home) + MEMORY
            )
        root = self._app.workspaces.get(scope).root
        folder = root + "/.recursive"
        wanted = self._app.settings.mirror_workspaces
        if wanted == "never" or not os.path.isdir(root):
            return None
        if wanted == "existing" and not os.path.isdir(folder):
            return None
        return folder + MEMORY

    # -- what ------------------------------------------------------------------------------

    async def _try_sync(self, scope: str | None, *, whole: bool = False) -> None:
        try:
            await self.sync(scope, whole=whole)
        except Exception as error:  # also a store that is newer, busy or being replaced
            self._state.failed(scope, error)
            self._seen.setdefault(scope, None)

    async def sync(self, scope: str | None, *, whole: bool = False) -> dict[str, Any]:
        """Bring file and store of one scope in step; returns what came in. ``whole``: look at
        every line and every fact, not only at what changed here since the last sync.

        Raises `Refused` or OSError when the file cannot be used; the store is not harmed.
        """
        lock = self._locks.setdefault(scope, asyncio.Lock())
        async with lock:
            path = await _threaded(self.path, scope)
            if path is None:
                self._seen[scope] = None
                return {}
            root = path.removesuffix("/.recursive" + MEMORY)
            await _threaded(mirror_files.check_place, root, path)
            if not whole and await self._patch(scope, path):
                return {}
            for _ in range(RACES):
                found = await self._settled(path)
                if not found.data and not self._has_store(scope):
                    self._seen[scope] = found.signature
                    return {}
                report, data, written, mark = await self._take(scope, found.data)
                signature = found.signature
                if data != found.data:
                    signature = await _threaded(mirror_files.replace, path, data, signature)
                    if signature is None:
                        continue
                if data != found.data or report.created or report.changed:
                    async with self._app.registry.facts(scope) as database:
                        news = await database.read(partial(mirror.unsettled, written=written))
                        if news:
                            await database.write(partial(mirror.settle, news=news))
                self._seen[scope], self._marks[scope] = signature, mark
                if data != found.data:
                    self._app.events.publish("status", {"mirrored": path}, scope)
                self._state.synced(scope, path, report, len(written))
                return self._wire(report)
            raise Refused(f"{path} changed {RACES} times while it was being merged")

    async def _patch(self, scope: str | None, path: str) -> bool:
        """Write only what changed here, when the file is the one that we left; False when the
        whole has to be looked at."""
        seen, mark = self._seen.get(scope), self._marks.get(scope)
        if seen is None or mark is None:
            return False
        async with self._app.registry.facts(scope) as database:
            news = await database.read(partial(mirror_news.news, since=mark))
            if news is None:
                return False
            made = await _threaded(mirror_files.patch, path, list(news.changes.values()), seen)
            if made is None:
                return False
            settled, lines = mirror_news.settled(news, self._state.lines(scope))
            if settled:
                await database.write(partial(mirror.settle, news=settled))
        self._seen[scope], self._marks[scope] = made, news.mark
        self._state.went_on(scope, lines)
        if made != seen:
            self._app.events.publish("status", {"mirrored": path}, scope)
        return True

    def _has_store(self, scope: str | None) -> bool:
        return scope is None or self._app.registry.has_facts(scope)

    async def _settled(self, path: str) -> mirror_files.Read:
        for _ in range(TORN_TRIES):
            found: mirror_files.Read = await _threaded(mirror_files.read, path)
            if found.signature is None or not found.torn:
                break
            await asyncio.sleep(TORN_SECONDS)
        return found

    async def _take(self, scope: str | None, data: bytes) -> Taken:
        lines = await asyncio.to_thread(jsonl.parse, data)
        vectors = await self._vectors(scope, lines)
        now = int(time.time() * clock.SECOND)
        rules = self._app.get("facts").rules

        def work(conn: Connection) -> Taken:
            batch = Batch(conn, now=now, actor="facts.jsonl")
            sources = intake.Sources(
                rules, vectors, lambda: ids.make_uid(now, secrets.token_bytes(10))
            )
            report = intake.take(conn, batch, lines, sources)
            return Taken(report, *mirror.compose(conn, lines, report.owner), mirror_news.mark(conn))

        def compose_only(conn: Connection) -> Taken | None:
            owner = mirror.owners(conn, lines)
            if owner is None:
                return None
            report = intake.Intake(owner=owner)
            report.problems = [line.problem for line in lines if line.problem]
            return Taken(report, *mirror.compose(conn, lines, owner), mirror_news.mark(conn))

        async with self._app.registry.facts(scope) as database:
            known = await database.read(compose_only)
            result = await database.write(work) if known is None else known
        report = result.report
        if report.created or report.changed:
            self._app.events.publish(
                "facts",
                {
                    "action": "imported",
                    "created": len(report.created),
                    "changed": len(report.changed),
                },
                scope,
            )
        return result

    async def _vectors(
        self, scope: str | None, lines: list[jsonl.Line]
    ) -> dict[str, tuple[str, Any]]:
        """Static vectors of the texts that the store does not have yet."""
        texts = list({line.record["text"] for line in lines if line.record is not None})
        if self._has_store(scope):
            async with self._app.registry.facts(scope) as database:
                texts = await database.read(lambda c: mirror.unknown_texts(c, texts))
        facts = self._app.get("facts")
        made = await asyncio.to_thread(facts.vectors, texts) if texts else []
        return {text: one for text, one in zip(texts, made, strict=True) if one is not None}

    # -- telling ---------------------------------------------------------------------------

    @staticmethod
    def _wire(report: intake.Intake) -> dict[str, Any]:
        return {
            "created": len(report.created),
            "changed": len(report.changed),
            "renumbered": report.renumbered,
            "problems": report.problems,
            "collisions": len(report.collisions),
            "erased": report.erased,
        }

    def status(self) -> list[dict[str, Any]]:
        """Per file: path, facts, problems, error, for `status`."""
        return self._state.rows()

    def degraded(self) -> list[dict[str, str]]:
        """Files that cannot be kept in step, and lines that nobody can read."""
        return self._state.degraded()

    async def verify(self, *, deep: bool, fix: bool) -> list[dict[str, Any]]:
        """One check for `doctor`: every file says what its store says."""
        if not self._app.settings.mirror_enabled:
            return [{"name": "facts.jsonl", "ok": True, "detail": "mirror_enabled is off"}]
        wrong = []
        for scope in {None, *self._seen, *self._app.registry.known_workspaces()}:
            await self._try_sync(scope, whole=True)
            error = self._state.error(scope)
            if error:
                wrong.append(error)
        check: dict[str, Any] = {"name": "facts.jsonl", "ok": not wrong}
        if wrong:
            check["detail"] = wrong[0]
            check["remedy"] = "make the file writable, or set mirror_workspaces = 'never'"
        return [check]


async def _threaded(function: Any, *arguments: Any) -> Any:
    async with asyncio.timeout(FILE_SECONDS):
        return await asyncio.to_thread(function, *arguments)
