"""Complete lines of a source, in constant memory whatever stands in it.

Reads pieces of `PIECE_BYTES` and splits at byte 0x0A only. What a line may cost:

- Above `ELIDE_BYTES` runs of base64 characters longer than `RUN_BYTES` are cut to their
  first `RUN_KEPT` bytes while reading, so a line that is one giant image becomes small. A run
  never holds a quote or a backslash, so the line stays the JSON it was.
- Above ``keep`` bytes the rest of the line is counted, not kept.
- Pieces of nothing but NULs are dropped and counted; holes of sparse files are skipped
  without being read.

A last line without its newline is never yielded: `Lines.rest` is what was seen of it. The
offset to store is that of the end of the last line yielded, so that nothing is lost when the
writer completes the line later.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from lored.watch.sources import PIECE_BYTES, Source

ELIDE_BYTES: Final = 1 << 20
"""Line length from which long runs are cut. Shorter lines are cheap to parse as they are."""

TAIL_BYTES: Final = 4_096
"""Kept of earlier pieces for `Lines.tail`."""

RUN_BYTES: Final = 4_096
RUN_KEPT: Final = 64
"""Enough to tell an image from text, and for any escape sequence the run begins with."""

# Tried only where a run begins, else runs just below the length would cost its square.
_RUN: Final = re.compile(rb"(?<![A-Za-z0-9+/=_-])[A-Za-z0-9+/=_-]{%d,}" % RUN_BYTES)
_RUN_GOES_ON: Final = re.compile(rb"[A-Za-z0-9+/=_-]*")


class Line(NamedTuple):
    """One complete line: where it starts, its bytes without the newline (at most ``keep``),
    and where the next one starts."""

    offset: int
    data: bytes
    end: int


class Lines:
    """Iterator over the complete lines of a source that stands at ``offset``.

    ``beat`` is called with the place reached for each piece read, so that a line of gigabytes
    is no silence. After the end: ``end`` is where the last complete line ended, ``rest`` what
    is known of an unfinished one after it (at most ``keep`` bytes), ``reached`` where reading
    stopped, ``nul_bytes`` how many NULs were dropped.
    """

    def __init__(
        self, source: Source, offset: int, keep: int, beat: Callable[[int], None] | None = None
    ) -> None:
        self._source = source
        self._keep = keep
        self._beat = beat
        self._before = b""
        self._piece = b""
        self._cut = 0
        self.end = offset
        self.reached = offset
        self.rest = b""
        self.nul_bytes = 0

    def __iter__(self) -> Iterator[Line]:
        kept, in_run = bytearray(), False
        while piece := self._next_piece():
            begin = self.reached - len(piece)
            start, newline = 0, piece.find(b"\n")
            while newline >= 0:
                if kept:
                    self._take(kept, piece[start:newline], in_run)
                    data = bytes(kept)
                    kept.clear()
                else:
                    data = piece[start : min(newline, start + self._keep)]
                in_run = False
                line = Line(self.end, data, begin + newline + 1)
                start = self._cut = newline + 1
                self.end = line.end
                yield line
                newline = piece.find(b"\n", start)
            if start < len(piece):
                in_run = self._take(kept, piece[start:], in_run)
        self.rest = bytes(kept)

    def tail(self, size: int) -> bytes:
        """The bytes in front of ``end``, at most ``size``; fewer where NULs were dropped."""
        return (self._before + self._piece[: self._cut])[-size:]

    def _next_piece(self) -> bytes:
        while True:
            gap = self._source.skip() if self.nul_bytes else 0
            piece = self._source.read(PIECE_BYTES)
            self.reached += gap + len(piece)
            self.nul_bytes += gap
            if self._beat is not None:
                self._beat(self.reached)
            if piece and not piece[0] and not piece.strip(b"\0"):
                self.nul_bytes += len(piece)
                continue
            if piece or not gap:
                if piece:
                    self._before = (self._before + self._piece)[-TAIL_BYTES:]
                    self._piece, self._cut = piece, 0
                return piece

    def _take(self, kept: bytearray, part: bytes, in_run: bool) -> bool:
        """Append what is to be kept of the next part of a line; whether a run goes on."""
        if len(kept) >= self._keep:
            return False
        if len(kept) >= ELIDE_BYTES:
            if in_run:
                match = _RUN_GOES_ON.match(part)
                cut = match.end() if match else 0
                if cut == len(part):
                    return True
                part = part[cut:]
            last = None
            pieces, at = [], 0
            for last in _RUN.finditer(part):
                pieces.append(part[at : last.start() + RUN_KEPT])
                at = last.end()
            in_run = last is not None and last.end() == len(part)
            part = b"".join((*pieces, part[at:])) if pieces else part
        kept += part[: max(0, self._keep - len(kept))]
        return in_run
