"""Mutated real records through every parser: it never raises, it ends, what it gives is bounded.

Each example takes lines (or a document, or rows) of a real sample, changes values in them or
bytes of them, and parses. The long form (LORE_FULL=1) tries fifty times as many.
"""

import os
import random
import sqlite3
from typing import Any

import msgpack
import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lored.core.transcripts import PARSERS, parser_name
from lored.core.transcripts.generic import Generic
from lored.core.transcripts.records import (
    MESSAGE_CHARS,
    Action,
    Compaction,
    Damage,
    Message,
    Record,
    Rollback,
    SessionPatch,
)
from support.transcripts import SAMPLES, content, samples_of, strings

EXAMPLES = 6_000 if os.environ.get("LORE_FULL") else 120
ATOMS: list[Any] = [
    None, True, 0, -1, 1 << 62, 1e308, "", "x", "\ud800", "\0", "a" * 300, "<system-reminder>",
    "<user_query>", "# Facts\n• [F1] x", "[compacted:", [], {}, [None], {"type": "text"},
    [{"type": "tool_result"}], {"text": 1}, [["x"]], "data:image/png;base64,AAAA",
    "2026-99-99T99:99:99Z", 1e400, "*** Begin Patch\n*** Update File: \n", "tool_use",
    {"command": ["bash", "-lc"]}, "{" * 9, "💥" * 40, {"": {"": ""}},
]  # fmt: skip
LINES: dict[str, list[tuple[str, bytes]]] = {}
for sample in samples_of(SAMPLES):
    name = parser_name(sample.agent, str(sample.path)) or sample.agent
    if hasattr(PARSERS[name], "parse"):
        for line in content(sample.path).split(b"\n"):
            if line.strip() and len(line) < 30_000:
                LINES.setdefault(name, []).append((str(sample.path), line))
DOCUMENTS = [
    (parser_name(sample.agent, str(sample.path)) or "", str(sample.path), content(sample.path))
    for sample in samples_of(SAMPLES)
    if hasattr(
        PARSERS[parser_name(sample.agent, str(sample.path)) or sample.agent], "parse_document"
    )
]


def mutated(value: Any, dice: random.Random, depth: int = 0) -> Any:
    """A value with some of its parts replaced, dropped, repeated or nested."""
    roll = dice.random()
    if roll < 0.06:
        return dice.choice(ATOMS)
    if isinstance(value, dict):
        items = list(value.items())
        if items and roll < 0.12:
            items.pop(dice.randrange(len(items)))
        if len(items) > 1 and roll > 0.95:
            (a, x), (b, y) = items[0], items[-1]
            items[0], items[-1] = (a, y), (b, x)
        return {name: mutated(item, dice, depth + 1) for name, item in items}
    if isinstance(value, list):
        parts = [mutated(item, dice, depth + 1) for item in value]
        if roll > 0.95:
            parts = parts * 3 + [dice.choice(ATOMS)]
        return [parts] if roll > 0.99 and depth < 8 else parts
    if isinstance(value, str) and roll > 0.97:
        at = dice.randrange(len(value) + 1)
        return value[:at] + str(dice.choice(ATOMS)) + value[at:]
    return value


def bytes_of(value: Any, dice: random.Random) -> bytes:
    """JSON of a value, sometimes with lone surrogates, sometimes with broken bytes."""
    import json

    text = json.dumps(value, ensure_ascii=dice.random() < 0.5)
    data = bytearray(text.encode("utf-8", "surrogatepass"))
    for _ in range(dice.choice([0, 0, 0, 1, 3])):
        if data:
            at = dice.randrange(len(data))
            data[at : at + dice.choice([0, 1, 40])] = dice.randbytes(dice.choice([0, 1, 2]))
    return bytes(data).replace(b"\n", b" ")


def check(records: list[Record], size: int) -> None:
    """Everything told is clean, packable and bounded by what was read."""
    total = 0
    for record in records:
        assert isinstance(record, SessionPatch | Message | Action | Compaction | Rollback | Damage)
        for text in strings(record):
            text.encode("utf-8")
            total += len(text)
        if isinstance(record, Message):
            assert record.text and len(record.text) < MESSAGE_CHARS + 200 and record.key
            msgpack.packb(record.extra)
        elif isinstance(record, Action):
            assert record.key and record.tool and record.kind
            assert record.exit_code is None or type(record.exit_code) is int
            msgpack.packb([record.extra, record.exit_code])
        elif isinstance(record, SessionPatch):
            msgpack.packb([record.extra, record.tokens, record.cost_usd])
            assert all(type(count) is int for count in record.tokens.values())
        elif isinstance(record, Damage):
            assert len(record.reason) < 100
            assert record.reason != "shape", "a step met what it did not expect"
    assert len(records) < 60 + size // 4
    assert total < 20_000 + 60 * size


@pytest.mark.parametrize("name", sorted(LINES))
def test_lines(name: str) -> None:
    parser: Any = PARSERS[name]
    corpus = LINES[name]

    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.integers(0, 1 << 60))
    def run(seed: int) -> None:
        dice = random.Random(seed)
        start = dice.randrange(len(corpus))
        path = corpus[start][0]
        state = parser.begin(path)
        records: list[Record] = []
        size = offset = 0
        for _, line in corpus[start : start + 8]:
            try:
                line = bytes_of(mutated(orjson.loads(line), dice), dice)
            except ValueError:
                line = line[: dice.randrange(len(line) + 1)]
            records.extend(parser.parse(state, line, offset))
            offset += len(line) + 1
            size += len(line)
            state = msgpack.unpackb(msgpack.packb(state), strict_map_key=False)
        check(records, size)

    run()


@pytest.mark.parametrize("name", sorted({name for name, _, _ in DOCUMENTS}))
def test_documents(name: str) -> None:
    parser: Any = PARSERS[name]
    corpus = [(path, data) for found, path, data in DOCUMENTS if found == name]

    @settings(max_examples=EXAMPLES // 2, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.integers(0, 1 << 60))
    def run(seed: int) -> None:
        dice = random.Random(seed)
        path, data = corpus[dice.randrange(len(corpus))]
        data = bytes_of(mutated(orjson.loads(data), dice), dice)
        parser.session_id(path, data)
        check(list(parser.parse_document(path, data)), len(data))
        for sidecar in parser.sidecars(path):
            check(list(parser.parse_sidecar(sidecar, data)), len(data))

    run()


OPENCODE_PART = {
    "type": "tool", "callID": "call_00_ogBTAQ4ZyUfdr0B5", "tool": "bash", "id": "prt_1",
    "sessionID": "ses_1", "messageID": "msg_1", "text": "words", "time": {"start": 1, "end": 2},
    "state": {"status": "completed", "input": {"command": "ls"}, "output": "x",
              "time": {"start": 1779962400000, "end": 1779962400000}, "metadata": {"exit": 0}},
}  # fmt: skip
KIRO = {"conversation_id": "c", "history": [
    {"user": {"content": {"Prompt": {"prompt": "p"}}, "timestamp": "2026-05-28T10:00:00Z"},
     "assistant": {"ToolUse": {"content": "a", "tool_uses": [
         {"id": "t", "name": "execute_bash", "args": {"command": "ls"}}]}}},
    {"user": {"content": {"ToolUseResults": {"tool_use_results": [
        {"tool_use_id": "t", "status": "Success",
         "content": [{"Json": {"stdout": "x", "exit_status": "0"}}]}]}}},
     "assistant": {"Response": {"content": "b"}}}]}  # fmt: skip


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.integers(0, 1 << 60))
def test_documents_without_samples(seed: int) -> None:
    dice = random.Random(seed)
    for name, path, value in (
        ("opencode-tree", "/s/storage/part/msg_1/prt_1.json", OPENCODE_PART),
        ("opencode-tree", "/s/storage/session/p/ses_1.json",
         {"info": {"id": "s", "title": "t"}, "messages": [
             {"info": {"role": "user", "id": "m"}, "parts": [OPENCODE_PART]}]}),
        ("opencode-tree", "/s/storage/message/ses_1/msg_1.json",
         {"role": "assistant", "modelID": "m", "path": {"cwd": "/"}, "time": {"created": 5}}),
        ("kiro-document", "/k/c.json", KIRO),
    ):  # fmt: skip
        parser: Any = PARSERS[name]
        data = bytes_of(mutated(value, dice), dice)
        parser.session_id(path, data)
        check(list(parser.parse_document(path, data)), len(data))


SCHEMAS = {
    "opencode": (
        "CREATE TABLE session (id, parent_id, directory, title, revert, model, cost, tokens_input,"
        " time_created, time_updated);"
        "CREATE TABLE message (id, session_id, time_created, time_updated, data);"
        "CREATE TABLE part (id, message_id, session_id, data);"
        "CREATE TABLE session_v2 (id, parent_id, directory, title, revert, model, cost,"
        " tokens_input, time_created, time_updated);"
        "CREATE TABLE session_message (id, session_id, type, seq, time_created, time_updated,"
        " data);"
    ),
    "goose": (
        "CREATE TABLE sessions (id, name, description, working_dir, created_at, updated_at,"
        " model_config_json, accumulated_cost, input_tokens);"
        "CREATE TABLE messages (id integer PRIMARY KEY, message_id, session_id, role, content_json,"
        " created_timestamp, metadata_json);"
    ),
    "kiro": "CREATE TABLE conversations (key, value); CREATE TABLE conversations_v2 (key, value);",
}
CELLS: list[Any] = [
    None, 0, -1, 1779962400000, 1.5, "", "a", "s1", "msg_1", "user", "assistant", "2026-05-28",
    '{"role":"user"}', '{"role":"assistant","tokens":{"input":3},"summary":true}', b"\xff\x00",
    orjson.dumps(OPENCODE_PART).decode(), orjson.dumps(KIRO).decode(), '{"type":"text","text":"x"}',
    '[{"type":"text","text":"x"},{"type":"toolRequest","toolCall":{"value":{"name":"shell"}}}]',
    '{"content":[{"type":"tool","id":"c"},{"type":"text","text":"y"}],"time":{"completed":1}}',
    '{"messageID":"msg_1"}', "[" * 2000, '{"x":"\\ud800"}', "NaN",
]  # fmt: skip


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_databases(name: str) -> None:
    parser: Any = PARSERS[name]

    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.integers(0, 1 << 60))
    def run(seed: int) -> None:
        dice = random.Random(seed)
        connection = sqlite3.connect(":memory:")
        connection.executescript(SCHEMAS[name])
        for (table,) in connection.execute("SELECT name FROM sqlite_master").fetchall():
            names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            for row in range(4):
                cells = [dice.choice(CELLS) for _ in names]
                if "PRIMARY KEY" in SCHEMAS[name] and names[0] == "id" and "message_id" in names:
                    cells[0] = row + 1
                marks = ", ".join("?" * len(cells))
                connection.execute(f"INSERT INTO {table} VALUES ({marks})", cells)
        mark: dict[str, Any] = {}
        for _ in range(2):
            for session, records, after in parser.parse_database(connection, mark):
                assert isinstance(session, str)
                check(records, 20_000)
                mark = msgpack.unpackb(msgpack.packb(after), strict_map_key=False)
        connection.close()

    run()


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.integers(0, 1 << 60), st.binary(max_size=200))
def test_custom_sources_and_sidecars(seed: int, noise: bytes) -> None:
    dice = random.Random(seed)
    parser: Any = Generic({"agent": "x", "root": "~/x", "content": "message.content", "id": "id"})
    value = {"role": "user", "id": "1", "message": {"content": [{"type": "text", "text": "x"}]}}
    line = bytes_of(mutated(value, dice), dice)
    check(list(parser.parse(parser.begin("/x/s.jsonl"), line, 0)), len(line))
    for name, path in (
        ("claude-code", "/h/history.jsonl"),
        ("claude-code", "/h/agent-1.meta.json"),
        ("codex", "/h/session_index.jsonl"),
        ("recursive", "/h/.meta.json"),
        ("recursive", "/h/cost.json"),
        ("recursive", "/h/path.txt"),
        ("copilot-cli", "/h/workspace.yaml"),
        ("droid", "/h/s.settings.json"),
        ("gemini-cli", "/h/.project_root"),
        ("antigravity", "/h/history.jsonl"),
        ("antigravity", "/h/cache/last_conversations.json"),
    ):
        sidecar: Any = PARSERS[name]
        check(list(sidecar.parse_sidecar(path, noise)), 500)
        check(list(sidecar.parse_sidecar(path, line)), len(line) + 500)
