"""Recursive: `<root>/workspaces/<hash>/sessions[/<slug>]/<session id>/transcript.jsonl`.

One OpenAI-style message per line; `.meta.json` and `cost.json` beside it, and the workspace's
path in `path.txt`. Facts about the format that are easy to get wrong:

- A turn's lines are written when it ends, so `timestamp` is the time of writing; exact call
  times stand only in `audit` (epoch ms).
- Compaction writes a `compact_boundary` marker and then its summary with role `system`; a
  compaction inside a turn writes only the summary. Both are known by their `[compacted:` head.
  Older lines stay in the file.
- `usage` stands on the last assistant line of a turn and is the turn's total.
- Results belong to calls by `tool_call_id` only; a failed one starts with `ERROR`.
"""

import re
from collections.abc import Iterable
from typing import Any, Final

from lored.core.transcripts.calls import begin_call, end_call, output_message
from lored.core.transcripts.knowledge import add_tokens, learn_first, learn_prompt, learn_time
from lored.core.transcripts.lines import (
    attempt,
    decode_document,
    decode_line,
    kind_of,
    unknown_type,
)
from lored.core.transcripts.own import MARKER, cut_own_context
from lored.core.transcripts.records import (
    Compaction,
    Damage,
    Message,
    Record,
    SessionPatch,
    SessionStatus,
)
from lored.core.transcripts.stamps import instant
from lored.core.transcripts.texts import (
    CONTEXT_CHARS,
    count_or_none,
    keep,
    names_in,
    text_or_none,
    title_of,
)

_STATUS: Final[dict[str, SessionStatus]] = {
    "completed": "completed",
    "complete": "completed",
    "success": "completed",
    "crashed": "failed",
    "incomplete": "failed",
    "failed": "failed",
    "interrupted": "interrupted",
    "cancelled": "interrupted",
    "paused": "interrupted",
    "active": "active",
}
"""`paused` is left by the user and waits; nobody works on it."""
_TOKENS: Final = (
    ("input", "input_tokens"),
    ("output", "output_tokens"),
    ("cache_write", "cache_creation_tokens"),
    ("cache_read", "cache_read_tokens"),
    ("reasoning", "reasoning_tokens"),
)
_OWN_TOOLS: Final = names_in(
    """
    remember recall forget update_fact recall_fact remember_fact forget_fact facts_list
    list_facts episodic_recall episodic_recall_summary session_search session_event_search
    session_trace session_event_trace session_event_read
    """
)
_BULLET: Final = re.compile(r"^\s*[-*•]\s+(.+?)\s*$")
_SECTION: Final = re.compile(r"^(Summary|Key facts to remember|Outstanding TODOs):\s*(.*)$")


class Recursive:
    """Line parser of Recursive's transcripts."""

    agent = "recursive"
    version = 1

    def session_id(self, path: str, head: bytes) -> str | None:
        """The session's directory name."""
        parts = path.replace("\\", "/").split("/")
        return parts[-2] if parts[-1] == "transcript.jsonl" and len(parts) > 1 else None

    def begin(self, path: str) -> dict[str, Any]:
        """State; sessions that still lie in `<workspace>/.recursive/` tell it by that."""
        state: dict[str, Any] = {"session": self.session_id(path, b"") or "unknown"}
        workspace, legacy, _ = path.partition("/.recursive/sessions/")
        if legacy and workspace:
            state["cwd"] = workspace
        return state

    def sidecars(self, path: str) -> list[str]:
        """Metadata, cost, and the workspace's `path.txt` (above `sessions`)."""
        folder, _, _ = path.rpartition("/")
        found = [f"{folder}/.meta.json", f"{folder}/cost.json"]
        above, cut, _ = path.rpartition("/sessions/")
        if cut:
            found.append(f"{above}/path.txt")
        return found

    def parse_sidecar(self, path: str, data: bytes) -> Iterable[Record]:
        if path.endswith("path.txt"):
            cwd = data.decode("utf-8", "replace").strip()
            return [SessionPatch(cwd=cwd)] if cwd else []
        value, damage = decode_document(data)
        if not isinstance(value, dict):
            return damage
        if path.endswith("cost.json"):
            return [*damage, *_cost(value)]
        return [*damage, *_meta(value)]

    def parse(self, state: dict[str, Any], line: bytes, offset: int) -> Iterable[Record]:
        objects, damage = decode_line(line, offset)
        records: list[Record] = list(damage)
        for item in objects:
            attempt(records, offset, _line, state, item, offset, records)
        return records


class RecursiveFile:
    """Document parser of the oldest form: a session in one file, messages in `transcript`."""

    agent = "recursive"
    version = 1

    def session_id(self, path: str, head: bytes) -> str | None:
        """The file's name."""
        name = path.replace("\\", "/").rpartition("/")[2]
        return name.removesuffix(".json") if name.endswith(".json") else None

    def sidecars(self, path: str) -> list[str]:
        return [name for name in PARSER.sidecars(path) if name.endswith("path.txt")]

    def parse_sidecar(self, path: str, data: bytes) -> Iterable[Record]:
        return PARSER.parse_sidecar(path, data)

    def parse_document(self, path: str, data: bytes) -> Iterable[Record]:
        value, damage = decode_document(data)
        out: list[Record] = list(damage)
        messages = value.get("transcript") if isinstance(value, dict) else None
        if not isinstance(messages, list):
            return [*out, Damage("unknown_version:recursive")] if value is not None else out
        state = {**PARSER.begin(path), "session": self.session_id(path, b"") or "unknown"}
        for index, item in enumerate(messages):
            if isinstance(item, dict):
                attempt(out, 0, _line, state, item, index, out)
        attempt(out, 0, lambda: out.extend(_meta(value)))
        return out


def _line(state: dict[str, Any], item: dict[str, Any], offset: int, out: list[Record]) -> None:
    at = instant(item.get("timestamp"))
    learn_time(state, out, at)
    learn_first(state, out, cwd=state.get("cwd"))
    if item.get("type") == "system" and "role" not in item:
        return  # the compaction marker; its summary is the next line
    role = kind_of(item, "role")
    native = item.get("uuid")
    if not isinstance(native, str) or not native:
        number = item.get("id")
        native = f"{state['session']}:{number if isinstance(number, str) else offset}"
    content = item.get("content")
    text = content if isinstance(content, str) else ""
    if role == "user":
        _user(state, native, text, at, out)
    elif role == "assistant":
        _assistant(state, item, native, text, at, out)
    elif role == "tool":
        _tool(state, item, native, text, at, out)
    elif role == "system":
        _system(native, text, at, out)
    else:
        out.append(unknown_type(role, offset))


def _user(state: dict[str, Any], key: str, text: str, at: str | None, out: list[Record]) -> None:
    words, own = cut_own_context(text)
    if own and not words.strip():
        out.append(Message(key, "context", MARKER, at=at))
        return
    if not words.strip():
        return
    kept, dropped = keep(words)
    if not kept.strip():
        return
    out.append(Message(key, "user", kept, at=at, truncated_bytes=dropped))
    if not words.startswith("/"):
        learn_prompt(state, out, words)


def _assistant(
    state: dict[str, Any],
    item: dict[str, Any],
    key: str,
    text: str,
    at: str | None,
    out: list[Record],
) -> None:
    kept, dropped = keep(text)
    if kept.strip():
        out.append(Message(key, "assistant", kept, at=at, truncated_bytes=dropped))
    calls = item.get("tool_calls")
    for call in calls if isinstance(calls, list) else []:
        if isinstance(call, dict):
            arguments = call.get("arguments", call.get("args"))
            actions = begin_call(
                state,
                state["session"],
                call.get("id"),
                call.get("name"),
                arguments,
                at=at,
                message_key=key if kept.strip() else None,
            )
            if actions and actions[0].tool in _OWN_TOOLS:
                state["calls"][call["id"]][3] |= 1
            out.extend(actions)
    usage = item.get("usage")
    if isinstance(usage, dict):
        counts = {name: count_or_none(usage.get(field)) for name, field in _TOKENS}
        add_tokens(state, out, counts)


def _tool(
    state: dict[str, Any],
    item: dict[str, Any],
    key: str,
    text: str,
    at: str | None,
    out: list[Record],
) -> None:
    call_id = item.get("tool_call_id")
    audit = item.get("audit")
    audit = audit if isinstance(audit, dict) else {}
    exit_status = audit.get("exit_status")
    failed = text.startswith("ERROR") or (
        isinstance(exit_status, dict) and exit_status.get("type") == "err"
    )
    finished = instant(audit.get("finished_at"))
    message = output_message(state, call_id, key, text, at=at)
    if message is not None:
        out.append(message)
    actions = end_call(state, call_id, text, failed=failed, shown=message, at=finished or at)
    began = instant(audit.get("started_at"))
    for action in actions:
        action.started_at = began
    out.extend(actions)


def _system(key: str, text: str, at: str | None, out: list[Record]) -> None:
    if not text.startswith("[compacted:"):
        kept, dropped = keep(text, CONTEXT_CHARS)
        if kept.strip():
            out.append(Message(key, "context", kept, at=at, truncated_bytes=dropped))
        return
    kept, dropped = keep(cut_own_context(text)[0])
    if not kept.strip():
        return
    out.append(Message(key, "summary", kept, at=at, truncated_bytes=dropped))
    facts, steps = _kept(kept)
    out.append(Compaction(key, kept, kept_facts=facts, next_steps=steps, at=at))


def _kept(text: str) -> tuple[list[str], list[str]]:
    """`Key facts to remember:` and `Outstanding TODOs:` bullets of a structured summary."""
    lists: dict[str, list[str]] = {"Key facts to remember": [], "Outstanding TODOs": []}
    section = ""
    for line in text.split("\n"):
        head = _SECTION.match(line)
        if head:
            section = head[1]
        elif section in lists and (bullet := _BULLET.match(line)):
            lists[section].append(bullet[1])
    return lists["Key facts to remember"], lists["Outstanding TODOs"]


def _meta(meta: dict[str, Any]) -> list[Record]:
    out: list[Record] = []
    version = meta.get("schema_version", 1)
    if version != 1:
        out.append(Damage(f"unknown_version:{str(version)[:20]}", lost=False))
    patch = SessionPatch(
        model=text_or_none(meta.get("model")),
        started_at=instant(meta.get("created_at")),
        ended_at=instant(meta.get("updated_at")),
        status=_STATUS.get(str(meta.get("status")), "active"),
        forked_from=text_or_none(meta.get("derived_from")),
    )
    for name in ("name", "goal", "first_prompt"):
        title = title_of(meta[name]) if isinstance(meta.get(name), str) else None
        if title:
            patch.title = title
            break
    cost = meta.get("cost")
    for name, field in _TOKENS:
        count = count_or_none(cost.get(f"total_{field}")) if isinstance(cost, dict) else None
        if count:
            patch.tokens[name] = count
    patch.cost_usd = _money(meta.get("cost_usd"))
    for name in ("goal", "provider", "preset"):
        value = text_or_none(meta.get(name), 1_000)
        if value:
            patch.extra[name] = value
    out.append(patch)
    return out


def _cost(cost: dict[str, Any]) -> list[Record]:
    patch = SessionPatch(
        model=text_or_none(cost.get("model")), cost_usd=_money(cost.get("cost_usd"))
    )
    usage = cost.get("total_usage")
    for name, field in _TOKENS:
        count = count_or_none(usage.get(field)) if isinstance(usage, dict) else None
        if count:
            patch.tokens[name] = count
    return [patch]


def _money(value: Any) -> float | None:
    """A price; 0 means unknown to this producer."""
    return float(value) if isinstance(value, int | float) and 0 < value < 1e9 else None


PARSER = Recursive()
FILE = RecursiveFile()
