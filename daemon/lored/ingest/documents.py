"""Sources that are not lines: a document rewritten whole, a database of the agent's own.

A document is read and parsed whole at each change; the store tells apart what is new by
key. Its cursor is set only with the last batch, so a reading that was cut begins again.

A database is opened read-only. One that cannot be opened so (a WAL store whose sidecar files
are missing, in a folder we may not write to) is opened as immutable when it has no WAL, else
copied when it is small. A live store is never copied just because it is busy: its rows are
asked for from a watermark on, in short reads, and it is tried again later.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from typing import Any, Final
from urllib.parse import quote

import msgpack

from lored.core.batches import Batch, Place
from lored.core.reconcile import plain_name, trusted_mtime
from lored.core.transcripts.records import DatabaseParser, DocumentParser
from lored.ingest.reading import (
    HASH_BYTES,
    Beat,
    Job,
    NotTranscript,
    OpenHarvest,
    Unusable,
    digest,
    now,
    read_sidecars,
)
from lored.store import driver
from lored.watch.sources import BrokenStream, open_source

DOCUMENT_BYTES: Final = 32 << 20
"""A larger document is not read: parsed it takes several times as much memory."""

COPY_BYTES: Final = 256 << 20
"""Largest database that is copied to be readable."""

BUSY_SECONDS: Final = 2.0
"""Longest wait for a lock of the agent; then the database is tried again later."""


def read_document(
    parser: DocumentParser,
    job: Job,
    open_harvest: OpenHarvest,
    beat: Beat,
    count: Callable[[int], None],
) -> Iterator[Batch]:
    """Batches of a document. Raises `Unusable`, `NotTranscript`, `OSError`."""
    path = plain_name(job.path)
    data, found, looked_at = _read_whole(job.path, beat, count)
    name = parser.session_id(path, data)
    if name is None:
        raise NotTranscript
    harvest = open_harvest(name, None)
    version = parser.version
    for record in parser.parse_document(path, data):
        harvest.take((record,))
        if harvest.barred:
            return
        if harvest.full():
            beat(0)
            yield harvest.cut(_place(data, found, None, version), last=False)
    sidecars = read_sidecars(parser, path, harvest, [])
    if not harvest.barred:
        place = _place(data, found, looked_at, version)
        yield harvest.cut(place, last=True, sidecars=sidecars)


def read_sidecar(
    parser: Any, job: Job, open_harvest: OpenHarvest, beat: Beat, count: Callable[[int], None]
) -> Iterator[Batch]:
    """Batches of a file that says something about many sessions, and belongs to none."""
    data, found, looked_at = _read_whole(job.path, beat, count)
    harvest = open_harvest("", None)
    for record in parser.parse_sidecar(job.path, data):
        harvest.take((record,))
        if harvest.full():
            beat(0)
            yield harvest.cut(_place(data, found, None, parser.version), last=False)
    yield harvest.cut(_place(data, found, looked_at, parser.version), last=True)


def _read_whole(
    path: str, beat: Beat, count: Callable[[int], None]
) -> tuple[bytes, os.stat_result, int]:
    """Content, stat and the time of the look. Raises `Unusable` when it is too large."""
    source = open_source(path)
    try:
        found, looked_at = source.stat(), now()
        pieces, size = [], 0
        while data := source.read(1 << 20):
            pieces.append(data)
            size += len(data)
            beat(size)
            if size > DOCUMENT_BYTES:
                raise Unusable(f"a document of more than {DOCUMENT_BYTES >> 20} MiB")
    except BrokenStream as error:
        raise Unusable(f"compressed file: {error}") from None
    finally:
        count(source.bytes_read)
        source.close()
    return b"".join(pieces), found, looked_at


def _place(data: bytes, found: os.stat_result, looked_at: int | None, version: int) -> Place:
    """The cursor behind the whole document; before its last batch (``looked_at`` None) it
    stands at the beginning."""
    whole = looked_at is not None
    offset = len(data) if whole else 0
    return Place(
        offset,
        offset,
        digest(data[:HASH_BYTES]) if whole else None,
        digest(data[-HASH_BYTES:]) if whole else None,
        None,
        found.st_dev,
        found.st_ino,
        found.st_size if whole else 0,
        None if looked_at is None else trusted_mtime(found.st_mtime_ns, looked_at),
        version,
        False,
    )


def read_database(
    parser: DatabaseParser,
    job: Job,
    open_harvest: OpenHarvest,
    beat: Beat,
    count: Callable[[int], None],
) -> Iterator[Batch]:
    """Batches of a database, at least one per changed session. Raises `Unusable`."""
    looked_at = now()
    device, inode, size, mtime_ns = look_at_database(job.path)
    watermark = msgpack.unpackb(job.state, strict_map_key=False) if job.state else {}

    def place(whole: bool) -> Place:
        return Place(
            0,
            0,
            None,
            None,
            msgpack.packb(watermark),
            device,
            inode,
            size if whole else 0,
            trusted_mtime(mtime_ns, looked_at) if whole else None,
            parser.version,
            False,
        )

    opened = _Opened(job.path)
    try:
        for name, records, after in parser.parse_database(opened.connection, watermark):
            harvest = open_harvest(name, None)
            for record in records:
                harvest.take((record,))
                if harvest.full() and not harvest.barred:
                    beat(0)
                    yield harvest.cut(place(False), last=False)
            watermark = after
            yield harvest.cut(place(False), last=True)
        yield open_harvest("", None).cut(place(True), last=True)
    except driver.Error as error:
        raise Unusable(f"SQLite: {error}") from None
    finally:
        count(opened.bytes_read)
        opened.close()


def look_at_database(path: str) -> tuple[int, int, int, int]:
    """Device, inode, size and time of a database as its content changes: with its WAL."""
    found = os.stat(path)
    size, mtime_ns = found.st_size, found.st_mtime_ns
    try:
        log = os.stat(path + "-wal")
    except OSError:
        pass
    else:
        size += log.st_size
        mtime_ns = max(mtime_ns, log.st_mtime_ns)
    return found.st_dev, found.st_ino, size, mtime_ns


class _Opened:
    """A read-only connection to a foreign database, by the gentlest way that works."""

    def __init__(self, path: str) -> None:
        self._folder: str | None = None
        self.bytes_read = 0
        try:
            self.connection = _connect(path, "mode=ro")
        except driver.Error as error:
            log = path + "-wal"
            if not os.path.exists(log) or not os.path.getsize(log):
                try:
                    self.connection = _connect(path, "immutable=1")
                except driver.Error:
                    raise Unusable(f"SQLite: {error}") from None
            else:
                self.connection = self._copied(path, log, error)

    def _copied(self, path: str, log: str, reason: Exception) -> Any:
        size = os.path.getsize(path) + os.path.getsize(log)
        if "locked" in str(reason) or "busy" in str(reason) or size > COPY_BYTES:
            raise Unusable(f"SQLite: {reason}")
        self._folder = tempfile.mkdtemp(prefix="lored-")
        target = os.path.join(self._folder, "copy.db")
        shutil.copyfile(path, target)
        shutil.copyfile(log, target + "-wal")
        self.bytes_read += size
        try:
            return _connect(target, "mode=rw")
        except driver.Error as error:
            self.close()
            raise Unusable(f"SQLite: {error}") from None

    def close(self) -> None:
        connection = getattr(self, "connection", None)
        if connection is not None:
            connection.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def _connect(path: str, mode: str) -> Any:
    connection = driver.sqlite.connect(
        f"file:{quote(path)}?{mode}", uri=True, timeout=BUSY_SECONDS, isolation_level=None
    )
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except driver.Error:
        connection.close()
        raise
    return connection
