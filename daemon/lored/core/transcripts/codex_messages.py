"""Codex: which of several copies of a message is told, under which key, in which turn.

`response_item` messages repeat what events and items say, and carry much that no person said.
They are told only where a turn has no event or item for their role: each waits a few lines for
its twin. Copies that slip through have the same key.
"""

import re
from typing import Any, Final

from lored.core.transcripts.codex_words import (
    directory_of,
    part_texts,
    typed_words,
    user_parts,
    words_hash,
)
from lored.core.transcripts.knowledge import known, learn, learn_first, learn_prompt
from lored.core.transcripts.lines import kind_of
from lored.core.transcripts.own import MARKER, cut_own_context
from lored.core.transcripts.records import (
    Compaction,
    Message,
    Record,
    Role,
)
from lored.core.transcripts.texts import CONTEXT_CHARS, keep, text_or_none

_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
RECENT: Final = 64
"""Message keys remembered to drop second copies; copies stand a few lines apart."""
WAIT_LINES: Final = 6
"""A `response_item` message waits so many lines for the event or item that repeats it."""
PENDING_CHARS: Final = 32_000
"""Text that may wait in the state; more is told at once."""

_USER, _ASSISTANT = 1, 2


def begin_turn(state: dict[str, Any], turn: Any, out: list[Record]) -> None:
    """Begins a turn, unless it is the one that is running."""
    if isinstance(turn, str) and turn and turn[:100] != state["turn"]:
        flush(state, out, state["line"])
        state["turn"], state["said"] = turn[:100], 0


def turn_name(state: dict[str, Any]) -> str:
    """The running turn: its id where that is unique in the world, else thread and number."""
    turn: str = state["turn"]
    if _UUID.fullmatch(turn):
        return turn
    thread = state.get("source") or state["session"]
    return f"{thread}:{turn or state.get('turns', 0)}"


def read_message(
    state: dict[str, Any], payload: dict[str, Any], at: str | None, out: list[Record]
) -> None:
    """A `response_item` message: told now, later, or never (see the module's first lines)."""
    role = kind_of(payload, "role")
    if role == "assistant":
        text, bit = part_texts(payload.get("content")), _ASSISTANT
    elif role == "user":
        text, injected = user_parts(payload)
        bit = _USER
        if injected:
            learn_first(state, out, cwd=directory_of(injected))
    else:
        return
    if not text.strip() or state.get("said", 0) & bit:
        return
    pending: list[list[Any]] = state.setdefault("pending", [])
    waiting = sum(len(entry[1]) for entry in pending)
    if not state.get("events"):
        if bit == _USER:
            _next_turn(state, text)
        _tell(state, "user" if bit == _USER else "assistant", text, at, None, out)
    elif waiting + len(text) <= PENDING_CHARS:
        pending.append([bit, text, at, text_or_none(payload.get("phase"), 40), state["line"]])
    else:
        _tell(state, "user" if bit == _USER else "assistant", text, at, None, out)


def typed(state: dict[str, Any], text: str, at: str | None, out: list[Record]) -> None:
    """Words of the user, from an event or item."""
    role, words = typed_words(text)
    if role != "user" or not words.strip():
        return
    state["pending"] = [entry for entry in state.get("pending", ()) if entry[0] != _USER]
    _next_turn(state, words)
    state["said"] = state.get("said", 0) | _USER
    _tell(state, "user", words, at, None, out)


def _next_turn(state: dict[str, Any], words: str) -> None:
    """Counts turns where they have no ids: each new prompt begins one."""
    if not state["turn"]:
        digest = words_hash(words)
        if not (state.get("prompt") == digest and not state.get("answered")):
            state["turns"] = state.get("turns", 0) + 1
            state["said"] = 0
        state["prompt"], state["answered"] = digest, False


def spoke(state: dict[str, Any], text: str, phase: Any, at: str | None, out: list[Record]) -> None:
    """Words of the model, from an event or item."""
    if not text.strip():
        return
    digest = words_hash(text)
    state["pending"] = [
        entry
        for entry in state.get("pending", ())
        if entry[0] != _ASSISTANT or words_hash(entry[1]) != digest
    ]
    state["said"] = state.get("said", 0) | _ASSISTANT
    _tell(state, "assistant", text, at, text_or_none(phase, 40), out)


def flush(state: dict[str, Any], out: list[Record], before: int) -> None:
    """Tells the waiting messages of lines up to ``before`` whose role the turn's events left
    out."""
    waiting: list[list[Any]] = state.get("pending") or []
    if not waiting:
        return
    state["pending"] = [entry for entry in waiting if entry[4] > before]
    for bit, text, at, phase, line in waiting:
        if line <= before and not state.get("said", 0) & bit:
            if bit == _USER:
                _next_turn(state, text)
            _tell(state, "user" if bit == _USER else "assistant", text, at, phase, out)


def _tell(
    state: dict[str, Any],
    role: Role,
    text: str,
    at: str | None,
    phase: str | None,
    out: list[Record],
) -> None:
    """One message, unless its key was told a moment ago."""
    key = f"{turn_name(state)}:{role[0]}:{words_hash(text)}"
    recent: list[str] = state.setdefault("recent", [])
    if key in recent:
        return
    recent.append(key)
    del recent[:-RECENT]
    if role == "user" and known(state, None).get("is_subagent"):
        # Written by the parent agent; the parent's own copy of the words keeps its key.
        kept, dropped = keep(text, CONTEXT_CHARS)
        if not kept.strip():
            return
        out.append(
            Message(f"{state['session']}:{key}", "context", kept, at=at, truncated_bytes=dropped)
        )
        return
    text, own = cut_own_context(text)
    if own and not text.strip():
        out.append(Message(key, "context", MARKER, at=at))
        return
    kept, dropped = keep(text)
    if not kept.strip():
        return
    message = Message(key, role, kept, at=at, truncated_bytes=dropped)
    if role == "user":
        learn_prompt(state, out, text)
        learn(state, out, status="active")
    else:
        state["answered"] = True
        message.model = known(state, None).get("model")
        if phase:
            message.extra = {"phase": phase}
    out.append(message)


def compacted(state: dict[str, Any], text: Any, at: str | None, out: list[Record]) -> None:
    if not isinstance(text, str) or not text.strip():
        return  # the summary is kept by the provider
    kept, dropped = keep(cut_own_context(text)[0])
    if not kept.strip():
        return
    key = f"{turn_name(state)}:c:{words_hash(text)}"
    out.append(Message(key, "summary", kept, at=at, truncated_bytes=dropped))
    out.append(Compaction(key, kept, at=at))
