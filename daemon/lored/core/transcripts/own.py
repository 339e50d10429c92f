"""What this memory itself put into a transcript: it must never come back as memory.

Recognises the blocks that `context` injects, and calls of this memory's tools and commands.
What is recognised is replaced by a short marker, so that no words of it reach an index.
"""

import re
from typing import Any, Final

from lored.core.transcripts.texts import names_in

MARKER: Final = "[injected memory left out]"

REQUEST_MARK: Final = "[lored summary request]"
"""Begins every prompt that this daemon itself sends to a model. Where an endpoint keeps such
calls as sessions, they are known by it and never indexed."""

_SERVER: Final = re.compile(r"(?:^|[_./:-])lored?[_./:-]", re.IGNORECASE)
"""Our server's name before a tool's: `mcp__lore__recall`, `lore_recall`, `lore.recall`."""
_ALWAYS: Final = names_in(
    """
    remember_fact recall_fact update_fact forget_fact episodic_recall
    episodic_recall_summary facts_summary
    """
)
_COMMAND: Final = re.compile(
    r"(?:^|[\n|;&(]\s*|\b(?:exec|env|command|uvx|time|sudo)\s+)(?:\S*/)?"
    r"(?:lore|python[0-9.]* -m lore(?:\.\S+)?)\s+[a-z]"
)
_BLOCK: Final = re.compile(
    r"^# Facts[^\n]*\n(?:# Facts[^\n]*\n|[ \t]*[•*-] +\[[A-Z]\d+\][^\n]*(?:\n|$)|[ \t]+\S[^\n]*"
    r"(?:\n|$)|[ \t]*\n(?=[ \t]*[•*-] +\[[A-Z]\d))+"
    r"|^# Episodic recall[^\n]*\n(?:# Recent Sessions[^\n]*\n|Session [^\n]*(?:\n|$)"
    r"|Key actions:[^\n]*(?:\n|$)|- \d{4}-\d\d-\d\d[^\n]*(?:\n|$)"
    r"|[ \t]*\n(?=Session |Key actions:|- \d{4}-))+",
    re.MULTILINE,
)


def cut_own_context(text: str) -> tuple[str, bool]:
    """`text` without the blocks that this memory injected, and whether there were any. A prompt
    of this memory to a model is nothing but such a block."""
    if REQUEST_MARK in text:
        return "", True
    if "# Facts" not in text and "# Episodic recall" not in text:
        return text, False
    short = _BLOCK.sub("", text)
    return short, len(short) != len(text)


def is_own_call(tool: str, arguments: Any, command: str | None) -> bool:
    """Whether a tool call asks this memory: by MCP tool name, or by the `lore` command."""
    if tool.lower().rsplit("__", 1)[-1] in _ALWAYS or _SERVER.search(tool):
        return True
    if command is not None and "lore" in command:
        return bool(_COMMAND.search(command))
    return False
