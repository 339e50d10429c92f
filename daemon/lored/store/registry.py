"""Which store files are open: global, sessions, and an LRU of workspace stores.

Owns opening and closing; knows no SQL beyond that. Workspace ids are made by
`services.workspaces`; a store file is named by its id.
"""

import asyncio
import os
import shutil
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

import structlog

from lored.store import recovery, suspicion
from lored.store.database import Database
from lored.store.facts.pipeline import Rules
from lored.store.pragmas import StoreKind

OPEN_WORKSPACES: Final = 8
"""Workspace stores kept open: each costs three threads and some cache."""

RULES: Final = Rules(0.5, {})
"""Those of the default settings."""


HEALS: Final = 3
"""Times that one store is checked and healed in one run: what comes back after that is a defect
of the disk, and a loop would not mend it."""

GLOBAL_DB: Final = "global.db"
SESSIONS_DB: Final = "sessions.db"
"""Names of the stores that are always open; others are `workspaces/<id>.db`."""

log = structlog.get_logger()


async def _ignore(name: str) -> None:
    """Nobody to tell."""


def store_name(workspace_id: str | None) -> str:
    """The name of a facts store in backups and reports."""
    return GLOBAL_DB if workspace_id is None else f"workspaces/{workspace_id}.db"


def workspace_of(name: str) -> str | None:
    """The workspace whose facts a store of that name holds; None for the global ones."""
    return None if name == GLOBAL_DB else name.removeprefix("workspaces/").removesuffix(".db")


class Registry:
    """The open stores of one daemon."""

    def __init__(
        self,
        *,
        global_db: str,
        workspaces_dir: str,
        sessions_db: str,
        backups_dir: str,
        rules: Rules = RULES,
    ) -> None:
        """``rules``: by which facts salvaged from a damaged store find their cluster."""
        self._rules = rules
        self._global_path = global_db
        self._sessions_path = sessions_db
        self._workspaces_dir = workspaces_dir
        self._backups_dir = backups_dir
        self._global: Database | None = None
        self._sessions: Database | None = None
        self._open: OrderedDict[str, Database] = OrderedDict()
        self._users: dict[str, int] = {}
        self._opening = asyncio.Lock()
        self.recoveries: list[dict[str, object]] = []
        """Stores that had to be replaced since the start, for `status`."""
        self.on_replaced: Callable[[str], Awaitable[None]] = _ignore
        """Told the name of a store that was replaced while it was open."""
        self._heals: dict[str, int] = {}
        self._healing: dict[str, asyncio.Task[None]] = {}

    async def open(self) -> None:
        """Open the two stores that are always there."""
        self._global = await self._open_one(self._global_path, StoreKind.FACTS, GLOBAL_DB)
        self._sessions = await self._open_one(self._sessions_path, StoreKind.SESSIONS, SESSIONS_DB)

    async def _open_one(self, path: str, kind: StoreKind, name: str) -> Database:
        database, report = await recovery.open_or_recover(
            path, kind, backups_dir=self._backups_dir, name=name, rules=self._rules
        )
        if report is not None:
            self.recoveries.append(report)
        self._watch(database, name)
        return database

    # -- damage met while open ------------------------------------------------------------

    def _watch(self, database: Database, name: str) -> None:
        database.on_damage = lambda: self.suspect(database, name)

    def suspect(self, database: Database, name: str) -> None:
        """Damage was met in an open store, known in backups as ``name``: check it, and replace it
        if need be, beside all that goes on."""
        if name in self._healing or self._heals.get(name, 0) >= HEALS:
            return
        self._heals[name] = self._heals.get(name, 0) + 1
        task = asyncio.get_running_loop().create_task(self._heal(database, name))
        self._healing[name] = task
        task.add_done_callback(lambda _: self._healing.pop(name, None))

    async def _heal(self, database: Database, name: str) -> None:
        """Reads go on while the store is checked. Then whoever calls is refused as busy, writes
        that wait are done (they are salvaged with the rest), and the file is replaced."""
        try:
            problem = await recovery.problem_met(database)
            if problem is None:
                suspicion.clear(database.path)
                return
            log.error("damaged", store=name, problem=problem)
            async with self._opening:
                if not self._is_current(database):
                    return
                database.retire()
                await database.close()
                fresh, report = await recovery.replace(
                    database.path,
                    database.kind,
                    problem,
                    backups_dir=self._backups_dir,
                    name=name,
                    rules=self._rules,
                )
                await fresh.renew_uuid()
                self._watch(fresh, name)
                self._put(name, fresh)
                self.recoveries.append(report)
            await self.on_replaced(name)
        except Exception as error:
            log.error("healing_failed", store=name, exc_info=error)

    def _is_current(self, database: Database) -> bool:
        return any(one is database for one in self.open_stores().values())

    def _put(self, name: str, database: Database) -> None:
        if name == GLOBAL_DB:
            self._global = database
        elif name == SESSIONS_DB:
            self._sessions = database
        else:
            self._open[workspace_of(name) or ""] = database

    @property
    def global_(self) -> Database:
        """The global facts."""
        if self._global is None:
            raise RuntimeError("the global store is not open")
        return self._global

    @property
    def sessions(self) -> Database:
        """The sessions."""
        if self._sessions is None:
            raise RuntimeError("the sessions store is not open")
        return self._sessions

    def workspace_path(self, workspace_id: str) -> str:
        """The file that holds the facts of a workspace, there or not."""
        return f"{self._workspaces_dir}/{workspace_id}.db"

    def has_facts(self, workspace_id: str) -> bool:
        """Whether that workspace has a store file; a read must not create one."""
        return workspace_id in self._open or os.path.exists(self.workspace_path(workspace_id))

    def known_workspaces(self) -> list[str]:
        """Ids that have a store file."""
        try:
            names = os.listdir(self._workspaces_dir)
        except FileNotFoundError:
            return []
        return sorted(name[:-3] for name in names if name.endswith(".db"))

    @asynccontextmanager
    async def facts(self, workspace_id: str | None) -> AsyncIterator[Database]:
        """The facts store of a workspace, or the global one for None.

        The store stays open while the context lasts; the least recently used one that nobody
        uses is closed when more than `OPEN_WORKSPACES` are open.
        """
        if workspace_id is None:
            yield self.global_
            return
        async with self._opening:
            database = self._open.get(workspace_id)
            if database is None:
                database = await self._open_one(
                    self.workspace_path(workspace_id),
                    StoreKind.FACTS,
                    store_name(workspace_id),
                )
                self._open[workspace_id] = database
            self._open.move_to_end(workspace_id)
            self._users[workspace_id] = self._users.get(workspace_id, 0) + 1
            await self._evict()
        try:
            yield database
        finally:
            self._users[workspace_id] -= 1

    async def _evict(self) -> None:
        for workspace_id in list(self._open):
            if len(self._open) <= OPEN_WORKSPACES:
                return
            if not self._users.get(workspace_id):
                await self._open.pop(workspace_id).close()

    def open_stores(self) -> dict[str, Database]:
        """Name -> open store, for `status`."""
        found: dict[str, Database] = dict(self._open)
        if self._global is not None:
            found["global"] = self._global
        if self._sessions is not None:
            found["sessions"] = self._sessions
        return found

    async def replace(self, name: str, source: str) -> str | None:
        """Put a copy of ``source`` in the place of a facts store (`global.db`,
        `workspaces/<id>.db`); returns where the old one was set aside.

        Waits for nobody: calls that run on the old store fail. The copy gets a new uuid, so
        that clients resync.
        """
        workspace_id = workspace_of(name) or ""
        path = self._global_path if name == GLOBAL_DB else self.workspace_path(workspace_id)
        async with self._opening:
            if name == GLOBAL_DB:
                await self.global_.close()
            elif workspace_id in self._open:
                await self._open.pop(workspace_id).close()
            aside = recovery.set_aside(path) if os.path.exists(path) else None
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            shutil.copyfile(source, path)
            os.chmod(path, 0o600)
            database = await self._open_one(path, StoreKind.FACTS, name)
            await database.renew_uuid()
            self._put(name, database)
        return aside

    async def close(self) -> None:
        """Close all; writers last within each file."""
        for task in tuple(self._healing.values()):
            task.cancel()
            await asyncio.wait({task})
        while self._open:
            _, database = self._open.popitem()
            await database.close()
        for one in (self._global, self._sessions):
            if one is not None:
                await one.close()
        self._global = self._sessions = None
