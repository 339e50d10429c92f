"""Finding secrets in text fast: a cheap look at bytes first, expressions only where needed.

How it stays fast. Transcripts are mostly clean, so the cost of clean text is what counts.
1. The text becomes one byte a character (Latin-1, `?` for the rest: offsets stay equal), and
   one translation turns every character of `RUN_CHARACTERS` into `a`: a token of at least
   `RUN_LENGTH` characters is then a literal search, and the shapes are tried on such runs
   alone, where they start like a known key.
2. Named values (`password = ...`) are found by searching the lower-cased bytes for five stems;
   an expression is matched at each hit.
3. Addresses with credentials, authorization headers and PEM blocks hang on a literal each.
Searching by expression over the whole text would cost ten times as much (measured).
"""

import re
from dataclasses import dataclass
from typing import Final

from lored.core.redact.pem import find_private_keys
from lored.core.redact.shapes import (
    NAMES,
    RUN_CHARACTERS,
    RUN_LENGTH,
    SHAPES,
    STARTS,
    TELEGRAM,
)
from lored.core.redact.values import (
    ASSIGNMENT,
    SECRET_STEMS,
    is_placeholder,
    is_secret,
    names_secret,
)

_TO_RUN: Final = bytes(0x61 if i in RUN_CHARACTERS else 0x20 for i in range(256))
_TO_LOWER: Final = bytes(i + 32 if 0x41 <= i <= 0x5A else i for i in range(256))
_NEEDLE: Final = b"a" * RUN_LENGTH
_STEMS: Final = tuple(stem.encode() for stem in SECRET_STEMS)
_BEFORE: Final = frozenset((b"\\", b"%", b":"))
"""What may stand before a run whose token does not begin with the run."""

_CREDENTIALS: Final = re.compile(
    r"://(?P<user>[^\s:/@\"'<>]{0,128}):(?P<pass>[^\s/@\"'<>]{3,256})@"
)
_BEARER_ENDS: Final = frozenset((b"er ", b"ER "))
_TOKEN68: Final = re.compile(r"[\w.~+/=-]{20,2000}", re.ASCII)
_AUTHORIZATION: Final = re.compile(
    r"authorization[\"'\\]{0,3}\s{0,2}[:=]\s{0,2}[\"'\\]{0,3}(?:basic|bearer|token|apikey|bot)\s+"
    r"(?P<token>[\w.~+/=:-]{8,2000})",
    re.IGNORECASE,
)
_CURL_USER: Final = re.compile(
    r"\bcurl\b[^\n]{0,400}?\s(?:-u|--user)[ =]?[\"']?[^\s:\"'$]{1,64}:(?P<pass>[^\s\"'$]{3,128})"
)
_SLACK_HOOK: Final = re.compile(
    r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<path>[\w/-]{20,})"
)
_DISCORD_HOOK: Final = re.compile(r"/api/webhooks/\d{5,25}/(?P<path>[\w-]{40,})")
_QUERY: Final = re.compile(
    r"[?&](?:sig|X-Amz-Signature|access_token|auth_token|api_?key)=(?P<query>[\w%+/=.-]{16,})"
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One secret: which rule, where (character offsets, end exclusive), and a hint that shows
    the first characters only, never the whole."""

    rule: str
    start: int
    end: int
    hint: str


def find(text: str) -> list[Finding]:
    """All secrets of ``text`` in order, without overlaps (the earlier and longer one wins)."""
    data = text.encode("latin-1", "replace")
    spans: list[tuple[int, int, str]] = []
    runs = data.translate(_TO_RUN)
    if _NEEDLE in runs:
        _shapes(text, data, runs, spans)
    lower = data.translate(_TO_LOWER)
    if b"=" in data or b":" in data or b" --" in data:
        for stem in _STEMS:
            if stem in lower:
                _assignments(text, lower, stem, spans)
    if b"://" in data:
        _addresses(text, spans)
    if b"authorization" in lower:
        _groups(_AUTHORIZATION, text, "auth-header", spans)
    if b"PRIVATE KEY" in data:
        find_private_keys(text, spans)
    return _settle(text, spans) if spans else []


def _shapes(text: str, data: bytes, runs: bytes, spans: list[tuple[int, int, str]]) -> None:
    size = len(text)
    start = runs.find(_NEEDLE)
    while start >= 0:
        if data[start : start + 2] in STARTS:
            _token(text, start, spans)
        before = data[start - 1 : start]
        if before == b" ":
            if data[start - 3 : start] in _BEARER_ENDS:
                _bearer(text, start, spans)
        elif before in _BEFORE:
            _glued(text, start, spans)
        end = runs.find(b" ", start + RUN_LENGTH)
        start = runs.find(_NEEDLE, end) if 0 < end < size else -1


def _bearer(text: str, start: int, spans: list[tuple[int, int, str]]) -> None:
    if text[max(0, start - 7) : start].lower() == "bearer ":
        match = _TOKEN68.match(text, start)
        if match and not is_placeholder(match[0]):
            spans.append((*match.span(), "auth-header"))


def _token(text: str, at: int, spans: list[tuple[int, int, str]]) -> None:
    """A shape that begins exactly at ``at`` and is not a piece of a longer word."""
    match = SHAPES.match(text, at)
    if match:
        last = match.end()
        after = text[last : last + 1]
        if not (after.isalnum() and after.isascii()):
            spans.append((at, last, NAMES[int((match.lastgroup or "r0")[1:])]))


def _glued(text: str, start: int, spans: list[tuple[int, int, str]]) -> None:
    """Tokens whose run begins with something else: the letter of an escaped line end, the
    digits of a percent escape; and Telegram's, which has a colon inside."""
    before = text[start - 1 : start]
    if before == "\\" and text[start] in "nrt":
        _token(text, start + 1, spans)
    elif before == "%":
        _token(text, start + 2, spans)
    elif before == ":" and text.startswith("AA", start):
        match = TELEGRAM.search(text, max(0, start - 11), start + 36)
        if match:
            spans.append((*match.span(), "telegram-token"))


def _assignments(text: str, lower: bytes, stem: bytes, spans: list[tuple[int, int, str]]) -> None:
    match_at = ASSIGNMENT.match
    at = lower.find(stem)
    while at >= 0:
        match = match_at(text, at)
        if match:
            before = text[max(0, at - 24) : at]
            rule = names_secret(match["stem"], match["rest"], before)
            if rule and _assigned(match, before):
                quoted = match["quoted"] is not None
                group = "quoted" if quoted else "bare"
                value = match[group]
                name = before[-8:] + match["stem"]
                env_style = match["separator"] == "=" and name.upper() == name
                follows = text[match.end() : match.end() + 1]
                if follows not in ("(", "[") and is_secret(
                    rule, value, quoted=quoted, env_style=env_style
                ):
                    spans.append((match.start(group), match.end(group), rule))
        at = lower.find(stem, at + len(stem))


def _assigned(match: re.Match[str], before: str) -> bool:
    """A separator of spaces assigns only after a flag: `--token abc`, not `the token abc`."""
    if match["separator"].strip():
        return True
    flag = before.rfind("--")
    return flag >= 0 and " " not in before[flag:] and "\n" not in before[flag:]


def _addresses(text: str, spans: list[tuple[int, int, str]]) -> None:
    if "@" in text:
        _groups(_CREDENTIALS, text, "url-password", spans)
    if "curl" in text:
        _groups(_CURL_USER, text, "url-password", spans)
    if "hooks.slack.com" in text:
        _groups(_SLACK_HOOK, text, "url-token", spans)
    if "/api/webhooks/" in text:
        _groups(_DISCORD_HOOK, text, "url-token", spans)
    if "=" in text and "?" in text:
        _groups(_QUERY, text, "url-token", spans)


def _groups(
    pattern: re.Pattern[str], text: str, rule: str, spans: list[tuple[int, int, str]]
) -> None:
    """The named group of each match, unless it is a placeholder."""
    for match in pattern.finditer(text):
        group = match.lastgroup or "token"
        value = match[group]
        if not is_placeholder(value):
            spans.append((*match.span(group), rule))


def _settle(text: str, spans: list[tuple[int, int, str]]) -> list[Finding]:
    """Sorted findings; of overlapping ones the first and longest, grown to cover the rest."""
    spans.sort(key=lambda span: (span[0], -span[1]))
    found: list[Finding] = []
    first, last, rule = spans[0]
    for start, end, name in spans[1:]:
        if start < last:
            last = max(last, end)
        else:
            found.append(_finding(text, first, last, rule))
            first, last, rule = start, end, name
    found.append(_finding(text, first, last, rule))
    return found


def _finding(text: str, first: int, last: int, rule: str) -> Finding:
    size = last - first
    shown = 4 if size >= 16 else 0
    return Finding(rule, first, last, f"{text[first : first + shown]}… ({size} characters)")
