"""Every command of the README, in its order, as a user would type it, against a real daemon."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lore.cli import table
from lore.cli.arguments import build
from lore.cli.dispatch import split
from support.daemon import start_daemon

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = [
    line.split("  #")[0].rstrip()
    for block in re.findall(r"```sh\n(.*?)```", README, re.S)
    for line in block.splitlines()
    if line.startswith("lore ")
]
PAGES = (
    "README.md",
    "CHANGELOG.md",
    "systemd/README.md",
    "client/editors/nvim/README.md",
    "client/TOUR.md",
    "daemon/DESIGN.md",
    "daemon/SECURITY.md",
)
INLINE = [
    command
    for page in PAGES
    for command in re.findall(r"`(lore [a-z][^`]*)`", (ROOT / page).read_text(encoding="utf-8"))
]
REQUIRED = {"apply": ["-"], "restore": ["FOLDER"], "recall": ["words"]}
"""Words of a verb that the pages name alone."""
NOT_HERE = {
    "lore up": "starts a daemon of its own; tests/client runs it",
    "lore install": "changes an agent's files; tests/client/test_cli_install.py runs it",
    "lore uninstall": "ends the daemon; tests/client/test_cli_install.py runs it",
    "lore mcp": "serves until its input ends; tests/client/test_cli_mcp.py runs it",
    "lore web": "serves until it is stopped; tests/client/test_web.py runs it",
    "lore down": "ends the daemon",
    "lore restart": "ends the daemon",
    "lore restore": "needs a folder; tests/process runs it",
}


def sample(home: Path) -> None:
    """What the examples speak about: one session, one Remind database, one CLAUDE.md."""
    project = home / "user" / "project"
    project.mkdir()
    (project / "CLAUDE.md").write_text("# Project\n\n- use tabs\n- never deploy on Friday\n")
    (home / "user" / ".remind").mkdir()
    shutil.copy(
        ROOT / "tests" / "data" / "remind" / "remind-0.12.db", home / "user/.remind/remind.db"
    )
    folder = home / "user" / ".claude" / "projects" / "-project"
    folder.mkdir(parents=True)
    session = "3f2a9c1e-0000-4000-8000-000000000001"
    common = {"sessionId": session, "cwd": str(project), "version": "2.1.0", "isSidechain": False}
    lines = []
    for number in range(40):
        role = "assistant" if number % 2 else "user"
        words = f"the migration that failed, flaky test, pytest run {number}"
        message: dict[str, object] = {"role": role, "content": words}
        if role == "assistant":
            message |= {
                "id": f"m{number}",
                "model": "m",
                "content": [{"type": "text", "text": words}],
            }
        lines.append(
            {"type": role, "uuid": f"u{number}", "parentUuid": f"u{number - 1}" if number else None,
             "timestamp": f"2026-11-29T10:00:{number:02d}Z", "message": message, **common}
        )  # fmt: skip
    (folder / f"{session}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_commands(home: Path) -> None:
    sample(home)
    bare = home / "bin"
    bare.mkdir()
    for name in ("lore", "lored"):
        (bare / name).symlink_to(Path(sys.executable).parent / name)
    with start_daemon(home) as running:
        env = running.env | {"PATH": f"{bare}:{os.environ['PATH']}", "LORE_HOOK_BUDGET_MS": "5000"}
        for command in ["lore index --wait", *COMMANDS]:
            if any(command.startswith(word) for word in NOT_HERE):
                continue
            done = subprocess.run(
                ["bash", "-c", command],
                cwd=home / "user" / "project",
                env=env,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=60,
                check=False,
            )
            said = done.stdout.decode() + done.stderr.decode()
            # 1 = nothing found: the words of an example need not be in this memory.
            assert done.returncode in (0, 1), f"{command}: {done.returncode}\n{said}"
            if done.returncode == 1:
                assert command.startswith(("lore recall", "lore sessions")), f"{command}\n{said}"


@pytest.mark.parametrize("command", sorted(set(INLINE)))
def test_named_commands_are_understood(command: str) -> None:
    verb, words = split(shlex.split(command)[1:])
    parser = build(table.load(verb), table.ABOUT[verb])
    words = words or REQUIRED.get(verb, [])
    assert parser.parse_intermixed_args(words)


def test_files_and_variables_that_it_names_exist() -> None:
    for path in re.findall(r"\]\(([^)#]+)\)", README):
        assert path.startswith("http") or (ROOT / path).exists(), path
    sources = "".join(
        path.read_text(encoding="utf-8")
        for folder in ("daemon", "client")
        for path in (ROOT / folder).rglob("*.py")
    )
    for name in set(re.findall(r"`?(LORE_[A-Z_]+)", README)):
        assert name in sources or name == "LORE_", name
