"""What one transcript tells about another: titles by message key, reverted parts."""

import json
import os
import shutil
from pathlib import Path

import pytest

from lored.core.transcripts import parser_for
from lored.core.transcripts.records import Message
from lored.store.sessions.marks import ROLLED_BACK
from support.claude import said, session_id, session_path
from support.indexer import Index, indexer
from support.transcripts import SAMPLES, read_lines

ONE, TWO = session_id(1), session_id(2)
FOLDER = Path(".codex/sessions/2026/10/01")
THREAD = "01a014ed-94a5-7636-83f8-a12069ab658f"
BASE = f"rollout-2026-10-01T11-30-54-{THREAD}.jsonl"
REVISION = f"rollout-2026-10-01T20-00-00-{THREAD}_01a05610-874b-78c6-81e3-8ce95782852e.jsonl"


END = 183_816
"""Bytes of the base that still hold, as the first line of the revision says."""


def keys(name: str, data: bytes) -> set[str]:
    """Keys of what a person and the agent said in a file of that name."""
    records = read_lines(parser_for("codex", name), name, data)
    return {r.key for r in records if isinstance(r, Message) and r.role in ("user", "assistant")}


async def title(index: Index, session: str) -> str | None:
    found: str | None = await index.one("SELECT title FROM sessions WHERE native_id = ?", session)
    return found


@pytest.mark.parametrize("teller_first", [True, False])
async def test_a_title_finds_the_session_of_its_message(home: Path, teller_first: bool) -> None:
    async with indexer(home) as index:
        told = session_path(index.user, ONE)
        teller = session_path(index.user, TWO)
        summary = {"type": "summary", "summary": "Caches made faster", "leafUuid": "leaf-1"}

        def write(path: Path) -> None:
            if path == told:
                path.write_bytes(said(ONE, "make it faster", 1, key="leaf-1"))
            else:
                path.write_bytes(json.dumps(summary).encode() + b"\n" + said(TWO, "go on", 2))

        for path in (teller, told) if teller_first else (told, teller):
            write(path)
            await index.settle()
        assert await title(index, ONE) == "Caches made faster"
        assert await title(index, TWO) == "go on"
        assert await index.rows("SELECT * FROM titles") == []
        # The prompt does not take its place; a title of its own does.
        own = {"type": "custom-title", "customTitle": "Mine", "sessionId": ONE}
        with told.open("ab") as file:
            file.write(said(ONE, "and smaller", 3))
        await index.settle()
        assert await title(index, ONE) == "Caches made faster"
        with told.open("ab") as file:
            file.write(json.dumps(own).encode() + b"\n")
        await index.settle()
        assert await title(index, ONE) == "Mine"
        with teller.open("ab") as file:
            file.write(json.dumps({**summary, "summary": "Another"}).encode() + b"\n")
        await index.settle()
        assert await title(index, ONE) == "Mine"


@pytest.mark.parametrize("order", ["together", "base first", "revision first"])
async def test_a_revert_marks_what_it_undid(home: Path, order: str) -> None:
    async with indexer(home) as index:
        folder = index.user / FOLDER
        folder.mkdir(parents=True)
        names = [BASE, REVISION] if order != "revision first" else [REVISION, BASE]
        for age, name in enumerate(reversed(names)):
            shutil.copyfile(SAMPLES / "codex" / FOLDER / name, folder / name)
            os.utime(folder / name, (1_790_000_000 - age, 1_790_000_000 - age))
            if order != "together":
                await index.settle()
        await index.settle()
        marked = dict(
            await index.rows(
                "SELECT m.record_key, m.flags FROM messages m JOIN sessions s ON s.id = m.session "
                "WHERE s.native_id = ? AND m.role < 2",
                THREAD,
            )
        )
        data = (SAMPLES / "codex" / FOLDER / BASE).read_bytes()
        kept = keys(BASE, data[:END]) | keys(REVISION, (folder / REVISION).read_bytes())
        undone = keys(BASE, data) - kept
        assert undone and kept
        assert {key for key, flags in marked.items() if flags & ROLLED_BACK} == undone
        assert marked.keys() == undone | kept
        summary = await index.one("SELECT summary FROM sessions WHERE native_id = ?", THREAD)
        # Also the summary speaks only of what holds.
        assert json.loads(summary)["counts"]["user"] == len([key for key in kept if ":u:" in key])


@pytest.mark.parametrize("fork_first", [True, False])
async def test_repeated_answers_are_counted_once(home: Path, fork_first: bool) -> None:
    """Each answer costs 10 and 5 tokens."""
    shared = [
        said(ONE, f"shared {n}", n, key=f"key-{n}", role=("user", "assistant")[n % 2])
        for n in range(4)
    ]
    copied = [line.replace(ONE.encode(), TWO.encode()) for line in shared]
    more = said(TWO, "of the fork alone", 9, role="assistant")
    parts = {
        ONE: [*shared, said(ONE, "of the origin alone", 8, role="assistant")],
        TWO: [*copied, more, said(TWO, "and another", 10, role="assistant")],
    }
    async with indexer(home) as index:
        for name in (TWO, ONE) if fork_first else (ONE, TWO):
            session_path(index.user, name).write_bytes(b"".join(parts[name]))
            await index.settle()

        async def tokens(name: str) -> dict[str, int]:
            listed = await index.sessions.list({"everywhere": True}, index.call)
            (found,) = [one["tokens"] for one in listed["sessions"] if one["id"] == name]
            return dict(found)

        assert await tokens(ONE) == {"input": 30, "output": 15}
        assert await tokens(TWO) == {"input": 20, "output": 10}
        with session_path(index.user, TWO).open("ab") as file:
            file.write(said(TWO, "one more", 11, role="assistant"))
        await index.settle()
        await index.settle(session_path(index.user, TWO), force=True)
        assert await tokens(TWO) == {"input": 30, "output": 15}
        assert await tokens(ONE) == {"input": 30, "output": 15}
