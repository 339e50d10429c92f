"""Pieces of recalled text as they are shown: the telling stretch, harmless in a terminal.

Recalled text is data of others: terminal sequences, control and invisible characters are
taken out, so that neither a terminal nor a reader is deceived. Pure.
"""

import re
from collections.abc import Sequence
from typing import Final

EXCERPT_CHARS: Final = 1_200
"""Of a message that was found; shorter ones are shown whole."""

NEIGHBOUR_CHARS: Final = 400
"""Of a message beside it."""

LEAD_CHARS: Final = 200
"""Shown before the first matching word of a long message."""

_ESCAPES: Final = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])"
    r"|\x9b[0-?]*[ -/]*[@-~]"
)
# Controls but newline and tab; C1; bidirectional overrides and isolates; zero width
# characters (not the joiners that emoji and Indic scripts need); tags; private separators.
_BAD: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028\u2029\u202a-\u202e"
    "\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def harmless(text: str) -> str:
    """``text`` without terminal sequences, controls and invisible characters; line breaks
    are `\\n`."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if text.isascii() and text.isprintable():
        return text
    return _BAD.sub("", _ESCAPES.sub("", text))


def cut(text: str, start: int, words: Sequence[str], limit: int = EXCERPT_CHARS) -> str:
    """At most about ``limit`` characters of ``text`` around the first of ``words`` (lower
    case) at or after ``start``; `…` marks what is left out. Harmless."""
    if len(text) <= limit:
        return harmless(text)
    lower = text.lower()
    if len(lower) != len(text):
        lower = text
    places = [place for word in words if (place := lower.find(word, start)) >= 0]
    begin = max(0, min(places, default=start) - LEAD_CHARS)
    begin = min(begin, len(text) - limit)
    begin = _word_start(text, begin)
    end = min(len(text), begin + limit)
    shown = harmless(text[begin:end]).strip()
    return ("… " if begin else "") + shown + (" …" if end < len(text) else "")


def _word_start(text: str, place: int) -> int:
    """The beginning of the word or line at ``place``, looking back a little."""
    if place == 0:
        return 0
    for back in range(place, max(0, place - 40), -1):
        if text[back - 1].isspace():
            return back
    return place
