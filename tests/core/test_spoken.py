"""Which tool calls of transcripts state a fact."""

from typing import Any

import pytest

from lored.core.spoken import stated, stated_text


@pytest.mark.parametrize(
    "call",
    [
        {"tool": "remember", "arguments": {"text": "TTL is 300s", "tags": ["a"]}},
        {"name": "remember_fact", "args": {"text": "TTL is 300s"}},
        {"tool": "mcp__lore__remember_fact", "input": {"text": "TTL is 300s"}},
        {"tool": "lore_remember_fact", "input": {"text": "TTL is 300s"}},
        {"tool": "remind.remember", "arguments": '{"content": "TTL is 300s"}'},
        {"tool": "update_fact", "arguments": {"id": "F1", "new_text": "TTL is 300s"}},
        {"tool": "Bash", "command": "lore remember 'TTL is 300s' --tag cache"},
        {"tool": "Bash", "arguments": {"command": "cd x && lore remember --tag c TTL is 300s"}},
        {"tool": "shell", "arguments": {"command": ["bash", "-lc", "lore remember 'TTL is 300s'"]}},
        {"tool": "shell", "arguments": {"command": ["lore", "remember", "TTL is 300s"]}},
        {"tool": "Bash", "command": "/usr/bin/lore --workspace /x remember 'TTL is 300s'; ls"},
        {"tool": "Bash", "command": 'lore remember -e tool:redis "TTL is 300s" && git push'},
    ],
)
def test_calls_that_state(call: dict[str, Any]) -> None:
    assert stated_text(call) == "TTL is 300s"


@pytest.mark.parametrize(
    "call",
    [
        {},
        {"tool": "recall_fact", "arguments": {"query": "x"}},
        {"tool": "remember", "arguments": "not json"},
        {"tool": "remember", "arguments": {"text": "  "}},
        {"tool": "remember", "arguments": {"text": 5}},
        {"tool": "Bash", "command": "lore recall remember"},
        {"tool": "Bash", "command": "echo lore remembers"},
        {"tool": "Bash", "command": "lore remember 'open"},
        {"tool": "Bash", "command": "lore remember - < file"},
        {"tool": "Bash", "arguments": None},
        {"tool": "misremember", "arguments": {"text": "x"}},
    ],
)
def test_calls_that_do_not(call: dict[str, Any]) -> None:
    assert stated_text(call) is None


@pytest.mark.parametrize(
    ("call", "entities"),
    [
        ({"tool": "remember", "args": {"text": "x", "entities": ["tool:a", " tool:b "]}}, 2),
        ({"tool": "remember", "args": {"content": "x", "entities": "tool:a,tool:b"}}, 2),
        ({"tool": "Bash", "command": "lore remember x -e tool:a --entity tool:b"}, 2),
        ({"tool": "remember", "args": {"text": "x", "entities": {"tool": "a"}}}, 0),
        ({"tool": "remember", "args": {"text": "x", "entities": [1, None, ""]}}, 0),
    ],
)
def test_entities_that_a_call_names(call: dict[str, Any], entities: int) -> None:
    found = stated(call)
    assert found is not None and found.text == "x"
    assert found.entities == ["tool:a", "tool:b"][:entities]
