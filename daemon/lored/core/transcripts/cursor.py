"""Cursor agent transcripts: `~/.cursor/projects/<slug>/agent-transcripts/<id>/<id>.jsonl`.

No ids, no model, hardly any times: a message is known by its place in the file, and a
`<timestamp>` in the user's message is the only clock. Words of the user stand in
`<user_query>`, between blocks that Cursor adds.
"""

import re
from collections.abc import Iterable
from typing import Any, Final

from lored.core.clock import to_wire
from lored.core.transcripts.conversation import plain_words, read_blocks
from lored.core.transcripts.files import Alone
from lored.core.transcripts.knowledge import learn, learn_first, learn_time
from lored.core.transcripts.lines import attempt, decode_line, kind_of, unknown_type
from lored.core.transcripts.records import Record, Role
from lored.core.transcripts.stamps import instant
from lored.core.transcripts.texts import flat_text

_QUERY: Final = re.compile(r"<user_query>\s*(.*?)\s*(?:</user_query>|\Z)", re.DOTALL)
_INJECTED: Final = re.compile(
    r"<(user_info|external_links|attached_files|system_reminder|timestamp|rules|git_status"
    r"|project_layout|open_and_recently_viewed_files|agent_transcripts|agent_skills"
    r"|image_files|cursor_commands|additional_data)\b[^>]*>.*?(?:</\1>\s*|\Z)",
    re.DOTALL,
)
_STAMP: Final = re.compile(r"<timestamp>\s*([^<]{1,80}?)\s*</timestamp>")
_OFFSET: Final = re.compile(r"\(UTC([+-]\d{1,2})(?::?(\d{2}))?\)|UTC")
_FORMATS: Final = ("%A, %b %d, %Y, %I:%M %p", "%A, %B %d, %Y, %I:%M %p", "%b %d, %Y, %I:%M %p")


class Cursor(Alone):
    """Line parser of Cursor's agent transcripts."""

    agent = "cursor"
    version = 1

    def session_id(self, path: str, head: bytes) -> str | None:
        """The file's name; a subagent's stands below its parent's folder."""
        parts = path.replace("\\", "/").split("/")
        if not parts[-1].endswith(".jsonl"):
            return None
        name = parts[-1].removesuffix(".jsonl")
        if len(parts) > 2 and parts[-2] == "subagents":
            return f"{parts[-3]}/{name}"
        return name

    def begin(self, path: str) -> dict[str, Any]:
        return {"session": self.session_id(path, b"") or "unknown", "path": path}

    def parse(self, state: dict[str, Any], line: bytes, offset: int) -> Iterable[Record]:
        objects, damage = decode_line(line, offset, frozenset({"role", "message"}))
        out: list[Record] = list(damage)
        for index, item in enumerate(objects):
            attempt(out, offset, _line, state, item, offset + index, out)
        return out


def _line(state: dict[str, Any], item: dict[str, Any], offset: int, out: list[Record]) -> None:
    role = kind_of(item, "role")
    if role not in ("user", "assistant"):
        if item.get("type") == "turn_ended":
            ended = item.get("status")
            learn(state, out, status="interrupted" if ended == "cancelled" else "completed")
        else:
            out.append(unknown_type(item.get("type") or role, offset))
        return
    parent, cut, _ = state["session"].partition("/")
    if cut:
        learn_first(state, out, is_subagent=True, parent=parent)
    slug = _slug(state["path"])
    learn_first(state, out, extra={"slug": slug} if slug else None)
    message = item.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    at = None
    if role == "user":
        stamp = _STAMP.search(flat_text(content)[:100_000])
        at = _moment(stamp[1]) if stamp else None
        learn_time(state, out, at)
    words = _subagent_words if cut else _words
    read_blocks(state, out, role, f"{state['session']}:{offset}", content, at=at, words=words)


def _words(text: str) -> tuple[Role, str]:
    queries = [match[1] for match in _QUERY.finditer(text)]
    if queries:
        return "user", "\n".join(queries)
    if "<" not in text:
        return "user", text
    words = _INJECTED.sub("", text).strip()
    return plain_words(words) if words else ("context", text)


def _subagent_words(text: str) -> tuple[Role, str]:
    """The prompts of a subagent are written by its parent."""
    return "context", _words(text)[1]


def _slug(path: str) -> str | None:
    parts = path.replace("\\", "/").split("/")
    if "agent-transcripts" not in parts:
        return None
    at = parts.index("agent-transcripts")
    return parts[at - 1] if at else None


def _moment(text: str) -> str | None:
    """A time such as `Tuesday, Apr 14, 2026, 9:05 AM (UTC+2)`; also ISO."""
    from datetime import UTC, datetime, timedelta, timezone

    found = instant(text)
    if found is not None:
        return found
    zone = _OFFSET.search(text)
    bare = text[: zone.start()].strip() if zone else text
    minutes = 0
    if zone and zone[1]:
        minutes = int(zone[1]) * 60
        minutes += int(zone[2] or 0) * (-1 if zone[1][0] == "-" else 1)
    for form in _FORMATS:
        try:
            moment = datetime.strptime(bare, form).replace(
                tzinfo=timezone(timedelta(minutes=minutes))
            )
        except ValueError:
            continue
        return to_wire(int(moment.astimezone(UTC).timestamp()) * 1_000_000)
    return None


PARSER = Cursor()
