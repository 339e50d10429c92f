"""Claude Code: sessions known by hand, sidechains, forks, growth, compaction, titles."""

import json
from pathlib import Path
from typing import Any

import pytest

from lored.core.session_fields import changes, merge
from lored.core.transcripts import PARSERS
from lored.core.transcripts.records import Compaction, Message, Record, SessionPatch
from support.transcripts import (
    SAMPLES,
    SHARED,
    actions,
    damage,
    messages,
    read_lines,
    session_of,
    texts,
)

PARSER: Any = PARSERS["claude-code"]
PROJECTS = SAMPLES / "claude/.claude/projects"
SESSION = "11111111-2222-4333-8444-555555555555"
PATH = f"/home/u/.claude/projects/-p/{SESSION}.jsonl"

HAND = {
    "-Users-devb-Work-entire-devenv-cli/839b35f7-4dbd-4d93-9772-3c272cc87caa": {
        "cwd": "/Users/devb/Work/entire/devenv/cli",
        "branch": "feat/gemini-cli-agent",
        "model": "claude-sonnet-4-5-20250929",
        "agent_version": "2.1.14",
        "started_at": "2026-01-21T10:16:07.408Z",
        "ended_at": "2026-01-21T11:50:52.653Z",
        "tokens": {"input": 4359, "output": 111, "cache_write": 679802, "cache_read": 4590193},
        "counts": {"user": 9, "assistant": 18, "summary": 1, "actions": 60, "compactions": 1},
    },
    "-Users-deva-workspace-cli/8b418ea5-895d-4ad5-abe8-4489d36e454f": {
        "cwd": "/Users/deva/workspace/cli",
        "branch": "main",
        "model": "claude-opus-4-5-20251101",
        "started_at": "2026-01-19T02:24:46.503Z",
        "ended_at": "2026-01-19T02:45:25.448Z",
        "tokens": {"input": 620, "output": 89, "cache_write": 103404, "cache_read": 909116},
        "prompt_title": "I'm working on linear ENT-98. keep our working documentation in linear.",
        "counts": {"user": 4, "assistant": 9, "summary": 0, "actions": 31, "compactions": 0},
    },
    "-experiments-worktrees/ef958aa1-0e93-49f0-bb71-150f63befcd1": {
        "branch": "master",
        "model": "claude-opus-4-7",
        "status": "completed",
        "started_at": "2026-04-18T13:10:51.686Z",
        "ended_at": "2026-04-18T15:09:30.093Z",
        "tokens": {"input": 1308, "output": 22901, "cache_write": 102189, "cache_read": 728660},
        "counts": {"user": 2, "assistant": 8, "summary": 2, "actions": 40, "compactions": 0},
    },
}


def records_of(name: str) -> list[Record]:
    path = PROJECTS / f"{name}.jsonl"
    return read_lines(PARSER, str(path), path.read_bytes())


def parsed(*lines: dict[str, Any]) -> list[Record]:
    return read_lines(PARSER, PATH, b"\n".join(json.dumps(line).encode() for line in lines))


def user(content: Any, **more: Any) -> dict[str, Any]:
    number = more.pop("n", 1)
    return {
        "type": "user",
        "uuid": f"00000000-0000-4000-8000-{number:012d}",
        "sessionId": SESSION,
        "timestamp": f"2026-05-28T10:00:{number:02d}.000Z",
        "message": {"role": "user", "content": content},
        **more,
    }


def assistant(*blocks: dict[str, Any], n: int = 50, **message: Any) -> dict[str, Any]:
    line = user([], n=n, type="assistant")
    line["message"] = {
        "role": "assistant",
        "id": f"msg_{n}",
        "model": "claude-x",
        "content": list(blocks),
        **message,
    }
    return line


@pytest.mark.parametrize("name", HAND)
def test_a_session_checked_by_hand(name: str) -> None:
    records = records_of(name)
    expected = dict(HAND[name])
    counts = expected.pop("counts")
    session = session_of(records)
    assert {field: session.get(field) for field in expected} == expected
    assert counts == {
        "user": len(messages(records, "user")),
        "assistant": len(messages(records, "assistant")),
        "summary": len(messages(records, "summary")),
        "actions": len(actions(records)),
        "compactions": sum(isinstance(record, Compaction) for record in records),
    }


def test_what_was_typed_is_what_is_told() -> None:
    name = "-Users-devb-Work-entire-devenv-cli/839b35f7-4dbd-4d93-9772-3c272cc87caa"
    said = texts(records_of(name), "user")
    assert said[2] == "would 1 have helped in this scenario? "
    assert said[-1] == "no, then it's good"


def test_every_call_finds_its_result() -> None:
    for name in HAND:
        assert {action.status for action in actions(records_of(name)).values()} <= {"ok", "failed"}


def test_a_denied_and_a_failing_call_are_failed() -> None:
    made = actions(records_of("-Users-deva-workspace-cli/8b418ea5-895d-4ad5-abe8-4489d36e454f"))
    assert sum(action.status == "failed" for action in made.values()) == 2


@pytest.mark.parametrize(
    ("content", "role", "text"),
    [
        ("fix the login", "user", "fix the login"),
        (" a\n\tb ", "user", " a\n\tb "),
        ([{"type": "text", "text": "look"}, {"type": "image", "source": {}}], "user", "look"),
        (["plain", None, 7], "user", "plain"),
        ("<command-name>/deploy</command-name>\n<command-args>to prod</command-args>", "user",
         "/deploy to prod"),
        ("<command-message>x</command-message>\n<command-name>/clear</command-name>", "context",
         "/clear"),
        ("<system-reminder>be brief</system-reminder>\nrename it", "user", "rename it"),
        ("rename it\n<system-reminder>be brief</system-reminder>", "user", "rename it"),
        ("<ide_opened_file>a.py</ide_opened_file>\nwhy?", "user", "why?"),
        ("<ide_selection>x = 1</ide_selection>", None, None),
        ("[Image: source: /tmp/a.png] what is this", "user", "what is this"),
        ("<task-notification>done</task-notification>", "context",
         "<task-notification>done</task-notification>"),
        ("<local-command-stdout>ok</local-command-stdout>", "context",
         "<local-command-stdout>ok</local-command-stdout>"),
        ("# Facts\n• [F1] we use uv  [tags: py]\n\nrename it", "user", "rename it"),
        ("", None, None),
        (None, None, None),
        ({"odd": 1}, None, None),
    ],
)  # fmt: skip
def test_whose_words_they_are(content: Any, role: str | None, text: str | None) -> None:
    found = [record for record in parsed(user(content)) if isinstance(record, Message)]
    assert [(message.role, message.text) for message in found] == (
        [] if role is None else [(role, text)]
    )


@pytest.mark.parametrize(
    "flags",
    [
        {"isMeta": True},
        {"isSidechain": True},
        {"origin": {"kind": "task-notification"}},
        {"promptSource": "system"},
    ],
)
def test_flags_say_that_no_person_wrote_it(flags: dict[str, Any]) -> None:
    assert texts(parsed(user("do it", **flags)), "context") == ["do it"]
    assert not texts(parsed(user("do it", **flags)), "user")


def test_a_compaction_is_a_summary() -> None:
    text = "This session is being continued from a previous conversation. We chose SQLite."
    for line in (user(text, isCompactSummary=True), user(text)):
        records = parsed(line)
        assert texts(records, "summary") == [text]
        assert [r.summary for r in records if isinstance(r, Compaction)] == [text]


def test_words_typed_while_the_agent_worked() -> None:
    def queued(**attachment: Any) -> dict[str, Any]:
        return user([], type="attachment", attachment={"type": "queued_command", **attachment})

    assert texts(parsed(queued(prompt="also the docs", commandMode="prompt")), "user") == [
        "also the docs"
    ]
    assert not texts(
        parsed(queued(prompt="<task-notification>x", commandMode="task-notification")), "user"
    )
    assert not texts(
        parsed(queued(prompt="x", commandMode="prompt", origin={"kind": "coordinator"})), "user"
    )


def test_a_command_the_user_ran_is_a_deed() -> None:
    made = actions(parsed(user("<bash-input>git status</bash-input>")))
    assert [(a.kind, a.command) for a in made.values()] == [("command", "git status")]


def test_an_answer_in_several_lines_counts_its_tokens_once() -> None:
    usage = {"input_tokens": 10, "output_tokens": 1, "cache_read_input_tokens": 5}
    records = parsed(
        assistant({"type": "text", "text": "one"}, n=1, id="m", usage=usage),
        assistant(
            {"type": "text", "text": "two"}, n=2, id="m", usage={**usage, "output_tokens": 9}
        ),
    )
    assert session_of(records)["tokens"] == {"input": 10, "output": 9, "cache_read": 5}
    assert texts(records, "assistant") == ["one", "two"]


def test_a_commit_is_recognised() -> None:
    call = {"type": "tool_use", "id": "toolu_0123456789abcdefgh", "name": "Bash",
            "input": {"command": "git add -A && git commit -m x"}}  # fmt: skip
    result = {"type": "tool_result", "tool_use_id": call["id"],
              "content": "[main 1a2b3c4] x\n 1 file changed"}  # fmt: skip
    made = actions(parsed(assistant(call), user([result], n=51)))[call["id"]]
    assert (made.kind, made.commit, made.exit_code, made.status) == ("command", "1a2b3c4", 0, "ok")


def test_our_own_answers_do_not_come_back() -> None:
    for name, argument in (
        ("mcp__lore__recall_fact", {"query": "x"}),
        ("Bash", {"command": "cd /p && lore recall 'deploy key'"}),
    ):
        call = {
            "type": "tool_use",
            "id": "toolu_0123456789abcdefgh",
            "name": name,
            "input": argument,
        }
        result = {"type": "tool_result", "tool_use_id": call["id"], "content": "F7 the deploy key"}
        records = parsed(assistant(call), user([result], n=51))
        assert not texts(records, "tool")
        assert not any("deploy key" in message.text for message in messages(records))
        assert all("F7" not in (a.output_excerpt or "") for a in actions(records).values())


def test_a_notice_is_no_answer() -> None:
    records = parsed(
        assistant({"type": "text", "text": "API Error: 529"}, model="<synthetic>")
        | {"isApiErrorMessage": True}
    )
    assert not texts(records, "assistant")
    assert session_of(records)["status"] == "failed"
    assert "model" not in session_of(records)


def test_titles_in_their_order() -> None:
    custom = {"type": "custom-title", "customTitle": "Mine", "sessionId": SESSION}
    made = {"type": "ai-title", "aiTitle": "Made", "sessionId": SESSION}
    assert session_of(parsed(custom, made))["title"] == "Mine"
    assert session_of(parsed(made, custom))["title"] == "Mine"
    assert session_of(parsed(user("fix the login")))["prompt_title"] == "fix the login"
    other = {"type": "summary", "summary": "Another session", "leafUuid": "u-1"}
    assert session_of(parsed(other)) == {"titles": {"u-1": "Another session"}}


def test_sidechains_in_the_parent_s_file_are_sessions_of_their_own() -> None:
    name = "5c0375b4-57a5-4f26-b12d-d022ee4e51b7"
    records = records_of(f"-path-to-Demo/{name}")
    chains = {r.session for r in records if isinstance(r, SessionPatch) and r.is_subagent}
    assert chains == {f"{name}/6340ddef", f"{name}/83e2917c"}
    for chain in chains:
        own = [record for record in records if getattr(record, "session", None) == chain]
        assert session_of(own)["parent"] == name
        assert not texts(own, "user")
        assert texts(own, "context") and texts(own, "assistant")


def test_subagent_files_hang_below_their_parent() -> None:
    parent = "ef958aa1-0e93-49f0-bb71-150f63befcd1"
    path = PROJECTS / f"-experiments-worktrees/{parent}/subagents/agent-ab1e6e141221a29ab.jsonl"
    assert PARSER.session_id(str(path), b"") == f"{parent}/ab1e6e141221a29ab"
    records = read_lines(PARSER, str(path), path.read_bytes())
    assert session_of(records)["parent"] == parent
    assert {getattr(record, "session", None) for record in records} == {None}
    assert not texts(records, "user")
    side = PARSER.sidecars(str(path))
    meta = session_of(PARSER.parse_sidecar(side[0], Path(side[0]).read_bytes()))
    assert meta["is_subagent"] and meta["title"] and meta["extra"]["agentType"]
    flat = PROJECTS / "-src-deep-manifest/agent-c8d9b115.jsonl"
    head = flat.read_bytes()[:4096]
    assert PARSER.session_id(str(flat), head) == "a7da6a22-facc-4fcd-8bab-f83c87862004/c8d9b115"
    assert PARSER.session_id(str(flat), b"") is None


def test_workflow_agents_and_journal() -> None:
    base = "/h/.claude/projects/-w/11110000-0000-4000-8000-000000000001/subagents/workflows/wf_1"
    assert PARSER.session_id(f"{base}/journal.jsonl", b"") is None
    path = next((PROJECTS / "-workflow-demo").rglob("agent-ag000001.jsonl"))
    records = read_lines(PARSER, str(path), path.read_bytes())
    assert session_of(records)["parent"] == "11110000-0000-4000-8000-000000000001"


def test_lines_of_another_session_in_the_file() -> None:
    stray = "99999999-2222-4333-8444-555555555555"
    records = parsed(user("mine"), user("not mine", n=2, sessionId=stray))
    assert [(m.session, m.text) for m in messages(records, "user")] == [
        (None, "mine"),
        (stray, "not mine"),
    ]


def test_growth_gives_the_same_as_one_pass() -> None:
    steps = sorted((SAMPLES / "claude/growth/claude-32e7c00e").glob("step*.jsonl"))
    data = [step.read_bytes() for step in steps]
    assert data[1].startswith(data[0])
    state = PARSER.begin(PATH)
    grown: list[Record] = []
    offset = 0
    for step in data:
        for line in step[offset:].split(b"\n")[:-1]:
            grown.extend(PARSER.parse(state, line, offset))
            offset += len(line) + 1
    assert grown == read_lines(PARSER, PATH, data[-1])


@pytest.mark.skipif(SHARED is None, reason="the larger collection is not here")
def test_a_fork_repeats_keys_not_words() -> None:
    assert SHARED is not None
    folder = SHARED / "claude/.claude/projects/D--oh-my-posh"
    names = ("33cbf43f-a729-447c-9e1e-94d7625775b3", "d1ffb512-fc49-422a-bffe-ac6962a37c74")
    first, second = (
        read_lines(PARSER, str(folder / f"{n}.jsonl"), (folder / f"{n}.jsonl").read_bytes())
        for n in names
    )
    keys = [{m.key: m.text for m in messages(records)} for records in (first, second)]
    shared = keys[0].keys() & keys[1].keys()
    assert len(shared) > 200
    assert all(keys[0][key] == keys[1][key] for key in shared)
    assert len(actions(first).keys() & actions(second).keys()) > 100


def test_prompts_that_outlive_their_transcript() -> None:
    line = {"display": "deploy it", "timestamp": 1779962400000, "project": "/p", "sessionId": "s-1"}
    records = PARSER.parse_sidecar("/h/.claude/history.jsonl", json.dumps(line).encode() + b"\n")
    (message,) = messages(records, "user")
    assert (message.session, message.text, message.at) == (
        "s-1",
        "deploy it",
        "2026-05-28T10:00:00Z",
    )
    assert message.extra["side_channel"]
    assert session_of(records)["cwd"] == "/p"
    # The session's own records know its folder better, whichever was read first.
    own = SessionPatch(session="s-1", cwd="/p/sub")
    known = changes(own)
    for record in records:
        if isinstance(record, SessionPatch):
            merge(known, changes(record))
    assert known["cwd"] == "/p/sub"


def test_unknown_kinds_are_counted() -> None:
    lines = ({"type": "brand-new"}, user("x", type="attachment", attachment={"type": "new-one"}),
             user("x", type="system", subtype="new-sub"))  # fmt: skip
    assert damage(parsed(*lines), lost=False) == [
        "unknown_type:brand-new",
        "unknown_type:attachment/new-one",
        "unknown_type:system/new-sub",
    ]
