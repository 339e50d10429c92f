"""The state of a summary fold: its bounds, its beginning, and its small collections.

A map of plain values that MessagePack holds unchanged (no tuples, no sets), so that folding
can stop after any record, be stored with the session, and go on elsewhere. Every collection
has a bound here; the whole state stays under `STATE_BYTES` whatever the session's length.
"""

from hashlib import blake2b
from typing import Any, Final

from lored.core.clock import SECOND, parse_instant

GOAL_CHARS: Final = 600
"""Kept of a request: a heading and its first paragraph."""
REQUEST_CHARS: Final = 240
"""Kept of a later request."""
SAID_CHARS: Final = 4_000
"""Kept of the assistant's latest text, head and tail: statements stand at both ends."""
STATEMENT_CHARS: Final = 240
COMMAND_CHARS: Final = 160
TARGET_CHARS: Final = 300
MESSAGE_CHARS: Final = 200
"""Kept of an error's telling line."""

FIRST_REDIRECTIONS: Final = 3
LAST_REDIRECTIONS: Final = 7
"""Later requests kept: those that shaped the start and those that shaped the end."""
OPEN_ACTIONS: Final = 48
"""Calls that wait for their outcome; agents run a dozen at once."""
DONE_ACTIONS: Final = 96
"""Fingerprints of calls already counted: formats repeat a call when its row changes."""
SEEN_REQUESTS: Final = 48
FILES: Final = 80
"""Edited files kept by name; beyond that the least edited gives way and is only counted."""
CHECKS: Final = 24
"""Test, build and lint commands kept, one entry per command with its last outcome."""
OTHERS: Final = 16
"""Other commands that change something (installs, migrations, pushes)."""
ERRORS: Final = 24
COMMITS: Final = 24
DECISIONS: Final = 12
NEXT_STEPS: Final = 8
KEPT_FACTS: Final = 12
STATE_BYTES: Final = 128_000
"""Most bytes of a packed state, all bounds above reached at once; real sessions need 2-15 KB."""

PAUSE_S: Final = 900
"""A longer gap between two events is a pause and does not count as time worked."""

VERSION: Final = 2
"""Raise it when an old state cannot be folded on: the session is then folded again."""


def begin() -> dict[str, Any]:
    """The state before the first record."""
    return {
        "version": VERSION,
        "seq": 0,
        "turn": 0,
        "counts": {"messages": 0, "user": 0, "actions": 0, "failed": 0, "tests_added": 0},
        "kinds": {},
        "first_at": None,
        "last_at": None,
        "event": None,
        "active_s": 0,
        "tail": None,
        "session": {},
        "goal": None,
        "weak_goal": None,
        "redirections": [],
        "said": None,
        "open": {},
        "outcomes": False,
        "done": [],
        "seen": [],
        "files": {},
        "files_dropped": 0,
        "checks": [],
        "others": [],
        "commits": [],
        "errors": [],
        "decisions": [],
        "next_steps": [],
        "kept_facts": [],
        "recap": None,
    }


def fingerprint(key: str) -> str:
    """A short stand-in for a record key, for the lists of what was counted already."""
    return blake2b(key.encode("utf-8", "replace"), digest_size=6).hexdigest()


def push(items: list[Any], item: Any, bound: int) -> None:
    """Append; the oldest gives way beyond ``bound``."""
    items.append(item)
    if len(items) > bound:
        del items[0]


def cut(text: str, limit: int) -> str:
    """``text`` within ``limit`` characters, cut at a word where one ends near, with an ellipsis."""
    if len(text) <= limit:
        return text
    head = text[: limit - 1]
    space = head.rfind(" ")
    if space > limit * 2 // 3:
        head = head[:space]
    return head.rstrip(" ,;:.-—") + "…"


def flat(text: str, limit: int) -> str:
    """``text`` on one line, within ``limit`` characters."""
    return cut(" ".join(text[: limit * 4].split()), limit)


def see_at(state: dict[str, Any], at: str | None) -> None:
    """Widen the session's time span. UTC ISO texts compare as text (differing precision is off
    by less than a second)."""
    if at is None:
        return
    at = at[:32]
    if state["last_at"] is None or at > state["last_at"]:
        state["last_at"] = at
    if state["first_at"] is None or at < state["first_at"]:
        state["first_at"] = at


def work_at(state: dict[str, Any], at: str | None) -> None:
    """Something was said or done at ``at``: the span and the time worked grow."""
    if at is None or at == state["event"]:
        return
    see_at(state, at)
    at = at[:32]
    before = state["event"]
    state["event"] = at
    if before is not None:
        gap = _seconds_between(before, at)
        if 0 < gap <= PAUSE_S:
            state["active_s"] += gap


def _seconds_between(before: str, at: str) -> int:
    if before[:10] == at[:10]:  # the same day: no need for a calendar
        try:
            return _second_of_day(at) - _second_of_day(before)
        except ValueError:
            return 0
    first, last = parse_instant(before), parse_instant(at)
    return 0 if first is None or last is None else (last - first) // SECOND


def _second_of_day(at: str) -> int:
    return int(at[11:13]) * 3600 + int(at[14:16]) * 60 + int(at[17:19])
