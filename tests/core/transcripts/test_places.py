"""Where sessions are looked for, what moves the places, and which files matter."""

import re
from pathlib import Path

import pytest

from lored.core.transcripts import (
    PARSERS,
    classify,
    default_roots,
    parser_name,
    register,
    register_entry_points,
    unregister,
    workspace_roots,
)
from lored.core.transcripts.place import Place
from lored.core.transcripts.places import pattern_of


def moved(agent: str, **env: str) -> set[str]:
    before = {root.path for root in default_roots({}, "/home/u") if root.agent == agent}
    after = {root.path: root for root in default_roots(env, "/home/u") if root.agent == agent}
    for path in after.keys() - before:
        assert after[path].env_var in env
    return set(after) - before


@pytest.mark.parametrize(
    ("agent", "name", "value", "path"),
    [
        ("recursive", "RECURSIVE_HOME", "/r", "/r"),
        ("recursive", "RECURSIVE_SESSIONS_DIR", "/s", "/s"),
        ("claude-code", "CLAUDE_CONFIG_DIR", "/c", "/c"),
        ("claude-code", "XDG_CONFIG_HOME", "/x", "/x/claude"),
        ("codex", "CODEX_HOME", "~/codex/", "/home/u/codex"),
        ("gemini-cli", "GEMINI_CLI_HOME", "/g", "/g/.gemini"),
        ("opencode", "XDG_DATA_HOME", "/d", "/d/opencode"),
        ("opencode", "OPENCODE_DB", "/d/own.db", "/d"),
        ("copilot-cli", "COPILOT_HOME", "/p", "/p"),
        ("pi", "PI_CODING_AGENT_DIR", "/p", "/p"),
        ("qwen-code", "QWEN_HOME", "/q", "/q"),
        ("goose", "GOOSE_PATH_ROOT", "/g", "/g/data/sessions"),
        ("goose", "XDG_DATA_HOME", "/d", "/d/goose/sessions"),
        ("cline", "CLINE_DIR", "/c", "/c/data"),
        ("amp", "XDG_DATA_HOME", "/d", "/d/amp/threads"),
        ("kiro", "XDG_DATA_HOME", "/d", "/d/kiro-cli"),
        ("aider", "AIDER_CHAT_HISTORY_FILE", "/a/history.md", "/a"),
    ],
)
def test_a_variable_moves_a_root(agent: str, name: str, value: str, path: str) -> None:
    assert path in moved(agent, **{name: value})


def test_every_agent_has_a_default_place() -> None:
    agents = {root.agent for root in default_roots({}, "/home/u")}
    assert agents | {"aider"} == {parser.agent for parser in PARSERS.values()}
    assert all(root.path.startswith("/home/u/") for root in default_roots({}, "/home/u/"))


UUID = "11111111-2222-4333-8444-555555555555"


@pytest.mark.parametrize(
    ("agent", "path", "kind"),
    [
        ("claude-code", f"projects/-p/{UUID}.jsonl", "transcript"),
        ("claude-code", f"projects/-p/{UUID}/subagents/agent-a1.jsonl", "transcript"),
        ("claude-code", f"projects/-p/{UUID}/subagents/workflows/w/agent-a1.jsonl", "transcript"),
        ("claude-code", f"projects/-p/{UUID}/subagents/workflows/w/journal.jsonl", None),
        ("claude-code", f"projects/-p/{UUID}/subagents/agent-a1.meta.json", "sidecar"),
        ("claude-code", "projects/-p/agent-12345678.jsonl", "transcript"),
        ("claude-code", "projects/-p/memory/notes.jsonl", None),
        ("claude-code", f"projects/-p/{UUID}/tool-results/x.txt", None),
        ("claude-code", f"projects/-p/{UUID}.jsonl.gz", "transcript"),
        ("claude-code", "history.jsonl", "sidecar"),
        ("claude-code", "todos/x.json", None),
        ("codex", f"sessions/2026/01/02/rollout-2026-01-02T00-00-00-{UUID}.jsonl", "transcript"),
        (
            "codex",
            f"sessions/2026/01/02/rollout-2026-01-02T00-00-00-{UUID}.jsonl.zst",
            "transcript",
        ),
        ("codex", f"sessions/2026/01/02/rollout-2026-01-02T00-00-00-{UUID}.jsonl.tmp", None),
        ("codex", f"archived_sessions/rollout-2026-01-02T00-00-00-{UUID}.jsonl", "transcript"),
        ("codex", "session_index.jsonl", "sidecar"),
        ("codex", "state_5.sqlite", None),
        ("gemini-cli", "tmp/ab12/chats/session-2026-01-01T00-00-x.json", "transcript"),
        ("gemini-cli", "tmp/ab12/chats/session-2026-01-01T00-00-x.jsonl", "transcript"),
        ("gemini-cli", f"tmp/ab12/chats/{UUID}/sub.jsonl", "transcript"),
        ("gemini-cli", "tmp/ab12/chats/session-x.json.unreadable-17", None),
        ("gemini-cli", "tmp/ab12/logs.json", None),
        ("gemini-cli", "tmp/ab12/.project_root", "sidecar"),
        ("antigravity", "brain/c/.system_generated/logs/transcript_full.jsonl", "transcript"),
        ("antigravity", "brain/c/plan.md", None),
        ("opencode", "opencode.db", "transcript"),
        ("opencode", "opencode-dev.db", "transcript"),
        ("opencode", "opencode.db-wal", None),
        ("opencode", "storage/part/msg_1/prt_1.json", "transcript"),
        ("copilot-cli", "session-state/x/events.jsonl", "transcript"),
        ("copilot-cli", "session-state/x/workspace.yaml", "sidecar"),
        ("copilot-cli", "session-state/x.jsonl", "transcript"),
        ("copilot-cli", "session-state/x/files/events.jsonl", None),
        ("cline", "tasks/1/ui_messages.json", "transcript"),
        ("cline", "tasks/1/api_conversation_history.json", "sidecar"),
        ("cline", "sessions/s/s.messages.json", "transcript"),
        ("cline", "sessions/s/s.json", "sidecar"),
        ("cline", "sessions/s/agentic.compaction.json", None),
        ("droid", "sessions/-p/x.jsonl", "transcript"),
        ("droid", "sessions/-p/x.settings.json", "sidecar"),
        ("goose", "sessions.db", "transcript"),
        ("goose", "20250724_1.jsonl", "transcript"),
        ("cursor", "projects/p/agent-transcripts/i/subagents/j.jsonl", "transcript"),
        ("amp", "T-1.json", "transcript"),
        ("nobody", "x.jsonl", None),
    ],
)
def test_which_files_matter(agent: str, path: str, kind: str | None) -> None:
    assert classify(agent, path) == kind
    name = parser_name(agent, path)
    assert (name is not None) == (kind == "transcript")
    if name is not None:
        assert PARSERS[name].agent == agent
        assert parser_name(agent, f"/somewhere/else/{path}") == name


def test_places_inside_a_workspace() -> None:
    roots = workspace_roots("/p/")
    assert [(root.agent, root.path) for root in roots] == [
        ("recursive", "/p/.recursive"),
        ("aider", "/p"),
    ]
    assert classify("aider", ".aider.chat.history.md") == "transcript"
    assert classify("aider", "README.md") is None
    assert classify("recursive", "sessions/2026-05-01T10-00-00Z-fix-it.json") == "transcript"
    assert classify("recursive", "sessions/s/cost.json") == "sidecar"


def test_a_package_adds_a_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "odd_agent.py").write_text(
        "from lored.core.transcripts.generic import Generic\n"
        "PARSER = Generic({'agent': 'odd-agent', 'root': '~/.odd', 'pattern': '*.jsonl'})\n"
    )
    info = tmp_path / "odd_agent-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: odd-agent\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[lored.transcripts]\nodd-agent = odd_agent:PARSER\ncodex = odd_agent:PARSER\n"
        "broken = not_there:PARSER\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    try:
        problems = register_entry_points()
        assert set(problems) == {"codex", "broken"}
        assert "taken" in problems["codex"] and "ModuleNotFoundError" in problems["broken"]
        assert classify("odd-agent", "x.jsonl") == "transcript"
        assert PARSERS["odd-agent"].agent == "odd-agent"
    finally:
        unregister("odd-agent")


def test_globs() -> None:
    pattern = re.compile(pattern_of("logs/**/*.jsonl"))
    assert pattern.fullmatch("logs/a.jsonl") and pattern.fullmatch("logs/x/y/a.jsonl")
    assert not pattern.fullmatch("logs/a.json") and not pattern.fullmatch("a.jsonl")


def test_parsers_load_when_asked_for_and_names_are_not_replaced() -> None:
    for name, parser in PARSERS.items():
        assert parser.version >= 1 and parser.agent
        assert sum(hasattr(parser, f"parse{kind}") for kind in ("", "_document", "_database")) == 1
        assert name in PARSERS and len(PARSERS) == len(list(PARSERS))
    assert not register("codex", PARSERS["pi"], ())
    place = Place("test-agent", ".test-agent", ("*.jsonl",), ((r"[^/]+\.jsonl", "test-agent"),))
    assert register("test-agent", PARSERS["pi"], (place,))
    try:
        assert classify("test-agent", "x.jsonl") == "transcript"
        assert "/home/u/.test-agent" in {root.path for root in default_roots({}, "/home/u")}
    finally:
        unregister("test-agent")
    assert classify("test-agent", "x.jsonl") is None
    unregister("codex")
    assert "codex" in PARSERS
