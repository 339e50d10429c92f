"""What can be done to one file: merge our entries in, take them out again. Pure.

An edit knows our entries by their mark, never by their place: a command that runs
`lore mcp` or `lore hook AGENT`, a block between two comment lines, a first line that says who
wrote the file. Entries of others are never touched; one of another owner under our name is
refused.
"""

from __future__ import annotations

import re
import tomllib
from typing import Any, Protocol

from lore.errors import Conflict, Invalid
from lore.install import jsonc

_OURS = re.compile(r"(?:^|[/\s'\"])lore['\"]?\s+(?:mcp|hook\s+[a-z-]+\s+[a-z-]+)(?:\s|$)")


def is_ours(value: Any) -> bool:
    """Whether an entry runs us and nobody else: every command in it is a `lore` command."""
    commands = list(_commands(value))
    return bool(commands) and all(_OURS.search(command) for command in commands)


def _commands(value: Any) -> Any:
    """Every command line in an entry, whatever the agent's way to write it."""
    if isinstance(value, list):
        for item in value:
            yield from _commands(item)
    elif isinstance(value, dict):
        command = value.get("command")
        if isinstance(command, str):
            yield " ".join([command, *(str(arg) for arg in value.get("args") or ())])
        elif isinstance(command, list):
            yield " ".join(map(str, command))
        for key, item in value.items():
            if key not in ("command", "args"):
                yield from _commands(item)


class Edit(Protocol):
    """One file's edit: the path, and both directions."""

    path: str

    def merge(self, before: str | None) -> str:
        """The file with our entries. Raises `Invalid` or `Conflict` for what must stay."""

    def strip(self, current: str, original: str | None) -> str | None:
        """The file without our entries; None when nothing of it remains. Containers that
        ``original`` (the file before us, if known) did not have go when they are empty."""


class JsonEdit:
    """Entries in a file of JSON with comments.

    ``members`` maps paths of keys to values (`("mcpServers", "lore")`); ``items`` lists array
    paths with values (`("hooks", "SessionStart")`). ``within`` names the object whose arrays
    may hold entries of ours from an earlier version.
    """

    def __init__(
        self,
        path: str,
        members: dict[tuple[str, ...], Any] | None = None,
        items: list[tuple[tuple[str, ...], Any]] | None = None,
        *,
        within: tuple[str, ...] = ("hooks",),
        defaults: dict[tuple[str, ...], Any] | None = None,
    ) -> None:
        self.path = path
        self.members, self.items, self.within = members or {}, items or [], within
        self.defaults = defaults or {}
        """Members a new file needs (a format version); not ours in a file that was there."""

    def merge(self, before: str | None) -> str:
        """See `Edit`."""
        text = before if before is not None else ""
        for path, value in self.defaults.items():
            if jsonc.value_at(text, path) is None:
                text = jsonc.insert(text, path, value)
        for path, value in self.members.items():
            present = jsonc.find(text, path)
            if present is None:
                text = jsonc.insert(text, path, value)
            elif present.value != value:
                if not is_ours(present.value):
                    raise Conflict(f"{'.'.join(path)} is there and is not ours; rename it first")
                text = jsonc.replace(text, path, value)
        text = self._without_stale(text)
        for path, value in self.items:
            present = jsonc.value_at(text, path)
            if not isinstance(present, list) or value not in present:
                text = jsonc.append(text, path, value)
        return text

    def _without_stale(self, text: str) -> str:
        """Entries of ours that are not wanted any more taken out."""
        wanted = [(path, value) for path, value in self.items]
        for path, item in reversed(list(self._ours(text))):
            if (path[:-1], item) not in wanted:
                text = jsonc.remove(text, path)
        return text

    def _ours(self, text: str) -> list[tuple[jsonc.Path, Any]]:
        """Path and value of each array item of ours, and of each of ours inside an item that
        it shares with others."""
        found: list[tuple[jsonc.Path, Any]] = []
        arrays = jsonc.value_at(text, self.within) if self.items else None
        for name, items in arrays.items() if isinstance(arrays, dict) else ():
            for index, item in enumerate(items) if isinstance(items, list) else ():
                here: jsonc.Path = (*self.within, name, index)
                if is_ours(item):
                    found.append((here, item))
                elif isinstance(item, dict) and isinstance(item.get("hooks"), list):
                    found += [
                        ((*here, "hooks", inner), hook)
                        for inner, hook in enumerate(item["hooks"])
                        if is_ours(hook)
                    ]
        return found

    def strip(self, current: str, original: str | None) -> str | None:
        """See `Edit`."""
        text = current
        emptied: set[tuple[str, ...]] = set()
        for path, _ in reversed(self._ours(text)):
            text = jsonc.remove(text, path)
            emptied |= {
                tuple(str(step) for step in path[:length]) for length in range(1, len(path))
            }
        for key in self.members:
            present = jsonc.find(text, key)
            if present is not None and is_ours(present.value):
                text = jsonc.remove(text, key)
                emptied |= {key[:length] for length in range(1, len(key))}
        for path in sorted(emptied, key=len, reverse=True):
            if jsonc.value_at(text, path) in ({}, []) and not _had(original, path):
                text = jsonc.remove(text, path)
        if original is None and jsonc.parse(text).value in (
            {},
            {path[0]: value for path, value in self.defaults.items()},
        ):
            return None
        return text


def _had(original: str | None, path: tuple[str, ...]) -> bool:
    if original is None:
        return False
    try:
        return jsonc.find(original, path) is not None
    except Invalid:
        return False


class TomlEdit:
    """A block of tables at the end of a TOML file, between two comment lines."""

    BEGIN = "# lore: begin (written by `lore install`, removed by `lore uninstall`)"
    END = "# lore: end"

    def __init__(self, path: str, key: tuple[str, str], body: str) -> None:
        self.path, self.key, self.body = path, key, body

    def merge(self, before: str | None) -> str:
        """See `Edit`."""
        rest = self._without(before or "")
        present = _toml(rest)
        table = present.get(self.key[0])
        if isinstance(table, dict) and self.key[1] in table:
            raise Conflict(f"{'.'.join(self.key)} is there and is not ours; rename it first")
        end = "\r\n" if "\r\n" in rest else "\n"
        gap = "" if not rest else end if rest.endswith("\n") else end + end
        text = rest + gap + end.join([self.BEGIN, *self.body.splitlines(), self.END, ""])
        merged = _toml(text)
        ours = _toml(self.body)[self.key[0]][self.key[1]]
        expected = {**present, self.key[0]: {**(table or {}), self.key[1]: ours}}
        if merged != expected:
            raise Invalid("our table would change what follows it; add it by hand")
        return text

    def strip(self, current: str, original: str | None) -> str | None:
        """See `Edit`."""
        rest = self._without(current)
        return None if original is None and not rest.strip() else rest

    def _without(self, text: str) -> str:
        """The file without our block and the blank line that `merge` put before it."""
        begin = text.find(self.BEGIN)
        if begin < 0:
            return text
        end = text.find(self.END, begin)
        stop = text.find("\n", end) + 1 if end >= 0 else 0
        stop = stop or len(text)
        head = text[:begin]
        for gap in ("\r\n", "\n"):
            if head.endswith(gap):
                head = head[: -len(gap)]
                break
        return head + text[stop:]


def _toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        raise Invalid(f"is not TOML: {error}") from None


class FileEdit:
    """A file that is ours as a whole; its first lines say so."""

    MARK = "lore install"

    def __init__(self, path: str, content: str) -> None:
        if self.MARK not in content:
            raise ValueError(f"{path}: the content does not carry our mark")
        self.path, self.content = path, content

    def merge(self, before: str | None) -> str:
        """See `Edit`."""
        if before is not None and self.MARK not in before[:2000]:
            raise Conflict("is there and is not ours; move it away first")
        return self.content

    def strip(self, current: str, original: str | None) -> str | None:
        """See `Edit`."""
        return original or None if self.MARK in current[:2000] else current
