"""opencode: one conversation in its three stores, updates in place, reverts, watermarks."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from lored.core.transcripts import PARSERS
from lored.core.transcripts.records import Record, Rollback
from support.transcripts import SHARED, actions, damage, messages, session_of, texts

DATABASE: Any = PARSERS["opencode"]
TREE: Any = PARSERS["opencode-tree"]
SESSION = "ses_1"
T = 1_779_962_400_000
CALL = "call_00_ogBTAQ4ZyUfdr0B5"

SCHEMA_1 = """
CREATE TABLE session (id text PRIMARY KEY, project_id text, parent_id text, directory text,
  title text, version text, revert text, time_created integer, time_updated integer);
CREATE TABLE message (id text PRIMARY KEY, session_id text, time_created integer,
  time_updated integer, data text);
CREATE TABLE part (id text PRIMARY KEY, message_id text, session_id text, time_created integer,
  time_updated integer, data text);
"""
SCHEMA_2 = """
CREATE TABLE session_v2 (id text PRIMARY KEY, project_id text, parent_id text,
  fork_session_id text, directory text, title text, version text, cost real, tokens_input integer,
  tokens_output integer, revert text, model text, time_created integer, time_updated integer);
CREATE TABLE session_message (id text PRIMARY KEY, session_id text, type text, seq integer,
  time_created integer, time_updated integer, data text);
"""
USER = {"role": "user", "time": {"created": T}}
ANSWER = {
    "role": "assistant",
    "time": {"created": T + 1000, "completed": T + 5000},
    "modelID": "m-1",
    "cost": 0.25,
    "tokens": {"input": 10, "output": 3, "reasoning": 0, "cache": {"read": 7, "write": 0}},
    "finish": "stop",
}
PARTS: list[tuple[str, str, dict[str, Any]]] = [
    ("prt_1", "msg_1", {"type": "text", "text": "read it and commit"}),
    ("prt_2", "msg_1", {"type": "text", "text": "The file was attached", "synthetic": True}),
    ("prt_3", "msg_2", {"type": "step-start"}),
    ("prt_4", "msg_2", {"type": "tool", "callID": CALL, "tool": "bash", "state": {
        "status": "completed", "input": {"command": "git commit -m x"},
        "output": "[main 1a2b3c4] x", "metadata": {"exit": 0},
        "time": {"start": T + 2000, "end": T + 3000}}}),
    ("prt_5", "msg_2", {"type": "text", "text": "Committed.",
                        "time": {"start": T + 4000, "end": T + 5000}}),
]  # fmt: skip


def first(connection: sqlite3.Connection) -> None:
    connection.executescript(SCHEMA_1)
    connection.execute(
        "INSERT INTO session VALUES (?,?,?,?,?,?,?,?,?)",
        (
            SESSION,
            "p",
            None,
            "/p",
            "New session - 2026-05-28T10:00:00.000Z",
            "1.16",
            None,
            T,
            T + 9,
        ),
    )
    for name, data in (("msg_1", USER), ("msg_2", ANSWER)):
        created = data["time"]["created"]  # type: ignore[index]
        connection.execute(
            "INSERT INTO message VALUES (?,?,?,?,?)",
            (name, SESSION, created, created, json.dumps(data)),
        )
    for name, message, data in PARTS:
        connection.execute(
            "INSERT INTO part VALUES (?,?,?,?,?,?)",
            (name, message, SESSION, T, T, json.dumps(data)),
        )


def second(connection: sqlite3.Connection) -> None:
    connection.executescript(SCHEMA_2)
    connection.execute(
        "INSERT INTO session_v2 (id, directory, title, version, time_created, time_updated)"
        " VALUES (?, '/p', 'Named', '2.0', ?, ?)",
        (SESSION, T, T + 9),
    )
    tool = PARTS[3][2]
    state = {**tool["state"], "content": [{"type": "text", "text": tool["state"]["output"]}]}
    del state["output"]
    rows: list[tuple[str, str, dict[str, Any]]] = [
        ("sys", "system", {"text": "You are opencode"}),
        ("msg_1", "user", {"text": "read it and commit", "time": {"created": T}}),
        ("syn", "synthetic", {"text": "The file was attached", "time": {"created": T}}),
        ("msg_2", "assistant", {"time": ANSWER["time"], "model": {"id": "m-1"}, "finish": "stop",
            "tokens": ANSWER["tokens"], "content": [
                {"type": "tool", "id": CALL, "name": "bash", "state": state},
                {"type": "text", "text": "Committed."}]}),
    ]  # fmt: skip
    for seq, (name, kind, data) in enumerate(rows):
        connection.execute(
            "INSERT INTO session_message VALUES (?,?,?,?,?,?,?)",
            (name, SESSION, kind, seq, T, T, json.dumps(data)),
        )


def looked(
    connection: sqlite3.Connection, mark: dict[str, Any]
) -> tuple[list[Record], dict[str, Any]]:
    records: list[Record] = []
    for name, found, after in DATABASE.parse_database(connection, mark):
        assert name == SESSION
        records.extend(found)
        mark = after
    return records, mark


def tree() -> list[Record]:
    base = "/h/.local/share/opencode/storage"
    info = {"id": SESSION, "directory": "/p", "title": "Named", "time": {"created": T}}
    files = [(f"{base}/session/p/{SESSION}.json", info)]
    files += [(f"{base}/message/{SESSION}/{name}.json", {**data, "id": name, "sessionID": SESSION})
              for name, data in (("msg_1", USER), ("msg_2", ANSWER))]  # fmt: skip
    files += [(f"{base}/part/{message}/{name}.json",
               {**data, "id": name, "messageID": message, "sessionID": SESSION})
              for name, message, data in PARTS]  # fmt: skip
    records: list[Record] = []
    for path, value in files:
        data = json.dumps(value).encode()
        assert TREE.session_id(path, data) == SESSION
        records.extend(TREE.parse_document(path, data))
    return records


def test_three_stores_say_the_same_under_the_same_keys() -> None:
    old, new = sqlite3.connect(":memory:"), sqlite3.connect(":memory:")
    first(old)
    second(new)
    stores = [looked(old, {})[0], looked(new, {})[0], tree()]
    for records in stores:
        assert texts(records, "user") == ["read it and commit"]
        assert texts(records, "assistant") == ["Committed."]
        assert texts(records, "tool") == ["[main 1a2b3c4] x"]
        assert not damage(records)
        (action,) = actions(records).values()
        assert (action.key, action.commit, action.status) == (CALL, "1a2b3c4", "ok")
        assert action.ended_at == "2026-05-28T10:00:03Z"
        session = session_of(records)
        assert (session["cwd"], session["model"]) == ("/p", "m-1")
    keys = [{m.key for m in messages(records, "user", "assistant", "tool")} for records in stores]
    assert keys[0] == keys[1] == keys[2]
    session = session_of(stores[0])
    assert "title" not in session  # the default title says nothing
    assert (session["cost_usd"], session["status"]) == (0.25, "completed")
    assert session["tokens"] == {"input": 10, "output": 3, "cache_read": 7}


def test_version_2_goes_before_the_stale_copy() -> None:
    both = sqlite3.connect(":memory:")
    first(both)
    second(both)
    records, _ = looked(both, {})
    assert session_of(records)["agent_version"] == "2.0"
    assert len(texts(records, "user")) == 1


def test_only_what_changed_is_told_again() -> None:
    connection = sqlite3.connect(":memory:")
    first(connection)
    records, mark = looked(connection, {})
    # What was written in the last two seconds is looked at once more, and says the same.
    again, mark = looked(connection, mark)
    assert {m.key for m in messages(again)} <= {m.key for m in messages(records)}
    growing = {"type": "text", "text": "work", "time": {"start": T + 60_000}}
    later = {**ANSWER, "time": {"created": T + 60_000}}
    connection.execute("INSERT INTO message VALUES (?,?,?,?,?)",
                       ("msg_3", SESSION, T + 60_000, T + 60_000, json.dumps(later)))  # fmt: skip
    connection.execute("INSERT INTO part VALUES (?,?,?,?,?,?)",
                       ("prt_9", "msg_3", SESSION, T, T, json.dumps(growing)))  # fmt: skip
    streaming, mark = looked(connection, mark)
    assert "work" not in texts(streaming), "half an answer is not told"
    growing = {**growing, "text": "work done", "time": {"start": T + 60_000, "end": T + 61_000}}
    connection.execute("UPDATE part SET data = ? WHERE id = 'prt_9'", (json.dumps(growing),))
    connection.execute("UPDATE message SET time_updated = ? WHERE id = 'msg_3'", (T + 61_000,))
    done, mark = looked(connection, mark)
    assert texts(done, "assistant") == ["work done"]


@pytest.mark.parametrize("make", [first, second])
def test_a_revert_marks_what_it_undoes(make: Any) -> None:
    connection = sqlite3.connect(":memory:")
    make(connection)
    table = "session" if make is first else "session_v2"
    connection.execute(f"UPDATE {table} SET revert = ?", (json.dumps({"messageID": "msg_2"}),))
    records, _ = looked(connection, {})
    (rollback,) = [record for record in records if isinstance(record, Rollback)]
    assert rollback.from_key in {m.key for m in messages(records)}


def test_a_subagent_s_prompts_are_not_the_user_s() -> None:
    connection = sqlite3.connect(":memory:")
    first(connection)
    connection.execute("UPDATE session SET parent_id = 'ses_0'")
    records, _ = looked(connection, {})
    session = session_of(records)
    assert session["is_subagent"] and session["parent"] == "ses_0"
    assert not texts(records, "user")


def test_foreign_and_damaged_databases() -> None:
    empty = sqlite3.connect(":memory:")
    assert looked(empty, {}) == ([], {})
    empty.execute("CREATE TABLE session (id text)")
    assert looked(empty, {})[0] == []
    broken = sqlite3.connect(":memory:")
    first(broken)
    broken.execute("UPDATE part SET data = '{\"type\":' WHERE id = 'prt_5'")
    broken.execute("UPDATE part SET data = x'ff00' WHERE id = 'prt_3'")
    records, _ = looked(broken, {})
    assert texts(records, "user") == ["read it and commit"]
    assert damage(records) == ["json", "json"]


@pytest.mark.skipif(SHARED is None, reason="the larger collection is not here")
def test_a_real_database_and_its_second_version() -> None:
    assert SHARED is not None
    found = []
    for home in ("opencode", "opencode2"):
        path = SHARED / home / ".local/share/opencode/opencode.db"
        connection = sqlite3.connect(f"file:{Path(path)}?mode=ro", uri=True)
        ((_, records, _),) = DATABASE.parse_database(connection, {})
        found.append(records)
    for role in ("user", "assistant"):
        assert texts(found[0], role) == texts(found[1], role)
        assert len(texts(found[0], role)) >= 8
    assert actions(found[0]).keys() == actions(found[1]).keys()
