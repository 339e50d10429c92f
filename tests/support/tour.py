"""The terminal recordings of `client/TOUR.md`: real commands, real output, played again by a test.

The daemon has the embedder that is ready at once, so that no run depends on a model's start.

    PYTHONPATH=tests python -m support.tour      # records all of them anew

A recording is a fenced `console` block: `$ command`, then what it printed. The commands run in
order in one memory that knows the session below. Two runs agree in shape, not in every digit:
`shape` takes instants, counts, sizes and places out.
"""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from support.daemon import make_home, remove_home, start_daemon

PAGE = Path(__file__).parents[2] / "client" / "TOUR.md"
SESSION = "5b1f6d0c-7a4e-4c1b-9d27-3f60a1c2e4b8"
BLOCK = re.compile(r"```console\n(.*?)```", re.S)
USER_HOME = "/home/ana"
"""What stands on the page for the private home of a recording."""


def _transcript(shop: Path) -> str:
    """A morning with an agent: a test fails, a file is edited, the test passes, a commit."""
    lines: list[dict[str, Any]] = []

    def add(role: str, content: Any) -> None:
        message: dict[str, Any] = {"role": role, "content": content}
        if role == "assistant":
            message |= {"id": f"m{len(lines)}", "model": "claude-opus-4", "type": "message"}
        lines.append(
            {
                "type": role,
                "uuid": f"u{len(lines)}",
                "parentUuid": f"u{len(lines) - 1}" if lines else None,
                "timestamp": f"2026-11-30T09:{len(lines):02d}:00Z",
                "sessionId": SESSION,
                "cwd": str(shop),
                "gitBranch": "main",
                "version": "2.1.37",
                "isSidechain": False,
                "message": message,
            }
        )

    def use(name: str, given: dict[str, Any], result: str, *, error: bool = False) -> None:
        call = f"t{len(lines)}"
        add("assistant", [{"type": "tool_use", "id": call, "name": name, "input": given}])
        answer = {"type": "tool_result", "tool_use_id": call, "content": result, "is_error": error}
        add("user", [answer])

    add("user", "Fix the migration of the orders table, it fails on staging")
    test = {"command": "pytest tests/test_migration.py"}
    failed = "FAILED tests/test_migration.py::test_orders - IntegrityError: NULL in orders.currency"
    use("Bash", test, f"{failed}\n1 failed, 3 passed in 0.41s", error=True)
    path = str(shop / "migrations" / "0042_orders.py")
    edit = {"file_path": path, "old_string": "nullable=False", "new_string": "nullable=True"}
    use("Edit", edit, f"The file {path} has been updated.")
    use("Bash", test, "4 passed in 0.38s")
    commit = {"command": "git commit -am 'Backfill orders.currency before NOT NULL'"}
    use("Bash", commit, "[main 4be0c1d] Backfill orders.currency before NOT NULL\n 1 file changed")
    told = (
        "Fixed. Old rows have no currency, so the constraint has to wait: the migration now adds "
        "the column as nullable, fills it with EUR, and sets NOT NULL afterwards."
    )
    add("assistant", [{"type": "text", "text": told}])
    return "".join(json.dumps(line) + "\n" for line in lines)


def prepare(home: Path) -> Path:
    """The user's files: a project under git, and a session that Claude Code left about it."""
    shop = home / "user" / "shop"
    shop.mkdir(parents=True)
    (shop / "migrations").mkdir()
    (shop / "migrations" / "0042_orders.py").write_text("# adds orders.currency\n")
    (shop / ".git").mkdir()
    folder = home / "user" / ".claude" / "projects" / "-home-ana-shop"
    folder.mkdir(parents=True)
    (folder / f"{SESSION}.jsonl").write_text(_transcript(shop))
    return shop


def commands(page: str) -> list[str]:
    """The commands of all recordings, in order."""
    return [
        line[2:] for block in BLOCK.findall(page) for line in block.split("\n") if line[:2] == "$ "
    ]


def record(page: str) -> str:
    """The page with every recording played anew."""
    home = make_home()
    try:
        shop = prepare(home)
        with start_daemon(home, env={"LORE_EMBED_MODEL": "static"}) as daemon:
            bare = home / "bin"
            bare.mkdir()
            (bare / "lore").symlink_to(Path(sys.executable).parent / "lore")
            env = daemon.env | {"PATH": f"{bare}:/usr/bin:/bin", "LORE_HOOK_SECONDS": "10"}

            def play(match: re.Match[str]) -> str:
                played = []
                for command in commands(match[0]):
                    played += [f"$ {command}", _run(command, shop, env)]
                return "```console\n" + "\n".join(part for part in played if part) + "\n```"

            fresh = BLOCK.sub(play, page)
        fresh = fresh.replace(str(home / "user"), USER_HOME)
        fresh = fresh.replace(str(home), f"{USER_HOME}/.lore")
        return fresh.replace(str(Path(sys.executable).parent), f"{USER_HOME}/.local/bin")
    finally:
        remove_home(home)


def _run(command: str, cwd: Path, env: dict[str, str]) -> str:
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=120,
        check=False,
    )
    # The backup of the day comes when the daemon has a quiet moment.
    lines = done.stdout.decode().rstrip().split("\n")
    return "\n".join(line for line in lines if not line.startswith("  backup "))


_SHAPES = (
    (r"\d{4}-\d\d-\d\d( \d\d:\d\d)?", "DAY"),
    (r"just now|yesterday|(in )?\d+ (min|h|days?|weeks?|months?|years)( ago)?", "AGO"),
    (r"\b[0-9a-f]{12}\b", "ID"),
    (r"\d[\d,.]*", "N"),
    (r"[ \t]+", " "),
)


def shape(page: str) -> list[str]:
    """The lines of a page without what differs from run to run."""
    for pattern, word in _SHAPES:
        page = re.sub(pattern, word, page)
    return [line.rstrip() for line in page.split("\n")]


if __name__ == "__main__":
    PAGE.write_text(record(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"{PAGE}: recorded")
