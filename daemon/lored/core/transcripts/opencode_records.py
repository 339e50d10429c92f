"""opencode: one session's parts, messages and header as records, from any of its stores.

The same session may stand in three stores (JSON tree, database version 1, version 2) whose
ids differ in part. A message's key is its message id with a hash of the words, which is the
same in all of them; so only finished texts are told.
"""

import re
from typing import Any, Final

from lored.core.transcripts.calls import call_key
from lored.core.transcripts.codex_words import words_hash
from lored.core.transcripts.conversation import call, plain_words, result, say, say_summary
from lored.core.transcripts.lines import kind_of
from lored.core.transcripts.records import Record, Rollback, SessionPatch
from lored.core.transcripts.stamps import instant
from lored.core.transcripts.texts import count_or_none, flat_text, text_or_none, title_of

_DEFAULT_TITLE: Final = re.compile(r"(?:New|Child) session - \d{4}-\d\d-\d\dT")
_TOKENS: Final = (
    ("input", "tokens_input"),
    ("output", "tokens_output"),
    ("reasoning", "tokens_reasoning"),
    ("cache_read", "tokens_cache_read"),
    ("cache_write", "tokens_cache_write"),
)


def message_key(message_id: Any, text: str, fallback: str) -> str:
    """Key of a text of a message."""
    name = message_id[:100] if isinstance(message_id, str) and message_id else fallback
    return f"{name}:{words_hash(text)}"


def header(row: dict[str, Any]) -> list[Record]:
    """A session's row or file as a patch."""
    times = row.get("time")
    times = times if isinstance(times, dict) else {}
    title = row.get("title")
    if not isinstance(title, str) or _DEFAULT_TITLE.match(title):
        title = ""
    parent = text_or_none(row.get("parent_id") or row.get("parentID"), 100)
    patch = SessionPatch(
        parent=parent,
        forked_from=text_or_none(row.get("fork_session_id"), 100),
        is_subagent=True if parent else None,
        cwd=text_or_none(row.get("directory")),
        title=title_of(title),
        agent_version=text_or_none(row.get("version"), 60),
        started_at=instant(row.get("time_created") or times.get("created")),
        ended_at=instant(row.get("time_updated") or times.get("updated")),
        model=model_of(row.get("model")),
    )
    cost = row.get("cost")
    if isinstance(cost, int | float) and 0 < cost < 1e9:
        patch.cost_usd = float(cost)
    for name, field in _TOKENS:
        count = count_or_none(row.get(field))
        if count:
            patch.tokens[name] = count
    return [patch]


def model_of(value: Any) -> str | None:
    """Name of a model given as text or as a map."""
    if isinstance(value, dict):
        value = value.get("modelID") or value.get("id")
    return text_or_none(value, 200)


def part(
    state: dict[str, Any],
    item: dict[str, Any],
    role: str,
    out: list[Record],
    *,
    part_id: Any = None,
    message_id: Any = None,
    model: str | None = None,
    at: str | None = None,
    machine: bool = False,
) -> None:
    """One part of a version 1 message. ``machine``: the session is a subagent's, so its user
    side was written by the parent agent."""
    kind = kind_of(item)
    times = item.get("time")
    times = times if isinstance(times, dict) else {}
    when = instant(times.get("start")) or at
    if kind == "text":
        text = flat_text(item.get("text"))
        key = message_key(message_id, text, f"{state['session']}:{part_id}")
        if role == "assistant":
            if "start" not in times or times.get("end"):
                say(state, out, "assistant", key, text, at=when, model=model)
            return
        injected = bool(item.get("synthetic") or item.get("ignored")) or machine
        found, words = plain_words(text)
        say(state, out, "context" if injected else found, key, words, at=when)
    elif kind == "tool":
        tool(
            state,
            out,
            item.get("callID"),
            item.get("tool"),
            item.get("state"),
            fallback=str(part_id or message_id),
            at=at,
        )
    elif kind == "subtask":
        text = flat_text(item.get("prompt"))
        key = message_key(message_id, text, f"{state['session']}:{part_id}")
        say(state, out, "context", key, text, at=when)


def tool(
    state: dict[str, Any],
    out: list[Record],
    call_id: Any,
    name: Any,
    call_state: Any,
    *,
    fallback: str,
    at: str | None = None,
    times: Any = None,
) -> None:
    """A tool call in any state of its life."""
    if not isinstance(call_state, dict):
        return
    times = call_state.get("time") if isinstance(call_state.get("time"), dict) else times
    times = times if isinstance(times, dict) else {}
    session = state["session"]
    if not isinstance(call_id, str) or call_key(session, call_id) != call_id:
        call_id = fallback  # not unique in the world
    began, ended = instant(times.get("start")) or at, instant(times.get("end"))
    call(state, out, call_id, name, call_state.get("input"), at=began)
    status = call_state.get("status")
    if status not in ("completed", "error"):
        return
    failed = status == "error"
    error = call_state.get("error")
    text = flat_text(call_state.get("output", call_state.get("content")))
    if failed and not text:
        text = flat_text(error)
    meta = call_state.get("metadata")
    code = meta.get("exit") if isinstance(meta, dict) else None
    result(
        state,
        out,
        call_id,
        f"{call_key(session, call_id)}:out",
        text,
        failed=failed,
        at=ended or began,
        exit_code=code if type(code) is int and abs(code) < 1 << 31 else None,
        replaces=True,
    )


def revert(row: dict[str, Any], keys: dict[str, str]) -> list[Record]:
    """What a session's `revert` field undoes. ``keys``: message id -> key of its first text."""
    value = row.get("revert")
    target = value.get("messageID") if isinstance(value, dict) else None
    key = keys.get(target) if isinstance(target, str) else None
    return [Rollback(from_key=key)] if key else []


def summary(out: list[Record], message_id: Any, text: str, at: str | None) -> None:
    """The answer of a compaction."""
    say_summary(out, message_key(message_id, text, "summary"), text, at=at)
