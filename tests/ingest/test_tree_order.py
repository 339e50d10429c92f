"""A session that lies in many small files is read in the order in which it was written."""

import json
import os
from pathlib import Path

from support.indexer import indexer

SESSION = "ses_1"


def put(base: Path, message: str, part: str, text: str, *, answer: bool) -> None:
    """One message of one part, as opencode to 1.1 stores it."""
    place = base / "part" / message / f"{part}.json"
    place.parent.mkdir(parents=True)
    time = {"time": {"start": 1_780_000_000_000, "end": 1_780_000_000_001}} if answer else {}
    named = {"id": part, "sessionID": SESSION, "messageID": message, "type": "text"}
    place.write_text(json.dumps({**named, "text": text, **time}))
    os.utime(place, (1_780_000_000, 1_780_000_000))


async def test_parts_of_one_age_go_by_their_names(home: Path) -> None:
    words = ["explain how the parser works", "it reads lines", "add a test for it", "added one"]
    async with indexer(home) as index:
        base = index.user / ".local/share/opencode/storage"
        for number, text in enumerate(words):
            put(base, f"msg_{number}", f"prt_{number}", text, answer=bool(number % 2))
        await index.settle()
        assert await index.texts(SESSION) == words
        told = json.loads(
            await index.one("SELECT summary FROM sessions WHERE native_id = ?", SESSION)
        )
        assert told["goal"] == words[0]
        assert told["status"] == "completed"
