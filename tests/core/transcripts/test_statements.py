"""Calls that ask a memory to remember are told by the parser of every agent that has calls."""

import json
from typing import Any

import pytest

from lored.core.transcripts import PARSERS
from lored.core.transcripts.records import Action, Record

SAID = {"text": "TTL is 300s", "entities": ["tool:redis"]}
ARGUMENTS = {"text": "TTL is 300s", "entities": ["tool:redis"]}


def states(records: list[Record]) -> list[dict[str, Any]]:
    return [
        record.extra["states"]
        for record in records
        if isinstance(record, Action) and "states" in record.extra
    ]


def of_lines(agent: str, path: str, *items: dict[str, Any]) -> list[Record]:
    parser: Any = PARSERS[agent]
    state, out = parser.begin(path), []
    for item in items:
        out += parser.parse(state, json.dumps(item).encode(), 0)
    return list(out)


def test_pi() -> None:
    call = {
        "type": "message",
        "id": "a1",
        "timestamp": "2026-05-01T00:00:00.000Z",
        "message": {
            "role": "assistant",
            "content": [
                {"type": "toolCall", "id": "c1", "name": "remember_fact", "arguments": ARGUMENTS}
            ],
        },
    }
    typed = {
        "type": "message",
        "id": "a2",
        "timestamp": "2026-05-01T00:00:01.000Z",
        "message": {
            "role": "bashExecution",
            "command": "lore remember 'TTL is 300s' -e tool:redis",
            "exitCode": 0,
        },
    }
    head = {"type": "session", "id": "s1", "version": 3, "cwd": "/srv"}
    path = "2026-05-01T00-00-00-000Z_00000000-0000-4000-8000-000000000001.jsonl"
    assert states(of_lines("pi", path, head, call, typed)) == [SAID, SAID]


def test_antigravity() -> None:
    step = {
        "step_index": 1,
        "source": "MODEL",
        "type": "PLANNER_RESPONSE",
        "status": "DONE",
        "created_at": "2026-05-01T00:00:00Z",
        "content": "Noted.",
        "tool_calls": [{"name": "mcp_lore__remember", "args": ARGUMENTS}],
    }
    path = "brain/00000000-0000-4000-8000-000000000001/.system_generated/logs/transcript.jsonl"
    assert states(of_lines("antigravity", path, step)) == [SAID]


@pytest.mark.parametrize("kind", ["mcp", "command"])
def test_cline(kind: str) -> None:
    parser: Any = PARSERS["cline"]
    mcp = {"serverName": "lore", "toolName": "remember", "arguments": json.dumps(ARGUMENTS)}
    ask = {
        "mcp": {"ask": "use_mcp_server", "text": json.dumps(mcp)},
        "command": {"ask": "command", "text": "lore remember 'TTL is 300s' -e tool:redis"},
    }[kind]
    item = {"ts": 1_746_000_000_000, "type": "ask", **ask}
    records = parser.parse_document("/x/tasks/1/ui_messages.json", json.dumps([item]).encode())
    assert states(list(records)) == [SAID]


def test_opencode() -> None:
    """A part of the tree of files, in the state that it has once the call is done."""
    parser: Any = PARSERS["opencode-tree"]
    part = {
        "id": "prt_1",
        "sessionID": "ses_1",
        "messageID": "msg_1",
        "type": "tool",
        "callID": "call_0123456789abcdef01",
        "tool": "lore_remember_fact",
        "state": {"status": "completed", "input": ARGUMENTS, "output": "F1"},
    }
    path = "/x/storage/part/msg_1/prt_1.json"
    records = parser.parse_document(path, json.dumps(part).encode())
    assert states(list(records)) == [SAID]
