"""Our own set: questions over real sessions of coding agents, asked as weeks later.

The questions are in tests/data/history (format: its README.md); the sessions are not in this
repository. They are read by the real indexer, all agents into one store, so that a question
competes with everything else that was ever said and printed, as it does for a user.
"""

import asyncio
import json
import os
import shutil
from pathlib import Path

from lored.core.stored_text import decode
from lored.store import driver
from support.indexer import indexer

from . import places
from .memories import Memory, Question, Session, Turn

KINDS = ("command", "decision", "failure", "file", "unanswerable", "when")
HALVES = ("tune", "report")
LEFT_OUT = ("edge", "growth", "export")
"""Folders of the collection that hold damaged copies, prefixes and exports of others."""
ROLES = ("user", "assistant", "tool", "summary", "context")


def questions(folder: Path = places.SET) -> list[Question]:
    """The set; ``any_of``, since each gold record answers by itself."""
    found = []
    for line in (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines():
        item = json.loads(line)
        found.append(
            Question(
                item["question"],
                item["kind"],
                item["records"],
                item["sessions"],
                any_of=True,
                half=item["half"],
            )
        )
    return found


def index(transcripts: Path, home: Path) -> Path:
    """The sessions store of a user who has all of ``transcripts``, made under ``home``."""
    user = home / "user"
    for agent in sorted(path for path in transcripts.iterdir() if path.is_dir()):
        for path in sorted(agent.rglob("*")):
            inside = path.relative_to(agent)
            if agent.name in LEFT_OUT or inside.parts[0] in LEFT_OUT or not path.is_file():
                continue
            copy = user / inside
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
            os.utime(copy, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))

    async def fill() -> Path:
        async with indexer(home) as found:
            await found.settle()
            return Path(found.app.paths.sessions_db)

    return asyncio.run(fill())


def memory(store: Path, asked: list[Question]) -> Memory:
    """What the store holds, each message once, in the session that owns it."""
    conn = driver.connect(str(store), read_only=True)
    sessions: dict[str, Session] = {}
    for name, key, role, at, text in conn.execute(
        "SELECT s.native_id, m.record_key, m.role, m.at, m.text FROM messages m"
        " JOIN sessions s ON s.id = m.session ORDER BY s.id, m.position"
    ):
        session = sessions.setdefault(name, Session(name, []))
        session.turns.append(Turn(key, ROLES[role], decode(text), at))
    conn.close()
    return Memory("coding history", list(sessions.values()), asked)
