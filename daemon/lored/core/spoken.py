"""Statements of facts inside tool calls: what text did this call ask to remember?

Knows the spellings by which agents state facts: the tools `remember_fact` and `remember` of
Recursive, of Remind and of our own MCP server (whatever prefix a host puts before the name),
and the command `lore remember TEXT`. Pure.
"""

import json
import re
import shlex
from typing import Any, Final

_NAME: Final = re.compile(r"(?:^|.*(?:__|[./:]))(remember_fact|remember|update_fact)$")
_COMMAND: Final = re.compile(r"(?:^|[\s;&|(])(?:\S*/)?lore\s+(?:[^;&|]*?\s)?remember\s")
_VALUED: Final = frozenset(
    {
        "--tag", "-t", "--entity", "-e", "--kind", "-k", "--by", "--ref", "--source", "--session",
        "--valid-from", "--valid-to", "--workspace", "--timeout",
    }
)  # fmt: skip
"""Options of `lore remember` that take a value."""

_ENDS: Final = frozenset({";", "&&", "||", "|", "&", ")", "<", ">", ">>", "2>&1"})


def stated_text(call: dict[str, Any]) -> str | None:
    """The text that a tool call states, None when it states none.

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
                return value
        return None
    command = call.get("command") or arguments.get("command") or arguments.get("cmd")
    if isinstance(command, list):
        words = [str(word) for word in command]
        shell = len(words) > 2 and words[1].startswith("-") and words[1].endswith("c")
        command = words[2] if shell else shlex.join(words)
    return _from_command(command) if isinstance(command, str) else None


def _from_command(command: str) -> str | None:
    """The words of `lore remember` in a shell line."""
    match = _COMMAND.search(command)
    if match is None:
        return None
    try:
        words = shlex.split(command[match.end() :])
    except ValueError:
        return None
    text: list[str] = []
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word in _ENDS:
            break
        elif word in _VALUED:
            skip = True
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
    return joined if joined.strip() else None
