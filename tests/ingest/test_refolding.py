"""Summaries of another version: folded again where the transcript is there, kept where not."""

import json
import shutil
from pathlib import Path
from typing import Any

import msgpack

from support.claude import said, session_id, session_path
from support.indexer import Index, indexer
from support.transcripts import SAMPLES

ONE, TWO = session_id(1), session_id(2)


def lines(session: str, *numbers: int) -> bytes:
    return b"".join(said(session, f"word{number} of the day", number) for number in numbers)


async def told(index: Index, session: str) -> dict[str, Any]:
    summary = await index.one("SELECT summary FROM sessions WHERE native_id = ?", session)
    found: dict[str, Any] = json.loads(summary)
    return found


async def make_old(index: Index) -> None:
    """As if every summary had been made by another version, and worded otherwise."""

    def change(conn: Any) -> None:
        for number, fold, summary in conn.execute("SELECT id, fold, summary FROM sessions"):
            state = {**msgpack.unpackb(fold), "version": 0}
            if state["goal"] is not None:
                state["goal"]["text"] = "what an older version made of it"
            words = json.dumps({**json.loads(summary), "goal": "what an older version made of it"})
            conn.execute(
                "UPDATE sessions SET fold = ?, summary = ? WHERE id = ?",
                (msgpack.packb(state), words, number),
            )
        conn.execute("UPDATE meta SET value = 0 WHERE key = 'fold_version'")

    await index.app.registry.sessions.write(change)


async def test_a_summary_of_another_version_is_folded_again(home: Path) -> None:
    async with indexer(home) as index:
        there, gone = (session_path(index.user, name) for name in (ONE, TWO))
        there.write_bytes(lines(ONE, 1, 2))
        gone.write_bytes(lines(TWO, 3, 4))
        await index.settle()
        before = await told(index, ONE)
        gone.unlink()
        await index.settle()
        await make_old(index)
    async with indexer(home) as index:
        await index.settle()
        assert await told(index, ONE) == before
        kept = await told(index, TWO)
        assert kept["goal"] == "what an older version made of it"
        assert kept["outdated"] is True
        assert await index.texts(TWO) == [f"word{n} of the day" for n in (3, 4)]
        # It comes back and goes on: told anew from its start, not from what was added.
        gone.write_bytes(lines(TWO, 3, 4, 5))
        await index.settle()
        again = await told(index, TWO)
        assert again["goal"] == "word3 of the day" and "outdated" not in again
        assert again["counts"]["messages"] == 3
        assert await index.texts(TWO) == [f"word{n} of the day" for n in (3, 4, 5)]


async def test_a_database_is_read_again_for_the_summaries_of_its_sessions(home: Path) -> None:
    place = Path(".local/share/goose/sessions/sessions.db")
    source = SAMPLES / "goose" / place
    async with indexer(home) as index:
        target = index.user / place
        target.parent.mkdir(parents=True)
        shutil.copy2(source, target)
        await index.settle()
        wanted = await index.rows("SELECT native_id, summary FROM sessions ORDER BY 1")
        counts = await index.rows("SELECT message_count FROM sessions ORDER BY native_id")
        assert wanted
        await make_old(index)
    async with indexer(home) as index:
        await index.settle()
        assert await index.rows("SELECT native_id, summary FROM sessions ORDER BY 1") == wanted
        assert await index.rows("SELECT message_count FROM sessions ORDER BY native_id") == counts


async def test_a_fold_again_tells_what_a_first_reading_tells(home: Path) -> None:
    """A fork whose original is read first, and a list of prompts that names another folder."""
    projects = Path(".claude/projects")
    names = ("-Users-devdd-workspace-claude-code-log-sample", "-workflow-demo")
    asked = "SELECT native_id, started_at, cwd, workspace, status, summary FROM sessions ORDER BY 1"
    async with indexer(home) as index:
        for name in names:
            shutil.copytree(SAMPLES / "claude" / projects / name, index.user / projects / name)
        session = session_path(index.user, ONE)
        session.parent.mkdir(parents=True, exist_ok=True)
        session.write_bytes(lines(ONE, 1, 2))
        await index.settle()
        own = await index.one("SELECT cwd FROM sessions WHERE native_id = ?", ONE)
        prompt = {
            "display": "word1 of the day",
            "timestamp": 1,
            "project": "/else",
            "sessionId": ONE,
        }
        (index.user / ".claude/history.jsonl").write_text(json.dumps(prompt) + "\n")
        await index.settle()
        assert await index.one("SELECT cwd FROM sessions WHERE native_id = ?", ONE) == own
        wanted = await index.rows(asked)
        assert await index.rows("SELECT 1 FROM sessions WHERE forked_from IS NOT NULL")
        await make_old(index)
    async with indexer(home) as index:
        await index.settle()
        assert await index.rows(asked) == wanted
