"""Goose's rows that are deleted and inserted again, Aider's Markdown, custom sources."""

import json
import os
import sqlite3
import time
from collections.abc import Iterator
from typing import Any

import pytest

from lored.core.transcripts import PARSERS, classify, register, unregister
from lored.core.transcripts.generic import Generic
from lored.core.transcripts.records import Record
from support.transcripts import SAMPLES, actions, messages, read_lines, session_of, texts

GOOSE: Any = PARSERS["goose"]
AIDER: Any = PARSERS["aider"]


def goose(messages_: list[tuple[str, str, str, bool]]) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    connection.executescript(
        "CREATE TABLE sessions (id text, name text, description text, user_set_name integer,"
        " session_type text, working_dir text, created_at text, updated_at text);"
        "CREATE TABLE messages (id integer PRIMARY KEY AUTOINCREMENT, message_id text,"
        " session_id text, role text, content_json text, created_timestamp integer,"
        " metadata_json text);"
        "INSERT INTO sessions VALUES ('s', 'n', 'd', 0, 'user', '/p', '2026-05-28 10:00:00',"
        " '2026-05-28 10:00:00');"
    )
    insert(connection, messages_)
    return connection


def insert(connection: sqlite3.Connection, rows: list[tuple[str, str, str, bool]]) -> None:
    for name, role, text, visible in rows:
        connection.execute(
            "INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp,"
            " metadata_json) VALUES (?, 's', ?, ?, 1779962400, ?)",
            (name, role, json.dumps([{"type": "text", "text": text}]),
             json.dumps({"userVisible": visible})),
        )  # fmt: skip


def look(
    connection: sqlite3.Connection, mark: dict[str, Any]
) -> tuple[list[Record], dict[str, Any]]:
    records: list[Record] = []
    for _, found, after in GOOSE.parse_database(connection, mark):
        records.extend(found)
        mark = after
    return records, mark


def test_a_compaction_inserts_rows_again() -> None:
    rows = [("a", "user", "one", True), ("b", "assistant", "two", True), ("c", "user", "x", False)]
    connection = goose(rows)
    before, mark = look(connection, {})
    assert texts(before) == ["one", "two"]
    assert look(connection, mark) == ([], mark)
    connection.execute("DELETE FROM messages")
    insert(connection, [*rows[:2], ("d", "assistant", "three", True)])
    after, mark = look(connection, mark)
    assert texts(after) == ["one", "two", "three"]
    assert [m.key for m in messages(after)][:2] == [m.key for m in messages(before)]
    connection.execute("UPDATE sessions SET updated_at = '2026-05-28 11:00:00', description = 'e'")
    assert session_of(look(connection, mark)[0])["title"] == "e"


def test_other_session_types_and_schemas() -> None:
    connection = goose([("a", "user", "scheduled words", True)])
    connection.execute("UPDATE sessions SET session_type = 'scheduled'")
    records, _ = look(connection, {})
    assert texts(records, "context") == ["scheduled words"] and not texts(records, "user")
    connection.execute("ALTER TABLE sessions DROP COLUMN updated_at")
    assert texts(look(connection, {})[0])
    assert look(sqlite3.connect(":memory:"), {}) == ([], {})


@pytest.fixture
def berlin() -> Iterator[None]:
    before = os.environ.get("TZ")
    os.environ["TZ"] = "Europe/Berlin"
    time.tzset()
    yield
    if before is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = before
    time.tzset()


HISTORY = """
# aider chat started at 2026-05-28 12:00:00

> Aider v0.86.1
> Main model: openai/gpt-5 with diff edit format

#### make a module
#### with two functions

Here it is:

a.py
```python
# a comment
#### not a prompt
> not a notice
```

Done.

> Tokens: 2.4k sent, 104 received. Cost: $0.00042 message, $0.01 session.
> Applied edit to a.py
> Commit 1b2614a feat: add a.py

# aider chat started at 2026-05-28 13:00:00

#### second run
"""


def aider(text: str, *, blank: bool = True) -> list[Record]:
    path = "/p/.aider.chat.history.md"
    if blank:
        state = AIDER.begin(path)
        records: list[Record] = []
        offset = 0
        for line in text.encode().split(b"\n"):
            records.extend(AIDER.parse(state, line, offset))
            offset += len(line) + 1
        return records
    return read_lines(AIDER, path, text.encode())


@pytest.mark.parametrize("blank", [True, False])
def test_aider(berlin: None, blank: bool) -> None:
    records = aider(HISTORY + "\n> end\n", blank=blank)
    name = AIDER.session_id("/p/.aider.chat.history.md", HISTORY.encode())
    assert name.endswith(":2026-05-28T12:00:00")
    assert texts(records, "user") == ["make a module\nwith two functions", "second run"]
    (answer,) = texts(records, "assistant")
    assert answer.startswith("Here it is:") and answer.endswith("Done.")
    assert "#### not a prompt\n> not a notice" in answer
    own = [record for record in records if getattr(record, "session", None) is None]
    session = session_of(own)
    assert session["started_at"] == "2026-05-28T10:00:00Z"
    assert session["model"] == "openai/gpt-5" and session["cost_usd"] == 0.01
    assert session["cwd"] == "/p" and session["tokens"] == {"input": 2400, "output": 104}
    made = {(a.kind, a.target or a.commit) for a in actions(own).values()}
    assert made == {("edit", "a.py"), ("command", "1b2614a")}
    later = messages(records, "user")[1]
    assert later.session == name.replace("12:00:00", "13:00:00")


def test_a_fence_that_never_closes_does_not_swallow_the_rest() -> None:
    text = HISTORY.replace("```\n\nDone.", "\n\nDone.")
    assert texts(aider(text + "\n> end\n"), "user") == [
        "make a module\nwith two functions",
        "second run",
    ]


def test_a_real_history() -> None:
    path = SAMPLES / "aider/proj-zen/.aider.chat.history.md"
    records = read_lines(AIDER, str(path), path.read_bytes())
    prompts = texts(records, "user")
    assert len(prompts) == 8 and prompts[0] == "/add **"
    assert any("请你分析一下我这列的处理" in prompt for prompt in prompts)
    assert not texts(records, "assistant")


MAPPING = {
    "agent": "house-bot",
    "root": "~/.house-bot",
    "pattern": "logs/**/*.jsonl",
    "role": "who",
    "content": "body.text",
    "id": "id",
    "time": "at",
    "cwd": "env.dir",
    "user": ["human"],
}


def test_a_custom_source() -> None:
    parser = Generic(MAPPING)
    lines = [
        {
            "who": "human",
            "body": {"text": "fix it"},
            "id": "1",
            "at": 1779962400,
            "env": {"dir": "/p"},
        },
        {"who": "assistant", "body": {"text": [{"type": "text", "text": "done"}]}, "id": "2"},
        {"who": "tool", "body": {"text": "ok"}},
        {"who": "user", "body": {"text": "not configured"}},
    ]
    path = "/h/.house-bot/logs/x/s-1.jsonl"
    records = read_lines(parser, path, b"\n".join(json.dumps(x).encode() for x in lines))
    assert texts(records) == ["fix it", "done", "ok"]
    assert parser.session_id(path, b"") == "s-1"
    session = session_of(records)
    assert (session["cwd"], session["started_at"]) == ("/p", "2026-05-28T10:00:00Z")
    assert register(parser.agent, parser, parser.places)
    try:
        assert classify("house-bot", "logs/x/s-1.jsonl") == "transcript"
        assert classify("house-bot", "other/s-1.jsonl") is None
    finally:
        unregister("house-bot")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"agent": None}, "'agent'"),
        ({"root": ""}, "'root'"),
        ({"user": "human"}, "'user'"),
        ({"content": 3}, "'content'"),
        ({"colour": "red"}, "'colour'"),
    ],
)
def test_a_custom_source_that_cannot_work_says_why(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Generic({**MAPPING, **change})
