"""Which store files are open: global, sessions, and an LRU of workspace stores.

Owns opening and closing; knows no SQL beyond that. Workspace ids are made by
`services.workspaces`; a store file is named by its id.
"""

import asyncio
import os
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from lored.store.database import Database
from lored.store.pragmas import StoreKind

OPEN_WORKSPACES: Final = 8
"""Workspace stores kept open: each costs three threads and some cache."""


class Registry:
    """The open stores of one daemon."""

    def __init__(
        self, *, global_db: str, workspaces_dir: str, sessions_db: str, backups_dir: str
    ) -> None:
        self._global_path = global_db
        self._sessions_path = sessions_db
        self._workspaces_dir = workspaces_dir
        self._backups_dir = backups_dir
        self._global: Database | None = None
        self._sessions: Database | None = None
        self._open: OrderedDict[str, Database] = OrderedDict()
        self._users: dict[str, int] = {}
        self._opening = asyncio.Lock()

    async def open(self) -> None:
        """Open the two stores that are always there."""
        self._global = await Database.open(
            self._global_path, StoreKind.FACTS, backups_dir=self._backups_dir
        )
        self._sessions = await Database.open(
            self._sessions_path, StoreKind.SESSIONS, backups_dir=self._backups_dir
        )

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
                database = await Database.open(
                    self.workspace_path(workspace_id),
                    StoreKind.FACTS,
                    backups_dir=self._backups_dir,
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

    async def close(self) -> None:
        """Close all; writers last within each file."""
        while self._open:
            _, database = self._open.popitem()
            await database.close()
        for one in (self._global, self._sessions):
            if one is not None:
                await one.close()
        self._global = self._sessions = None
