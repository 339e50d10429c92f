"""What a tool call is, and what its result says."""

from typing import Any

import pytest

from lored.core.transcripts.actions import (
    change_size,
    describe,
    find_commit,
    find_exit_code,
    makes_commit,
    unwrap_command,
)
from lored.core.transcripts.calls import OPEN_CALLS, begin_call, call_key, end_call

PATCH = """*** Begin Patch
*** Update File: src/a.py
@@
-old
+new
+def test_it():
*** Add File: src/b.py
+one
*** Delete File: c.txt
*** End Patch"""


@pytest.mark.parametrize(
    ("tool", "arguments", "kind", "target", "command"),
    [
        (
            "Edit",
            {"file_path": "/a.py", "old_string": "x", "new_string": "y"},
            "edit",
            "/a.py",
            None,
        ),
        ("Write", {"file_path": "/a.py", "content": "1\n2"}, "edit", "/a.py", None),
        ("Bash", {"command": "make test"}, "command", None, "make test"),
        ("shell", {"command": ["bash", "-lc", "ls -la"]}, "command", None, "ls -la"),
        ("shell", '{"command":["rg","-n","a b"]}', "command", None, "rg -n 'a b'"),
        ("exec_command", {"cmd": "git status"}, "command", None, "git status"),
        ("Grep", {"pattern": "TODO", "path": "src"}, "search", "TODO", None),
        ("Glob", {"pattern": "**/*.rs"}, "search", "**/*.rs", None),
        ("Read", {"file_path": "/a.py"}, "read", "/a.py", None),
        ("WebFetch", {"url": "https://x.org", "prompt": "p"}, "web", "https://x.org", None),
        ("WebSearch", {"query": "uvloop"}, "web", "uvloop", None),
        ("Task", {"description": "look", "prompt": "long"}, "agent", "look", None),
        ("mcp__files__read_file", {"path": "x"}, "read", "x", None),
        ("developer__text_editor", {"command": "view", "path": "x"}, "read", "x", None),
        ("developer__text_editor", {"command": "write", "path": "x"}, "edit", "x", None),
        ("fs_write", {"command": "create", "path": "x"}, "edit", "x", None),
        ("my_tool", {"command": "ls"}, "command", None, "ls"),
        ("my_tool", {"x": 1}, "other", None, None),
        ("my_tool", None, "other", None, None),
        ("my_tool", [1, 2], "other", None, None),
        ("Read", {"file_path": 7}, "read", None, None),
    ],
)
def test_one_call(
    tool: str, arguments: Any, kind: str, target: str | None, command: str | None
) -> None:
    (deed,) = describe(tool, arguments)
    assert (deed.kind, deed.target, deed.command) == (kind, target, command)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("apply_patch", PATCH),
        ("apply_patch", {"input": PATCH}),
        ("shell", {"command": ["apply_patch", PATCH]}),
        ("shell", {"command": ["bash", "-lc", f"apply_patch <<'EOF'\n{PATCH}\nEOF"]}),
        ("exec_command", {"cmd": f"apply_patch <<'EOF'\n{PATCH}\nEOF"}),
    ],
)
def test_a_patch_is_one_edit_a_file(tool: str, arguments: Any) -> None:
    deeds = describe(tool, arguments)
    assert [(deed.kind, deed.target) for deed in deeds] == [
        ("edit", "src/a.py"),
        ("edit", "src/b.py"),
        ("edit", "c.txt"),
    ]
    assert deeds[0].extra == {"added": 2, "removed": 1, "tests": 1}
    assert deeds[1].extra["change"] == "add" and deeds[2].extra["change"] == "delete"


def test_sizes_of_edits() -> None:
    (deed,) = describe(
        "MultiEdit",
        {"file_path": "t.rs", "edits": [
            {"old_string": "a", "new_string": "b\nc"},
            {"old_string": "d\ne", "new_string": "#[test]\nfn x() {}"},
        ]},
    )  # fmt: skip
    assert deed.extra == {"added": 4, "removed": 3, "tests": 1}
    assert change_size("--- a\n+++ b\n@@\n-x\n+y\n z\n+it('works', () => {})") == {
        "added": 2,
        "removed": 1,
        "tests": 1,
    }


@pytest.mark.parametrize(
    ("output", "commit"),
    [
        ("[main 1a2b3c4] Fix\n 1 file changed", "1a2b3c4"),
        ("x\n[feat/a-b (root-commit) 1a2b3c4d] Start", "1a2b3c4d"),
        ("[detached HEAD 9f86d08] x", "9f86d08"),
        ("[1/3] building", None),
        ("nothing to commit", None),
    ],
)
def test_commits(output: str, commit: str | None) -> None:
    assert find_commit(output) == commit


def test_command_lines_that_commit() -> None:
    assert makes_commit("git -C /p commit -qm x") and makes_commit("a && git merge b")
    assert (
        not makes_commit("git log") and not makes_commit(None) and not makes_commit("echo commit")
    )


@pytest.mark.parametrize(
    ("output", "code"),
    [
        ("Exit code 1\nboom", 1),
        ("Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 127\nOutput:\nx", 127),
        ("Exit code: 0\nWall time: 1 seconds\nOutput:\n", 0),
        ("lots\nof output\n<exited with exit code 2>", 2),
        ("Command failed with exit code 3", 3),
        ("all fine", None),
    ],
)
def test_exit_codes(output: str, code: int | None) -> None:
    assert find_exit_code(output) == code


def test_command_of_a_list() -> None:
    assert unwrap_command(["/bin/zsh", "-lc", "a | b"]) == "a | b"
    assert unwrap_command(["ls", "a b"]) == "ls 'a b'"
    assert unwrap_command([]) is None and unwrap_command(7) is None
    assert unwrap_command([None, "x"]) == "x"


def test_ids_that_repeat_in_each_conversation() -> None:
    assert call_key("s", "toolu_0123456789abcdefgh") == "toolu_0123456789abcdefgh"
    assert call_key("s", "call_1") == "s:call_1"
    assert call_key("s", "functions.bash:0") == "s:functions.bash:0"


def test_open_calls_are_bounded_and_the_oldest_go() -> None:
    state: dict[str, Any] = {}
    for number in range(OPEN_CALLS + 50):
        begin_call(state, "s", f"c{number}", "Bash", {"command": "x"})
    assert len(state["calls"]) == OPEN_CALLS
    assert end_call(state, "c3", "", failed=False) == []
    (action,) = end_call(state, f"c{OPEN_CALLS + 49}", "", failed=False)
    assert action.status == "ok"


def test_a_result_without_a_call_and_odd_ids() -> None:
    assert end_call({}, "never", "x", failed=True) == []
    assert end_call({}, None, "x", failed=None) == []
    assert begin_call({}, "s", None, "Bash", {}) == []
    assert begin_call({}, "s", 7, "Bash", {}) == []
    (action,) = begin_call({}, "s", "c", None, {})
    assert action.tool == "unknown"
