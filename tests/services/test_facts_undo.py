"""The change log and undo; entities merged and taken apart."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from lore.errors import Conflict, NotFound
from support.memory import Memory, open_memory


@pytest_asyncio.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    async with open_memory(tmp_path / "home") as opened:
        yield opened


async def picture(memory: Memory) -> Any:
    """All that a caller can see of the facts, times of access apart."""
    facts = (await memory.facts(include_superseded=True, limit=200))["facts"]
    for fact in facts:
        fact.pop("last_accessed"), fact.pop("access_count")
    conflicts = (await memory.conflicts(status="all"))["conflicts"]
    for conflict in conflicts:
        for side in ("fact_a", "fact_b"):
            conflict[side] = conflict[side]["id"]
    entities = (await memory.entities())["entities"]
    pending = (await memory.snapshot(scopes=["pending"]))["pending"]["count"]
    return facts, conflicts, entities, pending


@pytest.mark.parametrize(
    "lines",
    [
        ["supersede old=F1 new=F2"],
        ["forget id=F1"],
        ["forget id=F3"],
        ["tag id=F1 add=new remove=cache"],
        ["entity id=F1 add=tool:memcached remove=tool:redis"],
        ["processed ids=F2"],
        ["verify id=F1"],
        ["resolve id=conflict:1 winner=F1"],
        ["dismiss id=conflict:1"],
        ["merge from=tool:redis-db into=tool:redis"],
        ["alias alias=tool:cache-db entity=tool:redis"],
        ["supersede old=F3 new=F1", "supersede old=F1 new=F2", "tag id=F2 add=x"],
    ],
)
async def test_undo_restores_what_was_there(memory: Memory, lines: list[str]) -> None:
    await memory.remember_fact(text="TTL is 300s", entities=["tool:redis"], tags=["cache"])
    await memory.remember_fact(text="TTL is 600s", entities=["tool:redis"])
    await memory.remember_fact(text="TTL is 1s", entities=["tool:redis-db", "tool:redis"])
    await memory.apply_text("conflict a=F1 b=F3")
    before = await picture(memory)
    batch = (await memory.apply_text(*lines))["batch"]
    after = await picture(memory)
    assert after != before or lines[0].startswith("verify")
    answer = await memory.undo()
    assert len(answer["undone"]) == len(lines)
    assert await picture(memory) == before
    # An undo is a change like any other: it can be taken back.
    await memory.undo(id=answer["batch"])
    assert await picture(memory) == after
    # And then the first one stands again and can be undone again.
    await memory.undo(id=batch)
    assert await picture(memory) == before


async def test_undoing_a_statement_forgets_it(memory: Memory) -> None:
    await memory.remember_fact(text="x", entities=["t:a"])
    await memory.undo()
    assert (await memory.facts())["total"] == 0
    again = await memory.remember_fact(text="x", entities=["t:a"])
    assert (again["fact"]["id"], again["created"]) == ("F2", True)  # numbers never come twice


async def test_undoing_an_update_takes_both_halves_back(memory: Memory) -> None:
    await memory.remember_fact(text="300s")
    await memory.update_fact(id="F1", text="600s")
    await memory.undo()
    assert [fact["text"] for fact in (await memory.facts())["facts"]] == ["300s"]


async def test_what_came_after_must_be_undone_first(memory: Memory) -> None:
    for text in ("a", "b", "c"):
        await memory.remember_fact(text=text, entities=["t:x"])
    first = await memory.apply_text("supersede old=F1 new=F2")
    second = await memory.apply_text("supersede old=F2 new=F3")
    with pytest.raises(Conflict, match="before what came after it"):
        await memory.undo(id=first["batch"])
    await memory.undo(id=second["batch"])
    await memory.undo(id=first["batch"])
    assert (await memory.facts())["total"] == 3
    with pytest.raises(Conflict, match="undone already"):
        await memory.undo(id=first["batch"])


async def test_one_operation_of_a_batch_can_be_undone(memory: Memory) -> None:
    await memory.apply_text('remember as=a "a"', 'remember "b"', "tag id=$a add=t")
    entries = (await memory.log())["entries"]
    tag = next(entry for entry in entries if entry["op"] == "tag")
    await memory.undo(id=tag["id"])
    assert all(not fact["tags"] for fact in (await memory.facts())["facts"])
    with pytest.raises(NotFound):
        await memory.undo(id="L99")
    with pytest.raises(NotFound):
        await memory.undo(id="B99")


async def test_nothing_to_undo_is_said(memory: Memory) -> None:
    with pytest.raises(NotFound, match="nothing to undo"):
        await memory.undo()


async def test_the_log_says_who_and_why(memory: Memory) -> None:
    await memory.remember_fact(text="a", asserted_by="alice")
    await memory.remember_fact(text="b")
    await memory.apply_text('supersede old=F1 new=F2 by=bob "newer"')
    await memory.forget_fact(id="F2", reason="wrong anyway")
    entries = (await memory.log())["entries"]
    assert [(e["op"], e["by"], e.get("note")) for e in entries] == [
        ("forget", "tester", "wrong anyway"),
        ("supersede", "bob", "newer"),
        ("remember", "tester", None),
        ("remember", "alice", None),
    ]
    assert entries[1]["facts"] == ["F1", "F2"]
    about = (await memory.log(id="F1"))["entries"]
    assert [entry["op"] for entry in about] == ["supersede", "remember"]
    with pytest.raises(NotFound):
        await memory.log(id="F9")
    assert (await memory.log(since="tomorrow"))["entries"] == []


async def test_merged_entities_are_one(memory: Memory) -> None:
    await memory.remember_fact(text="TTL is 300s", entities=["tool:redis"])
    await memory.remember_fact(text="TTL is 600s", entities=["tool:redis-db"])
    answer = await memory.entities(merge=["tool:redis-db", "tool:redis"])
    assert answer["entities"][0]["count"] == 2
    assert answer["entities"][0]["aliases"] == ["tool:redis-db"]
    assert (await memory.facts(entities=["tool:redis-db"]))["total"] == 2
    new = await memory.remember_fact(text="TTL is 900s", entities=["Tool:Redis-DB"])
    assert new["collision_count"] == 2
    assert new["fact"]["entities"] == ["Tool:Redis-DB"]  # as written
    with pytest.raises(Conflict, match="already"):
        await memory.entities(merge=["tool:redis-db", "tool:redis"])
    with pytest.raises(NotFound):
        await memory.entities(merge=["tool:redis", "tool:nothing"])


async def test_an_alias_of_nothing_yet(memory: Memory) -> None:
    await memory.remember_fact(text="TTL is 300s", entities=["tool:redis"])
    await memory.entities(alias=["tool:cache", "tool:redis"])
    new = await memory.remember_fact(text="TTL is 600s", entities=["tool:cache"])
    assert new["collision_count"] == 1
    assert [one["id"] for one in (await memory.entities())["entities"]] == ["tool:redis"]


async def test_suggestions_come_from_what_is_known(memory: Memory) -> None:
    await memory.remember_fact(text="a", entities=["tool:redis", "person:Alice Smith"])
    await memory.remember_fact(text="b", entities=["concept:redis", "file:src/cache.py"])
    await memory.entities(alias=["tool:remote-dictionary", "tool:redis"])
    text = "Alice  Smith moved the Redis TTL to src/cache.py (用redis做缓存)"
    found = [one["id"] for one in (await memory.entities(text=text))["suggestions"]]
    assert found == ["file:src/cache.py", "person:alice smith", "concept:redis", "tool:redis"]
    assert found == [one["id"] for one in (await memory.entities(text=text))["suggestions"]]
    other = (await memory.entities(text="the remote dictionary is down"))["suggestions"]
    assert [one["id"] for one in other] == ["tool:redis"]
    assert (await memory.entities(text="nothing known here"))["suggestions"] == []
