"""Goose: `sessions.db` (from 1.10) and, before, one `.jsonl` per session.

Rows of a session are deleted and inserted again by a compaction, so what changed is told by
count, largest id and latest update together. `userVisible` is the conversation that the person
saw. Results have role user (or tool). The old files stay after the import into the database,
with the same session ids and message ids.
"""

from collections.abc import Iterable
from typing import Any, Final

from lored.core.transcripts.codex_words import words_hash
from lored.core.transcripts.conversation import call, plain_words, result, say, split_words
from lored.core.transcripts.databases import columns, decoded, row_of
from lored.core.transcripts.files import Alone, Named
from lored.core.transcripts.knowledge import learn, learn_time
from lored.core.transcripts.lines import attempt, decode_line, kind_of
from lored.core.transcripts.records import Damage, Record, SessionPatch
from lored.core.transcripts.stamps import instant
from lored.core.transcripts.texts import count_or_none, flat_text, text_or_none, title_of

MARKS: Final = 64
"""Sessions whose last count is remembered, so that equal times do not read them again."""
_CHANGED: Final = (
    "SELECT s.id, s.updated_at, count(m.id), max(m.id) FROM sessions s"
    " LEFT JOIN messages m ON m.session_id = s.id WHERE s.id IN"
    " (SELECT id FROM sessions WHERE updated_at >= :since"
    "  UNION SELECT session_id FROM messages WHERE id > :row)"
    " GROUP BY s.id ORDER BY s.updated_at, max(m.id)"
)
_GROWN: Final = (
    "SELECT session_id, NULL, count(id), max(id) FROM messages WHERE session_id IN"
    " (SELECT session_id FROM messages WHERE id > :row )"
    " GROUP BY session_id ORDER BY max(id)"
)


class GooseLog(Named, Alone):
    """Line parser of the files before 1.10."""

    agent = "goose"
    version = 1

    def parse(self, state: dict[str, Any], line: bytes, offset: int) -> Iterable[Record]:
        objects, damage = decode_line(line, offset, frozenset({"role", "working_dir"}))
        out: list[Record] = list(damage)
        for item in objects:
            step = _message if "role" in item else _header
            attempt(out, offset, step, state, item, out)
        return out


class GooseDatabase:
    """Database parser of `sessions.db`."""

    agent = "goose"
    version = 1

    def session_id(self, path: str, head: bytes) -> str | None:
        return None

    def parse_database(
        self, connection: Any, watermark: dict[str, Any]
    ) -> Iterable[tuple[str, list[Record], dict[str, Any]]]:
        tables = columns(connection)
        if not {"id", "session_id", "content_json"} <= tables.get("messages", set()):
            return
        by_time = {"id", "updated_at"} <= tables.get("sessions", set())
        since, last_id = watermark.get("at", ""), watermark.get("id", 0)
        marks: dict[str, Any] = dict(watermark.get("marks", {}))
        rows = connection.execute(
            _CHANGED if by_time else _GROWN, {"since": since, "row": last_id}
        ).fetchall()
        for name, updated, count, largest in rows:
            if not isinstance(name, str) or marks.get(name) == [updated, count, largest]:
                continue
            out = self._session(connection, tables, name)
            marks.pop(name, None)
            marks[name] = [updated, count, largest]
            while len(marks) > MARKS:
                del marks[next(iter(marks))]
            since = max(since, updated) if isinstance(updated, str) else since
            last_id = max(last_id, largest) if isinstance(largest, int) else last_id
            yield name[:200], out, {"at": since, "id": last_id, "marks": dict(marks)}

    def _session(self, connection: Any, tables: dict[str, set[str]], name: str) -> list[Record]:
        out: list[Record] = []
        state: dict[str, Any] = {"session": name}
        session = row_of(connection, tables, "sessions", "id = ?", (name,))
        if session:
            _header(state, session, out)
        wanted = [
            column
            for column in (
                "message_id",
                "role",
                "content_json",
                "created_timestamp",
                "metadata_json",
            )
            if column in tables["messages"]
        ]
        for row in connection.execute(
            f"SELECT {', '.join(wanted)} FROM messages WHERE session_id = ? ORDER BY id", (name,)
        ):
            item = dict(zip(wanted, row, strict=True))
            meta = decoded(item.get("metadata_json"))
            if isinstance(meta, dict) and meta.get("userVisible") is False:
                continue
            content = decoded(item.get("content_json"))
            if content is None:
                out.append(Damage("json"))
                continue
            message = {
                "id": item.get("message_id"),
                "role": item.get("role"),
                "created": item.get("created_timestamp"),
                "content": content,
            }
            attempt(out, 0, _message, state, message, out)
        return out


def _header(state: dict[str, Any], item: dict[str, Any], out: list[Record]) -> None:
    """A session's row, or the first line of an old file."""
    learn_time(state, out, instant(item.get("created_at")))
    learn_time(state, out, instant(item.get("updated_at")))
    config = item.get("model_config_json")
    config = decoded(config) if isinstance(config, str) else config
    name = item.get("name") if item.get("user_set_name") or not item.get("description") else None
    title = name or item.get("description")
    patch = SessionPatch(
        cwd=text_or_none(item.get("working_dir")),
        title=title_of(title) if isinstance(title, str) else None,
        model=text_or_none(config.get("model_name"), 200) if isinstance(config, dict) else None,
        parent=text_or_none(item.get("parent_session_id"), 200),
    )
    if item.get("session_type") == "sub_agent":
        patch.is_subagent = True
        state["machine"] = True
    elif item.get("session_type") in ("scheduled", "hidden"):
        state["machine"] = True
    cost = item.get("accumulated_cost")
    if isinstance(cost, int | float) and 0 < cost < 1e9:
        patch.cost_usd = float(cost)
    for name, fields in (
        ("input", ("accumulated_input_tokens", "input_tokens")),
        ("output", ("accumulated_output_tokens", "output_tokens")),
    ):
        count = next((n for f in fields if (n := count_or_none(item.get(f)))), None)
        if count:
            patch.tokens[name] = count
    out.append(patch)


def _message(state: dict[str, Any], item: dict[str, Any], out: list[Record]) -> None:
    at = instant(item.get("created"))
    learn_time(state, out, at)
    role = kind_of(item, "role")
    content = item.get("content")
    blocks = [b for b in content if isinstance(b, dict)] if isinstance(content, list) else []
    texts = [
        b["text"] for b in blocks if b.get("type") == "text" and isinstance(b.get("text"), str)
    ]
    if isinstance(content, str):
        texts = [content]
    text = "\n".join(texts)
    native = item.get("id")
    if not isinstance(native, str) or not native:
        native = f"{item.get('created')}:{words_hash(text or str(len(blocks)))}"
    key = f"{state['session']}:{native[:120]}"
    for index, block in enumerate(blocks):
        if block.get("type") == "toolResponse":
            _result(state, block, f"{key}#{index}", at, out)
    if role == "user":
        typed, injected = split_words(texts, plain_words)
        if state.get("machine"):
            say(state, out, "context", key, typed or injected, at=at)
        else:
            say(state, out, "user" if typed else "context", key, typed or injected, at=at)
    elif role == "assistant":
        say(state, out, "assistant", key, text, at=at)
    for index, block in enumerate(blocks):
        made = block.get("toolCall")
        if block.get("type") == "toolRequest" and isinstance(made, dict):
            value = made.get("value", made)
            if isinstance(value, dict):
                call(
                    state,
                    out,
                    block.get("id") or made.get("id") or f"{key}#{index}",
                    value.get("name"),
                    value.get("arguments"),
                    at=at,
                    message_key=key if text.strip() else None,
                )
    if role == "assistant" and text.strip():
        learn(state, out, status="completed")


def _result(
    state: dict[str, Any], block: dict[str, Any], key: str, at: str | None, out: list[Record]
) -> None:
    answer = block.get("toolResult")
    failed = isinstance(answer, dict) and (
        answer.get("status") == "error" or answer.get("isError") is True
    )
    value = answer.get("value", answer) if isinstance(answer, dict) else answer
    if isinstance(answer, dict) and failed and "error" in answer:
        value = answer["error"]
    if isinstance(value, dict) and value.get("isError") is True:
        failed = True
    call_id = block.get("id") or block.get("toolCallId")
    result(state, out, call_id, key, flat_text(value), failed=failed, at=at)


LOG = GooseLog()
DATABASE = GooseDatabase()
