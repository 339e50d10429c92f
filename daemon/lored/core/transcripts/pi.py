"""pi and its forks: `~/.pi/agent/sessions/--<cwd>--/<time>_<id>.jsonl`, versions 1 to 3.

A tree in one file: an entry whose `parentId` is not the entry before starts another branch,
and what stood between is an abandoned attempt. Version 1 has no ids and is rewritten in place
when loaded, so messages are known by their own time (ms) and words, which never change.
"""

import re
from collections.abc import Iterable
from typing import Any, Final

from lored.core.transcripts.calls import statement
from lored.core.transcripts.codex_words import words_hash
from lored.core.transcripts.conversation import call, plain_words, result, say, say_summary
from lored.core.transcripts.files import Alone
from lored.core.transcripts.knowledge import add_tokens, known, learn, learn_first, learn_time
from lored.core.transcripts.lines import attempt, decode_line, kind_of, unknown_type
from lored.core.transcripts.records import (
    Action,
    Damage,
    Message,
    Record,
    Rollback,
    SessionPatch,
)
from lored.core.transcripts.stamps import instant
from lored.core.transcripts.texts import count_or_none, flat_text, text_or_none, title_of

ENTRIES: Final = 256
"""Latest entries of the tree; a jump further back marks nothing."""
_STEM: Final = re.compile(r"_([0-9A-Za-z-]{1,80})\.jsonl$")
_TOKENS: Final = (
    ("input", "input"),
    ("output", "output"),
    ("cache_read", "cacheRead"),
    ("cache_write", "cacheWrite"),
)
_QUIET: Final = frozenset({"thinking_level_change", "label", "custom", "custom_message"})


class Pi(Alone):
    """Line parser of pi's session trees."""

    agent = "pi"
    version = 1

    def session_id(self, path: str, head: bytes) -> str | None:
        """The id behind the time in the file's name."""
        name = path.replace("\\", "/").rpartition("/")[2]
        match = _STEM.search(name)
        return match[1] if match else name.removesuffix(".jsonl") or None

    def begin(self, path: str) -> dict[str, Any]:
        return {"session": self.session_id(path, b"") or "unknown", "entries": []}

    def parse(self, state: dict[str, Any], line: bytes, offset: int) -> Iterable[Record]:
        objects, damage = decode_line(line, offset)
        out: list[Record] = list(damage)
        for item in objects:
            attempt(out, offset, _entry, state, item, offset, out)
        return out


def _entry(state: dict[str, Any], item: dict[str, Any], offset: int, out: list[Record]) -> None:
    kind = kind_of(item)
    at = instant(item.get("timestamp"))
    learn_time(state, out, at)
    made = len(out)
    if kind == "message":
        message = item.get("message")
        if isinstance(message, dict):
            _message(state, message, at, offset, out)
    elif kind == "session":
        _header(state, item, out)
    elif kind == "model_change":
        learn(state, out, model=text_or_none(item.get("modelId"), 200))
    elif kind in ("compaction", "branch_summary"):
        text = flat_text(item.get("summary"))
        say_summary(out, f"s:{item.get('timestamp')}:{words_hash(text)}", text, at=at)
    elif kind == "session_info":
        name = item.get("name")
        learn(state, out, title=title_of(name) if isinstance(name, str) else None)
    elif kind not in _QUIET:
        out.append(unknown_type(kind, offset))
    key = next((r.key for r in out[made:] if isinstance(r, Message)), None)
    _branch(state, item, key, made, out)


def _header(state: dict[str, Any], item: dict[str, Any], out: list[Record]) -> None:
    version = item.get("version", 1)
    if version not in (1, 2, 3):
        out.append(Damage(f"unknown_version:{str(version)[:20]}", lost=False))
    parent = item.get("parentSession") or item.get("branchedFrom")
    source = None
    if isinstance(parent, str) and parent:
        match = _STEM.search(parent)
        source = match[1] if match else parent[-100:]
    learn_first(state, out, cwd=text_or_none(item.get("cwd")), forked_from=source)
    learn(state, out, model=text_or_none(item.get("modelId"), 200))


def _message(
    state: dict[str, Any], message: dict[str, Any], at: str | None, offset: int, out: list[Record]
) -> None:
    role = kind_of(message, "role")
    content = message.get("content")
    stamp = message.get("timestamp")
    at = instant(stamp) or at
    text = flat_text(_texts(content))
    where = stamp if isinstance(stamp, int | str) and stamp else f"{state['session']}@{offset}"
    key = f"{str(role)[:2]}:{where}:{words_hash(text)}"
    if role == "user":
        kind, words = plain_words(text)
        say(state, out, kind, key, words, at=at)
        learn(state, out, status="active")
    elif role == "assistant":
        _answer(state, message, key, text, at, out)
    elif role == "toolResult":
        call_id = message.get("toolCallId")
        failed = message.get("isError") is True
        result(state, out, call_id, f"{key}:{str(call_id)[:80]}", text, failed=failed, at=at)
    elif role == "bashExecution":
        _shell(message, key, at, out)
    elif role in ("compactionSummary", "branchSummary"):
        say_summary(out, key, flat_text(message.get("summary")) or text, at=at)
    elif role in ("custom", "hookMessage"):
        say(state, out, "context", key, text, at=at)
    else:
        out.append(unknown_type(role, offset, "message/"))


def _answer(
    state: dict[str, Any],
    message: dict[str, Any],
    key: str,
    text: str,
    at: str | None,
    out: list[Record],
) -> None:
    model = text_or_none(message.get("model"), 200)
    learn(state, out, model=model)
    content = message.get("content")
    calls = [
        block
        for block in (content if isinstance(content, list) else [])
        if isinstance(block, dict) and block.get("type") == "toolCall"
    ]
    if calls and not text.strip():
        key = f"{key}:{str(calls[0].get('id'))[:80]}"
    say(state, out, "assistant", key, text, at=at, model=model)
    for block in calls:
        call(
            state,
            out,
            block.get("id"),
            block.get("name"),
            block.get("arguments"),
            at=at,
            message_key=key if text.strip() else None,
        )
    usage = message.get("usage")
    if isinstance(usage, dict):
        add_tokens(state, out, {n: count_or_none(usage.get(f)) for n, f in _TOKENS})
        cost = usage.get("cost")
        total = cost.get("total") if isinstance(cost, dict) else cost
        if isinstance(total, int | float) and 0 < total < 1e6:
            told = known(state, None)
            told["cost_usd"] = round(told.get("cost_usd", 0.0) + total, 9)
            out.append(SessionPatch(cost_usd=told["cost_usd"]))
    reason = message.get("stopReason")
    if reason in ("stop", "aborted", "error"):
        learn(
            state,
            out,
            status={"stop": "completed", "aborted": "interrupted", "error": "failed"}[reason],
        )


def _shell(message: dict[str, Any], key: str, at: str | None, out: list[Record]) -> None:
    """A command that the user ran."""
    code = message.get("exitCode")
    command = text_or_none(message.get("command"), 4_000)
    out.append(
        Action(
            key,
            "command",
            "user-shell",
            command=command,
            status="failed" if code else "ok",
            exit_code=code if type(code) is int and abs(code) < 1 << 31 else None,
            started_at=at,
            extra=statement("user-shell", None, command),
        )
    )


def _texts(content: Any) -> Any:
    if not isinstance(content, list):
        return content
    return [
        block
        for block in content
        if isinstance(block, str) or (isinstance(block, dict) and block.get("type") == "text")
    ]


def _branch(
    state: dict[str, Any], item: dict[str, Any], key: str | None, at: int, out: list[Record]
) -> None:
    """Marks what an entry that goes back in the tree leaves behind."""
    name, parent = item.get("id"), item.get("parentId")
    if not isinstance(name, str) or item.get("type") == "session":
        return
    entries: list[list[Any]] = state["entries"]
    if isinstance(parent, str) and entries and entries[-1][0] != parent:
        back = next((i for i, entry in enumerate(entries) if entry[0] == parent), None)
        if back is not None:
            left = next((entry[1] for entry in entries[back + 1 :] if entry[1]), None)
            if left is not None:
                out.insert(at, Rollback(from_key=left))
            del entries[back + 1 :]
    entries.append([name[:100], key])
    del entries[:-ENTRIES]


PARSER = Pi()
