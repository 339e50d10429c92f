"""`.loreignore`: folders whose sessions no memory is kept of, and that get none.

One rule for the daemon, which reads no such sessions, and for hooks, which keep silent there: a
`.loreignore` in the working directory of a session, or in any folder above it, excludes the
session when it is empty or one of its lines is `*` or the agent's name. Other lines are globs of
folders relative to it (`secret/`), for sessions that work below those. `#` begins a comment.

Imports nothing at its start that a hook would have to wait for.
"""

import os

IGNORE_FILE = ".loreignore"
IGNORE_BYTES = 64 << 10
"""Read of one `.loreignore`; more is a mistake."""


def ignored(cwd: str, agent: str) -> bool:
    """Whether a `.loreignore` excludes sessions of ``agent`` that work in ``cwd``."""
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
    if not below:
        return False
    import re

    return any(re.fullmatch(expression(rule.strip("/")) + "(?:/.*)?", below) for rule in rules)


def expression(glob: str) -> str:
    """A regular expression of a path glob: `**` crosses folders, `*` and `?` do not, except a
    `*` at the beginning, which stands for any folders."""
    import re

    parts = []
    if glob.startswith("*") and not glob.startswith("**"):
        glob = f"*{glob}"
    for piece in re.split(r"(\*\*/?|\*|\?)", glob):
        if piece.startswith("**"):
            parts.append("(?:.*/)?" if piece == "**/" else ".*")
        elif piece == "*":
            parts.append("[^/]*")
        elif piece == "?":
            parts.append("[^/]")
        else:
            parts.append(re.escape(piece))
    return "".join(parts)
