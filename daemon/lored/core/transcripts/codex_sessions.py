"""Codex: what `session_meta`, token counts and the title index say about a thread."""

from typing import Any, Final

from lored.core.transcripts.codex_actions import directory_of_uri
from lored.core.transcripts.knowledge import known, learn
from lored.core.transcripts.lines import decode_line
from lored.core.transcripts.records import Message, Record, Rollback, SessionPatch
from lored.core.transcripts.stamps import instant
from lored.core.transcripts.texts import count_or_none, keep, text_or_none, title_of

_TOKENS: Final = (
    ("input", "input_tokens"),
    ("output", "output_tokens"),
    ("cache_read", "cached_input_tokens"),
    ("cache_write", "cache_write_input_tokens"),
    ("reasoning", "reasoning_output_tokens"),
)


def learn_meta(state: dict[str, Any], meta: dict[str, Any], out: list[Record]) -> None:
    """The identity of the thread: the first `session_meta` only. The second of a fork names the
    thread whose history follows, and whose message keys its copies must get."""
    native = text_or_none(meta.get("id"), 100)
    if state.get("meta"):
        parent = state.get("fork")
        if parent and native == parent:
            state["source"] = parent
        return
    state["meta"] = True
    if native and state["session"] == "unknown":
        state["session"] = native
    git = meta.get("git")
    git = git if isinstance(git, dict) else {}
    parent, subagent = _parent(meta)
    forked = text_or_none(meta.get("forked_from_id"), 100)
    state["fork"] = forked
    base = meta.get("history_base")
    extra: dict[str, Any] = {}
    if isinstance(base, dict):
        extra["history_base"] = {
            "thread_id": text_or_none(base.get("thread_id"), 100),
            "end_ordinal": count_or_none(base.get("end_ordinal_exclusive")),
            "end_offset": count_or_none(base.get("end_byte_offset")),
        }
        _revert(extra["history_base"], forked, out)
    for name, value in (
        ("originator", meta.get("originator")),
        ("repository", git.get("repository_url")),
    ):
        text = text_or_none(value, 500)
        if text:
            extra[name] = text
    start = count_or_none(meta.get("subagent_history_start_ordinal"))
    if start is not None:
        state["start"] = start
    at = instant(meta.get("timestamp"))
    told = known(state, None)
    if at is not None and at < told.get("started_at", "~"):
        told["started_at"] = at
        told.setdefault("ended_at", at)
        out.append(SessionPatch(started_at=at, ended_at=told["ended_at"]))
    learn(
        state,
        out,
        cwd=directory_of_uri(meta.get("cwd")),
        branch=text_or_none(git.get("branch"), 500),
        commit=text_or_none(git.get("commit_hash"), 64),
        agent_version=text_or_none(meta.get("cli_version"), 60),
        parent=parent,
        is_subagent=subagent or None,
        forked_from=None if subagent else forked,
        extra=extra or None,
    )


def _revert(base: dict[str, Any], forked: str | None, out: list[Record]) -> None:
    """A file that is no fork goes on where the bytes of its base that still hold end."""
    part, offset = base["thread_id"], base["end_offset"]
    if forked is None and part and offset is not None:
        out.append(Rollback(part=part, offset=offset))


def learn_tokens(state: dict[str, Any], info: Any, out: list[Record]) -> None:
    """Totals of the thread so far. They are cumulative; when they fall back, a new count began
    and what was counted before is added."""
    total = info.get("total_token_usage") if isinstance(info, dict) else None
    if not isinstance(total, dict):
        return
    now = {name: count_or_none(total.get(field)) or 0 for name, field in _TOKENS}
    counts = state.setdefault("tokens", {"base": {}, "last": {}})
    if now["input"] + now["output"] < sum(counts["last"].get(n, 0) for n in ("input", "output")):
        base = counts["base"]
        counts["base"] = {name: base.get(name, 0) + counts["last"].get(name, 0) for name in now}
    counts["last"] = now
    tokens = {name: count + counts["base"].get(name, 0) for name, count in now.items()}
    learn(state, out, tokens={name: count for name, count in tokens.items() if count} or None)


def parse_titles(path: str, data: bytes) -> list[Record]:
    """`session_index.jsonl` (thread names, the newest wins) and `history.jsonl` (prompts that
    outlive their thread; marked `side_channel`: only for threads whose rollout is gone)."""
    out: list[Record] = []
    names: dict[str, str] = {}
    offset = 0
    for line in data.split(b"\n"):
        objects, damage = decode_line(line, offset) if line.strip() else ([], [])
        offset += len(line) + 1
        out.extend(damage)
        for item in objects:
            thread = text_or_none(item.get("id") or item.get("session_id"), 100)
            if thread is None:
                continue
            name, text = item.get("thread_name"), item.get("text")
            if isinstance(name, str) and title_of(name):
                names[thread] = title_of(name) or ""
            elif isinstance(text, str) and text.strip():
                out.extend(_prompt(thread, text, item.get("ts")))
    out.extend(SessionPatch(session=thread, title=name) for thread, name in names.items())
    return out


def _prompt(thread: str, text: str, ts: Any) -> list[Record]:
    at = instant(ts)
    kept, dropped = keep(text)
    message = Message(
        f"history:{thread}:{ts}",
        "user",
        kept,
        at=at,
        session=thread,
        truncated_bytes=dropped,
        extra={"side_channel": True},
    )
    return [SessionPatch(session=thread, started_at=at, ended_at=at), message] if at else [message]


def _parent(meta: dict[str, Any]) -> tuple[str | None, bool]:
    """(parent thread, whether this is a subagent's thread)."""
    source = meta.get("source")
    parent = text_or_none(meta.get("parent_thread_id"), 100)
    subagent = meta.get("thread_source") in ("subagent", "guardian_review")
    if isinstance(source, dict) and "subagent" in source:
        subagent = True
        spawn = source["subagent"]
        spawn = spawn.get("thread_spawn") if isinstance(spawn, dict) else None
        if isinstance(spawn, dict):
            parent = parent or text_or_none(spawn.get("parent_thread_id"), 100)
    if subagent and parent is None:
        parent = text_or_none(meta.get("session_id"), 100)
        if parent == meta.get("id"):
            parent = None
    return parent, subagent
