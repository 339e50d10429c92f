"""Forgetting: soft with undo, hard with proof, and what must not come back."""

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from lore.errors import Conflict, Invalid
from lored.services.facts import remains
from support.memory import Memory, open_memory

SECRET = (
    "The staging password of the billing service is hunter2-Zürich; rotate it in 2031, "
    "ask Mallory in building seven. 缓存密码是七号楼。"
)


@pytest_asyncio.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    async with open_memory(tmp_path / "home", embed=True, embed_model="static") as opened:
        yield opened


def traces(folder: Path, text: str) -> list[str]:
    """Files under ``folder`` that hold any part of ``text``, found without our own scanner."""
    data = text.encode()
    parts = [data[at : at + 16] for at in range(0, len(data) - 16, 5)] or [data]
    found = []
    for path in folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            if any(part in content for part in parts):
                found.append(str(path))
    return found


async def test_a_soft_forget_hides_and_comes_back(memory: Memory) -> None:
    await memory.remember_fact(text="TTL is 300s", entities=["tool:redis"])
    await memory.remember_fact(text="TTL is 600s", entities=["tool:redis"])
    await memory.apply_text("conflict a=F1 b=F2")
    answer = await memory.forget_fact(id="F1", reason="stale")
    assert answer["forgotten"] and not answer["fact"]["active"]
    assert answer["fact"]["state"] == "forgotten"
    assert [f["id"] for f in (await memory.recall_fact(query="ttl"))["facts"]] == ["F2"]
    assert (await memory.recall_fact(query="ttl", as_of="2200-01-01"))["facts"][0]["id"] == "F2"
    assert (await memory.conflicts())["conflicts"] == []  # it has no object any more
    new = await memory.remember_fact(text="TTL is 900s", entities=["tool:redis"])
    assert [item["fact"]["id"] for item in new["collisions"]] == ["F2"]
    with pytest.raises(Conflict, match="forgotten already"):
        await memory.forget_fact(id="F1")
    back = await memory.forget_fact(id="F1", undo=True)
    assert back["fact"]["active"]
    with pytest.raises(Conflict, match="not forgotten"):
        await memory.forget_fact(id="F1", undo=True)


async def test_a_superseded_fact_can_be_forgotten_and_keeps_its_place(memory: Memory) -> None:
    await memory.remember_fact(text="a")
    await memory.update_fact(id="F1", text="b")
    await memory.forget_fact(id="F1")
    back = (await memory.forget_fact(id="F1", undo=True))["fact"]
    assert (back["state"], back["superseded_by"]) == ("superseded", "F2")


async def test_a_hard_forget_leaves_no_byte(memory: Memory, tmp_path: Path) -> None:
    await memory.remember_fact(text="The password policy is fine", entities=["svc:billing"])
    await memory.remember_fact(
        text=SECRET, entities=["svc:billing", "person:mallory-seven"], tags=["hush-hush-tag-9"],
        source_ref="https://secret.example/hunter2", asserted_by="mallory-the-asserter",
    )  # fmt: skip
    await memory.apply_text('tag id=F2 add=other "because hunter2-Zürich leaked"')
    await memory.apply_text("conflict a=F1 b=F2 'hunter2-Zürich'")
    for number in range(300):
        await memory.remember_fact(text=f"filler {number} about pages and trees {number * 7}")
    assert traces(tmp_path / "home", SECRET)
    answer = await memory.forget_fact(id="F2", hard=True, reason="secret")
    assert answer["forgotten"]
    proof = answer["proof"]
    assert proof["found"] == 0 and "elsewhere" not in proof
    assert proof["files_scanned"] >= 3 and proof["bytes_scanned"] > 100_000
    assert proof["removed"]["facts"] == proof["removed"]["text index"] == 1
    for words in (
        SECRET, "https://secret.example/hunter2", "mallory-the-asserter",
        "hush-hush-tag-9", "person:mallory-seven",
    ):  # fmt: skip
        assert traces(tmp_path / "home", words) == [], words
    # A shell stays, so that the number never comes again.
    shell = (await memory.fact(id="F2"))["fact"]
    assert (shell["text"], shell["state"], shell["entities"]) == ("", "erased", [])
    assert (await memory.remember_fact(text="next"))["fact"]["id"] == "F303"
    assert (await memory.recall_fact(query="hunter2 mallory staging password"))["facts"][0][
        "id"
    ] != "F2"
    assert (await memory.conflicts(status="all"))["conflicts"][0]["status"] == "dismissed"
    for call in (
        memory.forget_fact(id="F2", hard=True),
        memory.forget_fact(id="F2", undo=True),
        memory.undo(id="L2"),
    ):
        with pytest.raises(Conflict):
            await call


async def test_a_long_text_that_spans_pages_is_gone_too(memory: Memory, tmp_path: Path) -> None:
    text = " ".join(f"word{n}-of-the-long-secret" for n in range(2_000))
    await memory.remember_fact(text=text)
    await memory.remember_fact(text="other")
    answer = await memory.forget_fact(id="F1", hard=True)
    assert answer["proof"]["found"] == 0
    assert traces(tmp_path / "home", text) == []


async def test_copies_are_cleaned_and_named(memory: Memory, tmp_path: Path) -> None:
    await memory.remember_fact(text=SECRET)
    await memory.remember_fact(text="harmless, kept in the copy")
    paths = memory.app.paths
    copy = Path(paths.backups_dir) / "20310101T000000Z"
    copy.mkdir(parents=True)
    database = memory.app.registry.global_
    target = str(copy / "global.db")
    await database.write_raw(lambda c: c.execute("VACUUM INTO ?", (target,)))
    (copy / "manifest.json").write_text(
        '{"format": 1, "files": [{"name": "global.db", "bytes": 1, "blake3": "x"}]}'
    )
    spool = Path(paths.spool_dir)
    spool.mkdir(parents=True)
    (spool / "1.msgpack").write_bytes(b"\x81\xa4text" + SECRET.encode())
    strange = Path(paths.state_dir) / "notes.txt"
    strange.write_text(SECRET)
    answer = await memory.forget_fact(id="F1", hard=True)
    proof = answer["proof"]
    assert sorted(proof["backups"]) == sorted([target, str(spool / "1.msgpack")])
    assert not (spool / "1.msgpack").exists()
    # What is not ours to change is named, not hidden.
    assert proof["found"] == 1
    assert str(strange) in proof["elsewhere"][0]
    strange.unlink()
    assert traces(tmp_path / "home", SECRET) == []
    rows = sqlite3.connect(target).execute("SELECT text FROM facts ORDER BY id").fetchall()
    assert rows == [("",), ("harmless, kept in the copy",)]
    assert '"blake3": "x"' not in (copy / "manifest.json").read_text()


async def test_another_fact_that_says_it_is_named(memory: Memory, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    memory.call.workspace = str(folder)
    await memory.remember_fact(text=SECRET)
    await memory.remember_fact(text=SECRET, scope="global")
    proof = (await memory.forget_fact(id="workspace:F1", hard=True))["proof"]
    assert proof["found"] >= 1
    assert "another fact says it" in proof["elsewhere"][0]
    assert (await memory.facts())["total"] == 1


async def test_words_shared_with_other_facts_do_not_spoil_the_proof(memory: Memory) -> None:
    shared = "this long beginning of a sentence is shared by several facts of ours and then "
    await memory.remember_fact(text=shared + "one ends with a secret of its own, hunter2")
    await memory.remember_fact(text=shared + "the other ends harmlessly")
    proof = (await memory.forget_fact(id="F1", hard=True))["proof"]
    assert proof["found"] == 0


async def test_hard_and_undo_exclude_each_other(memory: Memory) -> None:
    await memory.remember_fact(text="x")
    with pytest.raises(Invalid):
        await memory.forget_fact(id="F1", hard=True, undo=True)


async def test_an_erased_text_may_be_stated_again_by_a_person(memory: Memory) -> None:
    await memory.remember_fact(text=SECRET)
    await memory.forget_fact(id="F1", hard=True)
    again = await memory.remember_fact(text=SECRET)
    assert again["created"] and again["fact"]["id"] == "F2"


def test_stretches_cover_a_text_and_the_scan_finds_them(tmp_path: Path) -> None:
    text = SECRET * 30
    wanted = remains.stretches(text)
    assert 1 < len(wanted) <= 4 * remains.STRETCHES
    data = text.encode()
    (tmp_path / "a").write_bytes(b"x" * (remains.BLOCK_BYTES - 10) + data)  # across blocks
    (tmp_path / "b").write_bytes(b"nothing")
    found = remains.scan(remains.files_under([str(tmp_path)]), wanted)
    assert found.files == 2
    assert list(found.found) == [str(tmp_path / "a")]
