"""Codex: which words of a role-user text a person typed, and the key of a message.

Codex writes nearly everything twice (an event or item, and a `response_item` for the model)
and repeats it in forks and migrations, mostly without ids. A key made of turn id, role and a
hash of the words is the same for all those copies.
"""

import re
from hashlib import blake2b
from typing import Any, Final

import orjson

from lored.core.transcripts.own import cut_own_context
from lored.core.transcripts.records import Role

HASHED_CHARS: Final = 65_536
"""The beginning of a text tells it apart."""
_INJECTED: Final = (
    "<environment_context>",
    "# AGENTS.md instructions",
    "<user_instructions>",
    "<INSTRUCTIONS>",
    "<permissions",
    "<collaboration_mode>",
    "<apps_instructions>",
    "<skills_instructions>",
    "<plugins_instructions>",
    "<personality_spec>",
    "<model_switch>",
    "<app-context>",
    "<skill>",
    "<turn_aborted>",
    "<subagent_notification>",
    "<recommended_plugins>",
    "<goal_context>",
    "<codex_internal_context>",
    "<hook_prompt",
    "<user_shell_command>",
    "<user_action>",
)
_PREFACES: Final = ("# Files mentioned by the user", "# Context from my IDE setup")
_REQUEST: Final = re.compile(r"^## My request for Codex:[ \t]*\n?", re.MULTILINE)
_IMAGE: Final = re.compile(r"</?image(?:\s[^>\n]{0,500})?>\s*|\[Image #\d+\]\s*")
_WRAPPED: Final = re.compile(r"<([a-z][a-z0-9]*(?:[_-][a-z0-9]+)+)(?:\s[^>\n]{0,200})?>")
_REPLY: Final = "<send_user_message_question_reply>"
_CWD: Final = re.compile(r"<cwd>\s*([^<\n]{1,1000}?)\s*</cwd>")


def typed_words(text: str) -> tuple[Role, str]:
    """Role and words of one role-user text: `user` and what was typed, or `context`."""
    start = text.lstrip()
    if start.startswith(_INJECTED):
        return "context", text
    if start.startswith(_REPLY):
        return "user", _answers(start)
    words = text
    if start.startswith(_PREFACES):
        request = _REQUEST.search(words)
        if request is None:
            return "context", text
        words = words[request.end() :]
    wrapper = _WRAPPED.match(start)
    if wrapper and start.rstrip().endswith(f"</{wrapper[1]}>"):
        return "context", text
    if "<image" in words or "[Image #" in words:
        words = _IMAGE.sub("", words)
    words, _ = cut_own_context(words)
    if len(words) != len(text):
        words = words.strip()
    return ("user", words) if words.strip() else ("context", "")


def user_parts(payload: dict[str, Any]) -> tuple[str, str]:
    """(typed words, injected text) of a `message` of role user. Where the record says what kind
    each part is, that decides; else the text of each part."""
    content = payload.get("content")
    if isinstance(content, str):
        content = [{"type": "input_text", "text": content}]
    if not isinstance(content, list):
        return "", ""
    meta = payload.get("internal_chat_message_metadata_passthrough")
    kinds = meta.get("content_item_kinds") if isinstance(meta, dict) else None
    kinds = kinds if isinstance(kinds, list) and len(kinds) == len(content) else None
    typed: list[str] = []
    injected: list[str] = []
    for index, part in enumerate(content):
        text = part.get("text") if isinstance(part, dict) else part
        if not isinstance(text, str) or not text.strip():
            continue
        role, words = typed_words(text)
        if kinds is not None and kinds[index] != "user.text":
            role = "context"
        if role == "user":
            typed.append(words)
        else:
            injected.append(text)
    return "\n".join(typed), "\n".join(injected)


def part_texts(content: Any) -> str:
    """The text parts of an item's or message's content."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "\n".join(
        part["text"]
        for part in content
        if isinstance(part, dict) and isinstance(part.get("text"), str)
    )


def directory_of(text: str) -> str | None:
    """The working directory that an `<environment_context>` names."""
    match = _CWD.search(text[:20_000]) if "<cwd>" in text[:20_000] else None
    return match[1] if match else None


def words_hash(text: str) -> str:
    """Hash of the words without regard to white space, which the copies differ in."""
    words = " ".join(text[:HASHED_CHARS].split())
    return blake2b(words.encode("utf-8", "replace"), digest_size=8).hexdigest()


def _answers(text: str) -> str:
    """The user's answers, which stand as JSON between tags."""
    body = text.removeprefix(_REPLY).split("</send_user_message_question_reply>")[0].strip()
    try:
        value = orjson.loads(body)
    except ValueError:
        return body
    found: list[str] = []
    _collect(value, found, 0)
    return "\n".join(found) or body


def _collect(value: Any, found: list[str], depth: int) -> None:
    if isinstance(value, str):
        found.append(value)
    elif isinstance(value, dict | list) and depth < 6:
        for item in value.values() if isinstance(value, dict) else value:
            _collect(item, found, depth + 1)
