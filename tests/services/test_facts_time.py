"""Valid time and recorded time: windows, as_of, known_at, chains."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from lore.errors import Conflict, Invalid
from support.memory import Memory, open_memory


@pytest_asyncio.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    async with open_memory(tmp_path / "home") as opened:
        yield opened


async def texts(memory: Memory, **asked: object) -> list[str]:
    return sorted(fact["text"] for fact in (await memory.facts(**asked))["facts"])


async def ttl(memory: Memory, text: str, since: str, **more: object) -> str:
    answer = await memory.remember_fact(
        text=text, entities=["tool:redis"], valid_from=since, **more
    )
    fact: str = answer["fact"]["id"]
    return fact


async def test_as_of_answers_with_what_was_valid_then(memory: Memory) -> None:
    one = await ttl(memory, "300s", "2024-01-01T00:00Z")
    two = await ttl(memory, "600s", "2024-06-01T00:00Z")
    await memory.apply_text(f"supersede old={one} new={two}")
    assert await texts(memory) == ["600s"]
    for at, expected in (
        ("2023-12-31T23:59:59Z", []),
        ("2024-01-01T00:00:00Z", ["300s"]),
        ("2024-05-31T23:59:59.999Z", ["300s"]),
        ("2024-06-01T00:00:00Z", ["600s"]),  # half-open: no instant belongs to both
        ("2025-01-01T00:00:00Z", ["600s"]),
    ):
        assert await texts(memory, as_of=at) == expected, at
        found = (await memory.recall_fact(query="300s 600s", as_of=at))["facts"]
        assert sorted(fact["text"] for fact in found) == expected, at
        view = (await memory.snapshot(scopes=["entity:tool:redis"], as_of=at))["entity:tool:redis"]
        assert sorted(fact["text"] for fact in view["facts"]) == expected, at


async def test_the_old_window_ends_where_the_new_one_begins(memory: Memory) -> None:
    one = await ttl(memory, "300s", "2024-01-01T00:00Z")
    two = await ttl(memory, "600s", "2024-06-01T00:00Z")
    await memory.apply_text(f"supersede old={one} new={two}")
    history = (await memory.fact_history(id=two))["history"]
    assert [fact["id"] for fact in history] == [one, two]
    assert history[0]["valid_to"] == history[1]["valid_from"] == "2024-06-01T00:00:00Z"
    assert (history[0]["superseded_by"], history[1]["supersedes"]) == (two, [one])


async def test_a_fact_replaced_by_an_older_one_was_never_valid(memory: Memory) -> None:
    wrong = await ttl(memory, "wrong", "2024-06-01T00:00Z")
    right = await ttl(memory, "right", "2024-01-01T00:00Z")
    await memory.apply_text(f"supersede old={wrong} new={right}")
    for at in ("2024-02-01", "2024-06-01T00:00Z", "2024-07-01"):
        assert await texts(memory, as_of=at) == ["right"]


async def test_known_at_answers_with_what_was_believed_then(memory: Memory) -> None:
    one = await memory.remember_fact(text="300s", entities=["tool:redis"], valid_from="2024-01-01")
    before = one["fact"]["created_at"]
    two = await memory.remember_fact(text="600s", entities=["tool:redis"], valid_from="2024-06-01")
    both = two["fact"]["created_at"]
    batch = await memory.apply_text("supersede old=F1 new=F2")
    assert await texts(memory, known_at=before, as_of="2025-01-01") == ["300s"]
    assert await texts(memory, known_at=both, as_of="2025-01-01") == ["300s", "600s"]
    assert await texts(memory, as_of="2025-01-01") == ["600s"]
    then = (await memory.facts(known_at=both))["facts"]
    assert all("superseded_by" not in fact for fact in then)
    # An undo does not rewrite what was believed in between.
    entry = (await memory.log())["entries"][0]
    await memory.undo(id=batch["batch"])
    assert await texts(memory, known_at=entry["at"], as_of="2025-01-01") == ["600s"]
    assert await texts(memory) == ["300s", "600s"]


async def test_what_is_shown_as_a_time_can_be_asked_about(memory: Memory) -> None:
    fact = (await memory.remember_fact(text="x"))["fact"]
    assert await texts(memory, as_of=fact["valid_from"]) == ["x"]
    assert await texts(memory, known_at=fact["created_at"]) == ["x"]


async def test_facts_with_an_end_and_facts_of_the_future(memory: Memory) -> None:
    await ttl(memory, "past", "2020-01-01", valid_to="2021-01-01")
    later = await memory.remember_fact(
        text="later", entities=["tool:redis"], valid_from="2200-01-01"
    )
    now = await memory.remember_fact(text="now", entities=["tool:redis"])
    assert await texts(memory) == ["now"]
    assert await texts(memory, as_of="2020-06-01") == ["past"]
    assert await texts(memory, as_of="2200-02-01") == ["later", "now"]
    # Open-ended statements overlap in the future, closed ones of the past do not.
    assert later["collisions"] == []
    assert [item["fact"]["text"] for item in now["collisions"]] == ["later"]


@pytest.mark.parametrize(
    "window",
    [
        {"valid_from": "2024-02-01", "valid_to": "2024-01-01"},
        {"valid_from": "2024-02-01", "valid_to": "2024-02-01"},
        {"valid_to": "2020-01-01"},
        {"valid_from": "whenever"},
        {"valid_from": "2024-13-01"},
    ],
)
async def test_impossible_windows_are_refused(memory: Memory, window: dict[str, str]) -> None:
    with pytest.raises(Invalid):
        await memory.remember_fact(text="x", **window)
    assert (await memory.facts(include_superseded=True))["total"] == 0


async def test_stating_an_old_value_again_leaves_one_active(memory: Memory) -> None:
    """A, then B, then A again: elsewhere both ended up active (tagent-core issue 78)."""
    one = (await memory.remember_fact(text="300s", entities=["tool:redis"]))["fact"]["id"]
    two = (await memory.update_fact(id=one, text="600s"))["new"]["id"]
    three = (await memory.update_fact(id=two, text="300s"))["new"]
    assert three["id"] not in (one, two)
    assert await texts(memory) == ["300s"]
    history = (await memory.fact_history(id=one))["history"]
    assert [fact["text"] for fact in history] == ["300s", "600s", "300s"]


async def test_an_update_never_forks_a_chain(memory: Memory) -> None:
    await memory.remember_fact(text="a")
    await memory.update_fact(id="F1", text="b")
    with pytest.raises(Conflict, match="superseded already by F2"):
        await memory.update_fact(id="F1", text="c")
    with pytest.raises(Conflict, match="exactly that"):
        await memory.update_fact(id="F2", text=" b ")


async def test_an_update_keeps_labels_unless_they_are_given(memory: Memory) -> None:
    await memory.remember_fact(
        text="a", tags=["t"], entities=["tool:x"], kind="decision", source="agent",
        asserted_by="alice",
    )  # fmt: skip
    new = (await memory.update_fact(id="F1", text="b"))["new"]
    assert (new["tags"], new["entities"]) == (["t"], ["tool:x"])
    assert (new["kind"], new["source"]) == ("decision", "agent")
    assert "asserted_by" not in new  # alice said the other text
    newer = (await memory.update_fact(id="F2", text="c", tags=["u"], asserted_by="bob"))["new"]
    assert (newer["tags"], newer["asserted_by"]) == (["u"], "bob")


async def test_kinds_can_expire(tmp_path: Path) -> None:
    async with open_memory(tmp_path / "e", fact_expiry_days={"assumption": 30}) as memory:
        fact = (await memory.remember_fact(text="x", kind="assumption", valid_from="2024-01-01"))[
            "fact"
        ]
        assert fact["valid_to"].startswith("2024-01-31")
        assert not fact["active"]
        assert "valid_to" not in (await memory.remember_fact(text="y"))["fact"]
    with pytest.raises(Invalid, match="fact_expiry_days"):
        async with open_memory(tmp_path / "f", fact_expiry_days={"rumour": 1}):
            pass


async def test_natural_dates_are_read(memory: Memory) -> None:
    await memory.remember_fact(text="x", valid_from="2 weeks ago")
    assert await texts(memory, as_of="3d") == ["x"]
    assert await texts(memory, as_of="last month") == []
