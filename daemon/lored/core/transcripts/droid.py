"""Factory Droid: `~/.factory/sessions/<cwd slug>/<id>.jsonl` and `<id>.settings.json`.

`<system-reminder>` blocks stand in the same message before the real words. Messages of
visibility `user_only` were shown but not sent: notices, not words.
"""

from collections.abc import Iterable
from typing import Any, Final

from lored.core.transcripts.conversation import read_blocks, record_key, say, say_summary
from lored.core.transcripts.files import Named
from lored.core.transcripts.knowledge import learn, learn_first, learn_time
from lored.core.transcripts.lines import (
    attempt,
    decode_document,
    decode_line,
    kind_of,
    unknown_type,
)
from lored.core.transcripts.records import Record, SessionPatch
from lored.core.transcripts.stamps import instant
from lored.core.transcripts.texts import count_or_none, flat_text, text_or_none, title_of

_TOKENS: Final = (
    ("input", "inputTokens"),
    ("output", "outputTokens"),
    ("cache_write", "cacheCreationTokens"),
    ("cache_read", "cacheReadTokens"),
    ("reasoning", "thinkingTokens"),
)


class Droid(Named):
    """Line parser of Droid's sessions."""

    agent = "droid"
    version = 1

    def sidecars(self, path: str) -> list[str]:
        """Model and totals."""
        return [path.removesuffix(".jsonl") + ".settings.json"]

    def parse_sidecar(self, path: str, data: bytes) -> Iterable[Record]:
        value, damage = decode_document(data)
        if not isinstance(value, dict):
            return damage
        usage = value.get("tokenUsage")
        patch = SessionPatch(model=text_or_none(value.get("model"), 200))
        for name, field in _TOKENS:
            count = count_or_none(usage.get(field)) if isinstance(usage, dict) else None
            if count:
                patch.tokens[name] = count
        return [*damage, patch]

    def parse(self, state: dict[str, Any], line: bytes, offset: int) -> Iterable[Record]:
        objects, damage = decode_line(line, offset)
        out: list[Record] = list(damage)
        for item in objects:
            attempt(out, offset, _record, state, item, offset, out)
        return out


def _record(state: dict[str, Any], item: dict[str, Any], offset: int, out: list[Record]) -> None:
    kind = kind_of(item)
    at = instant(item.get("timestamp"))
    learn_time(state, out, at)
    key = record_key(state["session"], item.get("id"), offset)
    if kind == "message":
        message = item.get("message")
        message = message if isinstance(message, dict) else {}
        if "user_only" in (item.get("visibility"), message.get("visibility")):
            say(state, out, "context", key, flat_text(message.get("content")), at=at)
            return
        role = kind_of(message, "role")
        read_blocks(state, out, role, key, message.get("content"), at=at, commands_say_zero=True)
    elif kind == "session_start":
        title = item.get("sessionTitle")
        if not isinstance(title, str) or title == "New Session":
            title = item.get("title")
        learn_first(state, out, cwd=text_or_none(item.get("cwd")))
        learn(
            state,
            out,
            title=title_of(title) if isinstance(title, str) else None,
            agent_version=text_or_none(item.get("version"), 60),
            parent=text_or_none(item.get("parentSessionId"), 100),
        )
    elif kind == "compaction_state":
        text = flat_text(item.get("summary") or item.get("summaryText"))
        say_summary(out, key, text, at=at)
    elif kind not in ("todo_state", "session_end", "settings_state"):
        out.append(unknown_type(kind, offset))


PARSER = Droid()
