"""Qwen Code: `~/.qwen/projects/<slug>/chats/<session>.jsonl`.

Records in Claude Code's chain form with Gemini's message parts. Branch copies keep their
uuids. A person's words: type `user` without a subtype (or `mid_turn_user_message`), of
provenance `real_user` where it is stated, and `systemPayload.displayText` before the parts.
"""

from collections.abc import Iterable
from typing import Any, Final

from lored.core.transcripts.conversation import (
    call,
    plain_words,
    record_key,
    result,
    say,
    say_summary,
    split_words,
)
from lored.core.transcripts.files import Alone, Named
from lored.core.transcripts.knowledge import add_tokens, learn, learn_first, learn_time
from lored.core.transcripts.lines import attempt, decode_line, kind_of, unknown_type
from lored.core.transcripts.records import Record, Role
from lored.core.transcripts.stamps import instant
from lored.core.transcripts.texts import (
    count_or_none,
    flat_text,
    names_in,
    text_or_none,
    title_of,
)

_TOKENS: Final = (
    ("input", "promptTokenCount"),
    ("output", "candidatesTokenCount"),
    ("cache_read", "cachedContentTokenCount"),
    ("reasoning", "thoughtsTokenCount"),
)
_QUIET: Final = names_in(
    """
    slash_command ui_telemetry at_command notification cron session_model rewind
    file_history_snapshot attribution_snapshot goal_created goal_updated goal_status
    goal_cleared turn_summary permission_mode
    """
)


class QwenCode(Named, Alone):
    """Line parser of Qwen Code's chats."""

    agent = "qwen-code"
    version = 1

    def parse(self, state: dict[str, Any], line: bytes, offset: int) -> Iterable[Record]:
        objects, damage = decode_line(line, offset)
        out: list[Record] = list(damage)
        for item in objects:
            attempt(out, offset, _record, state, item, offset, out)
        return out


def _record(state: dict[str, Any], item: dict[str, Any], offset: int, out: list[Record]) -> None:
    kind, subtype = kind_of(item), kind_of(item, "subtype")
    at = instant(item.get("timestamp"))
    learn_time(state, out, at)
    learn_first(
        state,
        out,
        cwd=text_or_none(item.get("cwd")),
        branch=text_or_none(item.get("gitBranch"), 500),
    )
    learn(state, out, agent_version=text_or_none(item.get("version"), 60))
    forked = item.get("forkedFrom")
    if isinstance(forked, dict):
        learn_first(state, out, forked_from=text_or_none(forked.get("sessionId"), 100))
    if item.get("isSidechain"):
        parent = text_or_none(item.get("sessionId"), 100)
        learn_first(
            state, out, is_subagent=True, parent=parent if parent != state["session"] else None
        )
    key = record_key(state["session"], item.get("uuid"), offset)
    message = item.get("message")
    parts = message.get("parts") if isinstance(message, dict) else None
    parts = [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    payload = item.get("systemPayload")
    payload = payload if isinstance(payload, dict) else {}
    if kind == "user":
        _user(state, item, subtype, parts, payload, key, at, out)
    elif kind == "assistant":
        _assistant(state, item, parts, key, at, out)
    elif kind == "tool_result":
        _results(state, item, parts, key, at, out)
    elif kind == "system" and subtype == "custom_title":
        name = payload.get("customTitle") or payload.get("title")
        learn(state, out, title=title_of(name) if isinstance(name, str) else None)
    elif kind == "system" and subtype == "chat_compression":
        say_summary(out, key, flat_text(payload.get("summary")), at=at)
    elif kind != "system" or (subtype is not None and subtype not in _QUIET):
        name = f"{kind}/{subtype}" if subtype else str(kind)
        out.append(unknown_type(name, offset))


def _user(
    state: dict[str, Any],
    item: dict[str, Any],
    subtype: Any,
    parts: list[dict[str, Any]],
    payload: dict[str, Any],
    key: str,
    at: str | None,
    out: list[Record],
) -> None:
    person = (
        subtype in (None, "mid_turn_user_message")
        and item.get("provenance", "real_user") == "real_user"
        and not item.get("isSidechain")
    )
    shown = payload.get("displayText")
    texts = [part["text"] for part in parts if isinstance(part.get("text"), str)]
    if isinstance(shown, str) and shown.strip():
        texts = [shown]
    typed, injected = split_words(texts, _words)
    if person and typed:
        say(state, out, "user", key, typed, at=at)
        learn(state, out, status="active")
    else:
        say(state, out, "context", key, typed or injected, at=at)


def _words(text: str) -> tuple[Role, str]:
    if text.lstrip().startswith(("<qwen:", "<system-reminder>", "<session_context>")):
        return "context", text
    return plain_words(text)


def _assistant(
    state: dict[str, Any],
    item: dict[str, Any],
    parts: list[dict[str, Any]],
    key: str,
    at: str | None,
    out: list[Record],
) -> None:
    model = text_or_none(item.get("model"), 200)
    learn(state, out, model=model)
    text = "\n".join(
        part["text"]
        for part in parts
        if isinstance(part.get("text"), str) and not part.get("thought")
    )
    say(state, out, "assistant", key, text, at=at, model=model)
    called = False
    for index, part in enumerate(parts):
        made = part.get("functionCall")
        if isinstance(made, dict):
            called = True
            call(
                state,
                out,
                made.get("id") or f"{key}#{index}",
                made.get("name"),
                made.get("args"),
                at=at,
                message_key=key if text.strip() else None,
            )
    usage = item.get("usageMetadata")
    if isinstance(usage, dict):
        add_tokens(state, out, {n: count_or_none(usage.get(f)) for n, f in _TOKENS})
    if text.strip() and not called:
        learn(state, out, status="completed")


def _results(
    state: dict[str, Any],
    item: dict[str, Any],
    parts: list[dict[str, Any]],
    key: str,
    at: str | None,
    out: list[Record],
) -> None:
    told = item.get("toolCallResult")
    status = told.get("status") if isinstance(told, dict) else None
    for index, part in enumerate(parts):
        answer = part.get("functionResponse")
        if not isinstance(answer, dict):
            continue
        response = answer.get("response")
        error = response.get("error") if isinstance(response, dict) else None
        text = flat_text(response) or flat_text(error)
        result(
            state,
            out,
            answer.get("id"),
            f"{key}#{index}",
            text,
            failed=bool(error) or status in ("error", "cancelled"),
            at=at,
            commands_say_zero=True,
        )


PARSER = QwenCode()
