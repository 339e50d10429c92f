"""Agents' words: which event is meant, what its input says, which form the answer takes. Pure.

The forms are those that each vendor documents: Claude Code, Codex and Gemini CLI take
`hookSpecificOutput.additionalContext`, Cursor `additional_context`; everybody else gets text.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

START, PROMPT, TOOL, REST = "session-start", "prompt-submit", "before-tool", "stop"

_EVENTS = {
    "sessionstart": START,
    "promptsubmit": PROMPT,
    "userpromptsubmit": PROMPT,
    "beforesubmitprompt": PROMPT,
    "beforeagent": PROMPT,
    "beforetool": TOOL,
    "beforeedit": TOOL,
    "beforecommand": TOOL,
    "pretooluse": TOOL,
    "precompact": REST,
    "precompress": REST,
    "compact": REST,
    "stop": REST,
    "sessionend": REST,
    "afteragent": REST,
    "subagentstop": REST,
}
"""Our names and the agents' own, without case and punctuation."""

_STRUCTURED = {
    START: "SessionStart",
    PROMPT: "UserPromptSubmit",
    TOOL: "PreToolUse",
}
_GEMINI = {PROMPT: "BeforeAgent", TOOL: "BeforeTool"}


def known(name: str) -> "str | None":
    """Our event for any spelling; None for one that we have no use for."""
    return _EVENTS.get("".join(char for char in name.lower() if char.isalnum()))


def names() -> "tuple[str, ...]":
    """Events as `lore hook --help` lists them."""
    return ("session-start", "prompt-submit", "before-tool", "pre-compact", "stop")


class Input:
    """What an event's input tells: folder, session, transcript, and what it is about."""

    __slots__ = ("cwd", "resumed", "session", "subject", "transcript")

    def __init__(self, fields: "dict[str, Any]", cwd: "str | None") -> None:
        roots = fields.get("workspace_roots")
        first = roots[0] if isinstance(roots, list) and roots else None
        self.cwd = _text(fields.get("cwd")) or _text(first) or cwd
        self.session = _text(fields.get("session_id") or fields.get("conversation_id"))
        self.transcript = _text(fields.get("transcript_path"))
        self.resumed = (fields.get("source") or fields.get("trigger")) == "resume"
        self.subject = _subject(fields)


def _subject(fields: "dict[str, Any]") -> "str | None":
    """Words to look up: the prompt, or the file or command of a tool call."""
    prompt = _text(fields.get("prompt"))
    if prompt:
        return prompt[:2000]
    tool = fields.get("tool_input")
    if not isinstance(tool, dict):
        return None
    for key in ("file_path", "path", "command", "cmd"):
        value = tool.get(key)
        if isinstance(value, list):
            value = " ".join(map(str, value))
        if isinstance(value, str) and value:
            return value[:500]
    return None


def _text(value: "Any") -> "str | None":
    return value if isinstance(value, str) and value else None


def silence(agent: str) -> str:
    """What an agent reads when there is nothing to say: Cursor wants a document even then."""
    return "{}\n" if agent == "cursor" else ""


def answer(agent: str, event: str, text: str) -> str:
    """The text in the agent's form, ending in a line break."""
    from json import dumps

    if agent in ("claude-code", "codex", "gemini-cli"):
        name = _GEMINI.get(event) if agent == "gemini-cli" else None
        inner = {"hookEventName": name or _STRUCTURED[event], "additionalContext": text}
        return dumps({"hookSpecificOutput": inner}, ensure_ascii=False) + "\n"
    if agent == "cursor":
        return dumps({"additional_context": text}, ensure_ascii=False) + "\n"
    return text if text.endswith("\n") else text + "\n"
