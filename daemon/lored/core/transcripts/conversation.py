"""Steps that most formats share: say a message, make calls, take results, read blocks."""

import re
from collections.abc import Callable, Iterable
from typing import Any, Final

from lored.core.transcripts.calls import begin_call, end_call, output_message
from lored.core.transcripts.knowledge import learn_prompt
from lored.core.transcripts.own import MARKER, cut_own_context
from lored.core.transcripts.records import MESSAGE_CHARS, Compaction, Message, Record, Role
from lored.core.transcripts.texts import CONTEXT_CHARS, flat_text, keep

Words = Callable[[str], tuple[Role, str]]
"""Tells typed words from injected text."""

_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_REMINDER: Final = re.compile(r"<system-reminder>.*?(?:</system-reminder>\s*|\Z)", re.DOTALL)


def record_key(session: str, native: Any, fallback: Any) -> str:
    """Key of a message: its native id where that is unique in the world (so copies in forks are
    recognised), else that id within the session, else ``fallback`` within the session."""
    if isinstance(native, str) and native:
        return native if _UUID.fullmatch(native) else f"{session}:{native[:120]}"
    if isinstance(native, int):
        return f"{session}:{native}"
    return f"{session}:{fallback}"


def say(
    state: dict[str, Any],
    out: list[Record],
    role: Role,
    key: str,
    text: str,
    *,
    at: str | None = None,
    model: str | None = None,
    session: str | None = None,
    replaces: bool = False,
    extra: dict[str, Any] | None = None,
) -> None:
    """Adds a message, unless it has no words."""
    if not text.strip():
        return
    words, own = cut_own_context(text)
    if own and not words.strip():
        out.append(Message(key, "context", MARKER, at=at, session=session, replaces=replaces))
        return
    kept, dropped = keep(words, CONTEXT_CHARS if role == "context" else MESSAGE_CHARS)
    if not kept.strip():
        return
    out.append(
        Message(
            key,
            role,
            kept,
            at=at,
            model=model,
            session=session,
            replaces=replaces,
            truncated_bytes=dropped,
            extra=extra or {},
        )
    )
    if role == "user" and not kept.startswith("/"):
        learn_prompt(state, out, kept, session)


def say_summary(
    out: list[Record], key: str, text: str, *, at: str | None = None, session: str | None = None
) -> None:
    """Adds what a model condensed: as a message and as a compaction."""
    kept, dropped = keep(cut_own_context(text)[0])
    if kept.strip():
        out.append(Message(key, "summary", kept, at=at, session=session, truncated_bytes=dropped))
        out.append(Compaction(key, kept, at=at, session=session))


def call(
    state: dict[str, Any],
    out: list[Record],
    call_id: Any,
    tool: Any,
    arguments: Any,
    *,
    at: str | None = None,
    message_key: str | None = None,
    session: str | None = None,
) -> None:
    """Adds the actions of a call."""
    out.extend(
        begin_call(
            state,
            session or state["session"],
            call_id,
            tool,
            arguments,
            at=at,
            message_key=message_key,
            record_session=session,
        )
    )


def result(
    state: dict[str, Any],
    out: list[Record],
    call_id: Any,
    key: str,
    text: str,
    *,
    failed: bool | None,
    at: str | None = None,
    exit_code: int | None = None,
    commands_say_zero: bool = False,
    session: str | None = None,
    replaces: bool = False,
) -> None:
    """Adds a call's output as a message, and its outcome."""
    message = output_message(state, call_id, key, text, at=at, record_session=session)
    if message is not None:
        message.replaces = replaces
        out.append(message)
    out.extend(
        end_call(
            state,
            call_id,
            text,
            failed=failed,
            shown=message,
            at=at,
            exit_code=exit_code,
            commands_say_zero=commands_say_zero,
            record_session=session,
        )
    )


def plain_words(text: str) -> tuple[Role, str]:
    """Words of a person in a format that injects nothing but reminders."""
    if "<system-reminder>" not in text:
        return "user", text
    words = _REMINDER.sub("", text).strip()
    return ("user", words) if words else ("context", text)


def read_blocks(
    state: dict[str, Any],
    out: list[Record],
    role: Any,
    key: str,
    content: Any,
    *,
    at: str | None = None,
    model: str | None = None,
    words: Words = plain_words,
    commands_say_zero: bool = False,
) -> None:
    """A message whose content is text or a list of `text`, `tool_use` and `tool_result` blocks
    (the shape that many formats took from Anthropic's interface). Other blocks are skipped."""
    blocks = content if isinstance(content, list) else [content]
    texts: list[str] = []
    calls: list[dict[str, Any]] = []
    for index, block in enumerate(blocks):
        if isinstance(block, str):
            texts.append(block)
        elif not isinstance(block, dict):
            continue
        elif block.get("type") in ("tool_result", "tool-result"):
            call_id = block.get("tool_use_id") or block.get("toolUseID") or block.get("id")
            text, failed = _outcome(block)
            result(
                state,
                out,
                call_id,
                f"{key}#{index}",
                text,
                failed=failed,
                at=at,
                commands_say_zero=commands_say_zero,
            )
        elif block.get("type") in ("tool_use", "tool-use"):
            calls.append({"index": index, **block})
        elif block.get("type") in (None, "text") and isinstance(block.get("text"), str):
            texts.append(block["text"])
    if role == "assistant":
        text = "\n".join(texts)
        say(state, out, "assistant", key, text, at=at, model=model)
        for block in calls:
            call(
                state,
                out,
                block.get("id") or f"{key}#{block['index']}",
                block.get("name"),
                block.get("input"),
                at=at,
                message_key=key if text.strip() else None,
            )
        return
    typed, injected = split_words(texts, words)
    if typed:
        say(state, out, "user", key, typed, at=at)
    elif injected:
        say(state, out, "context", key, injected, at=at)


def split_words(texts: Iterable[str], words: Words) -> tuple[str, str]:
    """(typed words, injected text) of the text parts of one message."""
    typed: list[str] = []
    injected: list[str] = []
    for text in texts:
        role, found = words(text)
        (typed if role == "user" else injected).append(found)
    return (
        "\n".join(t for t in typed if t.strip()),
        "\n".join(t for t in injected if t.strip()),
    )


def _outcome(block: dict[str, Any]) -> tuple[str, bool | None]:
    """Text of a result block, and whether it failed."""
    run = block.get("run")
    if isinstance(run, dict):
        value = run.get("result", run.get("error"))
        return flat_text(value), run.get("status") in ("error", "cancelled", "rejected-by-user")
    failed = bool(block.get("is_error") or block.get("isError"))
    return flat_text(block.get("content", block.get("result"))), failed
