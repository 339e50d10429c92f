"""Two scopes: where writes go, how reads merge, names that fit two facts."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from lore.errors import Ambiguous, Invalid, NotFound
from support.memory import Memory, open_memory


@pytest_asyncio.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    folder = tmp_path / "project"
    folder.mkdir()
    async with open_memory(tmp_path / "home", folder) as opened:
        yield opened


async def both(memory: Memory) -> None:
    await memory.remember_fact(text="local port", entities=["tool:redis"])
    await memory.remember_fact(text="shared port", entities=["tool:redis"], scope="global")


async def test_writes_go_to_the_workspace_unless_told_otherwise(memory: Memory) -> None:
    for given, scope in (
        ({}, "workspace"),
        ({"scope": "global"}, "global"),
        ({"global": True}, "global"),
        ({"scope": "workspace"}, "workspace"),
    ):
        fact = (await memory.remember_fact(text=f"x {given}", **given))["fact"]
        assert fact["scope"] == scope
        assert ("workspace" in fact) == (scope == "workspace")


async def test_without_a_workspace_everything_is_global(tmp_path: Path) -> None:
    async with open_memory(tmp_path / "home") as memory:
        assert (await memory.remember_fact(text="x"))["fact"]["scope"] == "global"
        with pytest.raises(Invalid, match="no workspace here"):
            await memory.remember_fact(text="x", scope="workspace")
        with pytest.raises(Invalid, match="no workspace here"):
            await memory.facts(scope="workspace")
        assert memory.app.registry.known_workspaces() == []


async def test_a_misspelt_scope_is_an_error(memory: Memory) -> None:
    with pytest.raises(Invalid, match="global or workspace"):
        await memory.remember_fact(text="x", scope="gobal")
    with pytest.raises(Invalid, match="exclude each other"):
        await memory.remember_fact(text="x", scope="workspace", **{"global": True})


async def test_reads_merge_both_scopes(memory: Memory) -> None:
    await both(memory)
    for answer in (await memory.facts(), await memory.recall_fact(query="port")):
        assert {(f["scope"], f["id"]) for f in answer["facts"]} == {
            ("workspace", "F1"),
            ("global", "F1"),
        }
    assert (await memory.facts(scope="global"))["total"] == 1
    assert (await memory.entities())["entities"][0]["count"] == 1


async def test_an_id_that_both_scopes_have_is_ambiguous(memory: Memory) -> None:
    await both(memory)
    for call in (
        memory.fact(id="F1"),
        memory.update_fact(id="F1", text="new"),
        memory.forget_fact(id="F1"),
        memory.apply_text("forget id=F1"),
    ):
        with pytest.raises(Ambiguous, match="global:F1 or workspace:F1") as caught:
            await call
        assert len(caught.value.data["candidates"]) == 2  # type: ignore[arg-type]
    assert (await memory.fact(id="global:F1"))["fact"]["text"] == "shared port"
    assert (await memory.fact(id="F1", scope="workspace"))["fact"]["text"] == "local port"
    uid = (await memory.fact(id="workspace:F1"))["fact"]["uid"]
    assert (await memory.fact(id=uid))["fact"]["text"] == "local port"
    await memory.remember_fact(text="second")
    assert (await memory.fact(id="F2"))["fact"]["text"] == "second"  # only one has it


async def test_scope_and_qualified_name_must_agree(memory: Memory) -> None:
    await both(memory)
    with pytest.raises(Invalid, match="global"):
        await memory.fact(id="global:F1", scope="workspace")
    with pytest.raises(NotFound, match="F9"):
        await memory.fact(id="F9")


async def test_ready_commands_are_qualified_where_they_must_be(memory: Memory) -> None:
    await both(memory)
    answer = await memory.remember_fact(text="here now", entities=["tool:redis"])
    command = answer["collisions"][0]["commands"][0]
    assert command == "supersede old=workspace:F1 new=F2"
    await memory.apply_text(command)
    assert {fact["text"] for fact in (await memory.facts())["facts"]} == {"here now", "shared port"}


async def test_a_batch_works_on_the_scope_that_has_its_facts(memory: Memory) -> None:
    await memory.remember_fact(text="g1", scope="global")
    await memory.remember_fact(text="g2", scope="global")
    answer = await memory.apply_text("supersede old=F1 new=F2")
    assert answer["scope"] == "global"
    await memory.remember_fact(text="w1")
    answer = await memory.apply_text('remember "w2"')
    assert answer["scope"] == "workspace"
    with pytest.raises(Invalid, match="two batches"):
        await memory.apply_text("forget id=global:F2", "forget id=workspace:F1")
    with pytest.raises(Invalid, match="two batches"):
        await memory.apply_text("forget id=global:F2", scope="workspace")
    answer = await memory.apply_text("forget id=F1", scope="workspace")
    assert answer["scope"] == "workspace"


async def test_related_facts_of_the_other_scope_are_named(memory: Memory) -> None:
    await memory.remember_fact(
        text="Indent is 4", entities=["style:indent"], scope="global", asserted_by="alice"
    )
    answer = await memory.remember_fact(text="Indent is 2", entities=["style:indent"])
    assert answer["collisions"] == []
    related = answer["related"][0]
    assert (related["fact"]["scope"], related["fact"]["text"]) == ("global", "Indent is 4")
    assert "global" in related["why"]


async def test_a_read_creates_no_store(memory: Memory) -> None:
    await memory.facts()
    await memory.recall_fact(query="x")
    await memory.snapshot(scopes=["stats", "workspace"])
    for call in (
        memory.fact(id="F1"),
        memory.undo(),
        memory.apply_text("forget id=F1"),
        memory.entities(merge=["tool:a", "tool:b"]),
    ):
        with pytest.raises(NotFound):
            await call
    assert memory.app.registry.known_workspaces() == []


async def test_pages_reach_every_fact_of_both_scopes_once(memory: Memory) -> None:
    expected = set()
    for number in range(23):
        fact = (
            await memory.remember_fact(
                text=f"fact {number}", scope="global" if number % 3 else "workspace"
            )
        )["fact"]
        expected.add(fact["uid"])
    seen: list[str] = []
    after = None
    while True:
        page = await memory.facts(limit=5, after=after)
        assert page["total"] == 23
        seen += [fact["uid"] for fact in page["facts"]]
        after = page.get("next")
        if after is None:
            break
    assert len(seen) == 23 and set(seen) == expected
    with pytest.raises(Invalid, match="after"):
        await memory.facts(after="nonsense")


async def test_changes_since_a_revision(memory: Memory) -> None:
    first = await memory.remember_fact(text="a", scope="global")
    await memory.remember_fact(text="b")
    await memory.apply_text("forget id=global:F1")
    answer = await memory.changes(since=first["revision"])
    assert not answer["fresh"]
    found = {(item["scope"], item["fact"]["text"], item["op"]) for item in answer["changes"]}
    assert found == {("global", "a", "forget"), ("workspace", "b", "remember")}
    again = await memory.changes(since=answer["revision"])
    assert (again["changes"], again["fresh"]) == ([], False)
    other = await memory.changes(since="0" * 32 + ":5")
    assert other["fresh"] and len(other["changes"]) == 2
    with pytest.raises(Invalid, match="since"):
        await memory.changes(since="yesterday")


async def test_changes_in_parts_miss_nothing(memory: Memory) -> None:
    start = (await memory.remember_fact(text="0"))["revision"]
    for number in range(1, 8):
        await memory.remember_fact(text=str(number))
    await memory.apply_text('remember "8"', 'remember "9"', 'remember "10"')
    seen: list[str] = []
    token = start
    while True:
        answer = await memory.changes(since=token, limit=2)
        if not answer["changes"]:
            break
        seen += [item["fact"]["text"] for item in answer["changes"]]
        token = answer["revision"]
    assert sorted(map(int, seen)) == list(range(1, 11))
