"""Recall of facts: what is found, what never is, and what comes along."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from support.memory import Memory, open_memory

DATA = Path(__file__).parents[1] / "data" / "recursive"


@pytest_asyncio.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    async with open_memory(tmp_path / "home", embed=True, embed_model="static") as opened:
        yield opened


async def found(memory: Memory, query: str | None = None, **asked: Any) -> list[str]:
    answer = await memory.recall_fact(query=query, **asked)
    return [fact["id"] for fact in answer["facts"]]


async def fill(memory: Memory) -> None:
    for fact in (
        {"text": "Cache TTL is 300s", "entities": ["tool:redis"], "tags": ["cache"]},
        {"text": "POL-358 forbids direct pushes to main", "tags": ["policy"]},
        {
            "text": "src/permissions.rs holds matches_pattern",
            "entities": ["file:src/permissions.rs"],
        },
        {"text": "缓存的过期时间是五分钟", "tags": ["缓存"]},
        {"text": "Answer in British English", "kind": "preference"},
        {"text": "用Redis做缓存，端口 6380"},
    ):
        await memory.remember_fact(**fact)


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("redis ttl", "F1"),
        ("POL-358", "F2"),
        ("pol-358", "F2"),
        ("permissions.rs", "F3"),
        ("matches_pattern", "F3"),
        ("matchesPattern", "F3"),
        ("过期时间", "F4"),
        ("过期", "F4"),
        ("6380", "F6"),
        ("Redis端口", "F6"),
        ("british", "F5"),
        ("caching", "F1"),
        ("F5", "F5"),
        ("what is F5?", "F5"),
        ("global:F2", "F2"),
        ('"unbalanced AND (NOT', None),
        ("", "F6"),
    ],
)
async def test_the_best_fact_comes_first(memory: Memory, query: str, best: str | None) -> None:
    await fill(memory)
    names = await found(memory, query)
    assert names[:1] == ([best] if best else names[:1])


async def test_meaning_counts_where_words_differ(memory: Memory) -> None:
    await fill(memory)
    assert (await found(memory, "how long until cached entries expire"))[0] == "F1"


async def test_nothing_is_better_than_anything(memory: Memory) -> None:
    await fill(memory)
    assert await found(memory, "zebra quantum telescopes") == []
    assert await found(memory, "F99") == []


async def test_filters_hold_inside_the_search(memory: Memory) -> None:
    await fill(memory)
    for number in range(60):
        await memory.remember_fact(text=f"redis ttl note {number}", tags=["noise"])
    assert await found(memory, "redis ttl", tags=["cache"]) == ["F1"]
    assert await found(memory, "redis ttl", entities=["redis"]) == ["F1"]
    assert await found(memory, "english redis", kind="preference") == ["F5"]
    assert await found(memory, "redis", tags=["none"]) == []
    assert len(await found(memory, "redis ttl", limit=50)) == 50
    assert await found(memory, tags=["cache"]) == ["F1"]


async def test_superseded_facts_never_crowd_out_or_appear(memory: Memory) -> None:
    name = (await memory.remember_fact(text="redis ttl is 0s", entities=["tool:redis"]))["fact"][
        "id"
    ]
    for number in range(1, 120):
        answer = await memory.update_fact(id=name, text=f"redis ttl is {number}s")
        name = answer["new"]["id"]
    await memory.remember_fact(text="the redis port is 6380")
    assert set(await found(memory, "redis ttl", limit=3)) == {name, "F121"}
    assert await found(memory, "F1") == [name]  # the one that holds in its place
    everything = await memory.recall_fact(query="redis ttl", include_superseded=True, limit=60)
    assert len(everything["facts"]) == 60


async def test_open_conflicts_come_along_until_they_are_settled(memory: Memory) -> None:
    await memory.remember_fact(text="Cache TTL is 300s", entities=["t:r"], asserted_by="alice")
    await memory.remember_fact(text="Cache TTL is 600s", entities=["t:r"], source_ref="pr/42")
    await memory.apply_text('conflict a=F1 b=F2 severity=high "which?"')
    answer = await memory.recall_fact(query="ttl", limit=1)
    conflict = answer["conflicts"][0]
    assert (conflict["severity"], conflict["note"]) == ("high", "which?")
    assert conflict["fact_a"]["asserted_by"] == "alice"
    assert conflict["fact_b"]["source_ref"] == "pr/42"
    assert answer["facts"][0]["conflicts"] == ["conflict:1"]
    await memory.apply_text("resolve id=1 winner=F2")
    answer = await memory.recall_fact(query="ttl")
    assert answer["conflicts"] == []
    assert [fact["text"] for fact in answer["facts"]] == ["Cache TTL is 600s"]


async def test_without_a_query_the_last_used_come_first(memory: Memory) -> None:
    await fill(memory)
    await found(memory, "british")
    assert (await found(memory))[0] == "F5"
    await memory.fact(id="F2")
    assert (await found(memory))[0] == "F2"


async def test_scores_can_be_explained(memory: Memory) -> None:
    await fill(memory)
    answer = await memory.recall_fact(query="redis ttl", explain=True)
    best = answer["facts"][0]
    assert best["score"] > 0
    assert "index" in best["explain"] and "dense" in best["explain"]
    assert answer["mode"] == "lexical+static"
    assert "explain" not in (await memory.recall_fact(query="redis ttl"))["facts"][0]


async def test_both_scopes_are_weighed_against_each_other(memory: Memory, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    await memory.remember_fact(text="Cache TTL of redis is 300s", entities=["tool:redis"])
    memory.call.workspace = str(folder)
    await memory.remember_fact(text="The build needs python and a redis somewhere")
    answer = await memory.recall_fact(query="redis cache ttl")
    assert [fact["scope"] for fact in answer["facts"]] == ["global", "workspace"]


async def test_it_works_without_any_vectors(tmp_path: Path) -> None:
    async with open_memory(tmp_path / "home") as memory:
        await fill(memory)
        assert (await found(memory, "redis ttl"))[0] == "F1"
        assert (await memory.recall_fact(query="redis"))["mode"] == "lexical"


async def test_the_redis_story(memory: Memory) -> None:
    """The worked example of the fact pipeline, as the README tells it."""
    await memory.remember(content="Cache TTL is 300s", episode_type="fact", entities=["tool:redis"])
    answer = await memory.remember(
        content="Cache TTL is 600s", episode_type="fact", entities=["tool:redis"],
        asserted_by="alice", source_ref="https://github.com/org/repo/pull/42",
    )  # fmt: skip
    (collision,) = answer["collisions"]
    assert collision["fact"]["text"] == "Cache TTL is 300s"
    assert collision["commands"] == [
        "supersede old=F1 new=F2",
        "conflict fact_a=F1 fact_b=F2 severity=medium",
    ]
    await memory.apply(ops=collision["commands"][0])
    current = (await memory.recall_fact(query="redis config"))["facts"]
    assert [fact["text"] for fact in current] == ["Cache TTL is 600s"]
    assert current[0]["asserted_by"] == "alice"
    history = (await memory.fact_history(id="F2"))["history"]
    assert [fact["text"] for fact in history] == ["Cache TTL is 300s", "Cache TTL is 600s"]
    then = history[0]["valid_from"]
    past = (await memory.recall_fact(query="redis config", as_of=then))["facts"]
    assert [fact["text"] for fact in past] == ["Cache TTL is 300s"]
    view = (await memory.snapshot(scopes=["entity:tool:redis"], format="text"))["text"]
    assert "600s" in view and "300s" not in view


async def test_real_contradictions_are_reported(memory: Memory) -> None:
    """A real file of Recursive whose stale facts stayed active beside their contradictions."""
    names: dict[str, str] = {}
    pairs = set()
    lines = (DATA / "facts-supersede-chain.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    for record in records:
        answer = await memory.remember_fact(text=record["text"], tags=record["tags"])
        names[answer["fact"]["id"]] = record["id"]
        pairs |= {(names[item["fact"]["id"]], record["id"]) for item in answer["collisions"]}
    assert {("F2", "F5"), ("F9", "F12")} <= pairs
    assert ("F2", "F9") not in pairs
    ours = {theirs: own for own, theirs in names.items()}
    assert (await found(memory, "test_code_killpg.py 恒失败"))[0] in (ours["F4"], ours["F2"])
    assert ours["F12"] in await found(memory, "沙箱门禁引导 ALL GATES PASSED", limit=2)


async def test_words_that_mean_nothing_find_nothing(memory: Memory) -> None:
    """Something is always nearest by its vector: unknown words alone must not bring it up."""
    await fill(memory)
    for query in ("qwxzv blorf", "zzqx", "fnorbl quux gribble"):
        assert await found(memory, query) == []
    assert await found(memory, "qwxzv cache") != []
