"""One line file read by its parser, as a stream of batches.

From the cursor's offset to the last complete line. Before that the cursor is verified: hash
of the first bytes and of the bytes in front of the offset. When they differ the file is
another one: `Anew` is raised, the daemon resets the cursor and asks again. Documents and
databases are read by `ingest.documents` and `ingest.databases`.

A job reads at most ``slice_bytes`` and then reports where it stands, so that a growing file
can go before the rest of a giant. Sidecars are read, small as they are, whenever the end of
their transcript is reached: so the order of what they and the transcript say is always the
same, however the reading was cut.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import blake3
import msgpack
import orjson

from lored.core.batches import Batch, Place, SidecarSeen
from lored.core.reconcile import plain_name, trusted_mtime
from lored.core.transcripts.records import RECORD_BYTES, LineParser, Message, Record
from lored.ingest.harvest import Harvest
from lored.watch.sources import PIECE_BYTES, BrokenStream, Source, open_source
from lored.watch.tail import Lines

HASH_BYTES: Final = 4_096
"""Hashed of the beginning, and of what stands before the offset."""

RESCAN_BYTES: Final = 1 << 20
"""An unfinished line longer than this is first searched for its end from where the last search
stopped, and read again only when it has one."""

SIDECAR_BYTES: Final = 4 << 20
"""Metadata files are kilobytes."""


class Anew(Exception):
    """The file is not the one that the cursor describes."""


class Unusable(Exception):
    """The file cannot be read now; the text says why. Retried later."""


class NotTranscript(Exception):
    """The parser does not know this file as a transcript."""


@dataclass(slots=True)
class Job:
    """What the daemon asks for. Cursor fields are those of `batches.Place`."""

    path: str
    agent: str
    parser: str
    offset: int = 0
    scanned: int = 0
    head_hash: bytes | None = None
    tail_hash: bytes | None = None
    state: bytes | None = None
    settle: bool = False
    """Take an unfinished last line when it is a whole object."""
    slice_bytes: int = 8 << 20
    void_from: int | None = None
    """What stands from here on was undone by another file."""
    sidecar: bool = False
    """A file about sessions, read by itself."""
    known: list[list[Any]] = field(default_factory=list)
    """Sidecars as they were when they were last read (fields of `batches.SidecarSeen`)."""


OpenHarvest = Callable[[str, int | None], Harvest]
"""(native session id, instant that the first record inherits) -> where records go."""

Beat = Callable[[int], None]
"""Called often with the place reached."""


def now() -> int:
    """Microseconds UTC."""
    return time.time_ns() // 1_000


def read_lines(
    parser: LineParser,
    job: Job,
    open_harvest: OpenHarvest,
    beat: Beat,
    count: Callable[[int], None],
) -> Iterator[Batch]:
    """Batches of a line file; ``count`` is told how many bytes were read.

    Raises `Anew`, `Unusable`, `NotTranscript`, `OSError`.
    """
    source = open_source(job.path)
    try:
        yield from _Reading(parser, job, source, open_harvest, beat).run()
    except BrokenStream as error:
        raise Unusable(f"compressed file: {error}") from None
    finally:
        count(source.bytes_read)
        source.close()


class _Reading:
    """One job on one open line file."""

    def __init__(
        self, parser: LineParser, job: Job, source: Source, open_harvest: OpenHarvest, beat: Beat
    ) -> None:
        self.parser, self.job, self.source = parser, job, source
        self.open_harvest, self.beat = open_harvest, beat
        self.path = plain_name(job.path)
        self.compressed = self.path != job.path
        self.head = b""
        self.nul_bytes = 0
        self.found = source.stat()
        self.looked_at = now()

    def run(self) -> Iterator[Batch]:
        job = self.job
        name = self.parser.session_id(self.path, self.source.head(HASH_BYTES))
        if name is None:
            raise NotTranscript
        before = self.source.move(job.offset, HASH_BYTES)
        if job.offset and (
            before is None
            or digest(before) != job.tail_hash
            or self._head_hash(job.offset) != job.head_hash
        ):
            raise Anew
        state = msgpack.unpackb(job.state, strict_map_key=False) if job.state else {}
        self.parser_state = state.get("parser") or self.parser.begin(self.path)
        self.harvest = self.open_harvest(name, state.get("at"))
        if self._still_unfinished():
            place = self._place(job.offset, None, reached=self.found.st_size)
            yield self.harvest.cut(place, last=True)
            return
        lines = Lines(self.source, job.offset, RECORD_BYTES + 1, self.beat)
        yield from self._complete(lines)

    def _complete(self, lines: Lines) -> Iterator[Batch]:
        job, harvest = self.job, self.harvest
        stop = job.offset + job.slice_bytes
        for line in lines:
            self._parse(line.data, line.offset)
            if harvest.barred:
                return
            if harvest.full() or line.end >= stop:
                self._note_nuls(lines)
                more = line.end >= stop and line.end < self.found.st_size and not self.compressed
                yield harvest.cut(self._place(line.end, lines), last=False)
                if more:
                    return
        self._note_nuls(lines)
        end, reached = lines.end, lines.reached
        if reached > end and job.settle:
            if is_object(lines.rest):
                self._parse(lines.rest, end)
                end = reached
            elif lines.rest.strip(b"\0 \t\r"):
                harvest.damage("torn")
                reached = end  # not looked at again until it changes
        sidecars = read_sidecars(self.parser, self.path, harvest, job.known)
        if not harvest.barred:
            place = self._place(end, lines, reached=lines.reached)._replace(
                scanned=reached, pending=reached > end
            )
            yield harvest.cut(place, last=True, sidecars=sidecars)

    def _note_nuls(self, lines: Lines) -> None:
        if lines.nul_bytes > self.nul_bytes:
            self.nul_bytes = lines.nul_bytes
            self.harvest.damage("nul")

    def _parse(self, data: bytes, offset: int) -> None:
        if not data.strip(b" \t\r\0"):
            return
        records = self.parser.parse(self.parser_state, data, offset)
        void = self.job.void_from
        self.harvest.take(records if void is None or offset < void else undone(records))

    def _head_hash(self, offset: int) -> bytes | None:
        wanted = min(HASH_BYTES, offset)
        if len(self.head) < wanted:
            self.head = self.source.head(HASH_BYTES)
        return digest(self.head[:wanted]) if offset else None

    def _tail_hash(self, offset: int, lines: Lines | None) -> bytes | None:
        if offset == self.job.offset:
            return self.job.tail_hash
        tail = self.source.before(offset, HASH_BYTES)
        if tail is None and lines is not None:
            tail = lines.tail(HASH_BYTES)
        return digest(tail or b"")

    def _place(self, offset: int, lines: Lines | None, reached: int | None = None) -> Place:
        """The cursor at ``offset``. Only when the end is ``reached`` the file's size and time
        are stored, so that a file read in part is seen as unfinished after a restart."""
        size, mtime_ns = 0, None
        if reached is not None:
            after = self.source.stat()
            if self.compressed or reached >= after.st_size:
                self.found, self.looked_at = after, now()
            size = self.found.st_size
            mtime_ns = trusted_mtime(self.found.st_mtime_ns, self.looked_at)
        return Place(
            offset,
            offset if reached is None else reached,
            self._head_hash(offset),
            self._tail_hash(offset, lines),
            msgpack.packb({"parser": self.parser_state, "at": self.harvest.at}),
            self.found.st_dev,
            self.found.st_ino,
            size,
            mtime_ns,
            self.parser.version,
            reached is not None and reached > offset,
        )

    def _still_unfinished(self) -> bool:
        """Whether the long unfinished line of the last look has no end yet."""
        job = self.job
        if self.compressed or job.settle or job.scanned - job.offset < RESCAN_BYTES:
            return False
        probe = open_source(job.path)
        try:
            if probe.move(job.scanned, 0) is None:
                return False
            while True:
                probe.skip()
                piece = probe.read(PIECE_BYTES)
                if b"\n" in piece:
                    return False
                if not piece:
                    return True
                self.beat(job.scanned)
        finally:
            self.source.bytes_read += probe.bytes_read
            probe.close()


def undone(records: Iterable[Record]) -> Iterator[Record]:
    """``records`` as they are when what they tell was taken back."""
    for record in records:
        if isinstance(record, Message):
            record.rolled_back = True
        yield record


def digest(data: bytes) -> bytes:
    """Short hash of a piece of a file."""
    found: bytes = blake3.blake3(data).digest(16)
    return found


def is_object(data: bytes) -> bool:
    """Whether bytes are one whole JSON object."""
    try:
        return isinstance(orjson.loads(data), dict)
    except orjson.JSONDecodeError:
        return False


def read_sidecars(
    parser: Any, path: str, harvest: Harvest, known: list[list[Any]]
) -> list[SidecarSeen]:
    """Take the records of a transcript's sidecars; what was read. A missing one is no error;
    one that is as ``known`` is left alone when its transcript has nothing new either."""
    seen = []
    quiet = harvest.idle
    for name in parser.sidecars(path):
        try:
            source = open_source(name)
        except OSError:
            continue
        try:
            found, looked_at = source.stat(), now()
            mtime_ns = trusted_mtime(found.st_mtime_ns, looked_at)
            here = SidecarSeen(name, found.st_dev, found.st_ino, found.st_size, mtime_ns)
            if quiet and mtime_ns is not None and list(here) in known:
                continue
            data = source.head(SIDECAR_BYTES + 1)
        except OSError:
            continue
        finally:
            source.close()
        if len(data) > SIDECAR_BYTES:
            harvest.damage("sidecar_too_long")
            continue
        harvest.take(parser.parse_sidecar(name, data))
        seen.append(here)
    return seen
