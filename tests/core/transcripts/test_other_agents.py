"""The agents beyond the first three: one session each checked by hand, and each one's traps."""

import json
from typing import Any

import pytest

from lored.core.transcripts import PARSERS
from lored.core.transcripts.gemini_cli import typed_words
from lored.core.transcripts.records import Compaction, Message, Record, Rollback
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

FOUND = list(samples_of(SAMPLES))

HAND: dict[str, tuple[dict[str, Any], dict[str, int]]] = {
    "session-2026-01-15T20-51-f7633853.json": (
        {"model": "gemini-2.5-flash", "started_at": "2026-01-15T20:51:48.582Z",
         "ended_at": "2026-01-15T20:52:56.382Z"},
        {"user": 1, "assistant": 10, "tool": 9, "actions": 9},
    ),
    "session-2026-01-15T20-51-f7633853.jsonl": (
        {"model": "gemini-2.5-flash"},
        {"user": 2, "assistant": 10, "tool": 9, "actions": 9},
    ),
    "0a1b2c3d-0000-4000-8000-000000000001": (
        {"model": "Gemini 3.5 Flash (Medium)", "started_at": "2026-06-26T21:16:16Z"},
        {"user": 1, "assistant": 1, "tool": 8, "actions": 8},
    ),
    "487fbe81-e917-46ad-a7c6-bf31cba53339": (
        {"branch": "runtime-sdk-child-runner-deps", "model": "gpt-5.4-mini", "status": "completed",
         "agent_version": "1.0.68",
         "tokens": {"input": 15517, "output": 45, "reasoning": 30}},
        {"user": 1, "assistant": 0, "tool": 0, "actions": 0},
    ),
    "ctx-session-mcp": ({"cwd": "/workspace/sanitized"}, {"user": 0, "actions": 21}),
    # 26 starts: four ids twice, one a number
    "pi-test-session-uuid": (
        {"cwd": "/Users/alice/code/my-project", "model": "claude-opus-4-5",
         "forked_from": "parent-uuid", "cost_usd": 0.015, "status": "completed",
         "tokens": {"input": 300, "output": 60}},
        {"user": 2, "assistant": 2, "tool": 1, "actions": 1, "summary": 1},
    ),
    "69f0814a-8bfc-4c8e-93d3-05757f17b96f": (
        {"cwd": "/tmp/qwentest", "model": "coder-model", "agent_version": "0.18.1",
         "tokens": {"input": 1100, "output": 25, "cache_read": 50}},
        {"user": 1, "assistant": 1, "tool": 1, "actions": 1},
    ),
    "019f0000-0000-7000-8000-000000000001": (
        {"cwd": "/tmp/as-qwen-fixture/project", "branch": "fixture-branch"},
        {"user": 1, "assistant": 1, "tool": 1, "actions": 1, "context": 1},
    ),
    "20250724_1": (
        {"cwd": "/workspace/demo", "title": "Synthetic Goose session"},
        {"user": 1, "assistant": 1},
    ),
    "sessions.db": (
        {"cwd": "/workspace/goose", "title": "Goose Fixture", "model": "gpt-5", "cost_usd": 0.042,
         "tokens": {"input": 80, "output": 43}},
        {"user": 1, "assistant": 0, "tool": 1, "actions": 1},
    ),
    "1784094124598_rruoq": (
        {"model": "mistralai/voxtral-small-24b-2507"}, {"user": 5, "summary": 0},
    ),
    "roo-task-1": (
        {"cwd": "/workspace/roo-fixture", "title": "Add a Roo Code task JSON import smoke test.",
         "tokens": {"input": 90, "output": 70}},
        {"user": 1, "tool": 1},
    ),
    "c0000000-0000-4000-8000-000000000001": (
        {"extra": {"slug": "tmp-repo"}, "prompt_title": "What files are here?"},
        {"user": 3, "assistant": 4, "tool": 2, "actions": 2},
    ),
    "T-0199c0de-0000-7000-8000-000000000001": (
        {"cwd": "/home/user/sample-project", "branch": "main",
         "title": "Review the viewer mock data",
         "model": "claude-sonnet-4-20250514", "started_at": "2025-09-07T09:52:03.071Z"},
        {"user": 1, "assistant": 3, "tool": 13},
    ),
    "session_store_large": (
        {"cwd": "/tmp/large", "title": "Stage0 Droid Large", "agent_version": "0.81.0"},
        {"user": 2, "assistant": 3, "tool": 1, "actions": 1},
    ),
    "session_store_schema_drift": ({"prompt_title": "Do the thing"}, {"user": 1, "assistant": 1}),
}  # fmt: skip


def records_of(name: str) -> list[Record]:
    sample = next(s for s in FOUND if name in s.path.parts or name in (s.path.name, s.path.stem)
                  or s.path.name.endswith(f"_{name}.jsonl"))  # fmt: skip
    return [record for found in read(sample).values() for record in found]


def parsed(agent: str, path: str, *lines: dict[str, Any]) -> list[Record]:
    return read_lines(PARSERS[agent], path, b"\n".join(json.dumps(x).encode() for x in lines))


@pytest.mark.parametrize("name", HAND)
def test_a_session_checked_by_hand(name: str) -> None:
    expected, counts = HAND[name]
    records = records_of(name)
    session = session_of(records)
    assert {field: session.get(field) for field in expected} == expected
    found: dict[str, int] = {
        role: len(messages(records, role))
        for role in ("user", "assistant", "tool", "summary", "context")
    }
    found["actions"] = len(actions(records))
    assert {kind: found[kind] for kind in counts} == counts


def test_gemini_rewinds_and_replaces() -> None:
    path = "/h/.gemini/tmp/p/chats/session-2026-01-01T00-00-s.jsonl"
    meta = {"sessionId": "s-1", "startTime": "2026-01-01T00:00:00Z"}
    records = parsed(
        "gemini-cli",
        path,
        meta,
        {"id": "a", "type": "user", "content": "one", "timestamp": "2026-01-01T00:00:01Z"},
        {"id": "b", "type": "gemini", "content": "draft", "tokens": {"input": 5, "output": 1}},
        {"id": "b", "type": "gemini", "content": "final", "tokens": {"input": 5, "output": 3}},
        {"$rewindTo": "b"},
        {"$set": {"summary": "A summary", "directories": ["/p"]}},
        {"$set": {"messages": [{"id": "a", "type": "user", "content": "one"}]}},
    )
    assert texts(records) == ["one", "final"]
    assert [r.from_key for r in records if isinstance(r, Rollback)] == ["s-1:b"]
    session = session_of(records)
    assert (session["title"], session["cwd"]) == ("A summary", "/p")
    assert session["tokens"] == {"input": 5, "output": 3}


@pytest.mark.parametrize(("after", "status"), [([], "interrupted"), (["user"], "active")])
def test_gemini_goes_on_after_a_cancelled_request(after: list[str], status: str) -> None:
    records = parsed(
        "gemini-cli",
        "/h/.gemini/tmp/p/chats/session-2026-01-01T00-00-s.jsonl",
        {"id": "a", "type": "user", "content": "one"},
        {"id": "b", "type": "info", "content": "Request cancelled."},
        *({"id": kind, "type": kind, "content": "again"} for kind in after),
    )
    assert session_of(records)["status"] == status


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("System: Please continue.", None),
        ("<session_context>\nToday", None),
        ("/chat save x", None),
        ("?", None),
        ("read @a.txt\n--- Content from referenced files ---\nsecret", "read @a.txt"),
        ("plain", "plain"),
    ],
)
def test_gemini_words(text: str, words: str | None) -> None:
    line = {"id": "a", "type": "user", "content": [{"text": text}]}
    found = texts(parsed("gemini-cli", "/t/p/chats/session-x.jsonl", line), "user")
    assert found == ([] if words is None else [words])


def test_antigravity_full_text_replaces_the_cut_one() -> None:
    base = "/h/.gemini/antigravity-cli/brain/c-1/.system_generated/logs"
    step = {"step_index": 3, "type": "PLANNER_RESPONSE", "created_at": "2026-06-26T21:16:16Z"}
    cut = parsed("antigravity", f"{base}/transcript.jsonl", {**step, "content": "abc"})
    full = parsed("antigravity", f"{base}/transcript_full.jsonl", {**step, "content": "abcdef"})
    assert texts(cut + full) == texts(full + cut) == ["abcdef"]


def test_antigravity_workspaces() -> None:
    parser: Any = PARSERS["antigravity"]
    history = b'{"display":"x","workspace":"/p","conversationId":"c-1"}\n'
    (patch,) = parser.parse_sidecar("/h/history.jsonl", history)
    assert (patch.session, patch.cwd) == ("c-1", "/p")
    (patch,) = parser.parse_sidecar("/h/cache/last_conversations.json", b'{"/q":"c-2"}')
    assert (patch.session, patch.cwd) == ("c-2", "/q")


def test_copilot_metadata_and_failures() -> None:
    parser: Any = PARSERS["copilot-cli"]
    path = "/h/.copilot/session-state/s-1/events.jsonl"
    records = parsed(
        "copilot-cli", path,
        {"type": "user.message", "id": "1", "data": {
            "content": "hi", "transformedContent": "<x>hi"}},
        {"type": "user.message", "id": "2", "data": {"content": "skill text", "source": "skill-a"}},
        {"type": "tool.execution_start", "id": "3", "data": {
            "toolCallId": "toolu_0123456789abcdefgh", "toolName": "bash",
            "arguments": {"command": "false"}}},
        {"type": "tool.execution_complete", "id": "4", "data": {
            "toolCallId": "toolu_0123456789abcdefgh", "success": False,
            "error": {"message": "exit 1"}}},
        {"type": "session.compaction_complete", "id": "5", "data": {
            "summaryContent": "We chose X."}},
        {"type": "abort", "id": "6", "data": {}},
        {"type": "brand.new", "id": "7", "data": {}},
    )  # fmt: skip
    assert texts(records, "user") == ["hi"]
    assert [a.status for a in actions(records).values()] == ["failed"]
    assert texts(records, "tool") == ["exit 1"]
    assert texts(records, "summary") == ["We chose X."]
    assert session_of(records)["status"] == "interrupted"
    assert damage(records) == ["unknown_type:brand.new"]
    (patch,) = parser.parse_sidecar("workspace.yaml", b'cwd: "/p"\nname: Tidy up\nbranch: null\n')
    assert (patch.cwd, patch.title, patch.branch) == ("/p", "Tidy up", None)


def test_copilot_puts_broken_records_together() -> None:
    parser: Any = PARSERS["copilot-cli"]
    path = "/h/.copilot/session-state/s-1/events.jsonl"
    whole = b'{"type":"user.message","id":"1","data":{"content":"one\ntwo\nthree"}}'
    after = b'{"type":"user.message","id":"2","data":{"content":"next"}}'
    records = read_lines(parser, path, whole + b"\n" + after, packed=True)
    assert texts(records, "user") == ["one\ntwo\nthree", "next"]
    assert damage(records, lost=True) == [] and damage(records) == ["torn"]
    torn = read_lines(parser, path, whole[:50] + b"\n" + after)
    assert texts(torn, "user") == ["next"] and damage(torn, lost=True) == ["torn"]


def test_pi_marks_an_abandoned_branch() -> None:
    def entry(name: str, parent: str | None, role: str, text: str, n: int) -> dict[str, Any]:
        stamp = 1779962400000 + n
        return {"type": "message", "id": name, "parentId": parent,
                "message": {"role": role, "content": [{"type": "text", "text": text}],
                            "timestamp": stamp}}  # fmt: skip

    path = "/h/.pi/agent/sessions/--p--/2026-05-28T10-00-00Z_s-1.jsonl"
    first = entry("a", None, "user", "try", 1)
    records = parsed(
        "pi", path, first, entry("b", "a", "assistant", "wrong", 2),
        entry("c", "b", "user", "no", 3), entry("d", "a", "assistant", "right", 4),
    )  # fmt: skip
    (rollback,) = [record for record in records if isinstance(record, Rollback)]
    wrong = next(m for m in messages(records) if m.text == "wrong")
    assert rollback.from_key == wrong.key
    assert records.index(rollback) < next(
        i for i, r in enumerate(records) if isinstance(r, Message) and r.text == "right"
    )
    # Rewritten in place by a newer version, the same messages keep their keys.
    old = parsed("pi", path, {k: v for k, v in first.items() if k not in ("id", "parentId")})
    assert messages(old)[0].key == messages(records)[0].key


def test_qwen_titles_forks_and_compression() -> None:
    base = {"sessionId": "s", "timestamp": "2026-05-28T10:00:00Z"}
    records = parsed(
        "qwen-code", "/h/.qwen/projects/p/chats/s.jsonl",
        {**base, "uuid": "1", "type": "user", "provenance": "hook",
         "message": {"parts": [{"text": "hook says"}]}, "forkedFrom": {"sessionId": "old"}},
        {**base, "uuid": "2", "type": "user", "subtype": "mid_turn_user_message",
         "provenance": "real_user", "message": {"parts": [{"text": "also this"}]}},
        {**base, "uuid": "3", "type": "system", "subtype": "custom_title",
         "systemPayload": {"customTitle": "Named"}},
        {**base, "uuid": "4", "type": "system", "subtype": "chat_compression",
         "systemPayload": {"summary": "We chose X."}},
        {**base, "uuid": "5", "type": "system", "subtype": "brand_new"},
    )  # fmt: skip
    assert texts(records, "user") == ["also this"]
    session = session_of(records)
    assert (session["title"], session["forked_from"]) == ("Named", "old")
    assert [r.summary for r in records if isinstance(r, Compaction)] == ["We chose X."]
    assert damage(records) == ["unknown_type:system/brand_new"]


@pytest.mark.parametrize(
    ("text", "role", "words"),
    [
        ("<timestamp>Tuesday, Apr 14, 2026, 9:05 AM (UTC+2)</timestamp>\n<user_query>\nfix it\n"
         "</user_query>", "user", "fix it"),
        ("<external_links>x</external_links>\n<user_query>why</user_query>", "user", "why"),
        ("<attached_files>secret</attached_files>", "context", None),
        ("plain words", "user", "plain words"),
    ],
)  # fmt: skip
def test_cursor_words(text: str, role: str, words: str | None) -> None:
    path = "/h/.cursor/projects/p/agent-transcripts/i/i.jsonl"
    line = {"role": "user", "message": {"content": [{"type": "text", "text": text}]}}
    (message,) = messages(parsed("cursor", path, line))
    assert message.role == role and (words is None or message.text == words)
    if "Apr 14" in text:
        assert message.at == "2026-04-14T07:05:00Z"
    sub = parsed("cursor", "/h/.cursor/projects/p/agent-transcripts/i/subagents/j.jsonl", line)
    assert session_of(sub)["parent"] == "i" and not texts(sub, "user")


def test_droid_notices_and_settings() -> None:
    parser: Any = PARSERS["droid"]
    shown = {"type": "message", "id": "m", "message": {
        "role": "user", "content": "Token limit reached.", "visibility": "user_only"}}  # fmt: skip
    assert texts(parsed("droid", "/h/.factory/sessions/p/s.jsonl", shown), "context")
    (patch,) = parser.parse_sidecar(
        "s.settings.json", b'{"model":"m","tokenUsage":{"inputTokens":7}}'
    )
    assert (patch.model, patch.tokens) == ("m", {"input": 7})


def test_cline_asks_and_numbers() -> None:
    parser: Any = PARSERS["cline"]
    path = "/c/tasks/1/ui_messages.json"
    ui = [
        {"ts": 1, "type": "say", "say": "text", "text": "the task"},
        {"ts": 2, "type": "say", "say": "text", "text": "I will", "conversationHistoryIndex": 0},
        {"ts": 3, "type": "say", "say": "api_req_started",
         "text": json.dumps({"request": "SECRET", "tokensIn": 5, "tokensOut": 2, "cost": 0.5})},
        {"ts": 4, "type": "ask", "ask": "followup", "text": json.dumps({"question": "Which?"})},
        {"ts": 5, "type": "say", "say": "user_feedback", "text": "the left one"},
        {"ts": 6, "type": "say", "say": "command", "text": "ls"},
        {"ts": 7, "type": "say", "say": "text", "text": "half", "partial": True},
    ]  # fmt: skip
    records = list(parser.parse_document(path, json.dumps(ui).encode()))
    assert texts(records, "user") == ["the task", "the left one"]
    assert texts(records, "assistant") == ["I will", "Which?"]
    assert session_of(records)["cost_usd"] == 0.5
    assert "SECRET" not in str(records)
    assert damage(parser.parse_document(path, json.dumps(ui).encode()[:80])) == ["torn"]


def test_cline_sessions_take_the_words_from_their_tags() -> None:
    parser: Any = PARSERS["cline-sessions"]
    said = {"messages": [{"id": "m", "role": "user", "content": [
        {"type": "text", "text": "<task>\ndo it\n</task>\n"
         "<environment_details>x</environment_details>"},
        {"type": "file", "path": "a", "content": "FILE"}]}]}  # fmt: skip
    records = list(
        parser.parse_document("/c/sessions/s/s.messages.json", json.dumps(said).encode())
    )
    assert texts(records, "user") == ["do it"] and "FILE" not in str(records)


def test_kiro_conversations() -> None:
    parser: Any = PARSERS["kiro-document"]
    value = {"conversation_id": "", "history": [
        {"user": {"content": {"Prompt": {"prompt": "make it"}}},
         "assistant": {"ToolUse": {"content": "ok", "tool_uses": [
             {"id": "t1", "name": "fs_write", "args": {"path": "a.md"}}]}}},
        {"user": {"content": {"ToolUseResults": {"tool_use_results": [
            {"tool_use_id": "t1", "status": "Success", "content": [{"Text": "written"}]}]}}},
         "assistant": {"Response": {"content": "Done."}}},
        {"user": {"content": None}, "assistant": None},
    ]}  # fmt: skip
    records = list(parser.parse_document("/k/c-1.json", json.dumps(value).encode()))
    assert texts(records) == ["make it", "ok", "written", "Done."]
    assert [(a.kind, a.target, a.status) for a in actions(records).values()] == [
        ("edit", "a.md", "ok")
    ]
    assert damage(parser.parse_document("/k/c.json", b'{"turns":[]}')) == ["unknown_version:kiro"]


def test_what_a_hook_gave_gemini_is_not_the_users_word() -> None:
    given = "<hook_context># Facts\n• [F1] Deploys go through Argo</hook_context>\n\n"
    assert typed_words(f"{given}How do deploys go here?") == ("user", "How do deploys go here?")
    assert typed_words("<hook_context>cut short") == ("user", "")
