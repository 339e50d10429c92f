"""Codex CLI, IDE extension and Desktop: `<root>/sessions/Y/M/D/rollout-<time>-<thread>.jsonl`.

Four eras in one reader: *bare* items (to early September 2025), *legacy* events
(`user_message`, `agent_message`), *paginated* items (`item_completed`, the default from
0.147), and mixtures of the two. Facts that are easy to get wrong:

- `response_item` messages repeat what events and items say, and carry much that no person
  said. They are used only where a turn has no event or item for their role.
- The first `session_meta` is the identity; a fork carries the parent's as the second, and its
  parent's history with new times.
- A reverted thread goes on in `rollout-<time>-<thread>_<revision>.jsonl`; `history_base` names
  the bytes of the base file that still hold. It is told as a rollback of the rest.
- Tokens as stored: cumulative per thread, `input` includes what was read from the cache.
- `replacement_history` of `compacted` lines repeats everything: never parsed.
"""

import re
from collections.abc import Iterable
from typing import Any, Final

from lored.core.transcripts import codex_actions as actions
from lored.core.transcripts.codex_messages import (
    WAIT_LINES,
    begin_turn,
    compacted,
    flush,
    read_message,
    spoke,
    turn_name,
    typed,
)
from lored.core.transcripts.codex_sessions import learn_meta, learn_tokens, parse_titles
from lored.core.transcripts.codex_words import (
    part_texts,
)
from lored.core.transcripts.knowledge import learn, learn_first, learn_time
from lored.core.transcripts.lines import attempt, decode_line, kind_of, unknown_type
from lored.core.transcripts.records import (
    Record,
    Rollback,
)
from lored.core.transcripts.stamps import instant
from lored.core.transcripts.texts import names_in, text_or_none, title_of

_FILE: Final = re.compile(
    r"rollout-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-([0-9A-Za-z-]{1,60}?)(?:_([0-9A-Za-z-]{1,60}))?"
    r"\.jsonl(?:\.zst|\.gz)?"
)
_MARKS: Final = frozenset({"timestamp", "payload", "ordinal"})
_SKIPPED: Final = re.compile(
    rb'"(?:type":"(?:reasoning|image_generation_call|ghost_snapshot|world_state)|role":"developer)"'
)
_STAMP: Final = b'{"timestamp":"'
_HISTORY: Final = b',"replacement_history":['
_LONG: Final = 4_096
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
        """None of its own: `session_index.jsonl` speaks about all threads of the root."""
        return []

    def parse_sidecar(self, path: str, data: bytes) -> Iterable[Record]:
        return parse_titles(path, data)

    def parse(self, state: dict[str, Any], line: bytes, offset: int) -> Iterable[Record]:
        state["line"] += 1
        head = line[:256]
        if _SKIPPED.search(head) and line.endswith(b"}") and b"}{" not in line:
            out: list[Record] = []
            if head.startswith(_STAMP):
                learn_time(state, out, instant(head[14:38].decode("ascii", "replace")))
            return out
        if len(line) > _LONG and b'"compacted"' in head:
            cut = line.find(_HISTORY)
            if cut > 0:
                line = line[:cut] + b"}}"
        objects, damage = decode_line(line, offset, _MARKS)
        out = list(damage)
        for item in objects:
            attempt(out, offset, _line, state, item, offset, out)
        if state.get("pending"):
            flush(state, out, state["line"] - WAIT_LINES)
        return out


def _line(state: dict[str, Any], item: dict[str, Any], offset: int, out: list[Record]) -> None:
    kind = kind_of(item)
    payload = item.get("payload")
    if not isinstance(payload, dict):
        if kind in _RESPONSES:
            _response(state, item, instant(item.get("timestamp")), offset, out)
        elif kind is None and "id" in item and "timestamp" in item:
            learn_meta(state, item, out)  # first line of the bare era
        elif "record_type" not in item:
            out.append(unknown_type(kind, offset))
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
        begin_turn(state, payload.get("turn_id"), out)
        learn(state, out, model=text_or_none(payload.get("model"), 200))
        learn_first(state, out, cwd=text_or_none(payload.get("cwd")))
    elif kind == "compacted":
        compacted(state, payload.get("message"), at, out)
    elif kind not in _QUIET_LINES:
        out.append(unknown_type(kind, offset))


def _event(
    state: dict[str, Any], payload: dict[str, Any], at: str | None, offset: int, out: list[Record]
) -> None:
    kind = kind_of(payload)
    if kind == "token_count":
        learn_tokens(state, payload.get("info"), out)
    elif kind == "agent_message":
        spoke(state, flat(payload.get("message")), payload.get("phase"), at, out)
    elif kind == "user_message":
        typed(state, flat(payload.get("message")), at, out)
    elif kind == "item_completed":
        item = payload.get("item")
        if isinstance(item, dict):
            begin_turn(state, payload.get("turn_id"), out)
            _item(state, item, at, offset, out)
    elif kind in ("task_started", "turn_started"):
        begin_turn(state, payload.get("turn_id"), out)
    elif kind in ("task_complete", "turn_complete"):
        flush(state, out, state["line"])
        learn(state, out, status="completed")
    elif kind == "turn_aborted":
        flush(state, out, state["line"])
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
            flush(state, out, state["line"])
            out.append(Rollback(turns=turns))
    elif kind == "thread_name_updated":
        name = payload.get("thread_name")
        learn(state, out, title=title_of(name) if isinstance(name, str) else None)
    elif kind == "exited_review_mode":
        review = payload.get("review_output")
        text = review.get("overall_explanation") if isinstance(review, dict) else None
        spoke(state, flat(text), "review", at, out)
    elif kind not in _QUIET_EVENTS:
        out.append(unknown_type(kind, offset, "event/"))


def _item(
    state: dict[str, Any], item: dict[str, Any], at: str | None, offset: int, out: list[Record]
) -> None:
    kind = kind_of(item)
    if kind == "UserMessage":
        typed(state, part_texts(item.get("content")), at, out)
    elif kind == "AgentMessage":
        spoke(state, part_texts(item.get("content")), item.get("phase"), at, out)
    elif kind == "Plan":
        spoke(state, flat(item.get("text")), "plan", at, out)
    elif kind == "ExitedReviewMode":
        spoke(state, flat(item.get("review")), "review", at, out)
    elif kind == "CommandExecution":
        actions.command_item(state, item, at, out)
    elif kind == "FileChange":
        actions.change_item(state, item, at, out)
    elif kind in ("McpToolCall", "DynamicToolCall"):
        actions.tool_item(state, item, at, out)
    elif kind not in _QUIET_ITEMS:
        out.append(unknown_type(kind, offset, "item/"))


def _response(
    state: dict[str, Any], payload: dict[str, Any], at: str | None, offset: int, out: list[Record]
) -> None:
    kind = kind_of(payload)
    if kind == "message":
        read_message(state, payload, at, out)
    elif kind in ("function_call", "custom_tool_call", "local_shell_call"):
        actions.begin(state, payload, at, out)
    elif kind in (
        "function_call_output",
        "custom_tool_call_output",
        "local_shell_call_output",
    ):
        actions.end(state, payload, at, out)
    elif kind == "web_search_call":
        actions.web_search(state, payload, turn_name(state), at, out)
    elif kind not in _RESPONSES:
        out.append(unknown_type(kind, offset, "response/"))


def flat(value: Any) -> str:
    """A text, else nothing."""
    return value if isinstance(value, str) else ""


PARSER = Codex()
