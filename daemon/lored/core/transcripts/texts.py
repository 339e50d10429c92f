"""What is kept of a text: bounded length, no base64, no images.

Owns the size policy of message texts. A text is cut first (head and tail stay, a marker
names what is missing) and cleaned after, so the cost is bounded by what is kept.
"""

import re
from typing import Any, Final

from lored.core.transcripts.records import MESSAGE_CHARS, OUTPUT_EXCERPT_CHARS

TOOL_CHARS: Final = 8_000
"""Kept of a tool's output as a message: what was printed first and last is what people search
for; whole files and logs are still on disk."""
CONTEXT_CHARS: Final = 1_000
"""Kept of injected text: enough to recognise it."""
UNBROKEN_CHARS: Final = 200
"""A longer run of base64 characters is data, not words."""
TITLE_CHARS: Final = 80

_BLOB: Final = re.compile(
    r"(?:data:[\w.+/-]{1,100};base64,)?"
    r"[A-Za-z0-9+/=_-]{60,}(?:\r?\n[A-Za-z0-9+/=_-]{60,})*(?:\r?\n[A-Za-z0-9+/=_-]+)?"
)
_FOLD_AT: Final = re.compile(r"[^,;}\])>|&]{1,120}[,;}\])>|&]+|.{1,120}", re.DOTALL)


def keep(text: str, limit: int = MESSAGE_CHARS) -> tuple[str, int]:
    """`text` as it is stored, and how many bytes of it were left out.

    Args:
        text: clean text.
        limit: most characters kept; two thirds of them from the head.
    """
    dropped = 0
    if len(text) > limit:
        head = limit * 2 // 3
        tail = limit - head
        middle = text[head:-tail]
        dropped = len(middle) if middle.isascii() else len(middle.encode("utf-8", "replace"))
        text = f"{text[:head]}\n[… {dropped} bytes left out …]\n{text[-tail:]}"
    if "\0" in text:
        text = text.replace("\0", "")
    short = _without_blobs(text)
    dropped += len(text) - len(short)
    return short, dropped


def keep_output(text: str) -> tuple[str, int]:
    """A tool's output as it is stored: shorter, terminal noise removed, and folded when it is
    one long line without any white space (compact JSON, minified code)."""
    if "\x1b" in text or "\a" in text:
        text = _TERMINAL.sub("", text)
    text, dropped = keep(text, TOOL_CHARS)
    if len(text) > UNBROKEN_CHARS and text.isascii() and len(text.split(None, 1)) < 2:
        text = "\n".join(_FOLD_AT.findall(text.strip()))
    return text, dropped


def excerpt(text: str) -> str:
    """Head and tail of an output for `Action.output_excerpt`."""
    text = text.strip()
    if len(text) <= OUTPUT_EXCERPT_CHARS:
        return text
    head = OUTPUT_EXCERPT_CHARS // 3
    return f"{text[:head]}\n[…]\n{text[5 + head - OUTPUT_EXCERPT_CHARS :]}"


_TITLE_MARKS: Final = re.compile(r"^\s*(?:#{1,6}\s+|\[\[ ## \w+ ## \]\]\s*$)?|\s+$")


def title_of(text: str) -> str | None:
    """A one-line title made from a prompt: its first line that names something. `Implement the
    following plan:` leads to one; field marks of programs (`[[ ## user_query ## ]]`) name none."""
    lines = [plain for line in text[:2_000].splitlines() if (plain := _TITLE_MARKS.sub("", line))]
    if not lines:
        return None
    line = lines[1] if lines[0].endswith((":", "：")) and len(lines) > 1 else lines[0]
    return line if len(line) <= TITLE_CHARS else line[: TITLE_CHARS - 1].rstrip() + "…"


def flat_text(content: Any, depth: int = 0) -> str:
    """The words in a content value of any shape: text, a list of blocks, an object with `text`,
    `content` or `output`. Images and other binary blocks give nothing."""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and depth < 6:
        parts = [flat_text(item, depth + 1) for item in content]
        return "\n".join(part for part in parts if part)
    if isinstance(content, dict) and depth < 6:
        for name in ("text", "content", "output", "stdout", "message"):
            if content.get(name):
                return flat_text(content[name], depth + 1)
    return ""


def names_in(table: str) -> frozenset[str]:
    """The words of a table of names."""
    return frozenset(table.split())


def text_or_none(value: Any, limit: int = 4_096) -> str | None:
    """A non-empty string, cut to `limit` characters, else None."""
    return value[:limit] if isinstance(value, str) and value else None


def count_or_none(value: Any) -> int | None:
    """A non-negative whole number that fits 63 bits, else None."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if type(value) is int and 0 <= value < 1 << 62 else None


def _without_blobs(text: str) -> str:
    """`text` with a marker for each run of data. `_BLOB` is matched only where a run begins, which
    a literal search finds in one byte a character: ten times cheaper than searching by it."""
    if len(text) <= UNBROKEN_CHARS and _BASE64 not in text:
        return text
    runs = text.encode("latin-1", "replace").translate(_RUN_TABLE)
    at = 0
    pieces: list[str] = []
    start = runs.find(_RUN)
    while start >= 0:
        head = start - len(_BASE64)
        if text.startswith(_BASE64, head) and head >= at:
            start = _data_head(text, at, head, start)
        match = _BLOB.match(text, start)
        assert match is not None  # a run is what it matches
        pieces += (text[at:start], _without_blob(match))
        at = match.end()
        start = runs.find(_RUN, at)
    return "".join((*pieces, text[at:])) if pieces else text


def _data_head(text: str, at: int, head: int, start: int) -> int:
    """Where `data:` stands that belongs to the `;base64,` at ``head``; else the run's ``start``."""
    found = text.rfind("data:", max(at, head - 105), head)
    match = _BLOB.match(text, found) if found >= 0 else None
    return found if match is not None and match.end() > start else start


def _without_blob(match: re.Match[str]) -> str:
    run = match[0]
    if len(run) < UNBROKEN_CHARS and not run.startswith("data:"):
        return run
    kinds = set(run[:4_000])
    if len(kinds) < 6:  # a ruler of dashes or equal signs
        return run[:60]
    upper = any("A" <= c <= "Z" for c in kinds)
    lower = any("a" <= c <= "z" for c in kinds)
    digit = any("0" <= c <= "9" for c in kinds)
    joints = sum(run.count(c) for c in "/_-")
    words = joints * 10 > len(run) or not digit or (upper != lower and not kinds <= _HEX)
    return run if words and not run.startswith("data:") else f"[{len(run)} bytes of data]"


_BASE64: Final = ";base64,"
_RUN: Final = b"x" * 60
_RUN_TABLE: Final = bytes(
    ord("x") if chr(code).isascii() and (chr(code).isalnum() or chr(code) in "+/=_-") else ord(" ")
    for code in range(256)
)
_HEX: Final = frozenset("0123456789abcdefABCDEF\r\n")
_TERMINAL: Final = re.compile(
    r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]{0,500}(?:\x07|\x1b\\)|\a"
)
