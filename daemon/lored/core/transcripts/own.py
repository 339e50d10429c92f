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

_TOOLS: Final = names_in(
    """
    remember_fact recall_fact update_fact forget_fact forget fact_get fact_list fact_history
    facts fact recall remember episodic_recall episodic_recall_summary sessions session
    session_messages context memory_context triage conflicts search_memory
    """
)
_SERVERS: Final = re.compile(r"(?:^|[_./-])lored?(?:[_./-]|$)", re.IGNORECASE)
_ALWAYS: Final = names_in(
    """
    remember_fact recall_fact update_fact forget_fact episodic_recall
    episodic_recall_summary facts_summary
    """
)
_COMMAND: Final = re.compile(
    r"(?:^|[|;&(]\s*|\b(?:exec|env|command|uvx|time)\s+)(?:\S*/)?(?:lore|python3? -m lore)\s+"
    r"(?:recall|remember|facts?|context|sessions?|session-messages|call|conflicts|triage|hook)\b"
)
_BLOCK: Final = re.compile(
    r"^# Facts[^\n]*\n(?:# Facts[^\n]*\n|[ \t]*[•*-] +\[[A-Z]\d+\][^\n]*(?:\n|$)|[ \t]+\S[^\n]*"
    r"(?:\n|$)|[ \t]*\n(?=[ \t]*[•*-] +\[[A-Z]\d))+"
    r"|^# Episodic recall[^\n]*\n(?:# Recent Sessions[^\n]*\n|Session \d{4}-[^\n]*(?:\n|$)"
    r"|Key actions:[^\n]*(?:\n|$)|- \d{4}-\d\d-\d\d[^\n]*(?:\n|$)"
    r"|[ \t]*\n(?=Session \d{4}-|Key actions:|- \d{4}-))+",
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
    parts = tool.lower().replace(".", "__").split("__")
    name = parts[-1]
    if name in _ALWAYS:
        return True
    if name in _TOOLS and len(parts) > 1 and _SERVERS.search("__".join(parts[:-1])):
        return True
    if command is not None and "lore" in command:
        return bool(_COMMAND.search(command))
    return False
