"""Which store files are open: global, sessions, and an LRU of workspace stores.

Owns opening and closing; knows no SQL beyond that. Workspace ids are made by
`services.workspaces`; a store file is named by its id.
"""

import asyncio
import os
import shutil
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from lored.store import recovery
from lored.store.database import Database
from lored.store.facts.pipeline import Rules
from lored.store.pragmas import StoreKind

OPEN_WORKSPACES: Final = 8
"""Workspace stores kept open: each costs three threads and some cache."""

RULES: Final = Rules(0.5, {})
"""Those of the default settings."""


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

    async def open(self) -> None:
        """Open the two stores that are always there."""
        self._global = await self._open_one(self._global_path, StoreKind.FACTS, "global.db")
        self._sessions = await self._open_one(
            self._sessions_path, StoreKind.SESSIONS, "sessions.db"
        )

    async def _open_one(self, path: str, kind: StoreKind, name: str) -> Database:
        database, report = await recovery.open_or_recover(
            path, kind, backups_dir=self._backups_dir, name=name, rules=self._rules
        )
        if report is not None:
            self.recoveries.append(report)
        return database

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
                    f"workspaces/{workspace_id}.db",
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
        workspace_id = name.removeprefix("workspaces/").removesuffix(".db")
        path = self._global_path if name == "global.db" else self.workspace_path(workspace_id)
        async with self._opening:
            if name == "global.db":
                await self.global_.close()
            elif workspace_id in self._open:
                await self._open.pop(workspace_id).close()
            aside = recovery.set_aside(path) if os.path.exists(path) else None
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            shutil.copyfile(source, path)
            os.chmod(path, 0o600)
            database = await self._open_one(path, StoreKind.FACTS, name)
            await database.renew_uuid()
            if name == "global.db":
                self._global = database
            else:
                self._open[workspace_id] = database
        return aside

    async def close(self) -> None:
        """Close all; writers last within each file."""
        while self._open:
            _, database = self._open.popitem()
            await database.close()
        for one in (self._global, self._sessions):
            if one is not None:
                await one.close()
        self._global = self._sessions = None
