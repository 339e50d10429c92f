"""Reading without a daemon: the same services over stores that are opened read-only.

For clients in sandboxes that refuse Unix sockets (`lore --direct`); the client loads this
module by name. Only methods that change nothing are answered. What a daemon would write on
the side (access counters, a newly seen workspace, receipts) is left out; nothing is migrated
or checkpointed, and a daemon may run at the same time. SQLite itself leaves empty `-wal` and
`-shm` files beside a store where it may.

A store that lies on a read-only file system without its `-wal` and `-shm` files cannot be
opened the usual way; it is then read as immutable, which is safe as nobody writes it.
"""

import asyncio
import importlib
import inspect
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, TypeVar

import aiosqlite
import structlog

from lore.errors import Internal, LoreError, Timeout, Unavailable
from lore.paths import Paths
from lore.wire.limits import DEADLINES, PROTOCOL_MAX
from lore.wire.methods import BY_NAME
from lored import __version__
from lored.main import SERVICES
from lored.rpc import handlers
from lored.rpc.answers import prune
from lored.rpc.faults import translate
from lored.rpc.parameters import FORMS
from lored.runtime import config
from lored.services.app import App, Call
from lored.services.events import Events
from lored.services.workspaces import Workspaces
from lored.store import driver, migrate, pragmas
from lored.store.database import READERS, Database
from lored.store.driver import Connection
from lored.store.pragmas import StoreKind
from lored.store.registry import Registry

T = TypeVar("T")

READING: Final = (
    "embedding",
    "facts",
    "triage",
    "snapshots",
    "sessions",
    "recall",
    "context",
    "health",
)
"""Services that answer reads; the others watch, write or copy."""


class ReadOnlyDatabase(Database):
    """A store file with readers only; writes on the side are dropped."""

    @classmethod
    async def open_existing(cls, path: str, kind: StoreKind) -> "ReadOnlyDatabase":
        """Open what is there. Raises `Unavailable` when there is nothing, or its schema is not
        this release's (a daemon of this release migrates it)."""
        if not os.path.exists(path):
            raise Unavailable(
                f"there is no memory at {path} yet; run `lore up` outside the sandbox"
            )
        self = cls(path, kind)
        try:
            for _ in range(READERS[kind]):
                reader = await self._start(read_only=True)
                self._readers.append(reader)
                await self._run(reader, pragmas.prepare_reader)
                self._idle.put_nowait(reader)
            await self._run(self._readers[0], lambda c: _check_schema(c, path, kind))
            self._is_open = True
        except BaseException:
            await self.close()
            raise
        return self

    @property
    def lacks_room(self) -> bool:
        """It needs none."""
        return False

    async def _start(self, *, read_only: bool) -> aiosqlite.Connection:
        return await aiosqlite.Connection(lambda: _connect(self.path), 64)

    async def write(self, fn: Callable[[Connection], T]) -> T:
        """Nothing: the caller has no result to wait for."""
        return None  # type: ignore[return-value]

    async def write_raw(self, fn: Callable[[Connection], T]) -> T:
        """Nothing, as above."""
        return None  # type: ignore[return-value]

    async def close(self) -> None:
        """End the readers; nothing is checkpointed."""
        self._is_open = False
        readers, self._readers = self._readers, []
        for reader in readers:
            await reader.close()


def _connect(path: str) -> Connection:
    """A read-only connection that has proved that it can read."""
    connection = driver.connect(path, read_only=True)
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        return connection
    except driver.Error:
        connection.close()
        if os.path.exists(path + "-wal"):
            raise
    return driver.connect(path, read_only=True, immutable=True)


def _check_schema(connection: Connection, path: str, kind: StoreKind) -> None:
    found = connection.execute("PRAGMA user_version").fetchone()[0]
    wanted = migrate.SCHEMA_VERSION[kind]
    if found > wanted:
        raise migrate.NewerSchema(f"{path} has schema {found}, this release knows {wanted}")
    if found < wanted:
        raise Unavailable(f"{path} has an older schema; run `lore up` outside the sandbox once")


class ReadOnlyRegistry(Registry):
    """A registry whose stores are read-only and never made."""

    async def _open_one(self, path: str, kind: StoreKind, name: str) -> Database:
        return await ReadOnlyDatabase.open_existing(path, kind)


class Reader:
    """Answers reads from the stores of ``paths``; blocking, for one thread.

    Raises what the daemon would answer, and `Unavailable` for what only a daemon can do.
    """

    def __init__(self, paths: Paths) -> None:
        structlog.configure(processors=[_drop])
        self._handlers = handlers.load()
        self._runner = asyncio.Runner()
        registry = ReadOnlyRegistry(
            global_db=paths.global_db,
            workspaces_dir=paths.workspaces_dir,
            sessions_db=paths.sessions_db,
            backups_dir=paths.backups_dir,
        )
        workspaces = Workspaces(registry, os.path.expanduser("~"))
        # Without the model's process: it costs a second and memory for a single question.
        settings = replace(config.load(paths.config_file), embed_model="static")
        self._app = App(paths, settings, registry, Events(), workspaces)
        try:
            self._runner.run(self._open())
        except BaseException as error:
            self.close()
            raise _explain(error) from None

    async def _open(self) -> None:
        await self._app.registry.open()
        await self._app.workspaces.load()
        for name, where in SERVICES:
            if name in READING:
                module, _, attribute = where.partition(":")
                with suppress(ImportError):  # as the daemon: without that part
                    made = getattr(importlib.import_module(module), attribute)(self._app)
                    self._app.services[name] = made
        health = self._app.get("health")
        health.about |= {
            "version": __version__,
            "protocol": PROTOCOL_MAX,
            "direct": True,
            "data": self._app.paths.data_dir,
        }

    def call(
        self, method: str, params: dict[str, Any], workspace: str | None, timeout: float | None
    ) -> dict[str, Any]:
        """One call; ``workspace`` is its default, ``timeout`` in seconds (default: the
        method's own deadline)."""
        known = BY_NAME.get(method)
        if known is not None and known.mutates:
            raise Unavailable(f"{method} needs the daemon; run it outside the sandbox")
        seconds = timeout or (DEADLINES[known.deadline] if known else DEADLINES["quick"])
        try:
            return self._runner.run(self._answer(method, params, workspace, seconds))
        except TimeoutError:
            raise Timeout(f"{method}: no answer within {seconds:g} s") from None
        except Exception as error:
            raise _explain(error) from None

    async def _answer(
        self, method: str, params: dict[str, Any], workspace: str | None, seconds: float
    ) -> dict[str, Any]:
        known = BY_NAME.get(method)
        if known is None or known.name not in self._handlers:
            raise Unavailable(f"{method} cannot be answered without the daemon")
        call = Call("direct", "lore-direct", workspace)
        async with asyncio.timeout(seconds):
            given = FORMS[known.name].read(params)
            answer: Any = self._handlers[known.name](self._app, call, given)
            if inspect.isawaitable(answer):
                answer = await answer
        found: dict[str, Any] = prune(answer)
        return found

    def close(self) -> None:
        """Close the stores and end the loop."""
        with suppress(Exception):
            self._runner.run(self._app.registry.close())
        self._runner.close()


def _explain(error: BaseException) -> BaseException:
    """The typed error for a failure of the layers below."""
    if isinstance(error, LoreError) or not isinstance(error, Exception):
        return error
    return translate(error) or Internal(
        f"reading the stores failed: {type(error).__name__}: {error}"
    )


def _drop(logger: Any, name: str, event: Any) -> Any:
    """Services log; here there is no log, and standard output belongs to the answer."""
    raise structlog.DropEvent
