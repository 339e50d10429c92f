"""The fold: any split gives the same state, the state stays small, records mean what they say."""

from collections.abc import Iterable
from typing import Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lored.core import summary
from lored.core.summary import state as bounds
from lored.core.transcripts.records import (
    Action,
    Compaction,
    Damage,
    Message,
    Record,
    Rollback,
    SessionPatch,
)

AT = "2026-05-28T03:41:{:02d}Z"


def fold(*records: Record) -> dict[str, Any]:
    state = summary.begin()
    summary.fold(state, records)
    return state


def render(*records: Record, **session: Any) -> dict[str, Any]:
    return summary.render(fold(*records), session)


def say(text: str, key: str = "u1", role: Any = "user", at: str = AT.format(0)) -> Message:
    return Message(key, role, text, at=at)


def ran(command: str, output: str = "", ok: bool = True, key: str | None = None) -> list[Action]:
    key = key or f"{command}{output}{ok}"
    return [
        Action(key, "command", "bash", command=command, started_at=AT.format(1)),
        Action(
            key,
            "command",
            "bash",
            status="ok" if ok else "failed",
            exit_code=0 if ok else 1,
            output_excerpt=output,
            ended_at=AT.format(2),
        ),
    ]


def edited(path: str, key: str | None = None, ok: bool = True, **extra: Any) -> list[Action]:
    key = key or f"edit {path} {extra}"
    return [
        Action(key, "edit", "edit", target=path, extra=extra),
        Action(key, "edit", "edit", status="ok" if ok else "failed", output_excerpt="done"),
    ]


# -- the form that the documents promise ---------------------------------------------------


def test_seed_form() -> None:
    found = render(
        say("# Goal 131 — permissions\n\n**Roadmap**: Phase 17"),
        *edited("src/permissions.rs", tests=12, added=200, removed=3),
        say("All done.", "a1", "assistant", AT.format(30)),
        SessionPatch(status="completed", ended_at=AT.format(40)),
    )
    assert found["line"] == "Session 2026-05-28: Implemented Goal 131 (permissions). Completed."
    assert found["key_actions"] == "Key actions: edited src/permissions.rs, added 12 tests."


def test_chinese_goal_stays_chinese() -> None:
    found = render(
        say("你好"),
        say("请修复登录页面的权限检查，现在管理员也会被拒绝", "u2"),
        say(
            "已完成。原因是角色比较时大小写不一致。\n\n下一步：\n- 补充测试\n- 更新文档",
            "a",
            "assistant",
        ),
    )
    assert found["line"].startswith("Session 2026-05-28: 修复登录页面的权限检查")
    assert found["line"].endswith(" Completed.")
    assert found["next_steps"] == ["补充测试", "更新文档"]
    assert any("原因" in text for text in found["decisions"])


def test_date_follows_the_zone() -> None:
    from zoneinfo import ZoneInfo

    state = fold(say("fix it all now", at="2026-05-28T22:30:00Z"))
    assert "2026-05-29" in summary.render(state, {}, ZoneInfo("Asia/Shanghai"))["line"]
    assert "2026-05-28" in summary.render(state, {})["line"]


# -- goal and redirections -----------------------------------------------------------------


@pytest.mark.parametrize(
    "opening",
    ["hi", "/mode", "/clear", "ok", "继续", "[Image #1]", "Continue.", "@src/a.py", "안녕"],
)
def test_greetings_and_commands_are_no_goal(opening: str) -> None:
    found = render(say(opening), say("add a dark theme to the settings page", "u2"))
    assert found["goal"] == "add a dark theme to the settings page"


def test_words_after_a_slash_command_are_a_goal() -> None:
    found = render(say("/implement the retry queue with backoff"))
    assert found["goal"] == "the retry queue with backoff"


def test_goal_of_only_trivial_words_is_shown_as_is() -> None:
    assert render(say("ping"), say("pong", "a", "assistant"))["goal"] == "ping"


def test_redirections_keep_first_and_last() -> None:
    records = [say("port the parser to Rust")]
    records += [say(f"now change module number {n} to async", f"r{n}") for n in range(40)]
    found = render(*records)
    asked = found["redirections"]
    assert len(asked) == bounds.FIRST_REDIRECTIONS + bounds.LAST_REDIRECTIONS
    assert "number 0" in asked[0] and "number 39" in asked[-1]


@pytest.mark.parametrize(
    ("prompt", "line"),
    [
        ("Can you please fix the failing session tests?", "Fixed the failing session tests"),
        ("B) I'd like to add 'session end' hooks", "Added 'session end' hooks"),
        (
            "Implement the following plan:\n\n# Fix logging and branch deletion\n\n## Context\nTwo",
            "Fixed logging and branch deletion",
        ),
        ("The build is red since monday. Fix it, then push.", "Fixed it, then push"),
        ("why does the cache miss on every call?", "Answered: why does the cache miss"),
        ("# 目标：权限系统\n细节", "权限系统"),
    ],
)
def test_headlines(prompt: str, line: str) -> None:
    found = render(say(prompt), say("Done.", "a", "assistant"))
    assert line in found["line"]


def test_a_message_seen_again_counts_once_and_its_newer_words_win() -> None:
    found = render(
        say("add a chache"),
        say("add a cache", "u1"),
        say("and a test for eviction", "u2"),
        say("and a test for eviction", "u2"),
    )
    assert found["goal"] == "add a cache" and found["counts"]["user"] == 2


def test_rolled_back_turns_do_not_count() -> None:
    found = render(
        say("add a cache"),
        say("now rewrite all of it in Perl", "u2"),
        say("We decided to use Perl for everything.", "a", "assistant"),
        Rollback(turns=1),
        say("keep Python but add metrics", "u3"),
    )
    assert found["redirections"] == ["keep Python but add metrics"]
    assert found["decisions"] == []


def test_rollback_by_key_to_the_goal() -> None:
    found = render(say("delete everything"), Rollback(from_key="u1"), say("add a cache", "u2"))
    assert found["goal"] == "add a cache"


# -- deeds ----------------------------------------------------------------------------------


def test_outcome_without_command_finds_its_call() -> None:
    found = render(*ran("cargo test", "test result: ok. 238 passed; 0 failed; 1 ignored"))
    assert found["tests"] == {
        "command": "cargo test",
        "status": "ok",
        "passed": 238,
        "failed": 0,
        "unit": "tests",
    }


def test_calls_without_any_outcome_count_when_their_turn_is_over() -> None:
    records: list[Record] = [
        say("add a cache"),
        Action("c1", "edit", "write", target="cache.py"),
        Action("c2", "command", "shell", command="pytest -q"),
    ]
    assert render(*records)["files"] == []
    done = render(*records, say("Done.", "a", "assistant"))
    assert done["key_actions"] == "Key actions: edited cache.py, ran pytest -q."
    later = render(*records, say("now add a test for it", "u2"), *edited("cache.py", key="c1"))
    assert later["files"][0]["edits"] == 1 and later["tests"]["status"] == "unknown"


def test_the_same_call_reported_twice_counts_once() -> None:
    records = [*ran("npm test", key="c1"), *ran("npm test", key="c1")]
    assert render(*records)["counts"]["actions"] == 1


def test_error_overcome_by_the_same_command_after_an_edit() -> None:
    found = render(
        say("fix the limits"),
        *ran(
            "cd app && pytest -q 2>&1 | tail -5",
            "E  AssertionError: 3 != 4\n1 failed, 8 passed in 0.4s",
            ok=True,
        ),
        *edited("src/limits.py"),
        *ran("pytest -q", "9 passed in 0.4s"),
        say("Fixed.", "a", "assistant"),
    )
    [error] = found["errors"]
    assert error["overcome"] and "limits.py" in error["how"]
    assert "1 of 9 tests failed" in error["message"]
    assert found["status"] == "completed"


def test_left_failing_is_failed() -> None:
    found = render(
        say("fix the limits"),
        *edited("src/limits.py"),
        *ran("npm run build", "src/a.ts(1,2): error TS2345: Argument of type", ok=False),
        say("I have changed the limits.", "a", "assistant"),
    )
    assert found["status"] == "failed" and found["line"].endswith("Failed.")
    assert "npm run build still fails" in found["key_actions"]
    assert "TS2345" in found["errors"][0]["message"]


def test_a_missing_program_is_an_error_but_no_failure_of_the_work() -> None:
    found = render(
        say("fix the limits"),
        *edited("src/limits.ts"),
        *ran("npm test", "> vitest run\n\nsh: 1: vitest: not found", ok=False),
        say("Fixed; the tests could not run here.", "a", "assistant"),
    )
    assert found["status"] == "completed" and found["tests"]["status"] == "unknown"
    assert found["errors"][0]["message"] == "sh: 1: vitest: not found"


def test_refused_calls_are_no_errors() -> None:
    found = render(
        say("clean up the branch"),
        *ran("rm -rf build", "The user doesn't want to proceed with this tool use.", ok=False),
    )
    assert found["errors"] == [] and found["status"] == "interrupted"


def test_failed_edit_made_good_is_not_listed() -> None:
    found = render(*edited("a.py", key="e1", ok=False), *edited("a.py", key="e2"))
    assert found["errors"] == [] and found["files"][0]["edits"] == 1


def test_commits_from_records_and_output() -> None:
    found = render(
        *ran('git commit -m "limits: raise"', "[main 1a2b3c4] limits: raise\n 1 file changed"),
        Action("c2", "command", "bash", command="git merge x", status="ok", commit="deadbee"),
    )
    assert found["commits"] == [
        {"id": "1a2b3c4", "subject": "limits: raise"},
        {"id": "deadbee", "subject": None},
    ]
    assert "made 2 commits, last deadbee" in found["key_actions"]


def test_a_quiet_commit_has_its_subject_from_the_command() -> None:
    found = render(
        *ran('git commit -q -m "docs: explain limits" && git push -q', ""),
        *ran("git commit -qm x", "nothing to commit, working tree clean"),
    )
    assert found["commits"] == [{"id": None, "subject": "docs: explain limits"}]
    assert found["key_actions"] == 'Key actions: committed "docs: explain limits".'


def test_deleted_and_created_files_are_named_so() -> None:
    found = render(*edited("old.py", change="delete"), *edited("new.py", change="add"))
    assert found["key_actions"] == "Key actions: created new.py, deleted old.py."


# -- status -----------------------------------------------------------------------------------


def test_unfinished_is_active_then_interrupted() -> None:
    state = fold(say("add a cache"), Action("x", "command", "bash", command="make"))
    assert summary.render(state, {})["status"] == "active"
    assert summary.render(state, {"quiet": True})["status"] == "interrupted"
    now = 1_800_000_000_000_000
    assert summary.settled_status("active", now - 60_000_000, now) == "active"
    assert summary.settled_status("active", now - 7_200_000_000, now) == "interrupted"
    assert summary.settled_status("completed", 0, now) == "completed"


def test_current_status_prefers_what_the_summary_says() -> None:
    now = 1_800_000_000_000_000
    assert summary.current_status({"status": "completed"}, "active", 0, now) == "completed"
    assert summary.current_status({}, "active", 0, now) == "interrupted"
    assert summary.current_status({}, "failed", None, now) == "failed"


def test_an_interruption_that_was_continued_is_no_end() -> None:
    found = render(
        say("add a cache"),
        SessionPatch(status="interrupted"),
        say("go on with the cache but smaller", "u2", at=AT.format(20)),
        say("Done.", "a", "assistant", AT.format(30)),
    )
    assert found["status"] == "completed"


def test_metadata_says_failed() -> None:
    found = render(say("add a cache"), say("ok", "a", "assistant"), SessionPatch(status="failed"))
    assert found["status"] == "failed"


# -- compaction -------------------------------------------------------------------------------


def test_structured_compaction() -> None:
    found = render(
        say("port the selectors"),
        Compaction("k", "[compacted] ...", ["the check must pass"], ["port the rest"]),
    )
    assert found["findings"] == ["the check must pass"] and found["next_steps"] == ["port the rest"]


def test_numbered_compaction_gives_goal_findings_and_steps() -> None:
    text = (
        "1. Primary Request and Intent:\n   Add token refresh to the client.\n\n"
        "4. Errors and fixes:\n   - Clock skew broke expiry: fixed by using the server's time\n\n"
        "7. Pending Tasks:\n   - Document the refresh window\n\n8. Current Work:\n   docs\n"
    )
    found = render(Compaction("k", text))
    assert found["goal"] == "Add token refresh to the client."
    assert "Clock skew" in found["findings"][0]
    assert found["next_steps"] == ["Document the refresh window"]


# -- laws --------------------------------------------------------------------------------------

_TEXTS = st.sampled_from(
    [
        "hi",
        "fix the tests please",
        "# Goal 7: cache\nmore",
        "why?",
        "请修复登录",
        "",
        "We decided to use SQLite.\n\nNext steps:\n- add tests\n- ship it",
        "x" * 9_000,
        "The issue was a stale lock.",
        "🙂" * 50,
        "a\ud7ffb",
    ]
)
_KEYS = st.sampled_from([f"k{n}" for n in range(12)])
_TIMES = st.none() | st.sampled_from([AT.format(n) for n in range(0, 60, 7)] + ["garbage"])
_COMMANDS = st.none() | st.sampled_from(
    [
        "pytest -q",
        "ls",
        "git commit -m x",
        "npm run build && npm test",
        "cd a; cargo test | tail",
        "git push",
        "rm -rf x",
        "cat > f <<'EOF'\nx\nEOF",
        "(((",
    ]
)
_OUTPUTS = st.none() | st.sampled_from(
    [
        "3 passed in 0.1s",
        "1 failed, 2 passed in 0.1s",
        "[main abc1234] x",
        "error: no",
        "ok\n",
        "The user doesn't want to proceed",
        "x" * 2_000,
    ]
)
_RECORDS = st.one_of(
    st.builds(
        Message,
        _KEYS,
        st.sampled_from(["user", "assistant", "tool", "summary", "context"]),
        _TEXTS,
        at=_TIMES,
        rolled_back=st.booleans(),
    ),
    st.builds(
        Action,
        _KEYS,
        st.sampled_from(["edit", "command", "read", "other"]),
        st.just("t"),
        target=st.none() | st.sampled_from(["a.py", "/r/b.py"]),
        command=_COMMANDS,
        status=st.sampled_from(["running", "ok", "failed", "unknown"]),
        output_excerpt=_OUTPUTS,
        exit_code=st.none() | st.integers(-1, 2),
        started_at=_TIMES,
        ended_at=_TIMES,
        commit=st.none() | st.just("abc1234"),
        extra=st.sampled_from(
            [{}, {"tests": 2, "added": 5}, {"change": "add"}, {"change": "delete"}]
        ),
    ),
    st.builds(
        SessionPatch,
        title=st.none() | _TEXTS,
        status=st.none() | st.sampled_from(["active", "completed", "failed", "interrupted"]),
        started_at=_TIMES,
        ended_at=_TIMES,
        is_subagent=st.none() | st.booleans(),
        cwd=st.none() | st.just("/r"),
    ),
    st.builds(
        Compaction, _KEYS, _TEXTS, st.lists(_TEXTS, max_size=3), st.lists(_TEXTS, max_size=3)
    ),
    st.builds(Rollback, st.integers(0, 3), st.none() | _KEYS),
    st.builds(Damage, st.just("torn")),
)


def _stored(state: dict[str, Any]) -> dict[str, Any]:
    packed = msgpack.packb(state)
    assert len(packed) <= bounds.STATE_BYTES
    loaded: dict[str, Any] = msgpack.unpackb(packed)
    return loaded


def _in_pieces(records: list[Record], cuts: Iterable[int]) -> dict[str, Any]:
    state, at = summary.begin(), 0
    for end in [*sorted(cuts), len(records)]:
        summary.fold(state, records[at:end])
        state, at = _stored(state), max(at, end)
    return state


@settings(max_examples=150, deadline=None)
@given(st.lists(_RECORDS, max_size=40), st.lists(st.integers(0, 40), max_size=5))
def test_any_split_gives_the_same_state(records: list[Record], cuts: list[int]) -> None:
    whole = summary.begin()
    summary.fold(whole, records)
    cuts = [c for c in cuts if c <= len(records)]
    assert _in_pieces(records, cuts) == whole
    assert summary.render(_in_pieces(records, range(len(records))), {}) == summary.render(whole, {})


def test_a_long_session_keeps_a_small_state() -> None:
    state = summary.begin()
    for n in range(3_000):
        summary.fold(
            state,
            [
                say(f"please change part {n} " + "word " * 300, f"u{n}"),
                *edited(f"/a/very/long/path/{'d' * 200}/file{n}.py"),
                *ran(f"pytest tests/{'t' * 60}/test_{n}.py", f"E{n} " + "error: x" * 200, ok=False),
                *ran(f"tool{n} --flag {'z' * 300}", "error: " + "y" * 900, ok=False),
                Action(f"open{n}", "command", "bash", command=f"sleep {n}" + " #" * 2_000),
                say(
                    f"We decided to use option {n} because " + "of it " * 200 + ".\n" * 2,
                    f"a{n}",
                    "assistant",
                ),
                Compaction(
                    f"c{n}", "s" * 9_000, [f"fact {n} " + "f" * 500] * 9, [f"step {n}" * 90] * 9
                ),
            ],
        )
    assert len(msgpack.packb(state)) <= bounds.STATE_BYTES
    found = summary.render(state, {})
    assert (
        len(found["text"]) <= 4_000 and len(found["line"]) < 260 and len(found["key_actions"]) < 300
    )
    assert found["files_more"] > 2_000
