"""`lore install` and `uninstall` on real-shaped and hostile configuration files."""

import json
import os
import shlex
import shutil
import stat
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from lore.errors import Conflict, Invalid
from lore.install import plan, targets
from lore.install.edits import JsonEdit, TomlEdit, is_ours
from lore.install.journal import Journal
from lore.install.places import Place
from support.cli import Lore

CLAUDE = """{
  // kept by hand
  "model": "opus",
  "permissions": { "allow": ["Bash(ls:*)"], "deny": [] },
  "hooks": {
    "Stop": [
      { "hooks": [{ "type": "command", "command": "say done" }] }
    ],
    "PreToolUse": [
      { "matcher": "Bash", "hooks": [{ "type": "command", "command": "/opt/guard.sh" }] }
    ],
  },
}
"""
CLAUDE_STATE = json.dumps(
    {
        "numStartups": 120,
        "projects": {"/srv/app": {"allowedTools": [], "history": [{"display": "日本語 {}"}]}},
        "mcpServers": {"github": {"type": "http", "url": "https://api.example/mcp"}},
    },
    indent=2,
    ensure_ascii=False,
)
CODEX = """model = "gpt-5"
approval_policy = "on-request"

[mcp_servers.docs]
command = "npx"
args = ["-y", "docs-mcp"]

[projects."/srv/app"]
trust_level = "trusted"
"""
GEMINI = '{"theme":"Dark","mcpServers":{"x":{"command":"y"}},"hooks":{"SessionStart":[]}}'
ZED = """// Zed settings
//
// For information on how to configure Zed, see the documentation.
{
  "vim_mode": true,
  "context_servers": {
    "docs": { "source": "custom", "command": "docs", "args": [], "env": {} }
  },
  "theme": {
    "mode": "system", // follows the desktop
    "light": "One Light",
    "dark": "One Dark"
  }
}
"""
VSCODE = (
    '{\n\t"servers": {\n\t\t"gh": {"type": "http", "url": "https://x"}\n\t},\n\t"inputs": []\n}\n'
)
FILES = {
    ".claude/settings.json": CLAUDE,
    ".claude.json": CLAUDE_STATE,
    ".codex/config.toml": CODEX,
    ".gemini/settings.json": GEMINI,
    ".config/zed/settings.json": ZED,
    ".config/Code/User/mcp.json": VSCODE,
    ".cursor/mcp.json": "{}\n",
    ".config/opencode/opencode.json": '{ "$schema": "https://opencode.ai/config.json" }\r\n',
    ".config/nvim/init.lua": "vim.o.number = true\n",
}


@pytest.fixture
def user(home: Path) -> Path:
    """A home directory with every agent's files."""
    for name, text in FILES.items():
        path = home / "user" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return home / "user"


@pytest.fixture
def lore(home: Path, user: Path) -> Lore:
    return Lore(home)


def tree(folder: Path) -> dict[str, Any]:
    """Every file with its bytes and mode, every folder, every link."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = os.readlink(path)
        elif path.is_dir():
            found[name] = "folder"
        else:
            found[name] = (path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
    return found


def place_of(user: Path, **env: str) -> Place:
    return Place(str(user), {"PATH": "/nowhere", **env}, "/opt/lore/bin/lore")


def load(path: Path) -> Any:
    from lore.install import jsonc

    return jsonc.parse(path.read_text(encoding="utf-8")).value


def commands(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["command"]] if isinstance(value.get("command"), str) else []
        return own + [c for item in value.values() for c in commands(item)]
    return [c for item in value for c in commands(item)] if isinstance(value, list) else []


def test_install_then_uninstall_is_exact(lore: Lore, user: Path) -> None:
    before = tree(user)
    done = lore.json("install")
    assert {c["target"] for c in done["changes"]} == {
        "claude-code",
        "codex",
        "gemini-cli",
        "opencode",
        "cursor",
        "vscode",
        "zed",
        "neovim",
    }
    assert {c["action"] for c in done["changes"]} == {"create", "edit"}
    assert any("/hooks" in note for note in done["notes"])
    installed = tree(user)
    again = lore.json("install")
    assert {c["action"] for c in again["changes"]} == {"keep"}
    assert tree(user) == installed
    lore("uninstall")
    assert tree(user) == before
    assert not (lore.home / "state" / "install").exists()
    assert "nothing of ours" in lore("uninstall").out


def test_entries_of_others_stay_and_ours_have_limits(lore: Lore, user: Path) -> None:
    lore("install")
    claude = load(user / ".claude/settings.json")
    assert claude["model"] == "opus"
    assert claude["hooks"]["Stop"][0]["hooks"][0]["command"] == "say done"
    assert claude["hooks"]["PreToolUse"] == load_text(CLAUDE)["hooks"]["PreToolUse"]
    ours = claude["hooks"]["SessionStart"][0]
    assert ours["hooks"][0]["timeout"] == 2  # seconds
    assert "resume" not in ours["matcher"]
    state = load(user / ".claude.json")
    assert state["projects"] == json.loads(CLAUDE_STATE)["projects"]
    assert state["mcpServers"]["lore"]["args"] == ["mcp"]
    gemini = load(user / ".gemini/settings.json")
    assert gemini["hooks"]["SessionStart"][0]["hooks"][0]["timeout"] == 2000  # milliseconds
    assert gemini["mcpServers"]["x"] == {"command": "y"}
    codex = tomllib.loads((user / ".codex/config.toml").read_text())
    assert codex["mcp_servers"]["docs"]["command"] == "npx"
    assert codex["mcp_servers"]["lore"]["args"] == ["mcp"]
    assert codex["projects"] == {"/srv/app": {"trust_level": "trusted"}}
    cursor = load(user / ".cursor/hooks.json")
    assert cursor["version"] == 1
    assert "// follows the desktop" in (user / ".config/zed/settings.json").read_text()
    assert load(user / ".config/zed/settings.json")["context_servers"]["lore"]["source"] == "custom"
    for name in (".claude/settings.json", ".codex/hooks.json", ".cursor/hooks.json"):
        for command in commands(load(user / name)):
            if "lore" in command:
                assert os.access(shlex.split(command.split(" hook ")[0])[-1], os.X_OK)


def load_text(text: str) -> Any:
    from lore.install import jsonc

    return jsonc.parse(text).value


def test_a_dry_run_shows_a_diff_and_writes_nothing(lore: Lore, user: Path) -> None:
    before = tree(user)
    done = lore("install", "claude-code", "--dry-run")
    assert '+      "lore": {' in done.out or '+    "lore": {' in done.out
    assert f"+++ {user}/.claude/settings.json" in done.out
    assert "nothing was written" in done.out
    assert tree(user) == before
    assert not (lore.home / "state").exists()


def test_recall_hooks_come_and_go_on_request(lore: Lore, user: Path) -> None:
    lore("install", "claude-code", "--recall")
    assert "UserPromptSubmit" in load(user / ".claude/settings.json")["hooks"]
    lore("install", "claude-code")
    hooks = load(user / ".claude/settings.json")["hooks"]
    assert not [c for c in commands(hooks.get("UserPromptSubmit", [])) if "lore" in c]
    assert [c for c in commands(hooks["SessionStart"]) if "lore" in c]
    lore("uninstall", "claude-code")
    assert (user / ".claude/settings.json").read_bytes() == CLAUDE.encode()


def test_what_others_changed_meanwhile_stays(lore: Lore, user: Path) -> None:
    lore("install")
    settings = user / ".claude/settings.json"
    settings.write_text(settings.read_text().replace('"opus"', '"sonnet"'))
    codex = user / ".codex/config.toml"
    codex.write_text(codex.read_text() + '\n[projects."/new"]\ntrust_level = "trusted"\n')
    hooks = user / ".codex/hooks.json"
    document = json.loads(hooks.read_text())
    document["hooks"]["Stop"].append({"hooks": [{"type": "command", "command": "theirs"}]})
    hooks.write_text(json.dumps(document))
    lore("uninstall")
    assert load(settings) == {**load_text(CLAUDE), "model": "sonnet"}
    assert "// kept by hand" in settings.read_text()
    assert settings.read_text() == CLAUDE.replace('"opus"', '"sonnet"')
    rest = tomllib.loads(codex.read_text())
    assert "lore" not in rest["mcp_servers"]
    assert rest["projects"]["/new"] == {"trust_level": "trusted"}
    assert json.loads(hooks.read_text()) == {
        "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "theirs"}]}]}
    }


def test_reinstalling_after_an_edit_keeps_the_way_back(lore: Lore, user: Path) -> None:
    lore("install", "claude-code")
    settings = user / ".claude/settings.json"
    settings.write_text(settings.read_text().replace('"opus"', '"sonnet"'))
    lore("install", "claude-code", "--recall")
    lore("uninstall", "claude-code")
    assert load(settings) == {**load_text(CLAUDE), "model": "sonnet"}


def test_uninstall_works_without_its_journal(lore: Lore, user: Path) -> None:
    lore("install")
    shutil.rmtree(lore.home / "state" / "install")
    lore("uninstall")
    for name in (".claude/settings.json", ".claude.json", ".codex/config.toml"):
        assert b"lore" not in (user / name).read_bytes()
    assert load(user / ".claude/settings.json") == load_text(CLAUDE)
    assert not (user / ".config/opencode/plugins/lore.js").exists()


def test_symlinks_stay_links(lore: Lore, user: Path) -> None:
    dotfiles = user / "dotfiles"
    dotfiles.mkdir()
    (user / ".claude/settings.json").rename(dotfiles / "claude.json")
    (user / ".claude/settings.json").symlink_to("../dotfiles/claude.json")
    lore("install", "claude-code")
    assert os.readlink(user / ".claude/settings.json") == "../dotfiles/claude.json"
    assert "SessionStart" in load(dotfiles / "claude.json")["hooks"]
    lore("uninstall", "claude-code")
    assert os.readlink(user / ".claude/settings.json") == "../dotfiles/claude.json"
    assert (dotfiles / "claude.json").read_bytes() == CLAUDE.encode()


def test_hard_links_stay_one_file(lore: Lore, user: Path) -> None:
    other = user / "settings.backup"
    os.link(user / ".claude/settings.json", other)
    lore("install", "claude-code")
    assert other.samefile(user / ".claude/settings.json")
    lore("uninstall", "claude-code")
    assert other.samefile(user / ".claude/settings.json")
    assert other.read_bytes() == CLAUDE.encode()


def test_modes_are_kept(lore: Lore, user: Path) -> None:
    (user / ".claude.json").chmod(0o600)
    (user / ".claude/settings.json").chmod(0o640)
    lore("install", "claude-code")
    assert stat.S_IMODE((user / ".claude.json").stat().st_mode) == 0o600
    assert stat.S_IMODE((user / ".claude/settings.json").stat().st_mode) == 0o640


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        (".claude/settings.json", b'{"hooks": [1, 2]}', "not an object"),
        (".claude/settings.json", b'{"hooks": {"Stop": "x"}}', "not an array"),
        (".claude/settings.json", b'{"hooks": {', "line 1"),
        (".claude/settings.json", b"[]", "no JSON object"),
        (".claude/settings.json", b'{"a": "\xff"}', "UTF-8"),
        (".claude.json", b'{"mcpServers": {"lore": {"command": "other"}}}', "not ours"),
        (".codex/config.toml", b"model = ", "not TOML"),
        (".codex/config.toml", b'[mcp_servers.lore]\ncommand = "x"\n', "not ours"),
        (".codex/config.toml", b'mcp_servers = { docs = { command = "x" } }\n', "TOML"),
    ],
)
def test_what_cannot_be_merged_is_refused_and_left(
    lore: Lore, user: Path, name: str, content: bytes, said: str
) -> None:
    (user / name).write_bytes(content)
    done = lore.json("install", "claude-code", "codex", code=3)
    refused = [c for c in done["changes"] if c["action"] == "refuse"]
    assert [c["path"] for c in refused] == [str(user / name)]
    assert said in refused[0]["reason"]
    assert str(user / name) in refused[0]["reason"]
    assert (user / name).read_bytes() == content
    lore("uninstall")
    assert (user / name).read_bytes() == content


def test_read_only_folders_and_loops_are_refused(lore: Lore, user: Path) -> None:
    settings, state = user / ".claude/settings.json", user / ".claude.json"
    settings.chmod(0o444)
    state.unlink()
    state.symlink_to(state)
    done = lore.json("install", "claude-code", code=3)
    reasons = {c["path"]: c.get("reason", "") for c in done["changes"]}
    assert "read-only" in reasons[str(settings)]
    assert "chmod u+w" in reasons[str(settings)]
    assert reasons[str(state)]
    assert settings.read_bytes() == CLAUDE.encode()
    state.unlink()
    (user / ".claude.json").mkdir()
    done = lore.json("install", "claude-code", code=3)
    assert "is not a file" in {c["path"]: c.get("reason", "") for c in done["changes"]}[str(state)]


def test_a_file_that_changes_under_us_is_not_overwritten(user: Path, tmp_path: Path) -> None:
    journal = Journal(str(tmp_path / "journal"))
    edits = [("claude-code", edit) for edit in targets.claude(place_of(user), False)]
    changes = plan.plan_install(edits, journal)
    (user / ".claude/settings.json").write_text('{"model": "haiku"}')
    with pytest.raises(Invalid, match="changed while"):
        plan.apply_install(changes[0], journal)
    assert load(user / ".claude/settings.json") == {"model": "haiku"}
    # The journal names a change that did not happen; undoing finds that out.
    undo = plan.plan_uninstall(edits, Journal(str(tmp_path / "journal")))
    assert [c.action for c in undo if c.path.endswith("settings.json")] == ["keep"]


def test_another_memory_is_written_down(lore: Lore, user: Path) -> None:
    place = place_of(user, LORE_REALM="client-a")
    for target in targets.TARGETS:
        if target.by_name_only:
            continue
        text = "".join(edit.merge(None) for edit in target.edits(place, False))
        if target.name != "neovim":
            assert "LORE_REALM" in text, target.name
    assert (
        place.hook("codex", "stop") == "env LORE_REALM=client-a /opt/lore/bin/lore hook codex stop"
    )


def test_our_mark_is_the_command() -> None:
    assert is_ours({"command": "/a b/lore", "args": ["mcp"]})
    assert is_ours({"command": ["/x/lore", "mcp"]})
    assert is_ours({"hooks": [{"command": "'/a b/lore' hook claude-code stop"}]})
    assert is_ours({"hooks": [{"command": "env LORE_REALM=x lore hook codex session-start"}]})
    assert not is_ours({"command": "explore", "args": ["mcp"]})
    assert not is_ours({"command": "folklore", "args": ["mcp"]})
    assert not is_ours({"hooks": [{"command": "lore hook codex stop"}, {"command": "theirs"}]})
    assert not is_ours({"command": "echo lore"})
    assert not is_ours({})


def test_a_group_shared_with_others_loses_only_our_hook() -> None:
    ours = {"type": "command", "command": "/x/lore hook claude-code stop"}
    theirs = {"type": "command", "command": "say done"}
    text = json.dumps({"hooks": {"Stop": [{"hooks": [theirs, ours]}]}}, indent=2)
    edit = JsonEdit("f", items=[(("hooks", "Stop"), {"hooks": [ours]})])
    stripped = edit.strip(text, text)
    assert stripped is not None
    assert json.loads(stripped) == {"hooks": {"Stop": [{"hooks": [theirs]}]}}


def test_toml_with_windows_ends_and_a_missing_last_line_end() -> None:
    edit = TomlEdit("f", ("mcp_servers", "lore"), '[mcp_servers.lore]\ncommand = "lore"')
    for text in ("", "a = 1", "a = 1\r\n", "a = 1\n\n[b]\nc = 2\n"):
        merged = edit.merge(text)
        assert edit.merge(merged) == merged
        assert edit.strip(merged, text) == (text + "\n" if text == "a = 1" else text)
    with pytest.raises(Conflict):
        edit.merge("[mcp_servers.lore]\ncommand = 'x'\n")


def test_the_opencode_plugin_runs(lore: Lore, user: Path, tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed here")
    asked = tmp_path / "asked"
    fake = tmp_path / "lore"
    fake.write_text(f'#!/bin/sh\necho "$@" >> {asked}\ncat >> {asked}\necho "# Facts"\n')
    fake.chmod(0o755)
    from lore.install.opencode import plugin

    module = tmp_path / "lore.mjs"
    module.write_text(plugin(Place(str(user), {}, str(fake))))
    script = f"""
      const {{ LoreMemory }} = await import({json.dumps(str(module))})
      const hooks = await LoreMemory({{ directory: {json.dumps(str(tmp_path))} }})
      const output = {{ system: ["base"] }}
      for (const _ of [1, 2])
        await hooks["experimental.chat.system.transform"]({{ sessionID: "s1" }}, output)
      await hooks.event({{ event: {{ type: "session.idle" }} }})
      console.log(JSON.stringify(output.system))
    """
    done = subprocess.run(
        [node, "--input-type=module", "-e", script], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == ["base", "# Facts", "# Facts"]
    said = asked.read_text()
    assert said.count("hook opencode session-start") == 1  # once a session
    assert '"session_id":"s1"' in said
    assert "hook opencode stop" in said


def test_units_name_this_installation(user: Path, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "lored"
    program.parent.mkdir()
    program.write_text("")
    place = Place(str(user), {}, str(tmp_path / "bin" / "lore"))
    texts = {e.path: e.merge(None) for e in targets.BY_NAME["systemd"].edits(place, False)}
    service = next(text for path, text in texts.items() if path.endswith("lored.service"))
    assert f"ExecStart={program} run\n" in service
    assert "Type=notify" in service
    plist = targets.BY_NAME["launchd"].edits(place, False)[0].merge(None)
    assert f"<string>{program}</string>" in plist
    assert "@HOME@" not in plist
    import plistlib

    assert plistlib.loads(plist.encode())["Label"] == "com.lored.lored"
    with pytest.raises(Invalid, match="LORE_HOME"):
        targets.BY_NAME["systemd"].edits(
            Place(str(user), {"LORE_HOME": "/x"}, place.command), False
        )
    verify = shutil.which("systemd-analyze")
    if verify is not None:
        folder = tmp_path / "units"
        folder.mkdir()
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
        for path, text in texts.items():
            (folder / os.path.basename(path)).write_text(text)
        done = subprocess.run(
            [verify, "--user", "verify", str(folder / "lored.service")],
            capture_output=True,
            text=True,
            check=False,
        )
        assert "lored" not in done.stderr, done.stderr


def test_the_neovim_plugin_loads(lore: Lore, user: Path) -> None:
    nvim = shutil.which("nvim")
    if nvim is None:
        pytest.skip("nvim is not installed here")
    lore("install", "neovim")
    done = subprocess.run(
        [nvim, "--headless", "-c", "echo exists(':LoreRecall')", "-c", "qa!"],
        env={"HOME": str(user), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "2" in done.stderr + done.stdout


def test_the_plugin_of_claude_code(lore: Lore, user: Path) -> None:
    lore("install", "claude-plugin")
    root = user / ".local/share/lore/claude-plugin"
    manifest = json.loads((root / ".claude-plugin/plugin.json").read_text())
    assert manifest["mcpServers"]["lore"]["args"] == ["mcp"]
    assert "SessionStart" in manifest["hooks"]["hooks"]
    market = json.loads((root / ".claude-plugin/marketplace.json").read_text())
    assert market["plugins"][0]["name"] == manifest["name"]
    lore("uninstall", "claude-plugin")
    assert not (user / ".local").exists()


def test_installing_nothing(home: Path) -> None:
    lore = Lore(home)
    done = lore("install", env={"PATH": "/nowhere"})
    assert "no agent or editor was found" in done.out
    assert sys.executable  # the command is found beside the interpreter, not on PATH
