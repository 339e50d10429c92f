"""Which agents and editors can be connected, how each is recognised and what it gets.

One table; every entry's format is the one its vendor documents (see each function). What an
agent must be told by hand stands in its notes.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass

from lore.install import neovim, units, vscode, zed
from lore.install.edits import Edit, FileEdit, JsonEdit, TomlEdit
from lore.install.places import Place

HOOK_SECONDS = 2
"""Limit written into every hook entry: the agents' own defaults are 60 to 600 s, and a limit
inside our process cannot help when it does not even start. We need 0.15 s."""


@dataclass(frozen=True)
class Target:
    """An agent or editor: name, title, where it is looked for, what is written."""

    name: str
    title: str
    signs: Callable[[Place], list[str]]
    programs: tuple[str, ...]
    edits: Callable[[Place, bool], list[Edit]]
    notes: tuple[str, ...] = ()
    by_name_only: bool = False
    """Never chosen by detection: it is an alternative, or it changes how the system starts."""

    def found(self, place: Place) -> str | None:
        """Why this target is believed to be here; None when it is not."""
        for path in self.signs(place):
            if os.path.lexists(path):
                return path
        for program in self.programs:
            on_path = shutil.which(program, path=place.env.get("PATH"))
            if on_path:
                return on_path
        return None


def server(place: Place, **more: object) -> dict[str, object]:
    """An MCP server entry in the form that most clients share."""
    entry: dict[str, object] = {"command": place.command, "args": ["mcp"]}
    if place.carried:
        entry["env"] = place.carried
    return {**more, **entry}


def groups(
    place: Place, agent: str, events: dict[str, tuple[str, str]], limit: int
) -> list[tuple[tuple[str, ...], object]]:
    """Hook groups as Claude Code, Codex and Gemini CLI share them: event name to (our event,
    matcher). ``limit`` in the agent's own unit."""
    items: list[tuple[tuple[str, ...], object]] = []
    for event, (ours, matcher) in events.items():
        hook = {"type": "command", "command": place.hook(agent, ours), "timeout": limit}
        group = {"matcher": matcher, "hooks": [hook]} if matcher else {"hooks": [hook]}
        items.append((("hooks", event), group))
    return items


def claude(place: Place, recall: bool) -> list[Edit]:
    """code.claude.com/docs/en/hooks and /mcp: user settings; `timeout` in seconds; servers of
    the user scope live in `.claude.json`."""
    events = {
        "SessionStart": ("session-start", "startup|clear|compact"),
        "PreCompact": ("pre-compact", ""),
        "Stop": ("stop", ""),
    }
    if recall:
        events["UserPromptSubmit"] = ("prompt-submit", "")
        events["PreToolUse"] = ("before-tool", "Edit|Write|Bash")
    folder = place.moved("CLAUDE_CONFIG_DIR", ".claude")
    moved = bool(place.env.get("CLAUDE_CONFIG_DIR"))
    state = os.path.join(folder, ".claude.json") if moved else place.at(".claude.json")
    return [
        JsonEdit(
            os.path.join(folder, "settings.json"),
            items=groups(place, "claude-code", events, HOOK_SECONDS),
        ),
        JsonEdit(state, {("mcpServers", "lore"): server(place, type="stdio")}),
    ]


def claude_plugin(place: Place, recall: bool) -> list[Edit]:
    """code.claude.com/docs/en/plugins-reference: the same as a plugin in a local marketplace,
    for those who manage plugins instead of settings."""
    root = place.at(".local", "share", "lore", "claude-plugin")
    hooks = {"SessionStart": ("session-start", "startup|clear|compact"), "Stop": ("stop", "")}
    if recall:
        hooks["UserPromptSubmit"] = ("prompt-submit", "")
    about = "One memory for every local agent (written by lore install)"
    listed: dict[str, list[object]] = {}
    for path, group in groups(place, "claude-code", hooks, HOOK_SECONDS):
        listed.setdefault(path[-1], []).append(group)
    documents: dict[str, object] = {
        ".claude-plugin/marketplace.json": {
            "name": "lore-local",
            "description": about,
            "owner": {"name": "lored"},
            "plugins": [{"name": "lore", "source": "./", "description": about}],
        },
        ".claude-plugin/plugin.json": {
            "name": "lore",
            "description": about,
            "hooks": {"hooks": listed},
            "mcpServers": {"lore": server(place)},
        },
    }
    return [
        FileEdit(os.path.join(root, name), json.dumps(document, indent=2) + "\n")
        for name, document in documents.items()
    ]


def codex(place: Place, recall: bool) -> list[Edit]:
    """developers.openai.com/codex/hooks and /mcp: `timeout` in seconds; tables in TOML."""
    events = {
        "SessionStart": ("session-start", "startup|clear|compact"),
        "Stop": ("stop", ""),
    }
    if recall:
        events["UserPromptSubmit"] = ("prompt-submit", "")
    folder = place.moved("CODEX_HOME", ".codex")
    lines = ["[mcp_servers.lore]", f"command = {json.dumps(place.command)}", 'args = ["mcp"]']
    if place.carried:
        pairs = ", ".join(f"{name} = {json.dumps(value)}" for name, value in place.carried.items())
        lines.append(f"env = {{ {pairs} }}")
    return [
        JsonEdit(
            os.path.join(folder, "hooks.json"),
            items=groups(place, "codex", events, HOOK_SECONDS),
        ),
        TomlEdit(os.path.join(folder, "config.toml"), ("mcp_servers", "lore"), "\n".join(lines)),
    ]


def gemini(place: Place, recall: bool) -> list[Edit]:
    """geminicli.com/docs/hooks/reference: one settings file; `timeout` in MILLIseconds."""
    events = {
        "SessionStart": ("session-start", ""),
        "PreCompress": ("pre-compact", ""),
        "SessionEnd": ("stop", ""),
    }
    if recall:
        events["BeforeAgent"] = ("prompt-submit", "")
    return [
        JsonEdit(
            place.at(".gemini", "settings.json"),
            {("mcpServers", "lore"): server(place)},
            groups(place, "gemini-cli", events, HOOK_SECONDS * 1000),
        )
    ]


def opencode(place: Place, recall: bool) -> list[Edit]:
    """opencode.ai/docs/mcp-servers and /plugins: `command` is a list; hooks are a plugin."""
    config = place.config("opencode", "opencode.json")
    if not os.path.exists(config) and os.path.exists(config + "c"):
        config += "c"
    entry: dict[str, object] = {
        "type": "local",
        "command": [place.command, "mcp"],
        "enabled": True,
    }
    if place.carried:
        entry["environment"] = place.carried
    from lore.install.opencode import plugin

    return [
        JsonEdit(config, {("mcp", "lore"): entry}),
        FileEdit(place.config("opencode", "plugins", "lore.js"), plugin(place)),
    ]


def cursor(place: Place, recall: bool) -> list[Edit]:
    """cursor.com/docs/context/mcp and /agent/hooks: flat hook entries, `timeout` in seconds."""
    events = {"sessionStart": "session-start", "preCompact": "pre-compact", "stop": "stop"}
    items: list[tuple[tuple[str, ...], object]] = [
        (("hooks", event), {"command": place.hook("cursor", ours), "timeout": HOOK_SECONDS})
        for event, ours in events.items()
    ]
    return [
        JsonEdit(place.at(".cursor", "mcp.json"), {("mcpServers", "lore"): server(place)}),
        JsonEdit(place.at(".cursor", "hooks.json"), items=items, defaults={("version",): 1}),
    ]


_TRUST = (
    "Codex runs a hook only after you trusted it: open /hooks in Codex once"
    " (a Codex without /hooks needs codex_hooks = true under [features] in config.toml)"
)
_FETCHES = (
    "opencode itself fetches @opencode-ai/plugin once it finds a plugin; its first start after "
    "this needs the network (without one: remove plugins/lore.js, MCP works alone)"
)
_RESTART = "sessions that are open now get it when they are started again"

TARGETS: tuple[Target, ...] = (
    Target(
        "claude-code",
        "Claude Code",
        lambda p: [p.moved("CLAUDE_CONFIG_DIR", ".claude"), p.at(".claude.json")],
        ("claude",),
        claude,
        (_RESTART,),
    ),
    Target(
        "codex", "Codex", lambda p: [p.moved("CODEX_HOME", ".codex")], ("codex",), codex, (_TRUST,)
    ),
    Target("gemini-cli", "Gemini CLI", lambda p: [p.at(".gemini")], ("gemini",), gemini),
    Target(
        "opencode",
        "opencode",
        lambda p: [p.config("opencode")],
        ("opencode",),
        opencode,
        (_FETCHES,),
    ),
    Target("cursor", "Cursor", lambda p: [p.at(".cursor")], ("cursor", "cursor-agent"), cursor),
    Target("vscode", "VS Code", lambda p: [vscode.folder(p)], ("code",), vscode.edits),
    Target(
        "zed", "Zed", lambda p: [os.path.dirname(zed.settings(p))], ("zed", "zeditor"), zed.edits
    ),
    Target("neovim", "Neovim", lambda p: [p.config("nvim")], ("nvim",), neovim.edits),
    Target(
        "claude-plugin",
        "Claude Code plugin",
        lambda p: [],
        (),
        claude_plugin,
        (
            "in Claude Code: /plugin marketplace add ~/.local/share/lore/claude-plugin, "
            "then /plugin install lore@lore-local (instead of `lore install claude-code`)",
        ),
        by_name_only=True,
    ),
    Target(
        "systemd",
        "systemd user units",
        lambda p: [],
        (),
        units.systemd,
        (units.SYSTEMD_NEXT,),
        by_name_only=True,
    ),
    Target(
        "launchd",
        "launchd agent",
        lambda p: [],
        (),
        units.launchd,
        (units.LAUNCHD_NEXT,),
        by_name_only=True,
    ),
)

BY_NAME: dict[str, Target] = {target.name: target for target in TARGETS}
