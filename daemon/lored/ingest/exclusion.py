"""What is never read: rules of the user, and `.loreignore` files in workspaces (`lore.ignore`).

Three kinds of rules: `path:GLOB` (files and folders, `*` within a name, `**` across folders;
a folder excludes all below it), `agent:NAME`, `workspace:PATH` (sessions whose working
directory is PATH or below). Path and agent rules are decided before a file is opened.
A workspace is only known from inside a transcript: the worker looks there first and gives
nothing away when the session is excluded.

The rules of realms come in the same list: `realm:own:PATH` and `realm:other:PATH`, of which the
innermost decides. Where there is one of the first kind, all other folders are excluded, and
so are sessions that name no folder.
"""

import os
import re
from dataclasses import dataclass, field
from typing import Final

from lore.errors import Invalid
from lore.ignore import expression, ignored

KINDS: Final = ("path", "workspace", "agent")


def check(rule: str) -> str:
    """``rule`` in its stored form. Raises `Invalid` with what is understood."""
    kind, colon, value = rule.partition(":")
    value = value.strip()
    if kind == "realm" and value.startswith(("own:/", "other:/")):
        return rule
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


@dataclass(slots=True)
class Exclusion:
    """The rules in force, ready to be asked."""

    rules: list[str] = field(default_factory=list)
    agents: frozenset[str] = frozenset()
    _paths: "re.Pattern[str] | None" = None
    _workspaces: tuple[str, ...] = ()
    _realms: tuple[tuple[str, bool], ...] = ()
    """(folder, whether it is of this realm), innermost first."""
    _is_closed: bool = False
    _seen: dict[tuple[str, str], bool] = field(default_factory=dict)

    @classmethod
    def parse(cls, rules: list[str]) -> "Exclusion":
        """Raises `Invalid` for a malformed rule."""
        found: dict[str, list[str]] = {kind: [] for kind in (*KINDS, "realm")}
        stored = [check(rule) for rule in rules]
        for rule in stored:
            kind, _, value = rule.partition(":")
            found[kind].append(value)
        globs = [expression(glob) for glob in found["path"]]
        roots = {root for path in found["workspace"] for root in (path, os.path.realpath(path))}
        realms = []
        for value in found["realm"]:
            owner, _, folder = value.partition(":")
            realms.append((folder, owner == "own"))
        return cls(
            stored,
            frozenset(found["agent"]),
            re.compile("(?:" + "|".join(globs) + ")(?:/.*)?", re.DOTALL) if globs else None,
            tuple(sorted(roots)),
            tuple(sorted(realms, key=lambda one: -len(one[0]))),
            any(own for _, own in realms),
        )

    def path(self, path: str) -> bool:
        """Whether a file or folder is excluded by its path."""
        return self._paths is not None and self._paths.fullmatch(path) is not None

    def cwd(self, cwd: str, agent: str) -> bool:
        """Whether sessions of ``agent`` that work in ``cwd`` are excluded. Looks for
        `.loreignore` files; the answer is kept, so make a new object for each job. An empty
        ``cwd`` asks for a session that names none."""
        if not cwd:
            return self._is_closed
        cwd = cwd.replace("\0", "\ufffd")  # no path holds a NUL, whatever a transcript says
        known = self._seen.get((cwd, agent))
        if known is None:
            known = self._seen[cwd, agent] = (
                self._below(cwd) or self._elsewhere(cwd) or ignored(cwd, agent)
            )
        return known

    def _elsewhere(self, cwd: str) -> bool:
        """Whether the folder belongs to another realm."""
        if not self._realms:
            return False
        real = os.path.realpath(cwd)
        for folder, own in self._realms:
            if real == folder or real.startswith(folder.rstrip("/") + "/"):
                return not own
        return self._is_closed

    def _below(self, cwd: str) -> bool:
        for path in (cwd.rstrip("/") or "/", os.path.realpath(cwd) if self._workspaces else ""):
            for root in self._workspaces:
                if path == root or path.startswith(root.rstrip("/") + "/"):
                    return True
        return False
