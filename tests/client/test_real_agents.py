"""Real agents against what `lore install` writes: their own programs, a model of ours.

Needs the agents, which are not ours to install: LORE_AGENTS is a folder with their programs, e.g.
the `node_modules/.bin` of `npm install @anthropic-ai/claude-code @openai/codex
@google/gemini-cli`. They run in a network of their own that has loopback only (Linux, root), so
that nothing of a test leaves the machine. Hooks get more than their 150 ms, so that what is
tested is the agents' forms and not the machine.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.cli import Lore
from support.daemon import RunningDaemon, environment
from support.fake_model import SENTENCE

AGENTS = os.environ.get("LORE_AGENTS", "")
ALONE = ["unshare", "-n", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
FAKE = [sys.executable, str(Path(__file__).parents[1] / "support" / "fake_model.py")]
QUESTION = "How do deploys go here?"
FACT = "Deploys go through Argo, never by hand"
PROVIDER = (
    'model_providers.fake={name="fake",base_url="FAKE_MODEL/v1",'
    'wire_api="responses",env_key="OPENAI_API_KEY"}'
)
COMMANDS = {
    "claude-code": ["claude", "-p", QUESTION, "--model", "claude-sonnet-4-5"],
    "codex": ["codex", "exec", "--skip-git-repo-check", "-c", "model_provider=fake",
              "-c", PROVIDER, "-m", "gpt-5", QUESTION],
    "gemini-cli": ["gemini", "-p", QUESTION, "-m", "gemini-2.5-flash", "--skip-trust"],
}  # fmt: skip
INJECTS = ("claude-code", "gemini-cli")
"""Codex runs a hook only after a person trusted it in its own dialogue."""
QUIET = {
    "ANTHROPIC_API_KEY": "none", "OPENAI_API_KEY": "none", "GEMINI_API_KEY": "none",
    "DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "LORE_HOOK_SECONDS": "2",
}  # fmt: skip

pytestmark = [
    pytest.mark.skipif(not AGENTS, reason="needs LORE_AGENTS, a folder with the agents' programs"),
    pytest.mark.timeout(300),
]


def run(lore: Lore, project: Path, words: list[str], log: Path) -> str:
    program = [str(Path(AGENTS) / words[0]), *words[1:]]
    done = subprocess.run(
        [*ALONE, *FAKE, str(log), *program],
        env=environment(lore.home, {**QUIET, "PATH": os.environ["PATH"]}),
        cwd=project,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize("agent", COMMANDS)
def test_an_agent_is_given_the_memory_and_remembered(daemon: RunningDaemon, agent: str) -> None:
    if shutil.which("unshare") is None or os.geteuid() != 0:
        pytest.skip("needs root for a network of its own")
    if not (Path(AGENTS) / COMMANDS[agent][0]).exists():
        pytest.skip(f"no {COMMANDS[agent][0]} in {AGENTS}")
    project = daemon.home / "user" / "project"
    project.mkdir()
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    lore = Lore(daemon.home, project)
    lore("install", agent)
    if agent == "gemini-cli":
        settings = daemon.home / "user" / ".gemini" / "settings.json"
        known: dict[str, Any] = json.loads(settings.read_text())
        known["security"] = {"auth": {"selectedType": "gemini-api-key"}}
        settings.write_text(json.dumps(known))
    lore("remember", FACT)
    log = daemon.home / "asked.jsonl"
    log.touch()
    assert SENTENCE in run(lore, project, COMMANDS[agent], log)
    asked = log.read_text()
    assert QUESTION in asked
    assert (FACT in asked) == (agent in INJECTS)
    lore("index", "--wait")
    sessions = lore.json("sessions", "--agent", agent)["sessions"]
    assert len(sessions) == 1
    told = lore.json("session", sessions[0]["id"], "--messages", "0-50")["messages"]
    spoken = [m["text"] for m in told if m["role"] in ("user", "assistant")]
    assert spoken[0] == QUESTION and SENTENCE in spoken[-1]
    assert not any(FACT in text for text in spoken), "our own block is not a memory"
