"""Pairing of tool calls with their results, across lines and across restarts.

The open calls live in the parser's state (a map that MessagePack holds) under `calls`: id ->
[action key, tool, kinds, flags]. Results find their call by id only; a result without a call
gives a message but no action.
"""

import re
from typing import Any, Final

from lored.core.spoken import stated
from lored.core.transcripts.actions import describe, find_commit, find_exit_code, makes_commit
from lored.core.transcripts.own import MARKER, cut_own_context, is_own_call
from lored.core.transcripts.records import Action, Message
from lored.core.transcripts.texts import excerpt, keep_output

OPEN_CALLS: Final = 256
"""Calls that wait for their result; the oldest are given up. Agents run a dozen at once."""
ID_CHARS: Final = 200

_OWN: Final = 1
_COMMITS: Final = 2
_UNIQUE_ID: Final = re.compile(r"(?:toolu|call|fc|ctc|chatcmpl-tool|tool|srvtoolu|exec)[_-]\w{16,}")


def call_key(session: str, call_id: str) -> str:
    """The action key: the call id where it is unique in the world, else made so by the session
    (some models number their calls from 0 in each conversation)."""
    return call_id if _UNIQUE_ID.match(call_id) else f"{session}:{call_id}"


def begin_call(
    state: dict[str, Any],
    session: str,
    call_id: Any,
    tool: Any,
    arguments: Any,
    *,
    at: str | None = None,
    message_key: str | None = None,
    record_session: str | None = None,
) -> list[Action]:
    """Actions of a call just made, status `running`; remembers it for its result.

    Args:
        session: native session id, for the key.
        record_session: value for `Action.session`.
    """
    if not isinstance(call_id, str) or not call_id:
        return []
    call_id = call_id[:ID_CHARS]
    tool = tool[:ID_CHARS] if isinstance(tool, str) and tool else "unknown"
    deeds = describe(tool, arguments)
    key = call_key(session, call_id)
    actions = [
        Action(
            key if index == 0 else f"{key}#{index}",
            deed.kind,
            tool,
            target=deed.target,
            command=deed.command,
            started_at=at,
            message_key=message_key,
            session=record_session,
            extra=dict(deed.extra),
        )
        for index, deed in enumerate(deeds)
    ]
    command = deeds[0].command
    actions[0].extra.update(statement(tool, arguments, command))
    flags = _OWN if is_own_call(tool, arguments, command) else 0
    if makes_commit(command):
        flags |= _COMMITS
    calls = state.setdefault("calls", {})
    calls[call_id] = [key, tool, [deed.kind for deed in deeds], flags]
    while len(calls) > OPEN_CALLS:
        del calls[next(iter(calls))]
    return actions


def statement(tool: str, arguments: Any, command: str | None) -> dict[str, Any]:
    """For `Action.extra`: what a call asks a memory to remember as `states` (text, entities);
    empty when it asks nothing of the kind."""
    said = stated({"tool": tool, "arguments": arguments, "command": command})
    return {} if said is None else {"states": {"text": said.text, "entities": said.entities}}


def end_call(
    state: dict[str, Any],
    call_id: Any,
    text: str,
    *,
    failed: bool | None,
    shown: Message | None = None,
    at: str | None = None,
    exit_code: int | None = None,
    commands_say_zero: bool = False,
    record_session: str | None = None,
    last: bool = True,
) -> list[Action]:
    """The call's actions with their outcome; none for an unknown call.

    Args:
        text: the output.
        failed: None = not stated, decided by the exit code.
        shown: the output as `output_message` made it, for the excerpt.
        commands_say_zero: a command that is not failed has exit code 0 in this format.
        last: False keeps the call open, for formats that report one call twice.
    """
    calls = state.get("calls", {})
    if not isinstance(call_id, str):
        return []
    call_id = call_id[:ID_CHARS]
    entry = calls.pop(call_id, None) if last else calls.get(call_id)
    if entry is None:
        return []
    key, tool, kinds, flags = entry
    is_command = kinds[0] == "command"
    if exit_code is None and is_command:
        exit_code = find_exit_code(text)
        if exit_code is None and commands_say_zero and failed is False:
            exit_code = 0
    if failed is None or (exit_code is not None and exit_code != 0):
        failed = bool(exit_code)
    shown_text = excerpt(shown.text) or None if shown is not None and not flags & _OWN else None
    return [
        Action(
            key if index == 0 else f"{key}#{index}",
            kind,
            tool,
            status="failed" if failed else "ok",
            exit_code=exit_code,
            ended_at=at,
            output_excerpt=shown_text if index == 0 else None,
            session=record_session,
            commit=find_commit(text) if flags & _COMMITS and not failed else None,
        )
        for index, kind in enumerate(kinds)
    ]


def output_message(
    state: dict[str, Any],
    call_id: Any,
    key: str,
    text: str,
    *,
    at: str | None = None,
    record_session: str | None = None,
) -> Message | None:
    """A tool's output as a message, None when it has no words. To be asked before `end_call`."""
    entry = state.get("calls", {}).get(call_id[:ID_CHARS] if isinstance(call_id, str) else None)
    if entry is not None and entry[3] & _OWN:
        return Message(key, "context", MARKER, at=at, session=record_session)
    text, _ = cut_own_context(text)
    kept, dropped = keep_output(text)
    if not kept.strip():
        return None
    message = Message(key, "tool", kept, at=at, session=record_session, truncated_bytes=dropped)
    if entry is not None:
        message.extra = {"tool": entry[1], "action": entry[0]}
    return message
