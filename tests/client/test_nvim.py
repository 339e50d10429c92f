"""The Neovim plugin in a real headless Neovim against a real daemon."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lore import Client
from support.daemon import RunningDaemon

PLUGIN = Path(__file__).parents[2] / "client" / "editors" / "nvim"

pytestmark = pytest.mark.skipif(shutil.which("nvim") is None, reason="Neovim is not installed")

SCRIPT = """
local results = {}
vim.notify = function(text) table.insert(results, text) end
vim.ui.select = function(items, options, choose)
  for _, item in ipairs(items) do table.insert(results, options.format_item(item)) end
  choose(items[1])
end
local ok, failure = pcall(function()
%s
end)
if not ok then table.insert(results, 'FAILED: ' .. tostring(failure)) end
local out = io.open(vim.env.RESULT, 'w')
out:write(vim.json and vim.json.encode(results) or vim.fn.json_encode(results))
out:close()
vim.cmd('qa!')
"""


def run(daemon: RunningDaemon, folder: Path, body: str, file: Path | None = None) -> list[Any]:
    script, result = folder / "script.lua", folder / "result.json"
    script.write_text(SCRIPT % body)
    words = ["nvim", "--headless", "-u", "NONE", "-i", "NONE", "--cmd", f"set rtp+={PLUGIN}"]
    words += ["-c", f"luafile {script}", *([str(file)] if file else [])]
    done = subprocess.run(
        words,
        cwd=folder,
        env=daemon.env | {"RESULT": str(result), "PATH": os.environ["PATH"]},
        capture_output=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert result.exists(), done.stderr.decode() + done.stdout.decode()
    found: list[Any] = json.loads(result.read_text())
    return found


@pytest.fixture
def project(home: Path) -> Path:
    folder = home / "user" / "project"
    folder.mkdir(parents=True)
    return folder


def test_remember_a_selection_and_pick_it_again(daemon: RunningDaemon, project: Path) -> None:
    source = project / "notes.txt"
    source.write_text("first\nthe port is 8443\nlast\n")
    told = run(
        daemon,
        project,
        "vim.cmd('runtime plugin/lore.lua'); vim.cmd('2LoreRemember');"
        "vim.cmd('LoreRecall port'); table.insert(results, vim.api.nvim_get_current_line())",
        source,
    )
    assert told[0].startswith("lore: remembered F1")
    assert told[1] == "F1  the port is 8443"
    assert told[2].startswith("F1")
    with Client(where=daemon.paths, workspace=str(project), start=False) as client:
        (fact,) = client.facts()["facts"]
        assert fact["source_ref"] == f"file:{source}" and fact["scope"] == "workspace"


def test_errors_reach_the_editor_as_text(daemon: RunningDaemon, project: Path) -> None:
    told = run(
        daemon,
        project,
        "local ok, text = pcall(require('lore').call, 'fact', { id = 'F99' });"
        "table.insert(results, ok); table.insert(results, text)",
    )
    assert told[0] is False and "not_found" in told[1] and "F99" in told[1]


def test_a_restarted_daemon_is_found_again(home: Path, project: Path) -> None:
    from support.daemon import start_daemon

    with start_daemon(home) as running:
        script = (
            "local lore = require('lore'); lore.call('remember_fact', { text = 'before' });"
            "local file = io.open(vim.env.HOME .. '/go', 'w'); file:close();"
            "vim.fn.chanclose(vim.api.nvim_list_chans()[#vim.api.nvim_list_chans()].id);"
            "local found = lore.call('recall_fact', { query = 'before' });"
            "table.insert(results, found.facts[1].text)"
        )
        assert run(running, project, script) == ["before"]


def test_sessions_of_a_file(home: Path, project: Path) -> None:
    from support.daemon import start_daemon

    source = project / "app.py"
    source.write_text("print()\n")
    transcript = home / "user" / ".claude" / "projects" / "-project" / "aaaa1111.jsonl"
    transcript.parent.mkdir(parents=True)
    common = {
        "sessionId": "aaaa1111",
        "cwd": str(project),
        "version": "2.1.0",
        "isSidechain": False,
    }
    edit = {"type": "tool_use", "id": "t1", "name": "Edit", "input": {"file_path": str(source)}}
    lines = [
        {"type": "user", "uuid": "u1", "parentUuid": None, "timestamp": "2026-11-29T10:00:00Z",
         "message": {"role": "user", "content": "fix the parser"}, **common},
        {"type": "assistant", "uuid": "u2", "parentUuid": "u1", "timestamp": "2026-11-29T10:00:01Z",
         "message": {"id": "m1", "role": "assistant", "model": "m", "content": [edit]}, **common},
        {"type": "user", "uuid": "u3", "parentUuid": "u2", "timestamp": "2026-11-29T10:00:02Z",
         "message": {"role": "user", "content": [
             {"type": "tool_result", "tool_use_id": "t1", "content": "ok"}]}, **common},
    ]  # fmt: skip
    transcript.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with start_daemon(home) as running:
        with Client(where=running.paths, start=False, timeout=60) as client:
            client.index_wait(ticket=client.index()["ticket"])
        told = run(
            running,
            project,
            "vim.cmd('runtime plugin/lore.lua'); vim.cmd('LoreSessions');"
            "table.insert(results, table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), ' '))",
            source,
        )
    assert told[0].startswith("claude-code") and "fix the parser" in told[-1]
