"""What a statement costs does not grow with the number of facts: counted in steps of SQLite's
machine, which no busy processor can change."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lored.core import ids
from lored.core.facts import Statement, check
from lored.services import moments
from lored.store.facts import collisions, related
from lored.store.facts.log import Batch
from lored.store.facts.pipeline import Given, place
from support.memory import Memory, open_memory

FEW = 300
MANY = 20_000 if os.environ.get("LORE_FULL") == "1" else 2_000
GROWTH = 1.5

Shape = Callable[[int], list[str]]


def spread(number: int) -> list[str]:
    """Three facts about each thing, some with a file."""
    return [f"tool:t{number // 3}", f"file:f{number % 97}.py"][: 1 + number % 2]


def busy(number: int) -> list[str]:
    """All about one thing."""
    return ["tool:redis"]


def busy_with_companion(number: int) -> list[str]:
    """One thing in every fact, with another that is new each time: one cluster, all sets differ."""
    return ["project:plaita", f"issue:{number}"]


def busy_in_many_clusters(number: int) -> list[str]:
    """One thing in every fact, among others: as many clusters as facts."""
    return ["project:plaita", f"a:{number}", f"b:{number}", f"c:{number}"]


def busy_pair(number: int) -> list[str]:
    """Two halves of a large cluster that share nothing with each other."""
    return (["t:a", "t:b"], ["t:a"], ["t:b"])[number % 3 if number else 0]


def state(memory: Memory, conn: Any, number: int, entities: list[str], *, answer: bool) -> int:
    """State a fact as the service does inside its transaction; collisions found."""
    batch = Batch(conn, now=moments.now(), actor="test")
    placed = place(
        conn,
        batch,
        check(Statement(f"fact {number} of many", entities=entities)),
        rules=memory.app.get("facts").rules,
        uid=ids.make_uid(batch.now, os.urandom(10)),
        given=Given(exact=True),
    )
    if not answer:
        return 0
    found = collisions.find(conn, placed.fact, 20)
    related.sharing_names(conn, [e.split(":", 1)[1] for e in entities], 24)
    return found.total


async def cost(memory: Memory, start: int, shape: Shape) -> float:
    """Steps (in hundreds) of the median statement after ``start`` facts."""

    def measure(conn: Any) -> float:
        steps: list[int] = []
        for number in range(start, start + 15):
            count = [0]

            def tick(count: list[int] = count) -> int:
                count[0] += 1
                return 0

            conn.set_progress_handler(tick, 100)
            state(memory, conn, number, shape(number), answer=True)
            conn.set_progress_handler(None, 0)
            steps.append(count[0])
        return float(sorted(steps)[7])

    return await memory.app.registry.global_.write(measure)


async def fill(memory: Memory, start: int, end: int, shape: Shape) -> None:
    def write(conn: Any) -> None:
        for number in range(start, end):
            state(memory, conn, number, shape(number), answer=False)

    await memory.app.registry.global_.write(write)


@pytest.mark.parametrize(
    "shape", [spread, busy, busy_with_companion, busy_in_many_clusters, busy_pair]
)
async def test_a_statement_costs_the_same_among_few_and_many(tmp_path: Path, shape: Shape) -> None:
    async with open_memory(tmp_path / "home") as memory:
        await fill(memory, 0, FEW, shape)
        few = await cost(memory, FEW, shape)
        await fill(memory, FEW + 15, MANY, shape)
        many = await cost(memory, MANY, shape)
    assert many <= GROWTH * few + 5, (few, many)


async def test_collisions_of_a_busy_entity_are_counted_in_full(tmp_path: Path) -> None:
    async with open_memory(tmp_path / "home") as memory:
        await fill(memory, 0, 1_000, busy_pair)
        both = await memory.remember_fact(text="both", entities=["t:b", "t:a"])
        assert both["collision_count"] == 1_000
        assert len(both["collisions"]) == 20
        assert all(item["similarity"] == 1.0 for item in both["collisions"])
        one = await memory.remember_fact(text="one", entities=["t:a"])
        expected = sum("t:a" in busy_pair(number) for number in range(1_000)) + 1
        assert one["collision_count"] == expected
        ended = await memory.remember_fact(
            text="ended", entities=["t:a"], valid_from="2020-01-01", valid_to="2021-01-01"
        )
        assert ended["collision_count"] == 0
        until = await memory.remember_fact(
            text="until", entities=["t:a"], valid_from="2020-01-01", valid_to="2200-01-01"
        )
        assert until["collision_count"] == expected + 2
        again = await memory.remember_fact(text="again", entities=["t:a"])
        assert again["collision_count"] == expected + 2


async def test_the_most_similar_of_many_are_listed(tmp_path: Path) -> None:
    async with open_memory(tmp_path / "home", embed=True, embed_model="static") as memory:
        await memory.remember_fact(
            text="The eviction policy is allkeys-lru", entities=["tool:redis"]
        )
        for number in range(150):
            await memory.remember_fact(text=f"Port number {number}", entities=["tool:redis"])
        answer = await memory.remember_fact(
            text="The eviction policy is volatile-ttl", entities=["tool:redis"]
        )
        assert answer["collision_count"] == 151
        assert answer["collisions"][0]["fact"]["text"] == "The eviction policy is allkeys-lru"
