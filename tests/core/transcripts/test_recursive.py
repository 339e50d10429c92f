"""Recursive: three sessions checked by hand, metadata, both forms of compaction, pairing."""

import json
from pathlib import Path
from typing import Any

import pytest

from lored.core.transcripts import PARSERS, classify, parser_name
from lored.core.transcripts.records import Compaction, Record
from support.transcripts import (
    SAMPLES,
    actions,
    damage,
    messages,
    read,
    read_lines,
    samples_of,
    session_of,
    texts,
)

PARSER: Any = PARSERS["recursive"]
PATH = "/h/.recursive/workspaces/0123456789ab/sessions/p/2026-05-28T03-41-37Z-p/transcript.jsonl"
SAMPLE = {
    sample.path.parent.name: sample for sample in samples_of(SAMPLES) if sample.agent == "recursive"
}

HAND = {
    "2025-11-20T23-33-01Z-home-user-code-agent-mono": (
        {
            "cwd": "/home/user/code/agent-mono",
            "model": "deepseek-chat",
            "title": "/mode",
            "status": "completed",
            "started_at": "2025-11-20T23:33:01Z",
            "ended_at": "2025-11-21T00:03:43Z",
            "tokens": {
                "input": 114,
                "output": 16695,
                "cache_write": 143098,
                "cache_read": 3356452,
            },
        },
        {"user": 6, "assistant": 45, "tool": 78, "summary": 1, "actions": 94, "lost": []},
    ),
    "2025-11-21T00-38-43Z-home-user-code-agent-mono": (
        {
            "cwd": "/home/user/code/agent-mono",
            "status": "active",
            "started_at": "2025-11-21T00:38:43Z",
            "ended_at": "2025-11-21T00:52:48Z",
        },
        {"user": 8, "assistant": 10, "tool": 12, "summary": 1, "actions": 12, "lost": ["torn"]},
    ),
    "2025-11-21T01-11-42Z-home-user-code-old-shape": (
        {
            "cwd": "/home/user/code/old-shape",
            "model": "deepseek-chat",
            "status": "completed",
            "cost_usd": 0.09352,
            "started_at": "2025-11-21T01:11:42Z",
        },
        {"user": 5, "assistant": 11, "tool": 20, "summary": 0, "actions": 20, "lost": []},
    ),
}


def parsed(*lines: dict[str, Any]) -> list[Record]:
    return read_lines(PARSER, PATH, b"\n".join(json.dumps(line).encode() for line in lines))


@pytest.mark.parametrize("name", HAND)
def test_a_session_checked_by_hand(name: str) -> None:
    expected, counts = HAND[name]
    ((native, records),) = read(SAMPLE[name]).items()
    assert native == name
    session = session_of(records)
    assert {field: session.get(field) for field in expected} == expected
    found: dict[str, Any] = {
        role: len(messages(records, role)) for role in ("user", "assistant", "tool", "summary")
    }
    assert {**found, "actions": len(actions(records)), "lost": damage(records, lost=True)} == counts


def test_calls_in_the_raw_file_are_the_actions() -> None:
    for sample in SAMPLE.values():
        called = set()
        for line in sample.path.read_bytes().split(b"\n"):
            try:
                called |= {call["id"] for call in json.loads(line).get("tool_calls", ())}
            except ValueError:
                continue
        ((_, records),) = read(sample).items()
        assert {key.rpartition(":")[2] for key in actions(records)} == called


def test_structured_compaction() -> None:
    text = (
        "[compacted: 82 messages → 612 chars at step 41]\n[compacted: structured at step 41]\n\n"
        "Summary: We moved to SQLite.\n\nKey facts to remember:\n- uses FTS5\n- port 7\n\n"
        "Outstanding TODOs:\n- write docs"
    )
    records = parsed(
        {"type": "system", "subtype": "compact_boundary", "timestamp": "2026-05-28T03:41:40Z"},
        {"uuid": "u", "role": "system", "content": text},
        {"uuid": "v", "role": "system", "content": "[post-compact file restore: a.py]\nx"},
    )
    (compaction,) = [record for record in records if isinstance(record, Compaction)]
    assert compaction.kept_facts == ["uses FTS5", "port 7"]
    assert compaction.next_steps == ["write docs"]
    assert texts(records, "context") == ["[post-compact file restore: a.py]\nx"]


def test_free_compaction_inside_a_turn() -> None:
    text = "[compacted: 9 messages → 99 chars at step 3]\nSummary:\n1. Request: fix it\n2. Concepts"
    (compaction,) = [r for r in parsed({"role": "system", "id": "msg_004", "content": text})
                     if isinstance(r, Compaction)]  # fmt: skip
    assert compaction.summary == text and compaction.kept_facts == []


def test_outcomes_and_exact_times() -> None:
    call = {"id": "c1", "name": "run_shell", "arguments": {"command": "cargo test"}}
    audit = {"started_at": 1779962400000, "finished_at": 1779962405000,
             "exit_status": {"type": "err", "message": "x"}}  # fmt: skip
    records = parsed(
        {"role": "assistant", "id": "msg_002", "content": "", "tool_calls": [call]},
        {"role": "tool", "id": "msg_003", "tool_call_id": "c1", "content": "boom", "audit": audit},
        {"role": "tool", "id": "msg_004", "tool_call_id": "gone", "content": "orphan"},
    )
    (action,) = actions(records).values()
    assert (action.command, action.status) == ("cargo test", "failed")
    assert action.ended_at == "2026-05-28T10:00:05Z"
    assert texts(records, "tool") == ["boom", "orphan"]


def test_its_memory_s_answers_do_not_come_back() -> None:
    call = {"id": "c1", "name": "recall", "arguments": {"query": "key"}}
    records = parsed(
        {"role": "assistant", "id": "msg_002", "content": "", "tool_calls": [call]},
        {"role": "tool", "id": "msg_003", "tool_call_id": "c1", "content": "F1 the deploy key"},
    )
    assert not any("deploy" in message.text for message in messages(records))


def test_metadata_of_every_age() -> None:
    def meta(**fields: Any) -> dict[str, Any]:
        return session_of(PARSER.parse_sidecar("x/.meta.json", json.dumps(fields).encode()))

    for status, told in (("success", "completed"), ("crashed", "failed"), ("paused", "interrupted"),
                         ("never-seen", "active")):  # fmt: skip
        assert meta(status=status)["status"] == told
    assert meta(name="n", goal="g", first_prompt="f")["title"] == "n"
    assert meta(goal="g", first_prompt="f")["title"] == "g"
    assert meta(cost_usd=0.0).get("cost_usd") is None
    strange = PARSER.parse_sidecar("x/.meta.json", b'{"schema_version":2}')
    assert damage(strange) == ["unknown_version:2"]
    assert damage(PARSER.parse_sidecar("x/.meta.json", b'{"status":"act')) == ["torn"]


def test_places_of_a_session() -> None:
    assert PARSER.session_id(PATH, b"") == "2026-05-28T03-41-37Z-p"
    assert PARSER.sidecars(PATH) == [
        str(Path(PATH).with_name(".meta.json")),
        str(Path(PATH).with_name("cost.json")),
        "/h/.recursive/workspaces/0123456789ab/path.txt",
    ]
    for name, kind in (("transcript.jsonl", "transcript"), (".meta.json", "sidecar"),
                       (".lock", None), ("checkpoints.jsonl", None)):  # fmt: skip
        assert classify("recursive", f"workspaces/0123456789ab/sessions/s/{name}") == kind


def test_the_oldest_forms() -> None:
    path = "/p/.recursive/sessions/2026-05-01T10:00:00Z-p/transcript.jsonl"
    line = json.dumps({"id": "msg_001", "role": "user", "content": "fix it"}).encode()
    assert session_of(read_lines(PARSER, path, line))["cwd"] == "/p"
    name = "sessions/2026-05-01T10-00-00Z-fix-it.json"
    parser: Any = PARSERS[parser_name("recursive", name) or ""]
    value = {"goal": "Fix it", "status": "success", "transcript": [json.loads(line), None]}
    records = list(parser.parse_document(f"/p/.recursive/{name}", json.dumps(value).encode()))
    assert texts(records, "user") == ["fix it"]
    session = session_of(records)
    assert (session["title"], session["status"], session["cwd"]) == ("Fix it", "completed", "/p")
    assert damage(parser.parse_document("x.json", b'{"messages":[]}')) == [
        "unknown_version:recursive"
    ]
