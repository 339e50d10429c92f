"""How answers look: text for people, one JSON document for programs.

Owns the streams. Text is coloured only on a terminal and never with NO_COLOR. Stored text is
data: control characters and direction marks in it are shown as escapes, so that a transcript
can neither move the cursor nor hide words. Knows nothing of verbs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

_CODES = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "cyan": "36",
}
_HIDDEN = (
    {
        code: f"\\x{code:02x}"
        for code in (*range(0x20), 0x7F, *range(0x80, 0xA0))
        if code not in (0x09, 0x0A)
    }
    | {
        code: f"\\u{code:04x}"
        for code in (0x200B, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2060, 0x2070), 0xFEFF)
    }
    | {code: f"\\U{code:08x}" for code in range(0xE0000, 0xE0080)}  # tag letters, unseen
)
_WIDTH_IN_A_PIPE = 100


def clean(text: str) -> str:
    """Text with control and invisible characters and direction marks as visible escapes; lines
    are kept."""
    return text.translate(_HIDDEN)


def one_line(text: str) -> str:
    """Clean text with every run of white space as one space."""
    return clean(" ".join(text.split()))


def counted(count: int, word: str) -> str:
    """A count with its noun: `1 message`, `5,062 messages`."""
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


def width_of(text: str) -> int:
    """Columns on a terminal: wide East Asian characters take two, combining marks none."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(
        0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text
    )


def cut(text: str, columns: int) -> str:
    """At most ``columns`` columns, with an ellipsis when shortened."""
    if width_of(text) <= columns:
        return text
    used, kept = 1, []
    for char in text:
        used += width_of(char)
        if used > columns:
            break
        kept.append(char)
    return "".join(kept).rstrip() + "…"


def wrap(text: str, columns: int, indent: str) -> list[str]:
    """Words in lines of at most ``columns`` columns, each after ``indent``; clean text.

    Own line breaks are kept. A word longer than a line stays whole (paths, URLs).
    """
    room, lines = max(columns - len(indent), 20), []
    for paragraph in clean(text).split("\n"):
        line, used = "", 0
        for word in paragraph.split():
            size = width_of(word)
            if line and used + 1 + size > room:
                lines.append(indent + line)
                line, used = word, size
            else:
                line, used = (f"{line} {word}", used + 1 + size) if line else (word, size)
        lines.append((indent + line).rstrip())
    return lines


class Screen:
    """Standard output and error of one command.

    ``json`` asks for documents instead of text; ``columns`` is the width of the terminal, or
    a readable 100 in a pipe.
    """

    def __init__(self, *, json: bool = False, out: TextIO | None = None, err: TextIO | None = None):
        self.json = json
        self.out = out or sys.stdout
        self.err = err or sys.stderr
        self.terminal = self.out.isatty()
        self.colour = (
            self.terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        )
        self.columns = _WIDTH_IN_A_PIPE
        if self.terminal:
            from shutil import get_terminal_size

            self.columns = max(get_terminal_size().columns, 40)

    def paint(self, text: str, *styles: str) -> str:
        """The text in the named styles, or as it is where colour is off."""
        if not self.colour or not styles:
            return text
        return f"\x1b[{';'.join(_CODES[style] for style in styles)}m{text}\x1b[0m"

    def say(self, *lines: str) -> None:
        """Lines on standard output."""
        _write(self.out, "".join(line + "\n" for line in lines))

    def note(self, *lines: str) -> None:
        """Lines on standard error: hints and warnings beside the answer."""
        self.out.flush()
        _write(self.err, "".join(line + "\n" for line in lines))
        self.err.flush()

    def document(self, schema: str, data: Any) -> None:
        """`{"schema": ..., "data": ...}` on standard output, always UTF-8."""
        self._json(self.out, {"schema": schema, "data": data}, indent=2 if self.terminal else None)

    def error_document(self, code: str, message: str, data: dict[str, object]) -> None:
        """`{"schema": "lore.error/1", "error": ...}` on standard error."""
        error: dict[str, object] = {"code": code, "message": message}
        if data:
            error["data"] = data
        self._json(self.err, {"schema": "lore.error/1", "error": error}, indent=None)

    def _json(self, stream: TextIO, document: dict[str, Any], *, indent: int | None) -> None:
        from json import dumps

        text = dumps(document, ensure_ascii=False, indent=indent, default=str) + "\n"
        stream.flush()
        raw = getattr(stream, "buffer", None)
        if raw is None:
            stream.write(text)
        else:
            # A lone surrogate becomes \udcXX, which is a valid escape inside a JSON string.
            raw.write(text.encode("utf-8", "backslashreplace"))
            raw.flush()

    def table(
        self, rows: Iterable[Sequence[str]], *, head: Sequence[str] = (), shrink: int | None = None
    ) -> None:
        """Aligned columns. ``shrink`` is the column that gives way on a narrow terminal; in a
        pipe nothing is ever cut. Cells are cleaned here and may not hold line breaks."""
        cells = [[one_line(cell) for cell in row] for row in rows]
        if not cells:
            return
        every = [[*head], *cells] if head else cells
        widths = [max(width_of(row[i]) for row in every) for i in range(len(every[0]))]
        if shrink is not None and self.terminal:
            spare = self.columns - sum(widths) - 2 * (len(widths) - 1)
            if spare < 0:
                widths[shrink] = max(widths[shrink] + spare, 12)
                cells = [
                    [*row[:shrink], cut(row[shrink], widths[shrink]), *row[shrink + 1 :]]
                    for row in cells
                ]
        if head:
            self.say(self.paint(_row(head, widths), "dim"))
        for row in cells:
            first, rest = _row(row, widths), ""
            if self.colour:
                size = len(row[0])
                first, rest = first[:size], first[size:]
            self.say(self.paint(first, "cyan") + rest)


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (
        cell + " " * (width - width_of(cell)) for cell, width in zip(cells, widths, strict=True)
    )
    return "  ".join(padded).rstrip()


def _write(stream: TextIO, text: str) -> None:
    try:
        stream.write(text)
    except UnicodeEncodeError:
        # A terminal that is not UTF-8: show what it lacks as escapes instead of failing.
        encoding = stream.encoding or "ascii"
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
