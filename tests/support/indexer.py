"""The indexer inside a test: real stores, real worker process, real files; no daemon around it.

async with indexer(home) as index:
    await index.settle()          # everything that is there now is searchable
    index.rows("SELECT ...")
"""

import contextlib
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from lore.paths import resolve
from lored.core.stored_text import decode
from lored.services.app import App, Call
from lored.services.events import Events
from lored.services.indexing.indexer import Indexing
from lored.services.sessions.reading import Sessions
from lored.services.settings import merge
from lored.services.workspaces import Workspaces
from lored.store.registry import Registry

MOVING = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "RECURSIVE_HOME", "RECURSIVE_SESSIONS_DIR")
"""Variables that would lead a test to the sessions of whoever runs it."""


class Index:
    """A running indexer and ways to look into its store."""

    def __init__(self, app: App, user: Path) -> None:
        self.app, self.user = app, user
        self.indexing: Indexing = app.services["indexing"]
        self.sessions: Sessions = app.services["sessions"]
        self.call = Call("test")

    async def settle(self, *paths: Path, force: bool = False) -> dict[str, Any]:
        """Look at everything (or ``paths``) and wait until it is read."""
        names = [str(path) for path in paths] or None
        return await self.indexing.wait(await self.indexing.index(names, force=force))

    async def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Rows of the sessions store."""
        found = await self.app.registry.sessions.read(lambda c: c.execute(sql, values).fetchall())
        return [tuple(row) for row in found]

    async def one(self, sql: str, *values: Any) -> Any:
        """The only value of the only row."""
        rows = await self.rows(sql, *values)
        assert len(rows) == 1, rows
        return rows[0][0]

    async def texts(self, session: str) -> list[str]:
        """Texts of a session in order, shared ones included."""
        rows = await self.rows(
            "SELECT position, id, text FROM (SELECT m.position, m.id, m.text FROM messages m "
            "JOIN sessions s ON s.id = m.session WHERE s.native_id = ?1 UNION ALL "
            "SELECT l.position, m.id, m.text FROM message_links l "
            "JOIN messages m ON m.id = l.message JOIN sessions s ON s.id = l.session "
            "WHERE s.native_id = ?1) ORDER BY 1, 2",
            session,
        )
        return [decode(row[2]) for row in rows]

    async def found(self, word: str) -> list[str]:
        """Native ids of sessions whose text index has ``word``."""
        rows = await self.rows(
            "SELECT DISTINCT s.native_id FROM message_stems i JOIN messages m ON m.id = i.rowid "
            "JOIN sessions s ON s.id = m.session WHERE message_stems MATCH ? ORDER BY 1",
            f'"{word}"',
        )
        return [row[0] for row in rows]

    @property
    def bytes_read(self) -> int:
        """Bytes read from transcripts so far."""
        return self.indexing.progress.bytes_read


@contextlib.contextmanager
def surroundings(user: Path) -> Iterator[None]:
    """The environment of a user whose home is ``user``."""
    saved = {name: os.environ.get(name) for name in (*MOVING, "HOME")}
    for name in MOVING:
        os.environ.pop(name, None)
    os.environ["HOME"] = str(user)
    try:
        yield
    finally:
        for name, value in saved.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@asynccontextmanager
async def indexer(home: Path, **settings: Any) -> AsyncIterator[Index]:
    """An indexer over ``home``/user with its stores under ``home``; settings by name."""
    user = home / "user"
    user.mkdir(exist_ok=True)
    chosen = {"sweep_seconds": 3600.0, "embed_enabled": False, **settings}
    with surroundings(user):
        paths = resolve({"LORE_HOME": str(home), "HOME": str(user)})
        registry = Registry(
            global_db=paths.global_db,
            workspaces_dir=paths.workspaces_dir,
            sessions_db=paths.sessions_db,
            backups_dir=paths.backups_dir,
        )
        await registry.open()
        workspaces = Workspaces(registry, str(user))
        await workspaces.load()
        app = App(paths, merge(chosen, {}), registry, Events(), workspaces)
        app.services["sessions"] = Sessions(app)
        app.services["indexing"] = Indexing(app)
        try:
            await app.services["indexing"].start()
            yield Index(app, user)
        finally:
            await app.services["indexing"].stop()
            await registry.close()
