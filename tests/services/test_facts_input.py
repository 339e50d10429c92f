"""What callers send: duplicates, keys, bounds, notes, bad input; and that it costs nothing."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from lore.errors import Conflict, Invalid, Limit
from support.memory import Memory, open_memory


@pytest_asyncio.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    async with open_memory(tmp_path / "home") as opened:
        yield opened


async def test_an_exact_duplicate_adds_labels_and_counts(memory: Memory) -> None:
    await memory.remember_fact(text="TTL is 300s", tags=["a"], entities=["tool:redis"])
    answer = await memory.remember_fact(
        text=" TTL  is 300s\n", tags=["a", "b"], entities=["Tool:Redis", "concept:ttl"]
    )
    assert not answer["created"]
    fact = answer["fact"]
    assert fact["id"] == "F1"
    assert fact["text"] == "TTL is 300s"
    assert fact["tags"] == ["a", "b"]
    assert fact["entities"] == ["tool:redis", "concept:ttl"]
    assert fact["access_count"] == 1
    assert answer["collisions"] == []
    assert (await memory.facts())["total"] == 1


async def test_near_duplicates_are_both_kept(memory: Memory) -> None:
    """Recursive drops the second of these; its text is not longer."""
    await memory.remember_fact(text="The limit is 100", tags=["api"])
    answer = await memory.remember_fact(text="The limit is 200", tags=["api"])
    assert answer["created"]
    assert answer["collisions"][0]["fact"]["text"] == "The limit is 100"


async def test_a_repeat_in_another_window_is_another_fact(memory: Memory) -> None:
    await memory.remember_fact(text="on call", valid_from="2024-01-01", valid_to="2024-02-01")
    answer = await memory.remember_fact(text="on call")
    assert answer["created"]
    wider = await memory.remember_fact(
        text="on call", valid_from="2023-12-01", valid_to="2024-03-01"
    )
    assert not wider["created"]
    assert wider["fact"]["valid_to"].startswith("2024-03-01") or wider["fact"]["id"] == "F1"


async def test_the_order_of_arguments_changes_nothing(tmp_path: Path) -> None:
    seen = []
    for order in (["t:a", "t:b"], ["t:b", "t:a"]):
        async with open_memory(tmp_path / order[0][2:]) as memory:
            await memory.remember_fact(text="a", entities=["t:a"])
            await memory.remember_fact(text="b", entities=["t:b"])
            answer = await memory.remember_fact(text="c", entities=order)
            seen.append((answer["cluster"]["id"], [c["fact"]["id"] for c in answer["collisions"]]))
    assert seen[0] == seen[1] == ("C1", ["F1"])  # a tie goes to the older cluster


async def test_an_idempotency_key_states_once(memory: Memory) -> None:
    first = await memory.remember_fact(text="x", idempotency_key="k")
    again = await memory.remember_fact(text="x", idempotency_key="k")
    assert (first["fact"]["id"], first["created"]) == ("F1", True)
    assert (again["fact"]["id"], again["created"]) == ("F1", False)
    assert again["fact"]["access_count"] == 0
    with pytest.raises(Conflict, match="another request"):
        await memory.remember_fact(text="y", idempotency_key="k")
    batch = {"ops": 'remember as=a "z"\nforget id=$a', "idempotency_key": "b"}
    one = await memory.apply(**batch)
    two = await memory.apply(**batch)
    assert two["repeated"] and two["batch"] == one["batch"] and two["ids"] == one["ids"]
    assert (await memory.facts(include_superseded=True))["total"] == 2


async def test_a_key_survives_a_restart(tmp_path: Path) -> None:
    for _ in range(2):
        async with open_memory(tmp_path / "home") as memory:
            await memory.remember_fact(text="x", idempotency_key="k")
            assert (await memory.facts())["total"] == 1


async def test_bounds_are_named(memory: Memory) -> None:
    with pytest.raises(Limit, match="65536"):
        await memory.remember_fact(text="x" * 70_000)
    for text in ("", "  \n\t", "a\0b"):
        with pytest.raises(Invalid):
            await memory.remember_fact(text=text)
    with pytest.raises(Limit):
        await memory.remember_fact(text="x", entities=[f"t:{n}" for n in range(51)])
    with pytest.raises(Limit):
        await memory.remember_fact(text="x", source_ref="y" * 2_001)
    with pytest.raises(Invalid, match="limit"):
        await memory.facts(limit=0)
    with pytest.raises(Invalid, match="limit"):
        await memory.recall_fact(query="x", limit=201)
    assert (await memory.facts())["total"] == 0
    longest = await memory.remember_fact(text="x " * 32_000)
    assert longest["created"]


async def test_a_fact_with_as_many_entities_as_allowed(memory: Memory) -> None:
    names = [f"tool:n{n}" for n in range(50)]
    await memory.remember_fact(text="a", entities=names)
    answer = await memory.remember_fact(text="b", entities=names[::-1])
    assert answer["collisions"][0]["similarity"] == 1.0
    assert not answer["cluster"]["created"]


async def test_labels_keep_case_and_order(memory: Memory) -> None:
    answer = await memory.remember_fact(text="x", tags=["B", "a", "B"], entities=["Tool:Redis"])
    assert answer["fact"]["tags"] == ["B", "a"]
    assert answer["fact"]["entities"] == ["Tool:Redis"]
    assert (await memory.facts(tags=["b"]))["total"] == 1
    assert (await memory.facts(entities=["redis"]))["total"] == 1
    assert (await memory.facts(entities=["tool:redis"], tags=["A"]))["total"] == 1
    assert (await memory.facts(tags=["none"]))["total"] == 0


async def test_without_entities_tags_cluster_and_without_both_a_fact_stays_alone(
    memory: Memory,
) -> None:
    await memory.remember_fact(text="a", tags=["x", "y"])
    assert (await memory.remember_fact(text="b", tags=["Y", "X"]))["collision_count"] == 1
    one = await memory.remember_fact(text="c")
    two = await memory.remember_fact(text="d")
    assert one["cluster"]["id"] != two["cluster"]["id"]
    assert two["collisions"] == []


async def test_notes_are_kept_but_contradict_nothing(memory: Memory) -> None:
    for number, kind in enumerate(("question", "Meta", "outcome", "note", "question")):
        answer = await memory.remember(
            content=f"is it 300s? {number}", episode_type=kind, entities=["tool:redis"]
        )
        assert answer["fact"]["kind"] == kind.lower()
        assert answer["collisions"] == []
    fact = await memory.remember(content="it is 300s", entities=["tool:redis"])
    assert fact["fact"]["kind"] == "fact"
    assert fact["collisions"] == []
    assert (await memory.facts())["total"] == 6
    with pytest.raises(Invalid, match="banana"):
        await memory.remember(content="x", episode_type="banana")


async def test_a_likely_secret_is_kept_and_warned_about(memory: Memory) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    answer = await memory.remember_fact(text=f"deploy with {token}")
    assert token in answer["fact"]["text"]
    assert "secret" in answer["warnings"][0]
    assert token not in answer["warnings"][0]
    assert "warnings" not in await memory.remember_fact(text="deploy with care")


async def test_reading_counts_without_a_commit(memory: Memory) -> None:
    await memory.remember_fact(text="TTL is 300s")
    before = (await memory.changes(since="0" * 32 + ":0"))["revision"]
    for _ in range(3):
        await memory.recall_fact(query="ttl")
    fact = (await memory.facts())["facts"][0]
    assert fact["access_count"] == 3
    assert fact["last_accessed"] > fact["created_at"]
    assert (await memory.changes(since="0" * 32 + ":0"))["revision"] == before


async def test_counters_are_written_in_the_end(tmp_path: Path) -> None:
    async with open_memory(tmp_path / "home") as memory:
        await memory.remember_fact(text="TTL is 300s")
        await memory.recall_fact(query="ttl")
    async with open_memory(tmp_path / "home", fact_access_flush_seconds=0.1) as memory:
        assert (await memory.facts())["facts"][0]["access_count"] == 1
        await memory.recall_fact(query="ttl")
        async with asyncio.timeout(10):
            # Counts leave the memory before their commit: between the two a reader sees neither.
            while (await memory.facts())["facts"][0]["access_count"] != 2:
                await asyncio.sleep(0.02)


async def test_events_tell_what_happened(memory: Memory) -> None:
    await memory.remember_fact(text="a", entities=["t:x"])
    await memory.remember_fact(text="b", entities=["t:x"])
    await memory.apply_text("conflict a=F1 b=F2", "resolve id=1 winner=F2")
    await memory.undo()
    await memory.forget_fact(id="F2")
    await memory.forget_fact(id="F2", undo=True)
    seen = [(event.topic, event.payload["action"]) for event in memory.events]
    assert seen == [
        ("facts", "remembered"),
        ("facts", "remembered"),
        ("facts", "superseded"),
        ("conflicts", "resolved"),
        ("facts", "updated"),
        ("facts", "updated"),
        ("conflicts", "updated"),
        ("facts", "forgotten"),
        ("facts", "remembered"),
    ]


async def test_many_writers_at_once_lose_nothing(memory: Memory) -> None:
    answers = await asyncio.gather(
        *(
            memory.remember_fact(text=f"{n % 40} of {n}", entities=[f"t:{n % 10}"])
            for n in range(120)
        )
    )
    assert len({answer["fact"]["id"] for answer in answers}) == 120
    clusters = (await memory.clusters(limit=200))["clusters"]
    assert len(clusters) == 10
    assert sum(cluster["active_count"] for cluster in clusters) == 120
    for number in range(10):
        counts = sorted(
            answer["collision_count"] for n, answer in enumerate(answers) if n % 10 == number
        )
        assert counts == list(range(12))


async def test_counts_of_a_store_that_cannot_be_written_are_kept(memory: Memory) -> None:
    """Whatever the reason is: a closed store (one that is being replaced) raises another error
    than a full disk, and must not end the task that writes counts."""
    access = memory.app.services["facts"].access
    await memory.remember_fact(text="kept for later", scope="global")
    access.note(None, [1], 1_000)
    await memory.app.registry.global_.close()
    await access.flush()
    assert access.pending(None)[1][0] == 1
