"""Statements of facts inside tool calls: what text did this call ask to remember?

Knows the spellings by which agents state facts: the tools `remember_fact` and `remember` of
Recursive, of Remind and of our own MCP server (whatever prefix a host puts before the name),
and the command `lore remember TEXT`. Pure.
"""

import json
import re
import shlex
from typing import Any, Final, NamedTuple

_NAME: Final = re.compile(r"(?:^|.*[_./:])(remember_fact|remember|update_fact)$")
_COMMAND: Final = re.compile(r"(?:^|[\s;&|(])(?:\S*/)?lore\s+(?:[^;&|]*?\s)?remember\s")
_VALUED: Final = frozenset(
    {
        "--tag", "-t", "--entity", "-e", "--kind", "-k", "--by", "--ref", "--source", "--session",
        "--valid-from", "--valid-to", "--workspace", "--timeout",
    }
)  # fmt: skip
"""Options of `lore remember` that take a value."""

_ENDS: Final = frozenset({";", "&&", "||", "|", "&", ")", "<", ">", ">>", "2>&1"})


ENTITIES: Final = 32
"""Most entities taken from one call."""


class Spoken(NamedTuple):
    """What a call states, and the entities that it names for it."""

    text: str
    entities: list[str]


def stated_text(call: dict[str, Any]) -> str | None:
    """The text that a tool call states (see `stated`), None when it states none."""
    found = stated(call)
    return None if found is None else found.text


def stated(call: dict[str, Any]) -> Spoken | None:
    """What a tool call states, None when it states nothing.

    ``call``: `tool` or `name`, `arguments` (or `args`, `input`; a map or its JSON text), and
    for a shell `command`.
    """
    name = str(call.get("tool") or call.get("name") or "")
    arguments = call.get("arguments") or call.get("args") or call.get("input") or {}
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            arguments = {}
    if not isinstance(arguments, dict):
        arguments = {}
    if _NAME.match(name):
        for key in ("text", "content", "new_text"):
            value = arguments.get(key)
            if isinstance(value, str) and value.strip():
                return Spoken(value, _entities(arguments.get("entities")))
        return None
    command = call.get("command") or arguments.get("command") or arguments.get("cmd")
    if isinstance(command, list):
        words = [str(word) for word in command]
        shell = len(words) > 2 and words[1].startswith("-") and words[1].endswith("c")
        command = words[2] if shell else shlex.join(words)
    return _from_command(command) if isinstance(command, str) else None


def _entities(value: Any) -> list[str]:
    """A list, or one text with commas."""
    names = value.split(",") if isinstance(value, str) else value
    if not isinstance(names, list):
        return []
    return [name.strip()[:200] for name in names if isinstance(name, str) and name.strip()][
        :ENTITIES
    ]


def _from_command(command: str) -> Spoken | None:
    """What `lore remember` states in a shell line."""
    match = _COMMAND.search(command)
    if match is None:
        return None
    try:
        words = shlex.split(command[match.end() :])
    except ValueError:
        return None
    text: list[str] = []
    entities: list[str] = []
    option = ""
    for word in words:
        if option:
            if option in ("-e", "--entity"):
                entities.append(word)
            option = ""
        elif word in _ENDS:
            break
        elif word in _VALUED:
            option = word
        elif word == "-":
            return None  # the text came by standard input
        elif word.startswith("-"):
            continue
        else:
            ended = word.endswith(";")
            text.append(word[:-1] if ended else word)
            if ended:
                break
    joined = " ".join(text)
    return Spoken(joined, _entities(entities)) if joined.strip() else None
