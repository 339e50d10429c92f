"""Rows of words kept in memory say what the index says, whatever changes in between."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lored.core.tokens import parse_query
from lored.store import driver, migrate, pragmas
from lored.store.pragmas import StoreKind
from lored.store.search import known_rows, text
from lored.store.search.matching import MESSAGES, plan
from lored.store.search.postings import postings


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "facts.db")


@pytest.fixture
def conn(path: str) -> Iterator[Any]:
    connection = driver.connect(path, read_only=False)
    migrate.bring_up(connection, StoreKind.FACTS, path, str(Path(path).parent))
    pragmas.prepare_writer(connection, StoreKind.FACTS)
    yield connection
    connection.close()


def found(conn: Any, query: str) -> list[int]:
    return sorted(row for row, _ in text.search_facts(conn, query, 50))


def test_new_rows_are_found_by_words_asked_before(conn: Any) -> None:
    text.index_fact(conn, 1, "the cache of redis", [], [])
    assert found(conn, "redis cache") == [1]
    text.index_fact(conn, 2, "redis keeps a cache", [], [])
    text.index_fact(conn, 3, "nothing alike", [], [])
    assert found(conn, "redis cache") == [1, 2]


def test_other_words_of_a_known_row_are_found(conn: Any) -> None:
    text.index_fact(conn, 1, "a port", ["database"], [])
    text.index_fact(conn, 2, "a host", [], [])
    assert found(conn, "database") == [1]
    assert found(conn, "gateway") == []
    text.index_fact(conn, 1, "a port", ["gateway"], [])
    assert found(conn, "database") == []
    assert found(conn, "gateway") == [1]


def test_a_removed_row_is_not_found(conn: Any) -> None:
    for number in (1, 2):
        text.index_fact(conn, number, "the quota of a bucket", [], [])
    assert found(conn, "quota") == [1, 2]
    text.remove_fact(conn, 1)
    assert found(conn, "quota") == [2]


def test_an_older_snapshot_finds_what_it_holds(conn: Any, path: str) -> None:
    text.index_fact(conn, 1, "the quota of a bucket", [], [])
    reader = driver.connect(path, read_only=True)
    reader.execute("BEGIN")
    assert found(reader, "quota") == [1]
    text.index_fact(conn, 2, "the quota of a shard", [], [])
    assert found(conn, "quota") == [1, 2]
    assert found(reader, "quota") == [1]
    reader.close()


def test_what_was_taken_back_is_not_remembered(conn: Any) -> None:
    text.index_fact(conn, 1, "the quota of a bucket", [], [])
    assert found(conn, "quota") == [1]
    conn.execute("BEGIN IMMEDIATE")
    text.index_fact(conn, 2, "another quota", [], [])
    conn.execute("ROLLBACK")
    text.index_fact(conn, 2, "the limit of a bucket", [], [])
    assert found(conn, "quota") == [1]
    assert found(conn, "limit") == [2]


def test_words_that_stand_nowhere_are_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_rows, "KEPT_ROWS", 10 * known_rows.LIST_ROWS)
    known = known_rows.KnownRows()
    asked: list[str] = []
    nothing = np.empty(0, dtype=np.int32)

    def ask(word: str) -> None:
        def read(above: int) -> known_rows.Ids:
            asked.append(word)
            return nothing

        known.get(("store", 0), word, 0, 5, read)

    for number in range(20):
        ask(str(number))
    ask("19")
    assert asked[-1] == "19" and asked.count("19") == 1, "the last are kept"
    ask("0")
    assert asked.count("0") == 2, "the first went"


def test_a_message_read_again_or_forgotten_is_sought_anew(tmp_path: Path) -> None:
    path = str(tmp_path / "sessions.db")
    connection = driver.connect(path, read_only=False)
    migrate.bring_up(connection, StoreKind.SESSIONS, path, str(tmp_path))

    def rows(word: str) -> list[int]:
        wanted = plan(connection, MESSAGES, parse_query(word))
        return [row for _, _, has in postings(connection, MESSAGES, wanted).words for row in has]

    text.index_messages(connection, [(1, "quota", ""), (2, "bucket", "")])
    assert (rows("quota"), rows("bucket")) == ([1], [2])
    text.index_messages(connection, [(3, "quota", "")])
    assert rows("quota") == [1, 3]
    text.index_messages(connection, [(4, "bucket", ""), (1, "bucket", "")])
    assert (rows("quota"), rows("bucket")) == ([3], [1, 2, 4])
    text.remove_messages(connection, [2])
    assert rows("bucket") == [1, 4]
    connection.close()
