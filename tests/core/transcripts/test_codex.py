"""Codex: four eras of one conversation, twins, forks, reverts, migration, compression."""

import json
from pathlib import Path
from typing import Any

import pytest
import zstandard

from lored.core.transcripts import PARSERS, classify
from lored.core.transcripts.records import Compaction, Message, Record, Rollback
from support.transcripts import (
    SAMPLES,
    SHARED,
    actions,
    content,
    damage,
    messages,
    read_lines,
    session_of,
    texts,
)

PARSER: Any = PARSERS["codex"]
ROLLOUTS = SAMPLES / "codex/.codex/sessions"
THREAD = "019fc8be-3658-7ca3-9e29-123456789abc"
PATH = f"/h/.codex/sessions/2026/09/01/rollout-2026-09-01T10-00-00-{THREAD}.jsonl"
TURN = "019fc8be-0000-7000-8000-00000000000{}"

LEGACY = "2026/06/18/rollout-2026-06-18T00-52-03-019ed836-b1da-78f1-8a0c-e598363d10f4"
PAGINATED = "2026/10/01/rollout-2026-10-01T11-30-54-01a014ed-94a5-7636-83f8-a12069ab658f"
REVERT = (
    "2026/10/01/rollout-2026-10-01T20-00-00-01a014ed-94a5-7636-83f8-a12069ab658f"
    "_01a05610-874b-78c6-81e3-8ce95782852e"
)
FORK_BY_REFERENCE = "2026/10/01/rollout-2026-10-01T21-00-00-01a0d423-075c-7053-81f6-5cd125a571db"
FORK = "2026/07/02/rollout-2026-07-02T09-00-00-019ed836-b1da-78f1-8a0c-e598363df0f0"
BARE = "2025/08/20/rollout-2025-08-20T11-34-37-97b66f6c-a160-40e0-bd0f-1fdcbbb94980"

AGENTV = {
    "cwd": "/home/devuser/projects/EntityProcess/agentv",
    "branch": "main",
    "commit": "e637ac4f4cd6d5e926cb98863ebde63edb7e3b21",
    "model": "gpt-5.4",
    "status": "active",  # copied while its second turn ran
    "tokens": {"input": 266714, "output": 2958, "cache_read": 230656, "reasoning": 562},
    "prompt_title": "remove agentv-claude-trace plugin no longer needed, can merge directly",
}
HAND = {
    LEGACY: (
        {**AGENTV, "agent_version": "0.140.0", "started_at": "2026-06-18T00:52:03.755Z",
         "ended_at": "2026-06-18T01:07:28.994Z"},
        {"user": 2, "assistant": 8, "commands": 20, "edits": 15, "other": 2},
    ),
    PAGINATED: (
        {**AGENTV, "agent_version": "0.159.3", "started_at": "2026-10-01T09:26:05.302Z",
         "ended_at": "2026-10-01T09:41:30.541Z"},
        {"user": 2, "assistant": 8, "commands": 20, "edits": 15, "other": 2},
    ),
    BARE: (
        {"cwd": "/home/devrm/projects/python-3/OpenPrintKit", "branch": "main",
         "commit": "26c7da5a79759b6286d8e34be5776108a6d6f82b",
         "started_at": "2025-11-01T17:34:37.770Z", "prompt_title": "continue"},
        {"user": 2, "assistant": 4, "commands": 26, "edits": 14, "other": 0},
    ),
}  # fmt: skip


def records_of(name: str, folder: Path = ROLLOUTS) -> list[Record]:
    path = folder / f"{name}.jsonl"
    return read_lines(PARSER, str(path), path.read_bytes())


def parsed(*lines: dict[str, Any]) -> list[Record]:
    return read_lines(PARSER, PATH, b"\n".join(json.dumps(line).encode() for line in lines))


def line(kind: str, n: int = 1, **payload: Any) -> dict[str, Any]:
    return {"timestamp": f"2026-09-01T10:00:{n:02d}.000Z", "type": kind, "payload": payload}


def event(kind: str, n: int = 1, **payload: Any) -> dict[str, Any]:
    return line("event_msg", n, **{"type": kind, **payload})


def item(kind: str, turn: int = 1, n: int = 1, **fields: Any) -> dict[str, Any]:
    return event("item_completed", n, thread_id=THREAD, turn_id=TURN.format(turn),
                 item={"type": kind, **fields})  # fmt: skip


def spoken(role: str, text: str, n: int = 1, **more: Any) -> dict[str, Any]:
    part = "output_text" if role == "assistant" else "input_text"
    return line("response_item", n, type="message", role=role,
                content=[{"type": part, "text": text}], **more)  # fmt: skip


def turn(number: int = 1) -> dict[str, Any]:
    return event("task_started", turn_id=TURN.format(number))


@pytest.mark.parametrize("name", HAND)
def test_a_session_checked_by_hand(name: str) -> None:
    expected, counts = HAND[name]
    records = records_of(name)
    session = session_of(records)
    assert {field: session.get(field) for field in expected} == expected
    kinds = [action.kind for action in actions(records).values()]
    assert counts == {
        "user": len(messages(records, "user")),
        "assistant": len(messages(records, "assistant")),
        "commands": kinds.count("command"),
        "edits": kinds.count("edit"),
        "other": kinds.count("other"),
    }


def test_paginated_and_legacy_forms_say_the_same() -> None:
    """The paginated sample is the legacy one written again: even the keys are equal, as after
    a migration."""
    old, new = records_of(LEGACY), records_of(PAGINATED)
    for role in ("user", "assistant"):
        assert texts(old, role) == texts(new, role)
    keys = [[m.key for m in messages(records, "user", "assistant")] for records in (old, new)]
    assert keys[0] == keys[1]
    assert actions(old).keys() == actions(new).keys()
    assert {a.command for a in actions(old).values()} == {a.command for a in actions(new).values()}


@pytest.mark.skipif(SHARED is None, reason="the larger collection is not here")
def test_migration_adds_nothing_and_loses_nothing() -> None:
    assert SHARED is not None
    folder = SHARED / "codex/growth/codex-migrated-019c8adb"
    steps = [records_of(f"step{n}", folder) for n in (1, 2)]
    keys = [{m.key: m.text for m in messages(records)} for records in steps]
    assert keys[0] == keys[1] and keys[0]


@pytest.mark.skipif(SHARED is None, reason="the larger collection is not here")
def test_the_larger_paginated_conversation() -> None:
    assert SHARED is not None
    base = SHARED / "codex/.codex/sessions/2026"
    old = records_of("07/01/rollout-2026-07-01T11-16-01-019f1d64-a048-7e10-8a4d-fd6b9e9d7b34", base)
    new = records_of("09/18/rollout-2026-09-18T11-30-54-01a0f6b5-2846-75d4-8b2f-71ab54c0d814", base)
    for role in ("user", "assistant"):
        said = texts(new, role)
        assert said and texts(old, role)[: len(said)] == said


def test_twins_are_told_once_in_any_order() -> None:
    for pair in (
        [spoken("user", "fix it"), event("user_message", message="fix it")],
        [event("user_message", message="fix it"), spoken("user", "fix it")],
    ):
        for answer in (
            [spoken("assistant", "done"), event("agent_message", message="done")],
            [event("agent_message", message="done"), spoken("assistant", "done")],
        ):
            records = parsed(turn(), *pair, *answer, event("task_complete"))
            assert texts(records, "user") == ["fix it"]
            assert texts(records, "assistant") == ["done"]


def test_without_events_the_response_items_speak() -> None:
    records = parsed(
        line("session_meta", id=THREAD, cwd="/p"),
        spoken("user", "<environment_context>\n<cwd>/p</cwd></environment_context>"),
        spoken("user", "fix it", 2),
        spoken("assistant", "done", 3),
        spoken("user", "again", 4),
        spoken("assistant", "done", 5),
    )
    assert texts(records, "user") == ["fix it", "again"]
    assert texts(records, "assistant") == ["done", "done"]


def test_a_turn_without_events_in_a_file_that_has_them() -> None:
    records = parsed(
        turn(1), event("user_message", message="one"), spoken("user", "one"),
        event("agent_message", message="first"), event("task_complete"),
        turn(2), spoken("user", "two"), spoken("assistant", "second"), event("task_complete"),
        turn(3), item("UserMessage", 3, id="u", content=[{"type": "text", "text": "three"}]),
    )  # fmt: skip
    assert texts(records, "user") == ["one", "two", "three"]
    assert texts(records, "assistant") == ["first", "second"]


def test_the_same_words_in_two_turns_are_two_messages() -> None:
    records = parsed(
        turn(1), event("user_message", message="continue"), spoken("user", "continue"),
        turn(2), event("user_message", message="continue"), spoken("user", "continue"),
    )  # fmt: skip
    assert texts(records, "user") == ["continue", "continue"]
    no_ids = parsed(
        event("user_message", message="yes"), event("agent_message", message="a"),
        event("user_message", message="yes"), event("agent_message", message="b"),
    )  # fmt: skip
    assert texts(no_ids, "user") == ["yes", "yes"]


def test_several_prompts_in_one_turn() -> None:
    records = parsed(
        turn(1),
        item("UserMessage", id="a", content=[{"type": "text", "text": "one"}]),
        item("UserMessage", id="b", content=[{"type": "text", "text": "two"}]),
    )
    assert texts(records, "user") == ["one", "two"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rename it\n", "rename it\n"),
        ("# AGENTS.md instructions for /p\n\n<INSTRUCTIONS>x</INSTRUCTIONS>", None),
        ("<environment_context>\n<cwd>/p</cwd>\n</environment_context>", None),
        ("<turn_aborted>\nx\n</turn_aborted>", None),
        ("<brand_new_context>\nx\n</brand_new_context>", None),
        ("<b>bold</b> please", "<b>bold</b> please"),
        ("# Context from my IDE setup:\n\n## Active file: a.py\n\n## My request for Codex:\nwhy?\n",
         "why?"),
        ("# Files mentioned by the user:\n\n## a.png: /tmp/a.png\n\n## My request for Codex:\nlook",
         "look"),
        ("<image name=[Image #1]>\n</image>\n[Image #1] what is it", "what is it"),
        ('<send_user_message_question_reply>{"answers":{"q":"use uv"}}'
         "</send_user_message_question_reply>", "use uv"),
        ("# Facts\n• [F1] we use uv\n\n", None),
    ],
)  # fmt: skip
def test_whose_words_they_are(text: str, words: str | None) -> None:
    for record in (event("user_message", message=text), spoken("user", text)):
        assert texts(parsed(record), "user") == ([] if words is None else [words])


def test_the_kinds_of_parts_decide() -> None:
    record = line(
        "response_item",
        type="message",
        role="user",
        content=[
            {"type": "input_text", "text": "injected"},
            {"type": "input_text", "text": "typed"},
        ],
        internal_chat_message_metadata_passthrough={
            "content_item_kinds": ["host_skills.instructions", "user.text"]
        },
    )
    assert texts(parsed(record), "user") == ["typed"]


def test_developer_and_reasoning_are_not_words() -> None:
    records = parsed(
        spoken("developer", "secret rules"),
        line("response_item", type="reasoning", summary=[{"text": "hm"}], encrypted_content="x"),
        event("agent_reasoning", text="hm"),
        item("HookPrompt", fragments=["hook says"]),
    )
    assert not messages(records)


def test_fork_names_its_source_and_keeps_its_keys() -> None:
    parent, fork = records_of(LEGACY), records_of(FORK)
    assert session_of(fork)["forked_from"] == "019ed836-b1da-78f1-8a0c-e598363d10f4"
    keys = {m.key for m in messages(parent, "user", "assistant")}
    own = [m.text for m in messages(fork, "user", "assistant") if m.key not in keys]
    assert own[0].startswith("Take the other approach in this fork")
    assert texts(fork, "user")[0] == texts(parent, "user")[0]
    reference = session_of(records_of(FORK_BY_REFERENCE))
    assert reference["forked_from"] == "01a014ed-94a5-7636-83f8-a12069ab658f"


def test_a_revert_is_the_same_thread_with_a_base() -> None:
    thread = "01a014ed-94a5-7636-83f8-a12069ab658f"
    assert PARSER.session_id(f"{REVERT}.jsonl", b"") == thread
    session = session_of(records_of(REVERT))
    assert session["extra"]["history_base"] == {
        "thread_id": thread,
        "end_ordinal": 95,
        "end_offset": 183816,
    }
    assert "forked_from" not in session


def test_rollback_and_rename() -> None:
    records = parsed(event("thread_rolled_back", num_turns=2), event("thread_name_updated",
                     thread_id=THREAD, thread_name="Better name"))  # fmt: skip
    assert [r.turns for r in records if isinstance(r, Rollback)] == [2]
    assert session_of(records)["title"] == "Better name"


@pytest.mark.parametrize(
    "meta",
    [
        {"source": {"subagent": {"thread_spawn": {"parent_thread_id": "p-1", "depth": 1}}}},
        {"source": {"subagent": {"other": "guardian"}}, "parent_thread_id": "p-1"},
        {"thread_source": "subagent", "parent_thread_id": "p-1"},
    ],
)
def test_a_subagent_s_prompts_are_the_parent_s(meta: dict[str, Any]) -> None:
    records = parsed(
        line("session_meta", id=THREAD, **meta), event("user_message", message="review it")
    )
    session = session_of(records)
    assert session["is_subagent"] and session["parent"] == "p-1"
    assert texts(records, "context") == ["review it"] and not texts(records, "user")


def test_the_parent_s_history_at_the_head_of_a_subagent_s_file() -> None:
    records = parsed(
        line("session_meta", id=THREAD, thread_source="subagent", subagent_history_start_ordinal=5),
        {**event("user_message", message="the parent's"), "ordinal": 2},
        {**event("agent_message", message="mine"), "ordinal": 7},
    )
    assert [m.text for m in messages(records)] == ["mine"]


def test_the_first_meta_is_the_identity() -> None:
    records = parsed(
        line("session_meta", id=THREAD, cwd="/first"),
        line("session_meta", id="other", cwd="/second"),
    )
    assert session_of(records)["cwd"] == "/first"


def test_compaction_keeps_the_message_and_never_reads_the_history() -> None:
    history = [{"type": "message", "role": "user", "content": "x" * 9_000}]
    records = parsed(
        line("compacted", message="We chose SQLite.", replacement_history=history, window_id="w"),
        line("compacted", message="", replacement_history=history),
    )
    assert [r.summary for r in records if isinstance(r, Compaction)] == ["We chose SQLite."]
    assert texts(records, "summary") == ["We chose SQLite."]
    assert not damage(records)


def test_tokens_fall_back_when_a_new_count_begins() -> None:
    def count(total: int) -> dict[str, Any]:
        usage = {"input_tokens": total, "output_tokens": 1}
        return event("token_count", info={"total_token_usage": usage})

    assert session_of(parsed(count(10), count(50)))["tokens"] == {"input": 50, "output": 1}
    records = parsed(count(10), count(50), event("token_count", info=None), count(7))
    assert session_of(records)["tokens"] == {"input": 57, "output": 2}


def test_a_command_that_outlives_its_call() -> None:
    def call(name: str, call_id: str, **arguments: Any) -> dict[str, Any]:
        return line("response_item", type="function_call", name=name, call_id=call_id,
                    arguments=json.dumps(arguments))  # fmt: skip

    def output(call_id: str, text: str) -> dict[str, Any]:
        return line("response_item", type="function_call_output", call_id=call_id, output=text)

    first = "call_AAAAAAAAAAAAAAAAAAAAAAAA"
    lines = [
        call("exec_command", first, cmd="cargo test"),
        output(first, "Chunk ID: 1\nWall time: 1 seconds\nProcess running with session ID 42\n"
               "Output:\nCompiling"),
    ]  # fmt: skip
    assert actions(parsed(*lines))[first].status == "running"
    lines += [
        call("write_stdin", "call_BBBBBBBBBBBBBBBBBBBBBBBB", session_id=42, chars=""),
        output("call_BBBBBBBBBBBBBBBBBBBBBBBB",
               "Chunk ID: 2\nWall time: 9 seconds\nProcess exited with code 101\nOutput:\nFAILED"),
    ]  # fmt: skip
    records = parsed(*lines)
    made = actions(records)
    assert list(made) == [first]
    assert (made[first].status, made[first].exit_code) == ("failed", 101)
    assert texts(records, "tool") == ["Compiling", "FAILED"]


def test_what_only_items_show() -> None:
    records = parsed(
        item("CommandExecution", id="exec-1", command=["bash", "-lc", "ls"], exit_code=0,
             status="completed", aggregated_output="a.txt"),
        item("FileChange", id="patch-1", status="completed", changes={
            "/p/a.py": {"type": "update", "unified_diff": "@@\n-a\n+b\n+c"},
            "/p/b.py": {"type": "add", "content": "1\n2\n"}}),
        item("McpToolCall", id="mcp-1", server="files", tool="read_file", arguments={"path": "x"},
             result={"content": [{"type": "text", "text": "hello"}], "isError": False}),
    )  # fmt: skip
    found = {(a.kind, a.command or a.target, a.status) for a in actions(records).values()}
    assert found == {
        ("command", "ls", "ok"),
        ("edit", "/p/a.py", "ok"),
        ("edit", "/p/b.py", "ok"),
        ("read", "x", "ok"),
    }
    assert texts(records, "tool") == ["a.txt", "hello"]


def test_titles_and_prompts_of_the_root() -> None:
    index = b'{"id":"t-1","thread_name":"old"}\n{"id":"t-1","thread_name":"new"}\n'
    records = PARSER.parse_sidecar("/h/.codex/session_index.jsonl", index)
    assert [(r.session, r.title) for r in records] == [("t-1", "new")]
    history = (SAMPLES / "codex/.codex/history.jsonl").read_bytes()
    found = [r for r in PARSER.parse_sidecar("/h/.codex/history.jsonl", history)
             if isinstance(r, Message)]  # fmt: skip
    assert len(found) == 52 and found[0].text == "continue" and found[0].extra["side_channel"]
    assert found[0].at == "2025-11-01T17:34:41Z"


def test_compressed_files_are_the_same_session(tmp_path: Path) -> None:
    plain = ROLLOUTS / f"{LEGACY}.jsonl"
    packed = tmp_path / f"{plain.name}.zst"
    packed.write_bytes(zstandard.compress(plain.read_bytes()))
    assert classify("codex", f"sessions/2026/06/18/{packed.name}") == "transcript"
    assert PARSER.session_id(str(packed), b"") == PARSER.session_id(str(plain), b"")
    assert read_lines(PARSER, str(plain), content(packed)) == records_of(LEGACY)


def test_unknown_kinds_are_counted() -> None:
    records = parsed(line("brand_new"), event("new_event"), item("NewItem"),
                     line("response_item", type="new_response"))  # fmt: skip
    assert damage(records, lost=False) == [
        "unknown_type:brand_new",
        "unknown_type:event/new_event",
        "unknown_type:item/NewItem",
        "unknown_type:response/new_response",
    ]
