"""Claude Code: what one chain line says, by its type.

Chain lines carry `uuid`; `claude_code` has found their session, time and key already.
"""

from typing import Any, Final

from lored.core.transcripts.calls import begin_call, end_call, output_message, statement
from lored.core.transcripts.claude_words import (
    COMPACTED,
    INTERRUPTED,
    is_machine_line,
    shell_input,
    typed_words,
)
from lored.core.transcripts.knowledge import (
    add_tokens,
    learn,
    learn_prompt,
)
from lored.core.transcripts.lines import kind_of, unknown_type
from lored.core.transcripts.own import MARKER, cut_own_context
from lored.core.transcripts.records import (
    Action,
    Compaction,
    Message,
    Record,
    Role,
)
from lored.core.transcripts.texts import (
    CONTEXT_CHARS,
    count_or_none,
    flat_text,
    keep,
    names_in,
    text_or_none,
)

_USAGES: Final = 32
"""Message ids whose usage may still grow; lines of one answer lie close together."""
_TOKENS: Final = (
    ("input", "input_tokens"),
    ("output", "output_tokens"),
    ("cache_write", "cache_creation_input_tokens"),
    ("cache_read", "cache_read_input_tokens"),
)
_QUIET_SYSTEM: Final = names_in(
    """
    compact_boundary microcompact_boundary local_command api_error informational
    model_refusal_fallback scheduled_task_fire api_metrics agents_killed memory_saved
    bridge_status permission_retry
    """
)
_QUIET_ATTACHMENTS: Final = names_in(
    """
    file directory edited_text_file edited_image_file nested_memory hook_success
    hook_additional_context hook_system_message hook_blocking_error hook_non_blocking_error
    hook_error_during_execution hook_cancelled hook_stopped_continuation
    hook_permission_decision async_hook_response task_reminder todo_reminder skill_listing
    agent_listing_delta deferred_tools_delta mcp_instructions_delta command_permissions
    compact_file_reference pdf_reference plan_mode plan_mode_reentry plan_mode_exit
    plan_file_reference auto_mode auto_mode_exit date_change diagnostics
    selected_lines_in_ide opened_file_in_ide output_style invoked_skills dynamic_skill
    critical_system_reminder token_usage budget_usd teammate_mailbox team_context
    agent_mention mcp_resource relevant_memories
    already_read_file task_status
    max_turns_reached structured_output current_session_memory
    """
)


def read_user(
    state: dict[str, Any],
    item: dict[str, Any],
    key: str,
    at: str | None,
    session: str | None,
    out: list[Record],
) -> None:
    message = item.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    results = False
    if isinstance(content, list):
        texts: list[str] = []
        for index, block in enumerate(content):
            if isinstance(block, str):
                texts.append(block)
            elif isinstance(block, dict):
                if block.get("type") == "tool_result":
                    results = True
                    _result(state, item, block, f"{key}#{index}", at, session, out)
                elif isinstance(block.get("text"), str):
                    texts.append(block["text"])
        text = "\n".join(texts)
    else:
        text = content if isinstance(content, str) else ""
    if not text.strip():
        return
    if item.get("isCompactSummary") or (text.startswith(COMPACTED) and not results):
        _compacted(text, key, at, session, out)
        return
    if text.startswith(INTERRUPTED):
        learn(state, out, session, status="interrupted")
    command = shell_input(text)
    if command:
        out.append(
            Action(
                key,
                "command",
                "user-shell",
                command=command[:4_000],
                status="unknown",
                started_at=at,
                session=session,
                extra=statement("user-shell", None, command),
            )
        )
        return
    role: Role = "context"
    if not results and not is_machine_line(item):
        role, text = typed_words(text)
    _say(state, item, role, text, key, at, session, out)


def _say(
    state: dict[str, Any],
    item: dict[str, Any],
    role: Role,
    text: str,
    key: str,
    at: str | None,
    session: str | None,
    out: list[Record],
) -> None:
    """A text on the user's side: the user's words, or context in short form."""
    if role != "user":
        text, own = cut_own_context(text)
        kept, dropped = keep(text, CONTEXT_CHARS)
        kept = kept if kept.strip() else MARKER if own else ""
        if kept:
            out.append(
                Message(key, "context", kept, at=at, session=session, truncated_bytes=dropped)
            )
        return
    kept, dropped = keep(text)
    if not kept.strip():
        return
    words = Message(key, "user", kept, at=at, session=session, truncated_bytes=dropped)
    parent = item.get("parentUuid")
    if isinstance(parent, str):
        words.parent_key = parent[:100]
    out.append(words)
    if not text.startswith("/"):
        learn_prompt(state, out, text, session)
    learn(state, out, session, status="active")


def _result(
    state: dict[str, Any],
    item: dict[str, Any],
    block: dict[str, Any],
    key: str,
    at: str | None,
    session: str | None,
    out: list[Record],
) -> None:
    call_id = block.get("tool_use_id")
    text = flat_text(block.get("content"))
    message = output_message(state, call_id, key, text, at=at, record_session=session)
    if message is not None:
        out.append(message)
    failed = bool(block.get("is_error")) or bool(item.get("toolDenialKind"))
    detail = item.get("toolUseResult")
    background = False
    if isinstance(detail, dict):
        failed = failed or detail.get("interrupted") is True
        background = bool(
            detail.get("backgroundTaskId")
            or detail.get("shellId")
            or detail.get("returnCodeInterpretation")
        )
    out.extend(
        end_call(
            state,
            call_id,
            text,
            failed=failed,
            shown=message,
            at=at,
            commands_say_zero=not background,
            record_session=session,
        )
    )


def _compacted(text: str, key: str, at: str | None, session: str | None, out: list[Record]) -> None:
    kept, dropped = keep(cut_own_context(text)[0])
    if not kept.strip():
        return
    out.append(Message(key, "summary", kept, at=at, session=session, truncated_bytes=dropped))
    out.append(Compaction(key, kept, at=at, session=session))


def read_assistant(
    state: dict[str, Any],
    item: dict[str, Any],
    key: str,
    at: str | None,
    session: str | None,
    out: list[Record],
) -> None:
    message = item.get("message")
    if not isinstance(message, dict):
        return
    content = message.get("content")
    blocks = content if isinstance(content, list) else [content]
    texts = [
        block if isinstance(block, str) else block["text"]
        for block in blocks
        if isinstance(block, str)
        or (isinstance(block, dict) and isinstance(block.get("text"), str))
    ]
    text = "\n".join(texts)
    model = message.get("model")
    notice = model == "<synthetic>" or bool(item.get("isApiErrorMessage"))
    if notice:
        if item.get("isApiErrorMessage"):
            learn(state, out, session, status="failed")
        _say(state, item, "context", text, key, at, session, out)
        return
    model = text_or_none(model, 200)
    learn(state, out, session, model=model)
    kept, dropped = keep(text)
    spoke = bool(kept.strip())
    if spoke:
        out.append(
            Message(
                key,
                "assistant",
                kept,
                at=at,
                model=model,
                session=session,
                truncated_bytes=dropped,
            )
        )
    owner = session or state["session"]
    for block in blocks:
        if isinstance(block, dict) and block.get("type") in ("tool_use", "server_tool_use"):
            out.extend(
                begin_call(
                    state,
                    owner,
                    block.get("id"),
                    block.get("name"),
                    block.get("input"),
                    at=at,
                    message_key=key if spoke else None,
                    record_session=session,
                )
            )
    _usage(state, message, session, out)
    if message.get("stop_reason") == "end_turn" and spoke:
        learn(state, out, session, status="completed")


def _usage(
    state: dict[str, Any], message: dict[str, Any], session: str | None, out: list[Record]
) -> None:
    """Adds what this line's usage has more than the one before of the same message id."""
    usage, native = message.get("usage"), message.get("id")
    if not isinstance(usage, dict) or not isinstance(native, str):
        return
    seen: dict[str, list[int]] = state["usage"]
    before = seen.pop(native, None) or [0, 0, 0, 0]
    now = [count_or_none(usage.get(field)) or 0 for _, field in _TOKENS]
    seen[native] = now
    while len(seen) > _USAGES:
        del seen[next(iter(seen))]
    if now != before:
        more = {name: now[i] - before[i] for i, (name, _) in enumerate(_TOKENS)}
        add_tokens(state, out, dict(more), session)


def read_attachment(
    state: dict[str, Any],
    item: dict[str, Any],
    key: str,
    at: str | None,
    session: str | None,
    offset: int,
    out: list[Record],
) -> None:
    attachment = item.get("attachment")
    if not isinstance(attachment, dict):
        return
    kind = kind_of(attachment)
    if kind == "queued_command":
        text = flat_text(attachment.get("prompt"))
        role: Role = "context"
        mode = attachment.get("commandMode", "prompt")
        if mode == "prompt" and not is_machine_line({**item, "origin": attachment.get("origin")}):
            role, text = typed_words(text)
        _say(state, item, role, text, key, at, session, out)
    elif kind not in _QUIET_ATTACHMENTS:
        out.append(unknown_type(kind, offset, "attachment/"))


def read_system(
    state: dict[str, Any],
    item: dict[str, Any],
    key: str,
    at: str | None,
    session: str | None,
    offset: int,
    out: list[Record],
) -> None:
    kind = kind_of(item, "subtype")
    if kind == "away_summary":
        kept, dropped = keep(cut_own_context(flat_text(item.get("content")))[0])
        if kept.strip():
            out.append(
                Message(key, "summary", kept, at=at, session=session, truncated_bytes=dropped)
            )
    elif kind in ("turn_duration", "stop_hook_summary"):
        learn(state, out, session, status="completed")  # old versions state no stop_reason
    elif kind is not None and kind not in _QUIET_SYSTEM:
        out.append(unknown_type(kind, offset, "system/"))
