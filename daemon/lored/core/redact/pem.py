"""Private keys in PEM form, also those that lost their head or end to a size limit.

Found by literal searches, not by one expression: a text of many broken headers would make
that take quadratic time.
"""

import re
from typing import Final

KEY_CHARS: Final = 12_000
"""Longest key looked for: a 8,192-bit RSA key in PEM has 6,400 characters."""

_LABEL: Final = "PRIVATE KEY"
_LABEL_REACH: Final = 48
"""Characters from `-----BEGIN` to the label: the longest kind in use is `OPENSSH `."""
_HEAD_BODY: Final = re.compile(r"[A-Za-z0-9+/=:,.\s\\-]{0,12000}")
_TAIL_BODY: Final = re.compile(r"[A-Za-z0-9+/=\s\\]{0,12000}")


def find_private_keys(text: str, spans: list[tuple[int, int, str]]) -> None:
    """Add the span of every private key of ``text`` to ``spans``."""
    at = text.find(_LABEL)
    while at >= 0:
        reach = max(0, at - _LABEL_REACH)
        head = text.rfind("-----BEGIN ", reach, at)
        tail = text.rfind("-----END ", reach, at)
        after = at + len(_LABEL)
        if head > tail:
            after = _whole(text, head, after, spans)
        elif tail >= 0:
            _headless(text, tail, after, spans)
        at = text.find(_LABEL, after)


def _whole(text: str, head: int, label: int, spans: list[tuple[int, int, str]]) -> int:
    """A key from its head on; returns where to go on."""
    body = text.find("-----", label, label + 20)
    if body < 0:
        return label
    end = text.find("-----END ", body + 5, body + KEY_CHARS)
    if end >= 0:
        stop = _closing(text, end)
    else:
        match = _HEAD_BODY.match(text, body + 5)
        stop = match.end() if match else body + 5
        if stop - body < 40:
            return stop  # the header is only mentioned
    spans.append((head, stop, "private-key"))
    return stop


def _headless(text: str, tail: int, label: int, spans: list[tuple[int, int, str]]) -> None:
    """The last lines of a key whose head was left out."""
    before = text[max(0, tail - KEY_CHARS) : tail][::-1]
    match = _TAIL_BODY.match(before)
    size = match.end() if match else 0
    if size >= 40 and any(len(line) >= 40 for line in before[:size].split()):
        spans.append((tail - size, _closing(text, label), "private-key"))


def _closing(text: str, at: int) -> int:
    """The end of the dashes that close a line which begins at or before ``at``."""
    close = text.find("-----", at + 9, at + 70)
    return close + 5 if close >= 0 else at + 9
