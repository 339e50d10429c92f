"""Facts, the sessions that stated them, and the files that they speak about."""

import os
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from lored.core.batches import Stated
from lored.core.clock import SECOND
from lored.services.moments import now
from support.memory import Memory, open_memory


@pytest_asyncio.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    folder = tmp_path / "project"
    folder.mkdir()
    async with open_memory(tmp_path / "home", folder) as opened:
        yield opened


async def reason(memory: Memory, name: str = "F1") -> str | None:
    answer = await memory.fact(id=name)
    listed = next(f for f in (await memory.facts())["facts"] if f["id"] == name)
    assert listed.get("unverified") == answer["fact"].get("unverified")
    found: dict[str, str] = answer["fact"].get("unverified", {})
    return found.get("reason")


async def test_a_statement_seen_in_a_transcript_is_tied_to_its_message(memory: Memory) -> None:
    facts = memory.app.get("facts")
    fact = (await memory.remember_fact(text="TTL is 300s"))["fact"]
    call = {"tool": "remember", "arguments": {"text": "TTL is 300s"}}
    found = await facts.link_statement(call, "session-1", "42", fact["workspace"])
    assert found == {"id": "F1", "scope": "workspace", "uid": fact["uid"]}
    shown = (await memory.fact(id="F1"))["fact"]
    assert (shown["session_id"], shown["message_id"]) == ("session-1", "42")
    # Read again, or said again elsewhere: the first one stays.
    assert await facts.link_statement(call, "session-1", "42", fact["workspace"]) is None
    assert await facts.link_statement(call, "session-2", "7", fact["workspace"]) is None
    assert [f["id"] for f in await facts.facts_of_session("session-1")] == ["F1"]
    assert await facts.facts_of_session("session-2") == []


async def test_only_the_exact_text_is_tied(memory: Memory) -> None:
    facts = memory.app.get("facts")
    await memory.remember_fact(text="TTL is 300s", scope="global")
    for text in ("TTL is 300", "ttl is 300s"):
        call = {"tool": "remember", "arguments": {"text": text}}
        assert await facts.link_statement(call, "s", None, None) is None
    call = {"tool": "Bash", "command": "lore remember --tag x 'TTL  is 300s'"}
    assert (await facts.link_statement(call, "s", None, None))["scope"] == "global"
    assert await facts.link_statement({"tool": "Read"}, "s", None, None) is None


async def test_a_session_named_by_the_caller_is_kept(memory: Memory) -> None:
    memory.call.session_id = "mine"
    assert (await memory.remember_fact(text="a"))["fact"]["session_id"] == "mine"
    assert (await memory.remember_fact(text="b", session_id="s2"))["fact"]["session_id"] == "s2"
    facts = memory.app.get("facts")
    await facts.link_statement({"tool": "remember", "args": {"text": "a"}}, "mine", "9", None)
    listed = await facts.facts_of_session("mine")
    assert [f["text"] for f in listed] == ["a"]


async def test_a_session_shows_what_became_of_its_facts(memory: Memory) -> None:
    facts = memory.app.get("facts")
    await memory.remember_fact(text="300s", entities=["tool:redis"], session_id="s1")
    await memory.remember_fact(text="port 1", entities=["tool:nginx"], session_id="s1")
    await memory.update_fact(id="F1", text="600s")
    await memory.remember_fact(text="port 2", entities=["tool:nginx"])
    first, second = await facts.facts_of_session("s1")
    assert first["successor"]["text"] == "600s"
    assert second["collision_count"] == 1
    assert "successor" not in second


async def test_a_fact_about_a_file_is_unverified_once_it_changes(
    memory: Memory, tmp_path: Path
) -> None:
    path = tmp_path / "project" / "a.py"
    path.write_text("one")
    await memory.remember_fact(text="a.py says one", source_ref="file:a.py")
    assert await reason(memory) is None
    os.utime(path, (1, 1))  # touched, not changed
    assert await reason(memory) is None
    path.write_text("two")
    assert await reason(memory) == "a.py has changed since"
    assert (await memory.recall_fact(query="says"))["facts"][0]["unverified"]
    answer = await memory.verify_fact(id="F1")
    assert answer["fact"]["verified_at"]
    assert await reason(memory) is None
    path.unlink()
    assert await reason(memory) == "a.py is gone"
    path.write_text("two")
    await memory.apply_text("verify id=F1")
    path.write_text("three")
    await memory.apply_text("verify id=F1")
    assert await reason(memory) is None


@pytest.mark.parametrize(
    "given",
    [
        {"source_ref": "a.py"},
        {"source_ref": "a.py:12"},
        {"source_ref": "file:a.py#L3-L9"},
        {"source_ref": "https://host/x, a.py"},
        {"entities": ["file:a.py"]},
    ],
)
async def test_ways_to_name_a_file(memory: Memory, tmp_path: Path, given: dict[str, str]) -> None:
    path = tmp_path / "project" / "a.py"
    path.write_text("one")
    await memory.remember_fact(text="x", **given)
    path.write_text("two!")
    assert await reason(memory) == "a.py has changed since"


async def test_what_is_no_file_binds_nothing(memory: Memory) -> None:
    await memory.remember_fact(text="x", source_ref="https://host/a.py", entities=["file:no.py"])
    await memory.remember_fact(text="y", source_ref="see the wiki / page 3")
    assert await reason(memory, "F1") is None
    assert await reason(memory, "F2") is None


async def test_a_fact_about_a_commit_is_unverified_once_head_moves(
    memory: Memory, tmp_path: Path
) -> None:
    folder = tmp_path / "project"

    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", "-c", "user.name=t", "-c", "user.email=t@t", "-C", str(folder), *words],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        return done.stdout.strip()

    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "one")
    first = git("rev-parse", "HEAD")
    await memory.remember_fact(text="All green", source_ref=f"commit:{first[:10]}")
    assert await reason(memory) is None
    git("pack-refs", "--all")
    assert await reason(memory) is None
    git("commit", "-q", "--allow-empty", "-m", "two")
    assert (await reason(memory) or "").startswith(f"stated at commit {first[:12]}, HEAD is ")
    await memory.verify_fact(id="F1")
    assert await reason(memory) is None


async def test_a_call_that_is_written_down_before_it_is_made(memory: Memory) -> None:
    facts = memory.app.get("facts")
    at = now()
    for text, made in (("soon", at), ("long ago", at - 3_600 * SECOND), ("no time", None)):
        facts.awaited.expect(Stated("s1", None, made, text, [], False), "5", None, at)
    soon = (await memory.remember_fact(text=" soon", scope="global"))["fact"]
    assert (soon["session_id"], soon["message_id"]) == ("s1", "5")
    for text in ("long ago", "no time", "soon, too"):
        assert "session_id" not in (await memory.remember_fact(text=text))["fact"]
    facts.awaited.expect(Stated("s1", None, at, "mine", [], False), "6", None, at)
    assert (await memory.remember_fact(text="mine", session_id="s2"))["fact"]["session_id"] == "s2"
