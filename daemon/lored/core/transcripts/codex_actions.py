"""Codex: tool calls, their results, and the items that repeat them in readable form.

A call appears as `response_item` (`function_call`, `custom_tool_call`, ...) and its result as
`..._output` with the same `call_id`; between them an event or item may give the exit code or
the files changed. Code-mode calls run commands that only the items show. A command that
outlives its call is continued by `write_stdin`: its outcome belongs to the first call.
"""

import re
from typing import Any, Final
from urllib.parse import unquote

import orjson

from lored.core.transcripts.actions import TARGETS, change_size, parse_arguments, unwrap_command
from lored.core.transcripts.calls import ID_CHARS, begin_call, call_key, end_call, output_message
from lored.core.transcripts.codex_words import words_hash
from lored.core.transcripts.records import Action, Record
from lored.core.transcripts.texts import count_or_none, flat_text

PROCESSES: Final = 32
"""Commands that still run when their call returns."""
_RUNNING: Final = re.compile(r"Process running with session ID (\d{1,12})")
_HEADER: Final = re.compile(
    r"\A(?:(?:Chunk ID|Wall time|Process |Original token count|Exit code|Total output lines)"
    r"[^\n]*\n)+(?:Output:\n?)?"
)


def begin(
    state: dict[str, Any], payload: dict[str, Any], at: str | None, out: list[Record]
) -> None:
    """A `function_call`, `custom_tool_call` or `local_shell_call`."""
    call_id = payload.get("call_id") or payload.get("id")
    tool = payload.get("name") or "local_shell"
    arguments = parse_arguments(payload.get("arguments", payload.get("input")))
    if tool == "write_stdin":
        _continue(state, call_id, arguments)
        return
    action = payload.get("action")
    if payload.get("type") == "local_shell_call" and isinstance(action, dict):
        arguments = action
    namespace = payload.get("namespace")
    if isinstance(namespace, str) and namespace and isinstance(tool, str):
        tool = f"{namespace.rstrip('_')}__{tool.lstrip('_')}"
    out.extend(begin_call(state, state["session"], call_id, tool, arguments, at=at))


def end(state: dict[str, Any], payload: dict[str, Any], at: str | None, out: list[Record]) -> None:
    """A `..._output` of a call."""
    call_id = payload.get("call_id")
    if not isinstance(call_id, str) or not call_id:
        return
    raw = payload.get("output")
    text, exit_code = _output(raw)
    head = text[:400]
    body = _HEADER.sub("", text, count=1)
    failed: bool | None = None
    if isinstance(raw, dict) and raw.get("success") is False:
        failed = True
    if exit_code is None:
        match = _STATED.search(head)
        exit_code = int(match[1]) if match else None
    if head.startswith(_FAILURES):
        failed = True
    key = f"{call_key(state['session'], call_id[:ID_CHARS])}:out"
    message = output_message(state, call_id, key, body, at=at)
    if message is not None:
        out.append(message)
    running = _RUNNING.search(head)
    entry = state.get("calls", {}).get(call_id[:ID_CHARS])
    actions = end_call(
        state, call_id, body, failed=failed, shown=message, at=at, exit_code=exit_code
    )
    if running is not None and entry is not None:
        processes = state.setdefault("processes", {})
        processes[running[1]] = entry
        while len(processes) > PROCESSES:
            del processes[next(iter(processes))]
        for action in actions:
            action.status, action.ended_at, action.exit_code = "running", None, None
    out.extend(actions)


def command_item(
    state: dict[str, Any], item: dict[str, Any], at: str | None, out: list[Record]
) -> None:
    """A `CommandExecution` item or `exec_command_end` event."""
    call_id = item.get("id") or item.get("call_id")
    if not isinstance(call_id, str) or not call_id:
        return
    text = flat_text(item.get("aggregated_output")) or flat_text(item.get("stdout"))
    exit_code = item.get("exit_code")
    exit_code = exit_code if type(exit_code) is int and abs(exit_code) < 1 << 31 else None
    message = None
    alone = call_id[:ID_CHARS] not in state.get("calls", {})
    if alone:
        command = unwrap_command(item.get("command"))
        out.extend(begin_call(state, state["session"], call_id, "shell", {"command": command}))
        key = f"{call_key(state['session'], call_id[:ID_CHARS])}:out"
        message = output_message(state, call_id, key, text, at=at)
        if message is not None:
            out.append(message)
    failed = item.get("status") in ("failed", "declined") or None
    if exit_code is None and failed is None:
        return
    out.extend(
        end_call(state, call_id, text, failed=failed, at=at, exit_code=exit_code, last=alone)
    )


def change_item(
    state: dict[str, Any], item: dict[str, Any], at: str | None, out: list[Record]
) -> None:
    """A `FileChange` item or `patch_apply_end` event."""
    call_id = item.get("id") or item.get("call_id")
    changes = item.get("changes")
    if not isinstance(call_id, str) or not call_id:
        return
    failed = item.get("success") is False or item.get("status") in ("failed", "declined")
    if call_id[:ID_CHARS] in state.get("calls", {}):
        text = flat_text(item.get("stdout")) or flat_text(item.get("stderr"))
        out.extend(end_call(state, call_id, text, failed=failed, at=at, last=False))
        return
    key = call_key(state["session"], call_id[:ID_CHARS])
    for index, (path, change) in enumerate(
        list(changes.items())[:TARGETS] if isinstance(changes, dict) else []
    ):
        extra: dict[str, Any] = {}
        if isinstance(change, dict):
            diff = change.get("unified_diff")
            if isinstance(diff, str):
                extra.update(change_size(diff))
            elif isinstance(change.get("content"), str):
                lines = change["content"].count("\n")
                extra["removed" if change.get("type") == "delete" else "added"] = lines
        out.append(
            Action(
                f"{key}#{index}" if index else key,
                "edit",
                "apply_patch",
                target=path[:1_024],
                status="failed" if failed else "ok",
                ended_at=at,
                extra=extra,
            )
        )


def tool_item(
    state: dict[str, Any], item: dict[str, Any], at: str | None, out: list[Record]
) -> None:
    """An `McpToolCall` or `DynamicToolCall` item or its event, unless the call itself stands in
    the file."""
    call_id = item.get("id") or item.get("call_id")
    invocation = item.get("invocation")
    call = invocation if isinstance(invocation, dict) else item
    server, tool = call.get("server") or call.get("namespace"), call.get("tool")
    result = item.get("result")
    if isinstance(result, dict) and ("Ok" in result or "Err" in result):
        failed = "Err" in result
        result = result.get("Ok", result.get("Err"))
    else:
        failed = item.get("status") == "failed" or item.get("success") is False
    if isinstance(result, dict):
        failed = failed or result.get("isError") is True
    if not isinstance(call_id, str) or not call_id or not isinstance(tool, str):
        return
    text = flat_text(result if result is not None else item.get("content_items"))
    if call_id[:ID_CHARS] in state.get("calls", {}):
        out.extend(end_call(state, call_id, text, failed=failed, at=at, last=False))
        return
    name = f"mcp__{server}__{tool}" if isinstance(server, str) and server else tool
    out.extend(begin_call(state, state["session"], call_id, name, call.get("arguments"), at=at))
    key = f"{call_key(state['session'], call_id[:ID_CHARS])}:out"
    message = output_message(state, call_id, key, text, at=at)
    if message is not None:
        out.append(message)
    out.extend(end_call(state, call_id, text, failed=failed, shown=message, at=at))


def web_search(
    state: dict[str, Any], payload: dict[str, Any], turn: str, at: str | None, out: list[Record]
) -> None:
    """A `web_search_call`. It has no id in old files: turn and query make the key."""
    action = payload.get("action")
    if not isinstance(action, dict):
        return
    target = action.get("query") or action.get("url") or action.get("pattern")
    if not isinstance(target, str) or not target:
        return
    out.append(
        Action(
            f"{turn}:web:{words_hash(target)}",
            "web",
            "web_search",
            target=target[:1_024],
            status="failed" if payload.get("status") == "failed" else "ok",
            started_at=at,
            ended_at=at,
        )
    )


def directory_of_uri(value: Any) -> str | None:
    """A path that may be written as percent-encoded `file://` URI."""
    if not isinstance(value, str) or not value:
        return None
    if value.startswith("file://"):
        return unquote(value.removeprefix("file://"), errors="replace")[:4_096]
    return value[:4_096]


def _continue(state: dict[str, Any], call_id: Any, arguments: Any) -> None:
    """Makes a `write_stdin` call stand for the command that it feeds or polls."""
    number = arguments.get("session_id") if isinstance(arguments, dict) else None
    entry = state.get("processes", {}).get(str(number))
    if entry is not None and isinstance(call_id, str):
        state.setdefault("calls", {})[call_id[:ID_CHARS]] = entry


def _output(raw: Any) -> tuple[str, int | None]:
    """Text and exit code of an output: text, JSON in a text, an object, or a list of parts."""
    if isinstance(raw, str):
        if raw.startswith('{"output"'):
            try:
                value = orjson.loads(raw)
            except ValueError:
                return raw, None
            meta = value.get("metadata")
            code = meta.get("exit_code") if isinstance(meta, dict) else None
            return flat_text(value.get("output")), count_or_none(code)
        return raw, None
    return flat_text(raw), None


_STATED: Final = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d{1,6})", re.MULTILINE)
_FAILURES: Final = (
    "apply_patch verification failed",
    "failed in sandbox",
    "write_stdin failed",
    "exec_command failed",
    "error:",
    "aborted by user",
    "execution error",
    "failed to parse",
    "unsupported call",
)
