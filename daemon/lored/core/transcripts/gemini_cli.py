"""Gemini CLI: `~/.gemini/tmp/<project>/chats/session-*.json` and `.jsonl` (from 0.39).

The document is rewritten at each change. In the log an id may repeat (the last one wins),
`$set` patches the metadata (or replaces all messages) and `$rewindTo` drops a message and all
later ones. A resumed document goes on as a log beside it with the same ids.
"""

import re
from collections.abc import Iterable
from typing import Any, Final

from lored.core.transcripts.conversation import call, record_key, result, say
from lored.core.transcripts.knowledge import add_tokens, known, learn, learn_first, learn_time
from lored.core.transcripts.lines import (
    attempt,
    decode_document,
    decode_line,
    kind_of,
    unknown_type,
)
from lored.core.transcripts.records import Damage, Record, Role, Rollback, SessionPatch
from lored.core.transcripts.stamps import instant
from lored.core.transcripts.texts import count_or_none, flat_text, text_or_none, title_of

USAGES: Final = 64
"""Messages whose counts may still be repeated."""
_TOKENS: Final = (
    ("input", "input"),
    ("output", "output"),
    ("cache_read", "cached"),
    ("reasoning", "thoughts"),
)
_ID: Final = re.compile(rb'"sessionId"\s*:\s*"([^"\\]{1,100})"')
_HOOK: Final = re.compile(r"<hook_context>.*?(?:</hook_context>\s*|\Z)", re.DOTALL)
"""What a hook gave, before the words of the user (Gemini CLI 0.61, seen in its own log)."""
_FILES: Final = "--- Content from referenced files ---"


def session_of(path: str, head: bytes) -> str | None:
    """The `sessionId` that the file states, else the end of its name."""
    name = path.replace("\\", "/").rpartition("/")[2]
    stem, _, kind = name.partition(".json")
    if kind not in ("", "l") or not stem or ".json" not in name:
        return None
    stated = _ID.search(head)
    return stated[1].decode("utf-8", "replace") if stated else stem


def typed_words(text: str) -> tuple[Role, str]:
    """Role and words of a user message."""
    if "<hook_context>" in text:
        text = _HOOK.sub("", text)
    start = text.lstrip()
    if start.startswith(("<session_context>", "System: Please continue.", "/", "?")):
        return "context", text
    if _FILES in text:
        text = text.split(_FILES, 1)[0].rstrip()
    return "user", text


def project_files(path: str) -> list[str]:
    """`.project_root` of the project's folder holds its path; the folder's name is a hash."""
    folder, cut, _ = path.rpartition("/chats/")
    return [f"{folder}/.project_root"] if cut else []


def parse_project(data: bytes) -> list[Record]:
    """The working directory that `.project_root` names."""
    cwd = data[:4_096].decode("utf-8", "replace").strip()
    return [SessionPatch(cwd=cwd)] if cwd.startswith("/") or cwd[1:3] == ":\\" else []


class GeminiLog:
    """Line parser of the `.jsonl` form."""

    version = 1

    def __init__(self, agent: str = "gemini-cli") -> None:
        self.agent = agent

    def session_id(self, path: str, head: bytes) -> str | None:
        return session_of(path, head)

    def begin(self, path: str) -> dict[str, Any]:
        return begin_state(path)

    def sidecars(self, path: str) -> list[str]:
        return project_files(path)

    def parse_sidecar(self, path: str, data: bytes) -> Iterable[Record]:
        return parse_project(data)

    def parse(self, state: dict[str, Any], line: bytes, offset: int) -> Iterable[Record]:
        objects, damage = decode_line(line, offset)
        out: list[Record] = list(damage)
        for item in objects:
            attempt(out, offset, _line, state, item, offset, out)
        return out


class GeminiDocument:
    """Document parser of the `.json` form."""

    version = 1

    def __init__(self, agent: str = "gemini-cli") -> None:
        self.agent = agent

    def session_id(self, path: str, head: bytes) -> str | None:
        return session_of(path, head)

    def sidecars(self, path: str) -> list[str]:
        return project_files(path)

    def parse_sidecar(self, path: str, data: bytes) -> Iterable[Record]:
        return parse_project(data)

    def parse_document(self, path: str, data: bytes) -> Iterable[Record]:
        value, damage = decode_document(data)
        out: list[Record] = list(damage)
        if isinstance(value, dict):
            state = begin_state(path)
            state["session"] = self.session_id(path, data[:4_096]) or state["session"]
            attempt(out, 0, _metadata, state, value, 0, out)
        elif value is not None:
            out.append(Damage("not_object", 0, len(data)))
        return out


def _line(state: dict[str, Any], item: dict[str, Any], offset: int, out: list[Record]) -> None:
    """One line of the log."""
    if "$set" in item:
        _metadata(state, item["$set"], offset, out)
    elif "$rewindTo" in item:
        if isinstance(item["$rewindTo"], str):
            key = record_key(state["session"], item["$rewindTo"], "")
            out.append(Rollback(from_key=key))
    elif "type" in item:
        read_message(state, item, offset, True, out)
    else:
        _metadata(state, item, offset, out)


def begin_state(path: str) -> dict[str, Any]:
    """State of a file, also of a subagent's, whose folder is named after its parent."""
    name = session_of(path, b"") or "unknown"
    state: dict[str, Any] = {"session": name, "usage": {}}
    above = path.replace("\\", "/").split("/")
    if len(above) > 2 and above[-2] != "chats" and "chats" in above:
        state["parent"] = above[-2]
    return state


def _metadata(state: dict[str, Any], meta: Any, offset: int, out: list[Record]) -> None:
    if not isinstance(meta, dict):
        return
    native = meta.get("sessionId")
    if isinstance(native, str) and native and "named" not in state:
        state["session"], state["named"] = native[:100], True
    learn_time(state, out, instant(meta.get("startTime")))
    learn_time(state, out, instant(meta.get("lastUpdated")))
    directories = meta.get("directories")
    first = directories[0] if isinstance(directories, list) and directories else None
    learn_first(state, out, cwd=text_or_none(first))
    if meta.get("kind") == "subagent":
        learn_first(state, out, is_subagent=True, parent=state.get("parent"))
    summary = meta.get("summary")
    learn(state, out, title=title_of(summary) if isinstance(summary, str) else None)
    project = text_or_none(meta.get("projectHash"), 100)
    learn(state, out, extra={"project": project} if project else None)
    messages = meta.get("messages")
    for index, item in enumerate(messages if isinstance(messages, list) else []):
        if isinstance(item, dict):
            attempt(out, 0, read_message, state, item, f"{offset}.{index}", True, out)


def read_message(
    state: dict[str, Any], item: dict[str, Any], place: Any, replaces: bool, out: list[Record]
) -> None:
    """One message of either form."""
    kind = kind_of(item)
    at = instant(item.get("timestamp"))
    learn_time(state, out, at)
    key = record_key(state["session"], item.get("id"), place)
    shown = item.get("displayContent")
    text = flat_text(shown if shown else item.get("content"))
    if kind in ("user", "gemini") and known(state, None).get("status") == "interrupted":
        learn(state, out, status="active")  # the session went on
    if kind == "user":
        role, words = typed_words(text)
        if "parent" in state:
            role = "context"
        say(state, out, role, key, words, at=at, replaces=replaces)
    elif kind == "gemini":
        model = text_or_none(item.get("model"), 200)
        learn(state, out, model=model)
        say(state, out, "assistant", key, text, at=at, model=model, replaces=replaces)
        calls = item.get("toolCalls")
        for index, made in enumerate(calls if isinstance(calls, list) else []):
            if isinstance(made, dict):
                _call(state, made, f"{key}#{index}", key if text.strip() else None, at, out)
        _usage(state, item.get("tokens"), key, out)
    elif kind in ("error", "warning", "info"):
        if kind == "error":
            say(state, out, "context", key, text, at=at, replaces=replaces)
        elif text.startswith("Request cancelled"):
            learn(state, out, status="interrupted")
    else:
        out.append(unknown_type(kind, 0))


def _call(
    state: dict[str, Any],
    made: dict[str, Any],
    key: str,
    message_key: str | None,
    at: str | None,
    out: list[Record],
) -> None:
    call_id = made.get("id") or key
    when = instant(made.get("timestamp")) or at
    call(state, out, call_id, made.get("name"), made.get("args"), at=when, message_key=message_key)
    status = made.get("status")
    if "result" not in made and status not in ("error", "cancelled", "success"):
        return
    result(
        state,
        out,
        call_id,
        key,
        _result_text(made),
        failed=status in ("error", "cancelled"),
        at=when,
        commands_say_zero=True,
        replaces=True,
    )


def _result_text(made: dict[str, Any]) -> str:
    texts = []
    parts = made.get("result")
    for part in parts if isinstance(parts, list) else [parts]:
        response = part.get("functionResponse") if isinstance(part, dict) else None
        answer = response.get("response") if isinstance(response, dict) else part
        if isinstance(answer, dict):
            answer = answer.get("output", answer.get("error", answer))
        texts.append(flat_text(answer))
    text = "\n".join(t for t in texts if t)
    shown = made.get("resultDisplay")
    return text or (shown if isinstance(shown, str) else "")


def _usage(state: dict[str, Any], tokens: Any, key: str, out: list[Record]) -> None:
    if not isinstance(tokens, dict):
        return
    seen: dict[str, list[int]] = state["usage"]
    before = seen.pop(key, None) or [0] * len(_TOKENS)
    now = [count_or_none(tokens.get(field)) or 0 for _, field in _TOKENS]
    seen[key] = now
    while len(seen) > USAGES:
        del seen[next(iter(seen))]
    add_tokens(state, out, {name: now[i] - before[i] for i, (name, _) in enumerate(_TOKENS)})


LOG = GeminiLog()
DOCUMENT = GeminiDocument()
QWEN_DOCUMENT = GeminiDocument("qwen-code")
"""Older Qwen Code wrote Gemini CLI's documents."""
