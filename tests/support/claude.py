"""Small Claude Code transcripts made to measure, in the exact line form of the agent."""

import json
import uuid
from pathlib import Path
from typing import Any

SLUG = "-srv-demo"


def session_path(user: Path, session: str, slug: str = SLUG) -> Path:
    """Where the agent keeps a session."""
    path = user / ".claude" / "projects" / slug / f"{session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def session_id(number: int) -> str:
    """A native session id."""
    return f"00000000-0000-4000-8000-{number:012d}"


def said(
    session: str,
    text: str,
    number: int,
    *,
    role: str = "user",
    cwd: str = "/srv/demo",
    key: str | None = None,
) -> bytes:
    """One line; ``number`` is the minute and makes the record id."""
    item: dict[str, Any] = {
        "parentUuid": None,
        "isSidechain": False,
        "userType": "external",
        "cwd": cwd,
        "sessionId": session,
        "version": "2.1.37",
        "gitBranch": "main",
        "type": role,
        "message": {"role": role, "content": text},
        "uuid": key or str(uuid.uuid5(uuid.NAMESPACE_URL, f"{session}/{number}")),
        "timestamp": f"2026-05-{1 + number // 1440 % 28:02d}T"
        f"{number // 60 % 24:02d}:{number % 60:02d}:00.000Z",
    }
    if role == "assistant":
        item["message"] = {
            "id": f"msg_{session[-4:]}_{number}",
            "model": "claude-opus-4",
            "role": "assistant",
            "content": [{"type": "text", "text": text}],
            "usage": {"input_tokens": 10, "output_tokens": 5},
        }
    return json.dumps(item, ensure_ascii=False).encode() + b"\n"
