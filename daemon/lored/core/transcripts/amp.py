"""Amp (to early 2026): `~/.local/share/amp/threads/T-<id>.json`, rewritten whole."""

from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import unquote

from lored.core.transcripts.claude_words import typed_words
from lored.core.transcripts.conversation import read_blocks
from lored.core.transcripts.files import Alone
from lored.core.transcripts.knowledge import add_tokens, learn, learn_first, learn_time
from lored.core.transcripts.lines import attempt, decode_document, kind_of
from lored.core.transcripts.records import Damage, Record
from lored.core.transcripts.stamps import instant
from lored.core.transcripts.texts import count_or_none, text_or_none, title_of

_TOKENS: Final = (
    ("input", "inputTokens"),
    ("output", "outputTokens"),
    ("cache_write", "cacheCreationInputTokens"),
    ("cache_read", "cacheReadInputTokens"),
)


class Amp(Alone):
    """Document parser of Amp's threads."""

    agent = "amp"
    version = 1

    def session_id(self, path: str, head: bytes) -> str | None:
        """The thread id in the file's name."""
        name = path.replace("\\", "/").rpartition("/")[2]
        known = name.startswith("T-") and name.endswith(".json")
        return name.removesuffix(".json") if known else None

    def parse_document(self, path: str, data: bytes) -> Iterable[Record]:
        value, damage = decode_document(data)
        out: list[Record] = list(damage)
        if not isinstance(value, dict):
            if value is not None:
                out.append(Damage("not_object", 0, len(data)))
            return out
        state: dict[str, Any] = {"session": self.session_id(path, b"") or "unknown"}
        learn_time(state, out, instant(value.get("created")))
        title = value.get("title")
        learn(state, out, title=title_of(title) if isinstance(title, str) else None)
        _environment(state, value.get("env"), out)
        messages = value.get("messages")
        for index, item in enumerate(messages if isinstance(messages, list) else []):
            if isinstance(item, dict):
                attempt(out, 0, _message, state, item, index, out)
        return out


def _environment(state: dict[str, Any], env: Any, out: list[Record]) -> None:
    initial = env.get("initial") if isinstance(env, dict) else None
    trees = initial.get("trees") if isinstance(initial, dict) else None
    tree = trees[0] if isinstance(trees, list) and trees else None
    if not isinstance(tree, dict):
        return
    uri = text_or_none(tree.get("uri"))
    repository = tree.get("repository")
    branch = text_or_none(repository.get("ref"), 500) if isinstance(repository, dict) else None
    learn_first(
        state,
        out,
        cwd=unquote(uri.removeprefix("file://"), errors="replace") if uri else None,
        branch=branch.removeprefix("refs/heads/") if branch else None,
    )


def _message(state: dict[str, Any], item: dict[str, Any], index: int, out: list[Record]) -> None:
    meta, usage = item.get("meta"), item.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    at = (
        (instant(meta.get("sentAt")) if isinstance(meta, dict) else None)
        or instant(usage.get("timestamp"))
        or instant(item.get("createdAt"))
    )
    learn_time(state, out, at)
    model = text_or_none(usage.get("model"), 200)
    learn(state, out, model=model)
    number = count_or_none(item.get("messageId"))
    key = f"{state['session']}:{index if number is None else number}"
    content = item.get("content", item.get("text"))
    role = kind_of(item, "role")
    read_blocks(state, out, role, key, content, at=at, model=model, words=typed_words)
    add_tokens(state, out, {name: count_or_none(usage.get(field)) for name, field in _TOKENS})
    ended = item.get("state")
    reason = ended.get("stopReason") if isinstance(ended, dict) else None
    if role == "user":
        learn(state, out, status="active")
    elif reason == "end_turn":
        learn(state, out, status="completed")


PARSER = Amp()
