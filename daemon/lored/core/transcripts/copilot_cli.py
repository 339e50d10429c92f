"""GitHub Copilot CLI: `~/.copilot/session-state/<id>/events.jsonl`.

Hook events repeat prompts and whole results, `system.message` is the system prompt at every
turn: both are skipped before they are parsed. The user's words are `data.content`;
`transformedContent` carries the wrappers.
"""

import re
from collections.abc import Iterable
from typing import Any, Final

from lored.core.transcripts.conversation import call, record_key, result, say, say_summary
from lored.core.transcripts.knowledge import learn, learn_first, learn_time
from lored.core.transcripts.lines import attempt, decode_line, kind_of, unknown_type
from lored.core.transcripts.records import Damage, Record, Rollback, SessionPatch
from lored.core.transcripts.stamps import instant
from lored.core.transcripts.texts import (
    count_or_none,
    flat_text,
    names_in,
    text_or_none,
    title_of,
)

BROKEN_BYTES: Final = 65_536
"""A record broken by raw line breaks is put together up to this length."""
_MARKS: Final = frozenset({"timestamp", "parentId"})
_SKIPPED: Final = (b'{"type":"hook.', b'{"type":"system.message"')
_YAML: Final = re.compile(
    r"^(cwd|name|summary|branch|repository|git_root):[ \t]*(.*)$", re.MULTILINE
)
_QUIET: Final = names_in(
    """
    assistant.turn_start assistant.turn_end assistant.reasoning assistant.intent
    assistant.usage assistant.message_delta assistant.reasoning_delta hook.start hook.end
    system.message system.notification session.info session.warning session.idle
    session.usage_info session.truncation session.compaction_start session.background_tasks_changed
    session.mode_changed session.plan_changed session.workspace_file_changed
    session.tools_updated session.skills_loaded session.task_complete session.context_changed
    session.remote_steerable_changed session.title_changed
    permission.requested permission.completed subagent.selected subagent.started
    subagent.completed subagent.failed subagent.deselected skill.invoked tool.user_requested
    tool.execution_progress tool.execution_partial_result user_input.requested
    user_input.completed command.queued command.completed external_tool.requested
    external_tool.completed elicitation.requested elicitation.completed exit_plan_mode.requested
    """
)
_MACHINES: Final = ("skill", "system", "agent", "autopilot", "hook", "schedule")
"""Beginnings of `source` of messages that no person wrote."""
_TOKENS: Final = (
    ("input", "inputTokens"),
    ("output", "outputTokens"),
    ("cache_read", "cacheReadTokens"),
    ("cache_write", "cacheWriteTokens"),
    ("reasoning", "reasoningTokens"),
)


class CopilotCli:
    """Line parser of Copilot CLI's event logs."""

    agent = "copilot-cli"
    version = 1

    def session_id(self, path: str, head: bytes) -> str | None:
        """The folder's name, or the file's in the old flat form."""
        parts = path.replace("\\", "/").split("/")
        if parts[-1] == "events.jsonl":
            return parts[-2] if len(parts) > 1 else None
        return parts[-1].removesuffix(".jsonl") if parts[-1].endswith(".jsonl") else None

    def begin(self, path: str) -> dict[str, Any]:
        return {"session": self.session_id(path, b"") or "unknown"}

    def sidecars(self, path: str) -> list[str]:
        """`workspace.yaml`: working directory and name."""
        folder, _, name = path.rpartition("/")
        return [f"{folder}/workspace.yaml"] if name == "events.jsonl" else []

    def parse_sidecar(self, path: str, data: bytes) -> Iterable[Record]:
        text = data[:65_536].decode("utf-8", "replace")
        found = {name: _scalar(value) for name, value in _YAML.findall(text)}
        patch = SessionPatch(
            cwd=found.get("cwd") or None,
            title=title_of(found.get("name") or found.get("summary") or ""),
            branch=found.get("branch") or None,
        )
        return [patch] if patch != SessionPatch() else []

    def parse(self, state: dict[str, Any], line: bytes, offset: int) -> Iterable[Record]:
        if line.startswith(_SKIPPED) and line.endswith(b"}") and b"}{" not in line:
            return []
        objects, damage = _decode(state, line, offset)
        out: list[Record] = list(damage)
        for item in objects:
            data = item.get("data")
            data = data if isinstance(data, dict) else {}
            attempt(out, offset, _event, state, item, data, offset, out)
        return out


def _decode(
    state: dict[str, Any], line: bytes, offset: int
) -> tuple[list[dict[str, Any]], list[Damage]]:
    """Objects of a line. A record whose texts held raw line breaks is put together again from
    the lines that it was broken into; a torn one is counted once a whole record follows."""
    objects, damage = decode_line(line, offset, _MARKS)
    broken: list[Any] | None = state.pop("broken", None)
    if broken is not None:
        start, head = broken
        if objects:
            damage.insert(0, Damage("torn", start, len(head)))
            return objects, damage
        joined = head + b"\\n" + line
        objects, _ = decode_line(joined, start, _MARKS)
        if objects:
            return objects, [Damage("torn", start, len(joined), lost=False)]
        if len(joined) <= BROKEN_BYTES:
            state["broken"] = [start, joined]
            return [], []
        return [], [Damage("torn", start, len(head)), *damage]
    torn = [item.reason for item in damage] == ["torn"] and len(line) <= BROKEN_BYTES
    if torn and line.startswith(b'{"type"'):
        state["broken"] = [offset, line]
        return [], []
    return objects, damage


def _event(
    state: dict[str, Any],
    item: dict[str, Any],
    data: dict[str, Any],
    offset: int,
    out: list[Record],
) -> None:
    kind = kind_of(item)
    at = instant(item.get("timestamp"))
    learn_time(state, out, at)
    key = record_key(state["session"], item.get("id"), offset)
    if kind in ("session.start", "session.resume"):
        _start(state, data, out)
    elif kind == "session.model_change":
        learn(state, out, model=text_or_none(data.get("newModel"), 200))
    elif kind == "user.message":
        injected = str(data.get("source") or "").startswith(_MACHINES)
        words = flat_text(data.get("content"))
        say(state, out, "context" if injected else "user", key, words, at=at)
        learn(state, out, status="active")
    elif kind == "assistant.message":
        _answer(state, data, key, at, out)
    elif kind == "tool.execution_start":
        tool, server = data.get("toolName"), data.get("mcpServerName")
        if isinstance(server, str) and server:
            tool = f"mcp__{server}__{data.get('mcpToolName') or tool}"
        call_id = text_or_none(data.get("toolCallId"))
        if call_id is not None and call_id not in state.get("calls", {}):
            call(state, out, call_id, tool, data.get("arguments"), at=at)
    elif kind == "tool.execution_complete":
        _completed(state, data, key, at, out)
    elif kind == "abort":
        learn(state, out, status="interrupted")
    elif kind == "session.error":
        learn(state, out, status="failed")
    elif kind == "session.compaction_complete":
        say_summary(out, key, flat_text(data.get("summaryContent")), at=at)
    elif kind == "session.snapshot_rewind":
        count = count_or_none(data.get("eventsRemoved"))
        target = data.get("upToEventId")
        if isinstance(target, str) and count != 0:
            out.append(Rollback(from_key=record_key(state["session"], target, "")))
    elif kind == "session.handoff":
        say_summary(out, key, flat_text(data.get("summary")), at=at)
    elif kind == "session.shutdown":
        _shutdown(state, data, out)
    elif kind not in _QUIET:
        out.append(unknown_type(kind, offset))


def _start(state: dict[str, Any], data: dict[str, Any], out: list[Record]) -> None:
    context = data.get("context")
    context = context if isinstance(context, dict) else {}
    learn_time(state, out, instant(data.get("startTime")))
    learn_first(
        state,
        out,
        cwd=text_or_none(context.get("cwd")),
        branch=text_or_none(context.get("branch"), 500),
        commit=text_or_none(context.get("headCommit"), 64),
    )
    repository = text_or_none(context.get("repository"), 500)
    learn(
        state,
        out,
        agent_version=text_or_none(data.get("copilotVersion"), 60),
        model=text_or_none(data.get("selectedModel"), 200),
        extra={"repository": repository} if repository else None,
        status="active",
    )


def _answer(
    state: dict[str, Any], data: dict[str, Any], key: str, at: str | None, out: list[Record]
) -> None:
    model = text_or_none(data.get("model"), 200)
    learn(state, out, model=model)
    text = flat_text(data.get("content"))
    say(state, out, "assistant", key, text, at=at, model=model)
    requests = data.get("toolRequests")
    for request in requests if isinstance(requests, list) else []:
        if isinstance(request, dict):
            call(
                state,
                out,
                request.get("toolCallId"),
                request.get("name"),
                request.get("arguments"),
                at=at,
                message_key=key if text.strip() else None,
            )
    if text.strip() and not requests:
        learn(state, out, status="completed")


def _completed(
    state: dict[str, Any], data: dict[str, Any], key: str, at: str | None, out: list[Record]
) -> None:
    answer = data.get("result")
    text = flat_text(answer.get("content") if isinstance(answer, dict) else answer)
    error = data.get("error")
    if not text and isinstance(error, dict):
        text = flat_text(error.get("message"))
    failed = data.get("success") is False
    result(
        state, out, data.get("toolCallId"), key, text, failed=failed, at=at, commands_say_zero=True
    )


def _shutdown(state: dict[str, Any], data: dict[str, Any], out: list[Record]) -> None:
    """Totals of the session so far: cumulative over resumes."""
    metrics = data.get("modelMetrics")
    totals: dict[str, int] = {}
    for metric in metrics.values() if isinstance(metrics, dict) else []:
        usage = metric.get("usage") if isinstance(metric, dict) else None
        for name, field in _TOKENS:
            count = count_or_none(usage.get(field)) if isinstance(usage, dict) else None
            if count:
                totals[name] = totals.get(name, 0) + count
    learn(state, out, tokens=totals or None)
    if data.get("shutdownType") == "error":
        learn(state, out, status="failed")
    else:
        learn(state, out, status="completed")


def _scalar(value: str) -> str:
    value = value.strip()
    if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
        value = value[1:-1]
    return "" if value in ("null", "~", "|", ">") else value[:4_096]


PARSER = CopilotCli()
