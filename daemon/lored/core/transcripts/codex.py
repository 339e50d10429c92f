"""Codex CLI, IDE extension and Desktop: `<root>/sessions/Y/M/D/rollout-<time>-<thread>.jsonl`.

Four eras in one reader: *bare* items (to early September 2025), *legacy* events
(`user_message`, `agent_message`), *paginated* items (`item_completed`, the default from
0.147), and mixtures of the two. Facts that are easy to get wrong:

- `response_item` messages repeat what events and items say, and carry much that no person
  said. They are used only where a turn has no event or item for their role.
- The first `session_meta` is the identity; a fork carries the parent's as the second, and its
  parent's history with new times.
- A reverted thread goes on in `rollout-<time>-<thread>_<revision>.jsonl`; `history_base` names
  the bytes of the base file that still hold. It is told as `extra.history_base`.
- Tokens as stored: cumulative per thread, `input` includes what was read from the cache.
- `replacement_history` of `compacted` lines repeats everything: never parsed.
"""

import re
from collections.abc import Iterable
from typing import Any, Final

from lored.core.transcripts import codex_actions as actions
from lored.core.transcripts.codex_sessions import learn_meta, learn_tokens, parse_titles
from lored.core.transcripts.codex_words import (
    directory_of,
    part_texts,
    typed_words,
    user_parts,
    words_hash,
)
from lored.core.transcripts.knowledge import known, learn, learn_first, learn_prompt, learn_time
from lored.core.transcripts.lines import decode_line
from lored.core.transcripts.own import MARKER, cut_own_context
from lored.core.transcripts.records import (
    Compaction,
    Damage,
    Message,
    Record,
    Role,
    Rollback,
)
from lored.core.transcripts.stamps import instant
from lored.core.transcripts.texts import CONTEXT_CHARS, keep, names_in, text_or_none, title_of

RECENT: Final = 64
"""Message keys remembered to drop second copies; copies stand a few lines apart."""
WAIT_LINES: Final = 6
"""A `response_item` message waits so many lines for the event or item that repeats it."""
PENDING_CHARS: Final = 32_000
"""Text that may wait in the state; more is told at once."""

_FILE: Final = re.compile(
    r"rollout-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-([0-9A-Za-z-]{1,60}?)(?:_([0-9A-Za-z-]{1,60}))?"
    r"\.jsonl(?:\.zst|\.gz)?"
)
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_MARKS: Final = frozenset({"timestamp", "payload", "ordinal"})
_SKIPPED: Final = (
    b'"type":"reasoning"',
    b'"role":"developer"',
    b'"type":"image_generation_call"',
    b'"type":"ghost_snapshot"',
    b'"type":"world_state"',
)
_HISTORY: Final = b',"replacement_history":['
_LONG: Final = 4_096
_USER, _ASSISTANT = 1, 2
_RESPONSES: Final = names_in(
    """
    message reasoning function_call function_call_output custom_tool_call
    custom_tool_call_output local_shell_call local_shell_call_output web_search_call
    tool_search_call tool_search_output image_generation_call agent_message compaction
    context_compaction compaction_summary ghost_snapshot other
    """
)
_QUIET_EVENTS: Final = names_in(
    """
    agent_reasoning agent_reasoning_raw_content agent_reasoning_section_break web_search_end
    context_compacted thread_settings_applied thread_goal_updated sub_agent_activity
    guardian_assessment image_generation_end entered_review_mode collab_agent_spawn_end
    collab_agent_interaction_end collab_waiting_end collab_close_end collab_resume_end
    dynamic_tool_call_request undo_completed item_started warning background_event
    view_image_tool_call plan_update turn_diff stream_error deprecation_notice
    exec_command_begin mcp_tool_call_begin patch_apply_begin session_configured
    model_reroute request_user_input elicitation_request
    """
)
_QUIET_ITEMS: Final = names_in(
    """
    Reasoning WebSearch ImageView ImageGeneration Extension SubAgentActivity
    ContextCompaction EnteredReviewMode HookPrompt CollabAgentToolCall Sleep
    """
)
_QUIET_LINES: Final = names_in(
    """
    world_state inter_agent_communication inter_agent_communication_metadata
    """
)


class Codex:
    """Line parser of Codex rollouts of every era."""

    agent = "codex"
    version = 1

    def session_id(self, path: str, head: bytes) -> str | None:
        """The thread id in the file's name; a revision's file belongs to its thread."""
        match = _FILE.fullmatch(path.replace("\\", "/").rpartition("/")[2])
        return match[1] if match else None

    def begin(self, path: str) -> dict[str, Any]:
        return {"session": self.session_id(path, b"") or "unknown", "line": 0, "turn": ""}

    def sidecars(self, path: str) -> list[str]:
        """Thread names stand in `session_index.jsonl` of the root."""
        for cut in ("/sessions/", "/archived_sessions/"):
            root, found, _ = path.rpartition(cut)
            if found:
                return [f"{root}/session_index.jsonl"]
        return []

    def parse_sidecar(self, path: str, data: bytes) -> Iterable[Record]:
        return parse_titles(path, data)

    def parse(self, state: dict[str, Any], line: bytes, offset: int) -> Iterable[Record]:
        state["line"] += 1
        head = line[:256]
        if any(mark in head for mark in _SKIPPED) and line.endswith(b"}") and b"}{" not in line:
            return []
        if len(line) > _LONG and b'"compacted"' in head:
            cut = line.find(_HISTORY)
            if cut > 0:
                line = line[:cut] + b"}}"
        objects, damage = decode_line(line, offset, _MARKS)
        out: list[Record] = list(damage)
        for item in objects:
            _line(state, item, offset, out)
        if state.get("pending"):
            _flush(state, out, state["line"] - WAIT_LINES)
        return out


def _line(state: dict[str, Any], item: dict[str, Any], offset: int, out: list[Record]) -> None:
    kind = item.get("type")
    payload = item.get("payload")
    if not isinstance(payload, dict):
        if kind in _RESPONSES:
            _response(state, item, instant(item.get("timestamp")), offset, out)
        elif kind is None and "id" in item and "timestamp" in item:
            learn_meta(state, item, out)  # first line of the bare era
        elif "record_type" not in item:
            out.append(Damage(f"unknown_type:{str(kind)[:60]}", offset, lost=False))
        return
    at = instant(item.get("timestamp"))
    learn_time(state, out, at)
    start = state.get("start")
    ordinal = item.get("ordinal")
    if (
        start is not None
        and isinstance(ordinal, int)
        and ordinal < start
        and kind != "session_meta"
    ):
        return  # the parent's history at the head of a subagent's file
    if kind == "response_item":
        _response(state, payload, at, offset, out)
    elif kind == "event_msg":
        state["events"] = True
        _event(state, payload, at, offset, out)
    elif kind == "session_meta":
        learn_meta(state, payload, out)
    elif kind == "turn_context":
        _turn(state, payload.get("turn_id"), out)
        learn(state, out, model=text_or_none(payload.get("model"), 200))
        learn_first(state, out, cwd=text_or_none(payload.get("cwd")))
    elif kind == "compacted":
        _compacted(state, payload.get("message"), at, out)
    elif kind not in _QUIET_LINES:
        out.append(Damage(f"unknown_type:{str(kind)[:60]}", offset, lost=False))


def _turn(state: dict[str, Any], turn: Any, out: list[Record]) -> None:
    """Begins a turn, unless it is the one that is running."""
    if isinstance(turn, str) and turn and turn[:100] != state["turn"]:
        _flush(state, out, state["line"])
        state["turn"], state["said"] = turn[:100], 0


def _turn_name(state: dict[str, Any]) -> str:
    """The running turn: its id where that is unique in the world, else thread and number."""
    turn: str = state["turn"]
    if _UUID.fullmatch(turn):
        return turn
    thread = state.get("source") or state["session"]
    return f"{thread}:{turn or state.get('turns', 0)}"


def _event(
    state: dict[str, Any], payload: dict[str, Any], at: str | None, offset: int, out: list[Record]
) -> None:
    kind = payload.get("type")
    if kind == "token_count":
        learn_tokens(state, payload.get("info"), out)
    elif kind == "agent_message":
        _spoke(state, flat(payload.get("message")), payload.get("phase"), at, out)
    elif kind == "user_message":
        _typed(state, flat(payload.get("message")), at, out)
    elif kind == "item_completed":
        item = payload.get("item")
        if isinstance(item, dict):
            _turn(state, payload.get("turn_id"), out)
            _item(state, item, at, offset, out)
    elif kind in ("task_started", "turn_started"):
        _turn(state, payload.get("turn_id"), out)
    elif kind in ("task_complete", "turn_complete"):
        _flush(state, out, state["line"])
        learn(state, out, status="completed")
    elif kind == "turn_aborted":
        _flush(state, out, state["line"])
        learn(state, out, status="interrupted")
    elif kind == "error":
        learn(state, out, status="failed")
    elif kind in ("exec_command_end",):
        actions.command_item(state, payload, at, out)
    elif kind == "patch_apply_end":
        actions.change_item(state, payload, at, out)
    elif kind in ("mcp_tool_call_end", "dynamic_tool_call_response"):
        actions.tool_item(state, payload, at, out)
    elif kind == "thread_rolled_back":
        turns = payload.get("num_turns")
        if isinstance(turns, int) and 0 < turns < 1 << 31:
            _flush(state, out, state["line"])
            out.append(Rollback(turns=turns))
    elif kind == "thread_name_updated":
        name = payload.get("thread_name")
        learn(state, out, title=title_of(name) if isinstance(name, str) else None)
    elif kind == "exited_review_mode":
        review = payload.get("review_output")
        text = review.get("overall_explanation") if isinstance(review, dict) else None
        _spoke(state, flat(text), "review", at, out)
    elif kind not in _QUIET_EVENTS:
        out.append(Damage(f"unknown_type:event/{str(kind)[:60]}", offset, lost=False))


def _item(
    state: dict[str, Any], item: dict[str, Any], at: str | None, offset: int, out: list[Record]
) -> None:
    kind = item.get("type")
    if kind == "UserMessage":
        _typed(state, part_texts(item.get("content")), at, out)
    elif kind == "AgentMessage":
        _spoke(state, part_texts(item.get("content")), item.get("phase"), at, out)
    elif kind == "Plan":
        _spoke(state, flat(item.get("text")), "plan", at, out)
    elif kind == "ExitedReviewMode":
        _spoke(state, flat(item.get("review")), "review", at, out)
    elif kind == "CommandExecution":
        actions.command_item(state, item, at, out)
    elif kind == "FileChange":
        actions.change_item(state, item, at, out)
    elif kind in ("McpToolCall", "DynamicToolCall"):
        actions.tool_item(state, item, at, out)
    elif kind not in _QUIET_ITEMS:
        out.append(Damage(f"unknown_type:item/{str(kind)[:60]}", offset, lost=False))


def _response(
    state: dict[str, Any], payload: dict[str, Any], at: str | None, offset: int, out: list[Record]
) -> None:
    kind = payload.get("type")
    if kind == "message":
        _message(state, payload, at, out)
    elif kind in ("function_call", "custom_tool_call", "local_shell_call"):
        actions.begin(state, payload, at, out)
    elif kind in (
        "function_call_output",
        "custom_tool_call_output",
        "local_shell_call_output",
    ):
        actions.end(state, payload, at, out)
    elif kind == "web_search_call":
        actions.web_search(state, payload, _turn_name(state), at, out)
    elif kind not in _RESPONSES:
        out.append(Damage(f"unknown_type:response/{str(kind)[:60]}", offset, lost=False))


def _message(
    state: dict[str, Any], payload: dict[str, Any], at: str | None, out: list[Record]
) -> None:
    """A `response_item` message: told now, later, or never (see the module's first lines)."""
    role = payload.get("role")
    if role == "assistant":
        text, bit = part_texts(payload.get("content")), _ASSISTANT
    elif role == "user":
        text, injected = user_parts(payload)
        bit = _USER
        if injected:
            learn_first(state, out, cwd=directory_of(injected))
    else:
        return
    if not text.strip() or state.get("said", 0) & bit:
        return
    pending: list[list[Any]] = state.setdefault("pending", [])
    waiting = sum(len(entry[1]) for entry in pending)
    if not state.get("events"):
        if bit == _USER:
            _next_turn(state, text)
        _tell(state, "user" if bit == _USER else "assistant", text, at, None, out)
    elif waiting + len(text) <= PENDING_CHARS:
        pending.append([bit, text, at, text_or_none(payload.get("phase"), 40), state["line"]])
    else:
        _tell(state, "user" if bit == _USER else "assistant", text, at, None, out)


def _typed(state: dict[str, Any], text: str, at: str | None, out: list[Record]) -> None:
    """Words of the user, from an event or item."""
    role, words = typed_words(text)
    if role != "user" or not words.strip():
        return
    state["pending"] = [entry for entry in state.get("pending", ()) if entry[0] != _USER]
    _next_turn(state, words)
    state["said"] = state.get("said", 0) | _USER
    _tell(state, "user", words, at, None, out)


def _next_turn(state: dict[str, Any], words: str) -> None:
    """Counts turns where they have no ids: each new prompt begins one."""
    if not state["turn"]:
        digest = words_hash(words)
        if not (state.get("prompt") == digest and not state.get("answered")):
            state["turns"] = state.get("turns", 0) + 1
            state["said"] = 0
        state["prompt"], state["answered"] = digest, False


def _spoke(state: dict[str, Any], text: str, phase: Any, at: str | None, out: list[Record]) -> None:
    """Words of the model, from an event or item."""
    if not text.strip():
        return
    digest = words_hash(text)
    state["pending"] = [
        entry
        for entry in state.get("pending", ())
        if entry[0] != _ASSISTANT or words_hash(entry[1]) != digest
    ]
    state["said"] = state.get("said", 0) | _ASSISTANT
    _tell(state, "assistant", text, at, text_or_none(phase, 40), out)


def _flush(state: dict[str, Any], out: list[Record], before: int) -> None:
    """Tells the waiting messages of lines up to ``before`` whose role the turn's events left
    out."""
    waiting: list[list[Any]] = state.get("pending") or []
    if not waiting:
        return
    state["pending"] = [entry for entry in waiting if entry[4] > before]
    for bit, text, at, phase, line in waiting:
        if line <= before and not state.get("said", 0) & bit:
            if bit == _USER:
                _next_turn(state, text)
            _tell(state, "user" if bit == _USER else "assistant", text, at, phase, out)


def _tell(
    state: dict[str, Any],
    role: Role,
    text: str,
    at: str | None,
    phase: str | None,
    out: list[Record],
) -> None:
    """One message, unless its key was told a moment ago."""
    key = f"{_turn_name(state)}:{role[0]}:{words_hash(text)}"
    recent: list[str] = state.setdefault("recent", [])
    if key in recent:
        return
    recent.append(key)
    del recent[:-RECENT]
    if role == "user" and known(state, None).get("is_subagent"):
        # Written by the parent agent; the parent's own copy of the words keeps its key.
        kept, dropped = keep(text, CONTEXT_CHARS)
        out.append(
            Message(f"{state['session']}:{key}", "context", kept, at=at, truncated_bytes=dropped)
        )
        return
    text, own = cut_own_context(text)
    if own and not text.strip():
        out.append(Message(key, "context", MARKER, at=at))
        return
    kept, dropped = keep(text)
    message = Message(key, role, kept, at=at, truncated_bytes=dropped)
    if role == "user":
        learn_prompt(state, out, text)
        learn(state, out, status="active")
    else:
        state["answered"] = True
        message.model = known(state, None).get("model")
        if phase:
            message.extra = {"phase": phase}
    out.append(message)


def _compacted(state: dict[str, Any], text: Any, at: str | None, out: list[Record]) -> None:
    if not isinstance(text, str) or not text.strip():
        return  # the summary is kept by the provider
    kept, dropped = keep(cut_own_context(text)[0])
    key = f"{_turn_name(state)}:c:{words_hash(text)}"
    out.append(Message(key, "summary", kept, at=at, truncated_bytes=dropped))
    out.append(Compaction(key, kept, at=at))


def flat(value: Any) -> str:
    """A text, else nothing."""
    return value if isinstance(value, str) else ""


PARSER = Codex()
