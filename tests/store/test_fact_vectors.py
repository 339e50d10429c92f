"""The nearest facts: by numpy in memory, by vec0, by looking at every row, the same answers."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lored.core.quantized import Float32, cosines, normalise, quantize
from lored.store import driver, migrate, pragmas
from lored.store.pragmas import StoreKind
from lored.store.search import nearest, vectors

DIMENSION = 64
SEGMENT = "test"


@pytest.fixture
def conn(tmp_path: Path) -> Any:
    path = str(tmp_path / "facts.db")
    connection = driver.connect(path, read_only=False)
    migrate.bring_up(connection, StoreKind.FACTS, path, str(tmp_path))
    pragmas.prepare_writer(connection, StoreKind.FACTS)
    nearest.drop()
    yield connection
    connection.close()


def made(count: int, seed: int) -> Float32:
    """Unit vectors."""
    values = np.random.default_rng(seed).standard_normal((count, DIMENSION))
    return normalise(values.astype(np.float32))


def put(conn: Any, first: int, values: Float32) -> None:
    for number, vector in enumerate(values, first):
        vectors.put_fact(conn, number, SEGMENT, vector)


def brute(conn: Any, query: Float32, k: int) -> list[int]:
    rows = conn.execute("SELECT fact, vector FROM fact_vectors").fetchall()
    scores = cosines(b"".join(row[1] for row in rows), query)
    order = sorted(zip(-scores, (row[0] for row in rows), strict=True))
    return [fact for _, fact in order[:k]]


def in_memory(conn: Any, query: Float32, k: int) -> list[int]:
    """A process that asked before: the segment is held."""
    nearest.nearest(conn, SEGMENT, query, 1)
    return [fact for fact, _ in nearest.nearest(conn, SEGMENT, query, k)]


def by_extension(conn: Any, query: Float32, k: int) -> list[int]:
    found = nearest.segment_of(conn, SEGMENT, query)
    assert found is not None
    return [fact for fact, _ in nearest.by_extension(conn, found, query, k)]


def both_ways_agree(conn: Any, queries: Float32) -> None:
    for query in queries:
        expected = brute(conn, query, 10)
        assert in_memory(conn, query, 10) == expected
        if driver.HAS_VEC:
            assert by_extension(conn, query, 10) == expected


def test_memory_and_extension_answer_as_the_rows_do(conn: Any) -> None:
    queries = made(20, 1)
    put(conn, 1, made(200, 2))  # the mirror has the first 192, the rest is read beside it
    both_ways_agree(conn, queries)
    put(conn, 50, made(30, 3))  # again: replaces
    both_ways_agree(conn, queries)
    for number in range(20, 60):
        vectors.remove_fact(conn, number)
    both_ways_agree(conn, queries)
    put(conn, 300, made(300, 4))
    both_ways_agree(conn, queries)


def test_a_large_segment_is_scanned_by_signs(conn: Any) -> None:
    values = made(5_000, 5)
    vectors.put_facts(conn, SEGMENT, list(enumerate(quantize(values), 1)))
    hits = 0
    for query in made(20, 6):
        hits += len({*in_memory(conn, query, 10)} & {*brute(conn, query, 10)})
    assert hits >= 190
    mirrored = conn.execute("SELECT mirrored FROM vector_segments").fetchone()[0]
    assert mirrored in (0, -1)  # no table of the extension that would be slower


def test_cosines_are_those_of_the_rows_held_or_not(conn: Any) -> None:
    put(conn, 1, made(100, 7))
    query = made(1, 8)[0]
    asked = [3, 99, 5_000, 7]
    read = nearest.scored(conn, SEGMENT, query, asked)
    in_memory(conn, query, 1)
    held = nearest.scored(conn, SEGMENT, query, asked)
    assert sorted(read) == sorted(held) == [3, 7, 99]
    assert all(abs(read[fact] - held[fact]) < 1e-6 for fact in read)


def test_an_older_snapshot_is_served_by_a_newer_table(conn: Any, tmp_path: Path) -> None:
    put(conn, 1, made(100, 9))
    reader = driver.connect(str(tmp_path / "facts.db"), read_only=True)
    reader.execute("BEGIN")
    query = made(1, 10)[0]
    before = brute(reader, query, 5)
    put(conn, 101, made(100, 11))
    in_memory(conn, query, 5)
    found = in_memory(reader, query, 200)
    assert [fact for fact in found if fact <= 100][:5] == before
    reader.close()


def test_another_dimension_is_refused(conn: Any) -> None:
    put(conn, 1, made(3, 12))
    with pytest.raises(ValueError, match="64 dimensions, not 32"):
        nearest.nearest(conn, SEGMENT, made(1, 13)[0][:32], 1)
