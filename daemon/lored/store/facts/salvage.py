"""The facts of a damaged store, row by row, into the one that takes its place.

1. Read. The table of facts holds all that a fact is; it is read in ranges of ids, and a range
   that fails is halved until only the rows of the bad page are missing. A destroyed header (the
   first 100 bytes say no more than page size and format) is made anew on a copy; a file that is
   shorter than it says is read as far as it goes. What is read is checked like any input, since
   a bad page can also yield nonsense.
2. Put in. The rows are taken like lines of facts.jsonl (intake.py): by uid, unknown ones under
   their own numbers, known ones merged, states last. What the mirror and the store had agreed
   on stays as the backup knew it, so that the file is compared with that later.

3. Conflicts and other names of entities follow (salvage_ties.py). The change log is that of the
   backup: it says nothing without the rows that it names.
"""

import os
import shutil
import struct
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from lored.core import ids, jsonl
from lored.core.clock import Micros, to_wire
from lored.core.facts import State
from lored.core.jsonl import Line
from lored.store import driver
from lored.store.driver import Connection
from lored.store.facts import intake, mirror, rows, salvage_ties
from lored.store.facts.log import Batch
from lored.store.facts.pipeline import Rules
from lored.store.facts.rows import Fact
from lored.store.facts.salvage_ties import NONE, Ties

AT_ONCE: Final = 500
"""Rows of one query."""

FAILURES: Final = 50_000
"""Failing queries before the rest is given up: about a second."""

ROW_BYTES: Final = 100
"""A row is at least so long (uid, times, empty lists): bounds the ids where no counter is left."""

HEADER_BYTES: Final = 100
_PAGE: Final = 4096


class Salvaged(NamedTuple):
    """Facts that could be read, and whether parts of the table could not."""

    facts: list[Fact]
    has_gaps: bool
    ties: Ties = NONE


def read(path: str) -> Salvaged:
    """The readable facts of the damaged file at ``path``, which is not changed. Never raises for
    damage: what cannot be read is not in the answer."""
    copy = None
    try:
        with open(path, "rb") as file:
            head = file.read(16)
        if head != b"SQLite format 3\0":
            copy = _with_header(path)
        connection = driver.connect(copy or path, read_only=True)
        try:
            # Else a file that is too short, or one damaged table, hides all.
            connection.execute("PRAGMA writable_schema=ON")
            connection.execute("PRAGMA cell_size_check=ON")
            return _read(connection, os.path.getsize(path))
        finally:
            connection.close()
    except (driver.Error, OSError):
        return Salvaged([], True)
    finally:
        if copy is not None:
            for suffix in ("", "-wal", "-shm"):
                if os.path.exists(copy + suffix):
                    os.unlink(copy + suffix)


def _read(connection: Connection, size: int) -> Salvaged:
    found: list[Fact] = []
    ranges, failures, gaps = [(1, _highest(connection, size))], 0, False
    while ranges and failures < FAILURES:
        low, high = ranges.pop()
        try:
            part = connection.execute(
                f"SELECT {rows.COLUMNS} FROM facts WHERE id BETWEEN ? AND ? ORDER BY id"
                f" LIMIT {AT_ONCE}",
                (low, high),
            ).fetchall()
        except driver.Error:
            failures += 1
            if low < high:
                middle = (low + high) // 2
                ranges += [(middle + 1, high), (low, middle)]
            else:
                gaps = True
            continue
        if len(part) == AT_ONCE:
            ranges.append((part[-1][0] + 1, high))
        for row in part:
            try:
                found.append(rows.fact_of(row))
            except (ValueError, TypeError, IndexError):
                gaps = True
    ties = salvage_ties.read(connection, {fact.id: fact.uid for fact in found})
    return Salvaged(found, gaps or bool(ranges), ties)


def _highest(connection: Connection, size: int) -> int:
    try:
        row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'facts'").fetchone()
    except driver.Error:
        row = None
    return int(row[0]) if row and isinstance(row[0], int) else size // ROW_BYTES


def _with_header(path: str) -> str:
    """A copy of the file whose first bytes are those of a store of that size (sqlite.org,
    fileformat2, "The Database Header")."""
    copy = path + ".reading"
    shutil.copyfile(path, copy)
    os.chmod(copy, 0o600)
    logged = os.path.exists(path + "-wal")
    if logged:
        shutil.copyfile(path + "-wal", copy + "-wal")
    version = 2 if logged else 1  # of the file format: 2 reads the log
    pages = os.path.getsize(path) // _PAGE
    header = struct.pack(
        ">16sHBBBBBB12I20x2I",
        *(b"SQLite format 3\0", _PAGE, version, version, 0, 64, 32, 32),
        *(1, pages, 0, 0, 1, 4, 0, 0, 1, 0, 0, 0),
        *(1, 3_043_000),
    )
    with open(copy, "r+b") as file:
        file.write(header)
    return copy


def put_in(connection: Connection, salvaged: Salvaged, rules: Rules, now: Micros) -> intake.Intake:
    """Take what was salvaged into the store of ``connection``, inside a transaction. The
    answer tells which facts were new and what had changed since."""
    found = salvaged.facts
    held = {fact.uid: record for fact, record in mirror.records(connection).values()}
    lines = []
    for uid, record in _records(found):
        before = held.get(uid)
        if before is not None:
            record["created_at"] = before["created_at"]  # in whole seconds there
        if before is None or not jsonl.same(before, record):
            lines.append(Line("", record, None))
    agreed = connection.execute("SELECT * FROM mirror_lines").fetchall()
    batch = Batch(connection, now=now, actor="salvage")
    sources = intake.Sources(rules, {}, lambda: ids.make_uid(now, os.urandom(10)))
    report = intake.take(connection, batch, lines, sources)
    salvage_ties.put_in(connection, salvaged.ties, now)
    connection.execute("DELETE FROM mirror_lines")
    connection.executemany("INSERT INTO mirror_lines VALUES(?, ?, ?)", agreed)
    return report


def _records(found: list[Fact]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Uids and checked records of the facts that have a text."""
    numbers = {fact.id: fact.number for fact in found}
    for fact in found:
        if fact.state is State.ERASED:
            continue
        if fact.successor is not None and fact.successor not in numbers:
            fact.successor = None  # its row could not be read
        record = mirror.record(fact, numbers) | {"created_at": to_wire(fact.created_at)}
        for line in jsonl.parse(jsonl.render(record).encode("utf-8", "replace")):
            if line.record is not None:
                yield fact.uid, line.record
