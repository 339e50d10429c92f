"""Assigning clusters and counting collisions by index, against doing it by brute force."""

import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from lored.store import driver, migrate, pragmas
from lored.store.facts import clusters as facts_clusters
from lored.store.pragmas import StoreKind


@pytest.fixture
def conn(tmp_path: Path) -> Any:
    path = str(tmp_path / "facts.db")
    connection = driver.connect(path, read_only=False)
    migrate.bring_up(connection, StoreKind.FACTS, path, str(tmp_path))
    pragmas.prepare_writer(connection, StoreKind.FACTS)
    connection.executemany(
        "INSERT INTO entities(id, key, bare, written, created_at) VALUES(?1, ?1, ?1, ?1, 0)",
        [(n,) for n in range(1, 2_001)],
    )
    yield connection
    connection.close()


def brute(clusters: list[frozenset[int]], members: frozenset[int], threshold: Fraction) -> int:
    """The cluster that a set joins, 0 for none, by looking at all."""
    best, found = Fraction(-1), 0
    for number, own in enumerate(clusters, 1):
        shared = len(own & members)
        value = Fraction(shared, len(own | members))
        if shared and value >= threshold and value > best:
            best, found = value, number
    return found


@pytest.mark.parametrize(
    "threshold", [Fraction(0), Fraction(1, 4), Fraction(1, 2), Fraction(2, 3), Fraction(1)]
)
def test_the_index_finds_what_looking_at_all_finds(conn: Any, threshold: Fraction) -> None:
    pick = random.Random(int(threshold * 12) + 1)
    clusters: list[frozenset[int]] = []
    joined = 0
    for _ in range(700):
        # Entities 1 and 2 are busy, 3 to 40 common, the rest rare.
        members = {n for n in (1, 2) if pick.random() < 0.6}
        members |= {pick.randrange(3, 41) for _ in range(pick.randrange(3))}
        members |= {pick.randrange(41, 2_001) for _ in range(pick.randrange(4))}
        if not members:
            continue
        expected = brute(clusters, frozenset(members), threshold)
        found = facts_clusters.assign(conn, list(members), float(threshold), 0)
        if expected:
            joined += 1
            assert (found.cluster, found.created) == (expected, False)
        else:
            clusters.append(frozenset(members))
            assert (found.cluster, found.created) == (len(clusters), True)
    assert joined > 20 or threshold == 1
    busiest = conn.execute("SELECT max(clusters) FROM entities").fetchone()[0]
    assert busiest > facts_clusters.POSTINGS or threshold < Fraction(1, 2)


def test_bits_are_those_shared_with_the_cluster(conn: Any) -> None:
    facts_clusters.assign(conn, [5, 6, 7], 0.5, 0)
    assert facts_clusters.core_in(conn, 1, [6, 99]) == 0b010
    assert facts_clusters.core_in(conn, 1, [5, 7]) == 0b101
    assert facts_clusters.assign(conn, [7, 5, 6], 0.5, 0).core == 0b111
    assert facts_clusters.assign(conn, [], 0.5, 0).created
