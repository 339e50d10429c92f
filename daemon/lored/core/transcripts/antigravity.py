"""Antigravity (`agy` and its IDE): one step of the agent per line.

`brain/<conversation>/.system_generated/logs/transcript.jsonl` and `transcript_full.jsonl` hold
the same steps, the first with cut texts: keys are equal, and the full text replaces the cut
one, in whatever order they are read. Words of the user stand only in `<USER_REQUEST>`. Calls
have no ids: a result belongs to the oldest call that waits.
"""

import re
from collections.abc import Iterable
from typing import Any, Final

import orjson

from lored.core.transcripts.conversation import call, result, say, say_summary
from lored.core.transcripts.knowledge import learn, learn_time
from lored.core.transcripts.lines import (
    attempt,
    decode_document,
    decode_line,
    kind_of,
    unknown_type,
)
from lored.core.transcripts.records import Action, ActionKind, Record, SessionPatch
from lored.core.transcripts.stamps import instant
from lored.core.transcripts.texts import excerpt, text_or_none

WAITING: Final = 64
"""Calls that wait for their result step."""
_REQUEST: Final = re.compile(r"<USER_REQUEST>\s*(.*?)\s*(?:</USER_REQUEST>|\Z)", re.DOTALL)
_MODEL: Final = re.compile(r"`Model Selection` from .{0,200}? to ([^\n<]{1,200}?)\.(?:\s|<|\Z)")
_FILE: Final = re.compile(r"file://([^\s`'\"]{1,1000})")
_FAILED: Final = re.compile(
    r"(?i)\b(?:command failed|exit code:? [1-9]|encountered error|failed to)\b"
)
_RESULTS: Final[dict[str, ActionKind]] = {
    "LIST_DIRECTORY": "search",
    "VIEW_FILE": "read",
    "VIEW_FILE_OUTLINE": "read",
    "VIEW_CODE_ITEM": "read",
    "RUN_COMMAND": "command",
    "COMMAND_STATUS": "command",
    "CODE_ACTION": "edit",
    "SEARCH_WEB": "web",
    "READ_URL_CONTENT": "web",
    "BROWSER_SUBAGENT": "agent",
    "GREP_SEARCH": "search",
    "FIND": "search",
    "GENERIC": "other",
}
_QUIET: Final = frozenset({"CONVERSATION_HISTORY", "SYSTEM_MESSAGE", "EPHEMERAL_MESSAGE"})


class Antigravity:
    """Line parser of Antigravity's step logs."""

    agent = "antigravity"
    version = 1

    def session_id(self, path: str, head: bytes) -> str | None:
        """The conversation's folder below `brain`."""
        parts = path.replace("\\", "/").split("/")
        if parts[-1] not in ("transcript.jsonl", "transcript_full.jsonl") or "brain" not in parts:
            return None
        at = len(parts) - 1 - parts[::-1].index("brain")
        return parts[at + 1] if at + 2 < len(parts) else None

    def begin(self, path: str) -> dict[str, Any]:
        name = self.session_id(path, b"") or "unknown"
        return {"session": name, "full": path.endswith("_full.jsonl"), "waiting": []}

    def sidecars(self, path: str) -> list[str]:
        """None of its own: the root's files tell the workspaces of all conversations."""
        return []

    def parse_sidecar(self, path: str, data: bytes) -> Iterable[Record]:
        out: list[Record] = []
        if path.endswith(".jsonl"):
            for line in data.split(b"\n"):
                for item in decode_line(line, 0)[0] if line.strip() else []:
                    name = text_or_none(item.get("conversationId"), 100)
                    cwd = text_or_none(item.get("workspace"))
                    if name and cwd:
                        out.append(SessionPatch(session=name, cwd=cwd))
            return out
        value, damage = decode_document(data)
        out.extend(damage)
        for cwd, name in value.items() if isinstance(value, dict) else []:
            if isinstance(name, str) and name and "/" in cwd:
                out.append(SessionPatch(session=name[:100], cwd=cwd[:4_096]))
        return out

    def parse(self, state: dict[str, Any], line: bytes, offset: int) -> Iterable[Record]:
        objects, damage = decode_line(line, offset, frozenset({"step_index", "created_at"}))
        out: list[Record] = list(damage)
        for item in objects:
            attempt(out, offset, _step, state, item, offset, out)
        return out


def _step(state: dict[str, Any], item: dict[str, Any], offset: int, out: list[Record]) -> None:
    kind = kind_of(item)
    at = instant(item.get("created_at"))
    learn_time(state, out, at)
    index = item.get("step_index")
    key = f"{state['session']}:{index if isinstance(index, int) else offset}:{str(kind)[:40]}"
    content = item.get("content")
    text = content if isinstance(content, str) else ""
    full = bool(state["full"])
    if kind == "USER_INPUT":
        model = _MODEL.search(text)
        learn(state, out, model=model[1] if model else None)
        request = _REQUEST.search(text)
        if request:
            say(state, out, "user", key, request[1], at=at, replaces=full)
    elif kind == "PLANNER_RESPONSE":
        say(state, out, "assistant", key, text, at=at, replaces=full)
        _calls(state, item, key, at, out)
    elif kind == "CHECKPOINT":
        say_summary(out, key, text, at=at)
    elif kind in _RESULTS:
        _calls(state, item, key, at, out)
        _result(state, str(kind), key, text, at, out)
    elif kind not in _QUIET:
        out.append(unknown_type(kind, offset))


def _calls(
    state: dict[str, Any], item: dict[str, Any], key: str, at: str | None, out: list[Record]
) -> None:
    calls = item.get("tool_calls")
    for index, made in enumerate(calls if isinstance(calls, list) else []):
        if isinstance(made, dict):
            call_id = f"{key}#{index}"
            arguments = _decoded(made.get("args", made.get("arguments")))
            call(state, out, call_id, made.get("name"), arguments, at=at)
            state["waiting"].append(call_id)
            del state["waiting"][:-WAITING]


def _result(
    state: dict[str, Any], kind: str, key: str, text: str, at: str | None, out: list[Record]
) -> None:
    failed = _FAILED.search(text[:400]) is not None
    if state["waiting"]:
        call_id = state["waiting"].pop(0)
        result(state, out, call_id, f"{key}:out", text, failed=failed, at=at)
        return
    result(state, out, None, f"{key}:out", text, failed=failed, at=at)
    path = _FILE.search(text[:2_000])
    out.append(
        Action(
            key,
            _RESULTS[kind],
            kind.lower(),
            target=path[1] if path else None,
            status="failed" if failed else "ok",
            ended_at=at,
            output_excerpt=excerpt(text) or None,
        )
    )


def _decoded(arguments: Any) -> Any:
    """Arguments whose values are JSON in a string."""
    if not isinstance(arguments, dict):
        return arguments
    found = {}
    for name, value in arguments.items():
        if isinstance(value, str) and value[:1] in '"[{':
            try:
                found[name] = orjson.loads(value)
                continue
            except ValueError:
                pass
        found[name] = value
    return found


PARSER = Antigravity()
