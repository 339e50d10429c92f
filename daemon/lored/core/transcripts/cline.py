"""Cline, Roo Code, Kilo Code: task folders in an editor's global storage; Cline's own store.

`ui_messages.json` is what the person saw: the first `say` is their task, `user_feedback` and
the text of answered questions are theirs too; every later `say: text` is the model.
`api_req_started` carries numbers (used) and the whole request (never used). Placeholders are
`partial`. Beside it `api_conversation_history.json` gives the tools' outputs and the working
directory, `history_item.json` the title and totals. Cline 3.x writes
`~/.cline/data/sessions/<id>/<id>.messages.json`.
"""

import re
from collections.abc import Iterable
from typing import Any, Final

import orjson

from lored.core.transcripts.actions import describe
from lored.core.transcripts.calls import statement
from lored.core.transcripts.conversation import read_blocks, record_key, say
from lored.core.transcripts.knowledge import add_tokens, known, learn, learn_first, learn_time
from lored.core.transcripts.lines import (
    attempt,
    clean_value,
    decode_document,
    kind_of,
    unknown_type,
)
from lored.core.transcripts.records import Action, Damage, Message, Record, Role, SessionPatch
from lored.core.transcripts.stamps import instant
from lored.core.transcripts.texts import (
    count_or_none,
    flat_text,
    keep_output,
    names_in,
    text_or_none,
    title_of,
)

_CWD: Final = re.compile(r"# Current (?:Working|Workspace) Directory \(([^)\n]{1,1000})\)")
_TAGS: Final = re.compile(
    r"<(?:environment_details|file_content|folder_content|url_content|explicit_instructions)\b"
    r".*?(?:</(?:environment_details|file_content|folder_content|url_content"
    r"|explicit_instructions)>\s*|\Z)",
    re.DOTALL,
)
_WORDS: Final = re.compile(
    r"<(task|feedback|user_message|answer)>\s*(.*?)\s*(?:</\1>|\Z)", re.DOTALL
)
_QUIET: Final = names_in(
    """
    checkpoint_created reasoning task_progress api_req_finished api_req_retried api_req_deleted
    api_req_rate_limit_wait shell_integration_warning mcp_server_request_started
    mcp_server_response load_mcp_documentation info deleted_api_reqs clineignore_error
    rooignore_error diff_error browser_action_launch browser_action browser_action_result
    browser_session_status resume_task resume_completed_task command_output completion_result
    checkpoint_saved codebase_search_result condense_context condense_context_error
    sliding_window_truncation subtask_result user_edit_todos
    shell_integration_warning_with_suggestion
    api_req_failed mistake_limit_reached new_task condense summarize_task report_bug
    auto_approval_max_req_reached browser_action_launch use_mcp_server image
    hook_status hook_output_stream generate_explanation conditional_rules_applied
    """
)
_TOKENS: Final = (
    ("input", "tokensIn", "inputTokens"),
    ("output", "tokensOut", "outputTokens"),
    ("cache_read", "cacheReads", "cacheReadTokens"),
    ("cache_write", "cacheWrites", "cacheWriteTokens"),
)


class ClineTasks:
    """Document parser of task folders."""

    version = 1

    def __init__(self, agent: str) -> None:
        self.agent = agent

    def session_id(self, path: str, head: bytes) -> str | None:
        """The task's folder."""
        parts = path.replace("\\", "/").split("/")
        known_name = parts[-1] in ("ui_messages.json", "claude_messages.json")
        return parts[-2] if known_name and len(parts) > 1 else None

    def sidecars(self, path: str) -> list[str]:
        """The request history and the task's entry."""
        folder = path.rpartition("/")[0]
        names = ("api_conversation_history.json", "history_item.json")
        return [f"{folder}/{name}" for name in names]

    def parse_sidecar(self, path: str, data: bytes) -> Iterable[Record]:
        value, damage = decode_document(data)
        out: list[Record] = list(damage)
        if path.endswith("history_item.json") and isinstance(value, dict):
            out.append(_history_item(value))
        elif isinstance(value, list):
            session = path.replace("\\", "/").split("/")[-2]
            _api_history(session, value, out)
        return out

    def parse_document(self, path: str, data: bytes) -> Iterable[Record]:
        value, damage = decode_document(data)
        out: list[Record] = list(damage)
        state: dict[str, Any] = {"session": self.session_id(path, b"") or "unknown"}
        if isinstance(value, list):
            first = True
            for item in value:
                if isinstance(item, dict) and not item.get("partial"):
                    attempt(out, 0, _ui, state, item, first, out)
                    first = first and item.get("type") != "say"
        elif value is not None:
            out.append(Damage("not_object", 0, len(data)))
        return out


class ClineSessions:
    """Document parser of Cline 3.x's own store."""

    agent = "cline"
    version = 1

    def session_id(self, path: str, head: bytes) -> str | None:
        """The file's name; compaction artefacts are no conversation."""
        name = path.replace("\\", "/").rpartition("/")[2]
        return name.removesuffix(".messages.json") if name.endswith(".messages.json") else None

    def sidecars(self, path: str) -> list[str]:
        return [path.removesuffix(".messages.json") + ".json"]

    def parse_sidecar(self, path: str, data: bytes) -> Iterable[Record]:
        value, damage = decode_document(data)
        if not isinstance(value, dict):
            return damage
        meta = value.get("metadata")
        title = value.get("title") or (meta.get("title") if isinstance(meta, dict) else None)
        cwd = value.get("cwd") or value.get("workspaceRoot") or value.get("workspace_root")
        patch = SessionPatch(
            cwd=text_or_none(cwd),
            title=title_of(title) if isinstance(title, str) else None,
            model=text_or_none(value.get("model"), 200),
        )
        return [*damage, patch]

    def parse_document(self, path: str, data: bytes) -> Iterable[Record]:
        value, damage = decode_document(data)
        out: list[Record] = list(damage)
        messages = value.get("messages") if isinstance(value, dict) else None
        state: dict[str, Any] = {"session": self.session_id(path, b"") or "unknown"}
        for index, item in enumerate(messages if isinstance(messages, list) else []):
            if not isinstance(item, dict):
                continue
            at = instant(item.get("ts"))
            learn_time(state, out, at)
            model = item.get("modelInfo")
            name = text_or_none(model.get("id"), 200) if isinstance(model, dict) else None
            learn(state, out, model=name)
            key = record_key(state["session"], item.get("id"), index)
            read_blocks(
                state,
                out,
                item.get("role"),
                key,
                item.get("content"),
                at=at,
                model=name,
                words=_words,
            )
            _numbers(state, item.get("metrics"), 2, out)
        return out


def _ui(state: dict[str, Any], item: dict[str, Any], first: bool, out: list[Record]) -> None:
    at = instant(item.get("ts"))
    learn_time(state, out, at)
    model = item.get("modelInfo")
    if isinstance(model, dict):
        learn(state, out, model=text_or_none(model.get("modelId"), 200))
    kind = kind_of(item, "say" if item.get("type") == "say" else "ask")
    text = item.get("text")
    text = text if isinstance(text, str) else ""
    key = f"{state['session']}:{item.get('ts')}:{str(kind)[:40]}"
    if item.get("type") == "say" and (
        kind in ("task", "user_feedback", "user_feedback_diff")
        or (kind == "text" and first and item.get("conversationHistoryIndex", -1) == -1)
    ):
        say(state, out, "user", key, text, at=at)
        learn(state, out, status="active")
    elif kind in ("text", "completion_result", "plan_mode_respond", "followup"):
        if text != state.get("spoke"):  # the same text is sometimes written twice
            say(state, out, "assistant", key, _question(text), at=at)
        state["spoke"] = text
        if kind == "completion_result":
            learn(state, out, status="completed")
    elif kind == "api_req_started":
        _numbers(state, _json(text), 1, out)
    elif kind in ("tool", "command", "use_mcp_server", "use_subagents"):
        _tool(state, kind, text, key, at, out)
    elif kind == "command_output":
        _output(state, text, out)
    elif kind in ("error", "api_req_failed", "diff_error"):
        say(state, out, "context", key, text, at=at)
    elif kind not in _QUIET:
        out.append(unknown_type(kind, 0))


def _tool(
    state: dict[str, Any], kind: str, text: str, key: str, at: str | None, out: list[Record]
) -> None:
    made: Any = None
    if kind == "command":
        command = text.split("\nREQ_APP", 1)[0].strip()
        action = Action(key, "command", "execute_command", command=command[:4_000] or None)
        state["command"] = key
    else:
        made = _json(text)
        made = made if isinstance(made, dict) else {}
        name = made.get("tool") or made.get("toolName") or kind
        deed = describe(str(name)[:100], made)[0]
        action = Action(key, deed.kind, str(name)[:100], target=deed.target, extra=deed.extra)
    arguments = None if kind == "command" else made.get("arguments", made)
    action.extra |= statement(action.tool, arguments, action.command)
    action.status, action.started_at = "ok" if kind != "command" else "unknown", at
    out.append(action)


def _output(state: dict[str, Any], text: str, out: list[Record]) -> None:
    """A piece of a command's output."""
    key = state.get("command")
    kept, _ = keep_output(text)
    if isinstance(key, str) and kept.strip():
        out.append(
            Action(key, "command", "execute_command", status="unknown", output_excerpt=kept[:2_000])
        )


def _numbers(state: dict[str, Any], numbers: Any, column: int, out: list[Record]) -> None:
    if not isinstance(numbers, dict):
        return
    add_tokens(state, out, {row[0]: count_or_none(numbers.get(row[column])) for row in _TOKENS})
    cost = numbers.get("cost")
    if isinstance(cost, int | float) and 0 < cost < 1e6:
        told = known(state, None)
        told["cost_usd"] = round(told.get("cost_usd", 0.0) + cost, 9)
        out.append(SessionPatch(cost_usd=told["cost_usd"]))


def _history_item(value: dict[str, Any]) -> SessionPatch:
    task = value.get("task")
    cwd = value.get("cwd") or value.get("cwdOnTaskInitialization") or value.get("workspace")
    patch = SessionPatch(
        title=title_of(task) if isinstance(task, str) else None,
        cwd=text_or_none(cwd),
        started_at=instant(value.get("ts")),
        parent=text_or_none(value.get("parentTaskId"), 100),
    )
    for name, field, _ in _TOKENS[:2]:
        count = count_or_none(value.get(field))
        if count:
            patch.tokens[name] = count
    cost = value.get("totalCost")
    if isinstance(cost, int | float) and 0 < cost < 1e6:
        patch.cost_usd = float(cost)
    return patch


def _api_history(session: str, messages: list[Any], out: list[Record]) -> None:
    """Working directory and the outputs of tools; the words stand in `ui_messages.json`."""
    state: dict[str, Any] = {"session": session}
    for index, item in enumerate(messages):
        content = item.get("content") if isinstance(item, dict) else None
        for number, block in enumerate(content if isinstance(content, list) else []):
            if not isinstance(block, dict):
                continue
            text = flat_text(block.get("text"))
            found = _CWD.search(text) if "Directory (" in text else None
            learn_first(state, out, cwd=found[1] if found else None)
            if block.get("type") == "tool_result":
                kept, dropped = keep_output(flat_text(block.get("content")))
                if kept.strip():
                    key = f"{session}:api:{index}:{number}"
                    at = instant(item.get("ts"))
                    out.append(Message(key, "tool", kept, at=at, truncated_bytes=dropped))


def _words(text: str) -> tuple[Role, str]:
    """Words in a request's text: what stands in task or feedback tags, else all but the
    injected blocks."""
    tagged = [match[2] for match in _WORDS.finditer(text)]
    if tagged:
        return "user", "\n".join(tagged)
    if text.lstrip().startswith(("<environment_details", "[", "Context summary:")):
        return "context", text
    words = _TAGS.sub("", text) if "<" in text else text
    return ("user", words) if words.strip() else ("context", "")


def _question(text: str) -> str:
    """A question to the user is JSON with the question in it."""
    value = _json(text)
    if isinstance(value, dict):
        return flat_text(value.get("question") or value.get("response")) or text
    return text


def _json(text: str) -> Any:
    if not text.startswith("{"):
        return None
    try:
        return clean_value(orjson.loads(text))
    except (ValueError, RecursionError):
        return None


CLINE = ClineTasks("cline")
ROO = ClineTasks("roo-code")
KILO = ClineTasks("kilo-code")
SESSIONS = ClineSessions()
