"""Claude Code: which words of a `user` line were typed by a person.

About one line in ten with type `user` holds a prompt; the rest are tool results, reminders,
output of local commands and other machine text. The order of tests follows the evidence:
flags of the line first, then wrappers in its text.
"""

import re
from typing import Any, Final

from lored.core.transcripts.own import cut_own_context
from lored.core.transcripts.records import Role

COMPACTED: Final = "This session is being continued from a previous conversation"
INTERRUPTED: Final = "[Request interrupted by user"

_REMINDER: Final = re.compile(r"<system-reminder>.*?(?:</system-reminder>\s*|\Z)", re.DOTALL)
_IDE: Final = re.compile(
    r"<(ide_opened_file|ide_selection|ide_diagnostics|ide_context)>.*?(?:</\1>\s*|\Z)", re.DOTALL
)
_IMAGE: Final = re.compile(r"\[Image(?:: source: [^\]\n]{0,500}| #\d+)\]\s*")
_COMMAND: Final = re.compile(r"<command-name>\s*(.*?)\s*</command-name>", re.DOTALL)
_ARGUMENTS: Final = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)
_SHELL: Final = re.compile(r"<bash-input>(.*?)(?:</bash-input>|\Z)", re.DOTALL)
_MACHINE: Final = (
    "<local-command-stdout>",
    "<local-command-stderr>",
    "<local-command-caveat>",
    "Caveat: The messages below",
    "<bash-stdout>",
    "<bash-stderr>",
    "<task-notification>",
    "<teammate-message",
    "<ci-monitor-event>",
    "<user-prompt-submit-hook>",
    "<scheduled-task",
    "<tool_use_error>",
    "<persisted-output>",
    "<user-memory-input>",
    "<session-start-hook>",
    "<post-tool-use-hook>",
    "Base directory for this skill:",
    "Stop hook feedback:",
    "[Tool use is temporarily",
    INTERRUPTED,
)
_COMMANDS: Final = ("<command-name>", "<command-message>", "<command-args>")


def is_machine_line(item: dict[str, Any]) -> bool:
    """Whether the flags of a `user` line say that no person typed its text."""
    if item.get("isMeta") or item.get("isSidechain") or item.get("promptSource") == "system":
        return True
    origin = item.get("origin")
    return isinstance(origin, dict) and origin.get("kind", "human") != "human"


def typed_words(text: str) -> tuple[Role, str]:
    """Role and words of a text that no flag explains: `user` and what was typed, or `context`
    and the text as it is (empty when nothing but injected blocks stood there)."""
    if text.startswith(("<", "[")) or "<" in text[:200]:
        start = text.lstrip()
        if start.startswith(_MACHINE):
            return "context", text
        if start.startswith(_COMMANDS):
            return _slash_command(start)
    elif text.startswith(("Caveat:", "Base directory for", "Stop hook")):
        return "context", text
    if text.startswith(COMPACTED):
        return "summary", text
    words = text
    if "<system-reminder>" in words:
        words = _REMINDER.sub("", words)
    if "<ide_" in words:
        words = _IDE.sub("", words)
    if "[Image" in words:
        words = _IMAGE.sub("", words)
    words, _ = cut_own_context(words)
    if len(words) != len(text):
        words = words.strip()
        if words.startswith((*_MACHINE, *_COMMANDS)):
            return typed_words(words)
    return ("user", words) if words.strip() else ("context", "")


def shell_input(text: str) -> str | None:
    """The command that the user typed after `!`."""
    if "<bash-input>" not in text[:200]:
        return None
    match = _SHELL.search(text)
    return match[1].strip() or None if match else None


def _slash_command(text: str) -> tuple[Role, str]:
    name = _COMMAND.search(text)
    arguments = _ARGUMENTS.search(text)
    words = arguments[1].strip() if arguments else ""
    command = name[1] if name else ""
    if command and not command.startswith("/"):
        command = f"/{command}"
    if words:
        return "user", f"{command} {words}".strip()
    return "context", command
