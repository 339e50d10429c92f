"""Where hooks keep silent: `LORE_OFF`, and `.loreignore` files in a workspace.

The same rule by which the daemon reads no sessions of such a workspace: a `.loreignore` in the
folder or above it, when it is empty or has a line `*` or the agent's name; other lines are
globs of folders below it.
"""

import os

IGNORE_FILE = ".loreignore"
IGNORE_BYTES = 64 << 10
"""Read of one `.loreignore`; more is a mistake."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def switched_off(env: "Mapping[str, str]") -> bool:
    """Whether the environment says so; a caller that runs an agent for its own purposes sets
    `LORE_OFF=1`, so that the agent's hooks do not feed back."""
    return env.get("LORE_OFF", "") not in ("", "0")


def ignored(cwd: str, agent: str) -> bool:
    """Whether a `.loreignore` keeps the memory out of sessions of ``agent`` in ``cwd``."""
    if not cwd.startswith("/"):
        return False
    folder, below = os.path.normpath(cwd), ""
    while True:
        try:
            with open(folder + "/" + IGNORE_FILE, "rb") as file:
                text = file.read(IGNORE_BYTES).decode("utf-8", "replace")
        except OSError:
            pass
        else:
            if _says(text, below, agent):
                return True
        if folder in ("/", "//"):
            return False
        folder, name = os.path.split(folder)
        below = f"{name}/{below}" if below else name


def _says(text: str, below: str, agent: str) -> bool:
    lines = [line.split("#", 1)[0].strip() for line in text.splitlines()]
    rules = [line for line in lines if line]
    if not rules or "*" in rules or agent in rules:
        return True
    return bool(below) and any(_covers(rule.strip("/"), below) for rule in rules)


def _covers(glob: str, below: str) -> bool:
    """Whether a folder glob names ``below`` or a folder above it; `**` crosses folders."""
    import re

    parts = []
    for piece in re.split(r"(\*\*/?|\*|\?)", glob):
        if piece.startswith("**"):
            parts.append("(?:.*/)?" if piece == "**/" else ".*")
        elif piece == "*":
            parts.append("[^/]*")
        elif piece == "?":
            parts.append("[^/]")
        else:
            parts.append(re.escape(piece))
    return re.fullmatch("".join(parts) + "(?:/.*)?", below) is not None
