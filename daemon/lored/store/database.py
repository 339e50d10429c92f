"""One store file: a writer thread fed with functions, and a few read-only connections.

A caller hands over a *function of a connection*. A write function runs inside
`BEGIN IMMEDIATE` on the single writer connection and is committed before the caller is
answered, together with others that wait (writer.py); a transaction never spans an await, so
writes cannot interleave. A read function
runs inside a deferred read transaction on one of `READERS` connections opened `mode=ro`,
so it sees one snapshot. aiosqlite supplies the threads.

A file on a full disk that cannot be opened for writing is opened for reading alone: reads are
answered, each write is refused with the reason, and writing begins once there is room.

Cancelling or timing out a read interrupts its SQL; a write is never interrupted half-way,
the caller just stops waiting for it.
"""

import asyncio
import contextlib
import os
import traceback
import uuid
from collections.abc import Callable
from typing import Final, TypeVar

import aiosqlite

from lored.store import driver, migrate, pragmas, room, suspicion
from lored.store.driver import Connection
from lored.store.pragmas import StoreKind
from lored.store.search import nearest
from lored.store.writer import Writer

T = TypeVar("T")

READERS: Final = {StoreKind.FACTS: 2, StoreKind.SESSIONS: 3}
"""Read connections per file: two cores serve two searches; one more keeps short reads short."""

PENDING_WRITES: Final = 1024
"""Write functions waiting for the writer; a call beyond that is refused as busy."""

PENDING_READS: Final = 1024
"""Read functions waiting for a reader, as above."""


ROOM_SECONDS: Final = 2.0
"""Pause between two looks whether a full disk has room again."""


class StoreBusy(Exception):
    """Too many calls wait for this store, or it is being replaced: nothing was begun."""


class Database:
    """An open store file. Use `open` to make one; `close` ends its threads."""

    def __init__(self, path: str, kind: StoreKind) -> None:
        self.path = path
        self.kind = kind
        self._writer: aiosqlite.Connection | None = None
        self._readers: list[aiosqlite.Connection] = []
        # The one that read last reads next: its pages are warm, the others need none.
        self._idle: asyncio.LifoQueue[aiosqlite.Connection] = asyncio.LifoQueue()
        self._writes = Writer(self._run_writer, nearest.drop, self._met)
        self._pending_reads = 0
        self._backups_dir = ""
        self._is_open = False
        self._is_retired = False
        self.on_damage: Callable[[], None] = lambda: None
        """Called when a call met damage of the file."""
        self._regaining = asyncio.Lock()
        self._waiting_for_room: asyncio.Task[None] | None = None
        self.uuid = ""
        """Changes when the file is replaced; clients resync on it."""

    @classmethod
    async def open(cls, path: str, kind: StoreKind, *, backups_dir: str) -> "Database":
        """Create or open ``path``, migrate it (backup first) and start its threads.

        Raises `migrate.NewerSchema` or `migrate.ForeignFile` without touching the file, and
        the driver's `DatabaseError` when the file is corrupt.
        """
        self = cls(path, kind)
        self._backups_dir = backups_dir
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        try:
            try:
                self._writer, self.uuid = await self._open_writer()
            except driver.OperationalError:
                if not (os.path.exists(path) and room.is_short(os.path.dirname(path))):
                    raise
                self.uuid = await self._check_unwritten()
            for reader in await self._open_readers():
                self._idle.put_nowait(reader)
        except BaseException:
            await self.close()
            raise
        self._is_open = True
        if self.lacks_room:
            self._waiting_for_room = asyncio.ensure_future(self._wait_for_room())
        return self

    async def _open_writer(self) -> tuple[aiosqlite.Connection, str]:
        """The connection that writes, its schema brought up, and the store's uuid."""
        path, kind = self.path, self.kind
        writer = await self._start(read_only=False)
        try:
            found = await self._run(
                writer, lambda c: migrate.bring_up(c, kind, path, self._backups_dir)
            )
            await self._run(writer, lambda c: pragmas.prepare_writer(c, kind))
        except BaseException:
            await writer.close()
            raise
        return writer, found

    async def _open_readers(self) -> list[aiosqlite.Connection]:
        opened = []
        for _ in range(READERS[self.kind]):
            reader = await self._start(read_only=True)
            self._readers.append(reader)
            await self._run(reader, pragmas.prepare_reader)
            opened.append(reader)
        return opened

    # -- a full disk ----------------------------------------------------------------------

    @property
    def lacks_room(self) -> bool:
        """Whether it could not be opened for writing, since the disk is full."""
        return self._is_open and self._writer is None

    async def _check_unwritten(self) -> str:
        """The uuid of a file that needs no change to be read; else raises as `migrate` does."""
        reader = await self._start(read_only=True)
        try:
            return await self._run(reader, lambda c: migrate.check(c, self.kind, self.path))
        finally:
            await reader.close()

    async def _regain(self) -> None:
        """Open for writing after all. Raises the driver's `OperationalError` without room.

        Readers that were opened beside no log know nothing of it, so they are replaced before
        the first write.
        """
        async with self._regaining:
            if not self.lacks_room:
                return
            if room.is_short(os.path.dirname(self.path)):
                raise driver.OperationalError(room.FULL)
            writer, self.uuid = await self._open_writer()
            try:
                before, self._readers = self._readers, []
                fresh = await self._open_readers()
            except BaseException:
                self._readers += before
                await writer.close()
                raise
            for _ in before:
                await (await self._idle.get()).close()
            for reader in fresh:
                self._idle.put_nowait(reader)
            self._writer = writer

    async def _wait_for_room(self) -> None:
        while self.lacks_room:
            await asyncio.sleep(ROOM_SECONDS)
            with contextlib.suppress(driver.Error, OSError):
                await self._regain()

    # -- calls ----------------------------------------------------------------------------

    async def _start(self, *, read_only: bool) -> aiosqlite.Connection:
        connection = aiosqlite.Connection(lambda: _connect(self.path, read_only), 64)
        return await connection

    async def _run(self, connection: aiosqlite.Connection, fn: Callable[[Connection], T]) -> T:
        # The only use of aiosqlite's internals: one hop per function, not per statement.
        try:
            result: T = await connection._execute(fn, connection._conn)  # type: ignore[no-untyped-call]
        except driver.DatabaseError as error:
            self._met(error)
            raise
        return result

    def _met(self, error: BaseException) -> None:
        if suspicion.note(self.path, error):
            self.on_damage()

    async def _ended(self, connection: aiosqlite.Connection) -> None:
        """Wait until what runs on ``connection``, whoever asked for it, has ended."""
        last = asyncio.ensure_future(self._run(connection, bool))
        await asyncio.wait([last])
        if not last.cancelled():
            last.exception()

    async def _run_writer(self, fn: Callable[[Connection], None]) -> None:
        if self._writer is None:
            raise RuntimeError(f"{self.path} is closed")
        await self._run(self._writer, fn)

    def retire(self) -> None:
        """Another file takes its place: from now on calls are refused as busy, to be made again."""
        self._is_open, self._is_retired = False, True

    def _check_open(self) -> None:
        if self._is_retired:
            raise StoreBusy(f"{os.path.basename(self.path)} is damaged and being restored")
        if not self._is_open:
            raise RuntimeError(f"{self.path} is closed")

    async def _check_writable(self) -> None:
        self._check_open()
        if self._writer is None:
            await self._regain()

    async def write(self, fn: Callable[[Connection], T]) -> T:
        """Run ``fn`` in an immediate transaction; returns after the commit.

        Any exception of ``fn`` takes back all that it did and is raised here. Raises
        `StoreBusy` when `PENDING_WRITES` calls wait already.
        """
        await self._check_writable()
        if self._writes.pending >= PENDING_WRITES:
            raise StoreBusy(f"{PENDING_WRITES} writes wait for {os.path.basename(self.path)}")

        return await self._writes.write(fn)

    async def write_raw(self, fn: Callable[[Connection], T]) -> T:
        """Run ``fn`` on the writer outside a transaction (VACUUM, checkpoint, backup)."""
        await self._check_writable()
        assert self._writer is not None
        return await asyncio.shield(asyncio.ensure_future(self._run(self._writer, fn)))

    async def read(self, fn: Callable[[Connection], T]) -> T:
        """Run ``fn`` on a read-only snapshot. Cancellation interrupts the SQL."""
        self._check_open()
        if self._pending_reads >= PENDING_READS:
            raise StoreBusy(f"{PENDING_READS} reads wait for {os.path.basename(self.path)}")

        def snapshot(connection: Connection) -> T:
            connection.execute("BEGIN")
            try:
                return fn(connection)
            except BaseException as error:
                # An interrupt is in force until every statement of the connection has ended, and
                # would meet the ROLLBACK too: those that hang in the frames end here.
                traceback.clear_frames(error.__traceback__)
                raise
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

        self._pending_reads += 1
        try:
            reader = await self._idle.get()
            try:
                self._check_open()
                return await self._run(reader, snapshot)
            except asyncio.CancelledError:
                raw = reader._conn
                if raw is not None:
                    raw.interrupt()
                await self._ended(reader)
                raise
            finally:
                self._idle.put_nowait(reader)
        finally:
            self._pending_reads -= 1

    async def renew_uuid(self) -> None:
        """Mark the content as another one than clients know (after a restore)."""
        fresh = uuid.uuid4().hex
        await self.write(
            lambda c: c.execute("UPDATE meta SET value = ? WHERE key = 'uuid'", (fresh,))
        )
        self.uuid = fresh

    @property
    def queue_depths(self) -> dict[str, int]:
        """Calls waiting or running now."""
        return {"writes": self._writes.pending, "reads": self._pending_reads}

    async def checkpoint(self) -> None:
        """Fold the WAL into the file and truncate it; harmless when a reader is busy."""
        await self.write_raw(lambda c: c.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall())

    @property
    def commits(self) -> int:
        """Transactions committed since it was opened."""
        return self._writes.commits

    async def close(self) -> None:
        """End readers, checkpoint, end the writer last (else -wal and -shm stay behind). Writes
        that wait are done before."""
        self._is_open = False
        if self._waiting_for_room is not None:
            self._waiting_for_room.cancel()
        await self._writes.drain()
        readers, self._readers = self._readers, []
        for reader in readers:
            await reader.close()
        writer, self._writer = self._writer, None
        if writer is not None:
            try:
                await self._run(
                    writer, lambda c: c.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
                )
            except driver.Error:
                pass  # a full or read-only disk must not stop the shutdown
            finally:
                await writer.close()


def _connect(path: str, read_only: bool) -> Connection:
    """A connection; a read-only one has proved that it can read.

    On a full disk there may be no room for the shared memory that a log needs. Without a log
    nothing is lost by reading the file alone: nobody else writes, as the daemon has its lock.
    """
    connection = driver.connect(path, read_only=read_only)
    if not read_only:
        return connection
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except driver.OperationalError:
        connection.close()
        if os.path.exists(path + "-wal") and os.path.getsize(path + "-wal"):
            raise
        return driver.connect(path, read_only=True, immutable=True)
    return connection
