"""Writes in groups: one commit for many, and each its own failure."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from lored.store import driver
from lored.store.database import Database
from lored.store.driver import Connection
from lored.store.pragmas import StoreKind


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
