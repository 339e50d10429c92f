"""Reads that are given up: whoever reads next is not disturbed by it."""

import asyncio
import threading
from pathlib import Path

import pytest

from lored.store.database import READERS, Database
from lored.store.driver import Connection
from lored.store.pragmas import StoreKind

COUNTING = (
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 1000000000) "
    "SELECT count(*) FROM n"
)


@pytest.mark.parametrize("open_rows", [False, True], ids=["alone", "inside another query"])
async def test_a_read_that_is_given_up_leaves_its_connection_usable(
    tmp_path: Path, open_rows: bool
) -> None:
    """An interrupt is in force until every query of the connection has ended: with another one
    still open it took the end of the transaction with it, and every later read on that
    connection failed."""
    store = await Database.open(
        f"{tmp_path}/global.db", StoreKind.FACTS, backups_dir=f"{tmp_path}/backups"
    )
    begun = threading.Event()

    def look(connection: Connection) -> None:
        rows = connection.execute("SELECT value FROM json_each('[1, 2, 3]')")
        assert rows.fetchone() if open_rows else rows.fetchall()
        begun.set()
        connection.execute(COUNTING).fetchone()

    for _ in range(READERS[StoreKind.FACTS]):
        begun.clear()
        reading = asyncio.ensure_future(store.read(look))
        assert await asyncio.to_thread(begun.wait, 20), reading
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
    for _ in range(2 * READERS[StoreKind.FACTS]):
        assert await store.read(lambda c: c.execute("SELECT 1").fetchone()[0]) == 1
    await store.close()
