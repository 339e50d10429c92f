"""Writes in groups: one commit for many, and each its own failure."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lored.core.quantized import Float32
from lored.store import driver
from lored.store.database import Database
from lored.store.driver import Connection
from lored.store.pragmas import StoreKind
from lored.store.search import nearest, vectors


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Database]:
    database = await Database.open(
        f"{tmp_path}/global.db", StoreKind.FACTS, backups_dir=f"{tmp_path}/backups"
    )
    await database.write(lambda c: c.execute("CREATE TABLE kept(name TEXT, bulk BLOB)"))
    yield database
    await database.close()


def put(connection: Connection, name: str, size: int = 0) -> int:
    row = connection.execute(
        "INSERT INTO kept VALUES(?, zeroblob(?)) RETURNING rowid", (name, size)
    )
    return int(row.fetchone()[0])


def names(connection: Connection) -> list[str]:
    return [row[0] for row in connection.execute("SELECT name FROM kept ORDER BY rowid")]


async def settle(*works: Any) -> list[Any]:
    return await asyncio.gather(*works, return_exceptions=True)


async def test_what_waits_is_committed_together_in_its_order(store: Database) -> None:
    before = store.commits
    wanted = [f"fact {number}" for number in range(20)]
    rows = await settle(*(store.write(lambda c, n=name: put(c, n)) for name in wanted))
    assert rows == list(range(1, 21))
    assert await store.read(names) == wanted
    assert store.commits - before < 20


@pytest.mark.parametrize("bad", [0, 1, 2], ids=["first", "second", "last"])
async def test_a_failure_takes_back_only_its_own(store: Database, bad: int) -> None:
    def write(number: int) -> Any:
        def fn(connection: Connection) -> int:
            put(connection, f"fact {number}")
            if number == bad:
                raise ValueError("no")
            return number

        return store.write(fn)

    answers = await settle(*map(write, range(3)))
    assert isinstance(answers.pop(bad), ValueError)
    assert answers == [number for number in range(3) if number != bad]
    assert await store.read(names) == [f"fact {n}" for n in range(3) if n != bad]


async def test_a_transaction_that_sqlite_ended_is_acknowledged_to_nobody(store: Database) -> None:
    pages = await store.write_raw(lambda c: c.execute("PRAGMA page_count").fetchone()[0])
    await store.write_raw(lambda c: c.execute(f"PRAGMA max_page_count={pages + 4}").fetchone())
    answers = await settle(
        store.write(lambda c: put(c, "small")),
        store.write(lambda c: put(c, "large", 1 << 20)),
        store.write(lambda c: put(c, "after")),
    )
    assert isinstance(answers[1], driver.OperationalError) and "full" in str(answers[1])
    told = [name for name, answer in zip(("small", "large", "after"), answers, strict=True)
            if isinstance(answer, int)]  # fmt: skip
    assert await store.read(names) == told
    await store.write_raw(lambda c: c.execute("PRAGMA max_page_count=0").fetchone())
    assert await store.write(lambda c: put(c, "room again"))


def unit(place: int) -> Float32:
    """A unit vector of its own for each place."""
    vector = np.zeros(64, dtype=np.float32)
    vector[place] = 1.0
    return vector


def end_all(connection: Connection) -> None:
    """Lets SQLite itself take back the whole transaction, as a failing disk does."""
    for _ in range(2):
        connection.execute("INSERT OR ROLLBACK INTO kept(rowid, name) VALUES(7, 'twice')")


def owe(connection: Connection) -> None:
    """Lets the commit fail: what is referred to never comes."""
    connection.execute("INSERT INTO owed VALUES(12345)")


@pytest.mark.parametrize("break_group", [end_all, owe], ids=["taken back", "failing commit"])
async def test_vectors_of_a_group_that_failed_are_not_remembered(
    store: Database, break_group: Any
) -> None:
    """The second of a group finds what the first put, which is taken back after that. The next
    fact gets the same number and place in the order of changes, and another vector."""

    def state(connection: Connection, number: int, place: int) -> list[int]:
        found = [fact for fact, _ in nearest.nearest(connection, "test", unit(place), 9)]
        vectors.put_fact(connection, number, "test", unit(place))
        return found

    def break_it(connection: Connection) -> None:
        assert state(connection, 21, 21)[0] == 20, "of the group, not committed yet"
        break_group(connection)

    owed = "row INTEGER REFERENCES facts(id) DEFERRABLE INITIALLY DEFERRED"
    await store.write(lambda c: c.execute(f"CREATE TABLE owed({owed})"))
    for number in (1, 2, 3):  # asked before: the segment is held in memory
        await store.write(lambda c, n=number: state(c, n, n))  # type: ignore[misc]
    answers = await settle(store.write(lambda c: state(c, 20, 21)), store.write(break_it))
    assert all(isinstance(answer, driver.DatabaseError) for answer in answers), answers
    await store.write(lambda c: vectors.put_fact(c, 20, "test", unit(40)))
    await store.write(lambda c: vectors.put_fact(c, 21, "test", unit(41)))

    def ask(connection: Connection, place: int) -> tuple[int, float]:
        return nearest.nearest(connection, "test", unit(place), 1)[0]

    for number in (20, 21):
        fact, cosine = await store.read(lambda c, n=number: ask(c, n + 20))  # type: ignore[misc]
        assert (fact, round(cosine)) == (number, 1)
    fact, cosine = await store.read(lambda c: ask(c, 21))
    assert cosine < 0.5, "a vector that was taken back"


async def test_a_caller_that_stops_waiting_does_not_stop_the_write(store: Database) -> None:
    waiting = [asyncio.ensure_future(store.write(lambda c, n=n: put(c, n))) for n in "abc"]
    await asyncio.sleep(0)
    waiting[1].cancel()
    await settle(*waiting)
    await store.write(lambda c: put(c, "d"))
    assert await store.read(names) == ["a", "b", "c", "d"]


async def test_closing_waits_for_the_writes_that_wait(tmp_path: Path) -> None:
    path = f"{tmp_path}/global.db"
    first = await Database.open(path, StoreKind.FACTS, backups_dir=f"{tmp_path}/backups")
    await first.write(lambda c: c.execute("CREATE TABLE kept(name TEXT, bulk BLOB)"))
    waiting = [asyncio.ensure_future(first.write(lambda c, n=n: put(c, n))) for n in "abcd"]
    await asyncio.sleep(0)
    await first.close()
    assert await settle(*waiting) == [1, 2, 3, 4]
    second = await Database.open(path, StoreKind.FACTS, backups_dir=f"{tmp_path}/backups")
    assert await second.read(names) == ["a", "b", "c", "d"]
    await second.close()
