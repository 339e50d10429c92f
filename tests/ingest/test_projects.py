"""Sessions that agents keep inside projects are found where a workspace is known."""

import os
from pathlib import Path

from support.claude import said, session_id, session_path
from support.indexer import Index, indexer

OLD = (1_700_000_000, 1_700_000_000)
"""A file time that is trusted: what was written just now is looked at again."""

CHAT = """
# aider chat started at 2026-05-04 10:00:00

#### make the cache expire

It expires now.
"""


async def sessions(index: Index, agent: str) -> list[str]:
    rows = await index.rows("SELECT cwd FROM sessions WHERE agent = ? AND message_count > 0", agent)
    return [row[0] for row in rows]


async def test_a_project_s_own_sessions_are_read_once_it_is_known(home: Path) -> None:
    project = home / "user" / "demo"
    async with indexer(home) as index:
        project.mkdir(parents=True)
        (project / ".aider.chat.history.md").write_text(CHAT)
        os.utime(project / ".aider.chat.history.md", OLD)
        await index.settle()
        assert await sessions(index, "aider") == []
        # A session in that directory makes it known.
        line = said(session_id(1), "hello there", 1, cwd=str(project))
        session_path(index.user, session_id(1)).write_bytes(line)
        os.utime(session_path(index.user, session_id(1)), OLD)
        await index.settle()
        await index.settle()
        assert await sessions(index, "aider") == [str(project)]
        roots = {root["path"]: root for root in (await index.indexing.status())["roots"]}
        assert roots[str(project)]["origin"] == "workspace"
        before = index.bytes_read
    async with indexer(home) as index:
        await index.settle()
        assert await sessions(index, "aider") == [str(project)]
        # What was read before is not read again.
        assert before and index.bytes_read == 0


async def test_an_excluded_project_s_sessions_are_not_looked_for(home: Path) -> None:
    project = home / "user" / "demo"
    async with indexer(home, exclude=[f"path:{project}"]) as index:
        project.mkdir(parents=True)
        (project / ".aider.chat.history.md").write_text(CHAT)
        await index.app.workspaces.resolve(str(project))
        await index.settle()
        await index.settle()
        assert await sessions(index, "aider") == []
