"""Kiro CLI: conversations as JSON documents, in `data.sqlite3` or exported.

A conversation is `{conversation_id, history: [{user, assistant}, ...]}`; the user's content is
a prompt or the results of tools, the assistant's a response or calls. The database keeps one
conversation per directory, and in newer builds one per (directory, conversation).
"""

from collections.abc import Iterable
from typing import Any, Final

from lored.core.transcripts.codex_words import words_hash
from lored.core.transcripts.conversation import call, plain_words, result, say
from lored.core.transcripts.databases import columns, decoded
from lored.core.transcripts.files import Alone
from lored.core.transcripts.knowledge import learn, learn_time
from lored.core.transcripts.lines import attempt, decode_document
from lored.core.transcripts.records import Damage, Record, SessionPatch
from lored.core.transcripts.stamps import instant
from lored.core.transcripts.texts import flat_text, text_or_none

MARKS: Final = 4_096
"""Conversations whose last content is remembered; there is one per directory."""


class KiroDocument(Alone):
    """Document parser of one conversation."""

    agent = "kiro"
    version = 1

    def session_id(self, path: str, head: bytes) -> str | None:
        """The file's name."""
        name = path.replace("\\", "/").rpartition("/")[2]
        return name.removesuffix(".json") if name.endswith(".json") else None

    def parse_document(self, path: str, data: bytes) -> Iterable[Record]:
        value, damage = decode_document(data)
        out: list[Record] = list(damage)
        if isinstance(value, dict):
            _conversation(self.session_id(path, b"") or "unknown", value, out)
        elif value is not None:
            out.append(Damage("not_object", 0, len(data)))
        return out


class KiroDatabase:
    """Database parser of `data.sqlite3`."""

    agent = "kiro"
    version = 1

    def session_id(self, path: str, head: bytes) -> str | None:
        return None

    def parse_database(
        self, connection: Any, watermark: dict[str, Any]
    ) -> Iterable[tuple[str, list[Record], dict[str, Any]]]:
        marks: dict[str, str] = dict(watermark.get("marks", {}))
        tables = columns(connection)
        for table in ("conversations_v2", "conversations"):
            if not {"key", "value"} <= tables.get(table, set()):
                continue
            for cwd, text in connection.execute(f"SELECT key, value FROM {table}"):
                value = decoded(text)
                if not isinstance(value, dict):
                    continue
                name = text_or_none(value.get("conversation_id"), 100)
                name = name or f"dir-{words_hash(str(cwd))}"
                mark = words_hash(f"{len(text)}:{text[-2_000:]!r}")
                if marks.get(name) == mark:
                    continue
                out: list[Record] = [SessionPatch(cwd=text_or_none(cwd))]
                _conversation(name, value, out)
                marks.pop(name, None)
                marks[name] = mark
                while len(marks) > MARKS:
                    del marks[next(iter(marks))]
                yield name, out, {"marks": dict(marks)}


def _conversation(name: str, value: dict[str, Any], out: list[Record]) -> None:
    state: dict[str, Any] = {"session": name}
    model = value.get("model_info")
    if isinstance(model, dict):
        learn(state, out, model=text_or_none(model.get("model_id"), 200))
    history = value.get("history")
    if not isinstance(history, list):
        out.append(Damage("unknown_version:kiro"))
    for index, turn in enumerate(history if isinstance(history, list) else []):
        if isinstance(turn, dict):
            attempt(out, 0, _user, state, turn.get("user"), f"{name}:{index}:u", out)
            answer = turn.get("assistant")
            attempt(out, 0, _assistant, state, answer, f"{name}:{index}:a", out)


def _user(state: dict[str, Any], user: Any, key: str, out: list[Record]) -> None:
    if not isinstance(user, dict):
        return
    at = instant(user.get("timestamp"))
    learn_time(state, out, at)
    content = user.get("content")
    content = content if isinstance(content, dict) else {}
    prompt = content.get("Prompt")
    if isinstance(prompt, dict):
        role, words = plain_words(flat_text(prompt.get("prompt")))
        say(state, out, role, key, words, at=at)
    for kind in ("ToolUseResults", "CancelledToolUses"):
        answers = content.get(kind)
        results = answers.get("tool_use_results") if isinstance(answers, dict) else None
        for index, answer in enumerate(results if isinstance(results, list) else []):
            if isinstance(answer, dict):
                failed = answer.get("status") in ("Error", "error") or kind != "ToolUseResults"
                call_id = answer.get("tool_use_id")
                text = _blocks(answer.get("content"))
                result(state, out, call_id, f"{key}#{index}", text, failed=failed, at=at)


def _assistant(state: dict[str, Any], assistant: Any, key: str, out: list[Record]) -> None:
    if not isinstance(assistant, dict):
        return
    for kind in ("Response", "ToolUse"):
        answer = assistant.get(kind)
        if not isinstance(answer, dict):
            continue
        text = flat_text(answer.get("content"))
        say(state, out, "assistant", key, text)
        uses = answer.get("tool_uses")
        for index, use in enumerate(uses if isinstance(uses, list) else []):
            if isinstance(use, dict):
                call(
                    state,
                    out,
                    use.get("id") or f"{key}#{index}",
                    use.get("name"),
                    use.get("args"),
                    message_key=key if text.strip() else None,
                )


def _blocks(content: Any) -> str:
    """Results are lists of `{Text: ...}` or `{Json: {stdout, stderr, exit_status}}`."""
    texts = []
    for block in content if isinstance(content, list) else [content]:
        if isinstance(block, dict) and ("Text" in block or "Json" in block):
            block = block.get("Text", block.get("Json"))
        texts.append(flat_text(block))
    return "\n".join(text for text in texts if text)


DOCUMENT = KiroDocument()
DATABASE = KiroDatabase()
