"""opencode to 1.1: a tree of small JSON files, one per session, message and part.

    storage/session/<project>/ses_*.json      title, directory, times
    storage/message/<session>/msg_*.json      role, model
    storage/part/<message>/prt_*.json         the words and tools

Each file is a document of its own; a part names its session. Its role is not in it, but a
part of an answer always has a `time` and a person's never has. Exports (`{info, messages}`)
are read as well.
"""

import re
from collections.abc import Iterable
from typing import Any, Final

from lored.core.transcripts import opencode_records as records
from lored.core.transcripts.files import Alone
from lored.core.transcripts.lines import attempt, decode_document
from lored.core.transcripts.records import Record, SessionPatch
from lored.core.transcripts.stamps import instant
from lored.core.transcripts.texts import text_or_none

_SESSION: Final = re.compile(rb'"sessionID"\s*:\s*"([^"\\]{1,100})"')
_NAME: Final = re.compile(r"(ses|msg|prt)_[^/]{1,100}\.json")


class OpencodeTree(Alone):
    """Document parser of the JSON tree."""

    agent = "opencode"
    version = 1
    together: Final = "opencode-tree"
    """Parts are read oldest first, whatever their session: only their text names it."""

    def session_id(self, path: str, head: bytes) -> str | None:
        """The session's own name, the folder of a message, or what a part states."""
        parts = path.replace("\\", "/").split("/")
        if not _NAME.fullmatch(parts[-1]):
            return None
        if parts[-1].startswith("ses_"):
            return parts[-1].removesuffix(".json")
        if parts[-1].startswith("msg_"):
            return parts[-2] if len(parts) > 1 else None
        stated = _SESSION.search(head)
        return stated[1].decode("utf-8", "replace") if stated else None

    def parse_document(self, path: str, data: bytes) -> Iterable[Record]:
        value, damage = decode_document(data)
        out: list[Record] = list(damage)
        if not isinstance(value, dict):
            return out
        name = self.session_id(path, data) or "unknown"
        state: dict[str, Any] = {"session": name}
        kind = path.replace("\\", "/").rpartition("/")[2][:4]
        if "info" in value and isinstance(value.get("messages"), list):
            attempt(out, 0, _export, state, value, out)
        elif kind == "ses_":
            out.extend(records.header(value))
        elif kind == "msg_":
            out.extend(_message(value))
        else:
            attempt(out, 0, _part, state, value, out)
        return out


def _message(message: dict[str, Any]) -> list[Record]:
    times = message.get("time")
    times = times if isinstance(times, dict) else {}
    path = message.get("path")
    patch = SessionPatch(
        model=records.model_of(message) or records.model_of(message.get("model")),
        cwd=text_or_none(path.get("cwd")) if isinstance(path, dict) else None,
        started_at=instant(times.get("created")),
        ended_at=instant(times.get("completed") or times.get("created")),
    )
    return [patch]


def _part(state: dict[str, Any], item: dict[str, Any], out: list[Record]) -> None:
    role = "assistant" if "time" in item or item.get("type") != "text" else "user"
    records.part(
        state,
        item,
        role,
        out,
        part_id=item.get("id"),
        message_id=item.get("messageID"),
    )


def _export(state: dict[str, Any], value: dict[str, Any], out: list[Record]) -> None:
    info = value["info"]
    if isinstance(info, dict):
        state["session"] = text_or_none(info.get("id"), 100) or state["session"]
        out.extend(records.header(info))
    for entry in value["messages"]:
        if not isinstance(entry, dict) or not isinstance(entry.get("info"), dict):
            continue
        message = entry["info"]
        out.extend(_message(message))
        times = message.get("time")
        at = instant(times.get("created")) if isinstance(times, dict) else None
        role = "assistant" if message.get("role") == "assistant" else "user"
        parts = entry.get("parts")
        for item in parts if isinstance(parts, list) else []:
            if isinstance(item, dict):
                records.part(
                    state,
                    item,
                    role,
                    out,
                    part_id=item.get("id"),
                    message_id=message.get("id"),
                    model=records.model_of(message),
                    at=at,
                )


TREE = OpencodeTree()
