"""What is never read: rules of the user, and `.loreignore` files in workspaces.

Three kinds of rules: `path:GLOB` (files and folders, `*` within a name, `**` across folders;
a folder excludes all below it), `agent:NAME`, `workspace:PATH` (sessions whose working
directory is PATH or below). Path and agent rules are decided before a file is opened.
A workspace is only known from inside a transcript: the worker looks there first and gives
nothing away when the session is excluded.

A `.loreignore` in the working directory of a session, or in any folder above it, excludes
the session: when it is empty or one of its lines is `*` or the agent's name. Other lines are
globs of folders relative to it (`secret/`), for sessions that work below those. `#` begins a
comment.
"""

import os
import re
from dataclasses import dataclass, field
from typing import Final

from lore.errors import Invalid

IGNORE_FILE: Final = ".loreignore"
IGNORE_BYTES: Final = 64 << 10
"""Read of one `.loreignore`; more is a mistake."""

KINDS: Final = ("path", "workspace", "agent")


def check(rule: str) -> str:
    """``rule`` in its stored form. Raises `Invalid` with what is understood."""
    kind, colon, value = rule.partition(":")
    value = value.strip()
    if not colon or kind not in KINDS or not value:
        raise Invalid(f"exclude rule {rule!r}: use path:GLOB, workspace:PATH or agent:NAME")
    if kind == "agent":
        return f"agent:{value}"
    value = os.path.expanduser(value)
    if kind == "workspace":
        if not value.startswith("/"):
            raise Invalid(f"exclude rule {rule!r}: the workspace must be an absolute path")
        return f"workspace:{value.rstrip('/') or '/'}"
    if not value.startswith(("/", "*")):
        raise Invalid(f"exclude rule {rule!r}: the path must be absolute or begin with *")
    return f"path:{value.rstrip('/')}"


def translate(glob: str) -> str:
    """A regular expression of a path glob: `**` crosses folders, `*` and `?` do not, except a
    `*` at the beginning, which stands for any folders."""
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


@dataclass(slots=True)
class Exclusion:
    """The rules in force, ready to be asked."""

    rules: list[str] = field(default_factory=list)
    agents: frozenset[str] = frozenset()
    _paths: "re.Pattern[str] | None" = None
    _workspaces: tuple[str, ...] = ()
    _seen: dict[tuple[str, str], bool] = field(default_factory=dict)

    @classmethod
    def parse(cls, rules: list[str]) -> "Exclusion":
        """Raises `Invalid` for a malformed rule."""
        found: dict[str, list[str]] = {kind: [] for kind in KINDS}
        stored = [check(rule) for rule in rules]
        for rule in stored:
            kind, _, value = rule.partition(":")
            found[kind].append(value)
        globs = [translate(glob) for glob in found["path"]]
        roots = {root for path in found["workspace"] for root in (path, os.path.realpath(path))}
        return cls(
            stored,
            frozenset(found["agent"]),
            re.compile("(?:" + "|".join(globs) + ")(?:/.*)?", re.DOTALL) if globs else None,
            tuple(sorted(roots)),
        )

    def path(self, path: str) -> bool:
        """Whether a file or folder is excluded by its path."""
        return self._paths is not None and self._paths.fullmatch(path) is not None

    def cwd(self, cwd: str, agent: str) -> bool:
        """Whether sessions of ``agent`` that work in ``cwd`` are excluded. Looks for
        `.loreignore` files; the answer is kept, so make a new object for each job."""
        known = self._seen.get((cwd, agent))
        if known is None:
            known = self._seen[cwd, agent] = self._below(cwd) or ignored(cwd, agent)
        return known

    def _below(self, cwd: str) -> bool:
        for path in (cwd.rstrip("/") or "/", os.path.realpath(cwd) if self._workspaces else ""):
            for root in self._workspaces:
                if path == root or path.startswith(root.rstrip("/") + "/"):
                    return True
        return False


def ignored(cwd: str, agent: str) -> bool:
    """Whether a `.loreignore` excludes sessions of ``agent`` that work in ``cwd``."""
    if not cwd.startswith("/"):
        return False
    folder, below = os.path.normpath(cwd), ""
    while True:
        try:
            with open(os.path.join(folder, IGNORE_FILE), "rb") as file:
                text = file.read(IGNORE_BYTES).decode("utf-8", "replace")
        except OSError:
            pass
        else:
            if _says(text, below, agent):
                return True
        if folder == "/":
            return False
        folder, name = os.path.split(folder)
        below = f"{name}/{below}" if below else name


def _says(text: str, below: str, agent: str) -> bool:
    lines = [line.split("#", 1)[0].strip() for line in text.splitlines()]
    rules = [line for line in lines if line]
    if not rules or "*" in rules or agent in rules:
        return True
    globs = [rule.strip("/") for rule in rules]
    return any(re.fullmatch(translate(glob) + "(?:/.*)?", below) for glob in globs if below)
