"""Complete lines of a file from an offset on, in constant memory whatever stands in it.

Reads pieces of `PIECE_BYTES` and splits at byte 0x0A only. What a line may cost:

- Above `ELIDE_BYTES` runs of base64 characters longer than `RUN_BYTES` are cut to their
  first `RUN_KEPT` bytes while reading, so a line that is one giant image becomes small. A run
  never holds a quote or a backslash, so the line stays the JSON it was.
- Above ``keep`` bytes the rest of the line is counted, not kept.
- Pieces of nothing but NULs are dropped and counted; holes of sparse files are skipped
  without being read (`SEEK_DATA`).

A last line without its newline is never yielded: `Lines.rest` is what was seen of it. The
offset to store is that of the end of the last line yielded, so that nothing is lost when the
writer completes the line later.
"""

import errno
import gzip
import os
import re
import zlib
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, Protocol

import zstandard

PIECE_BYTES: Final = 256 << 10
"""Read at once: large enough to hide the system call, small enough for any cache."""

ELIDE_BYTES: Final = 1 << 20
"""Line length from which long runs are cut. Shorter lines are cheap to parse as they are."""

RUN_BYTES: Final = 4_096
RUN_KEPT: Final = 64
"""Enough to tell an image from text, and for any escape sequence the run begins with."""

WINDOW_BYTES: Final = 128 << 20
"""Largest zstd window accepted (the format's recommended maximum for decoders is 8 MiB; the
tool's own `--long` needs 128): a frame may not claim memory at will."""

_RUN: Final = re.compile(rb"[A-Za-z0-9+/=_-]{%d,}" % RUN_BYTES)
_RUN_GOES_ON: Final = re.compile(rb"[A-Za-z0-9+/=_-]*")


class Line(NamedTuple):
    """One complete line: where it starts, its bytes without the newline (at most ``keep``),
    and where the next one starts."""

    offset: int
    data: bytes
    end: int


class Source(Protocol):
    """Bytes one after the other. ``read`` gives b"" at the end; ``skip`` the length of a hole
    at the current place (0: none), which then is behind."""

    bytes_read: int

    def read(self, size: int) -> bytes: ...

    def skip(self) -> int: ...

    def close(self) -> None: ...


class PlainSource:
    """An uncompressed file from ``offset`` on. Owns the descriptor."""

    def __init__(self, path: str, offset: int) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY)
        self._at = offset
        self.bytes_read = 0

    def read(self, size: int) -> bytes:
        data = os.pread(self._fd, size, self._at)
        self._at += len(data)
        self.bytes_read += len(data)
        return data

    def skip(self) -> int:
        try:
            data = os.lseek(self._fd, self._at, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:
                return 0  # a file system without holes
            data = os.fstat(self._fd).st_size
        gap = max(0, data - self._at)
        self._at += gap
        return gap

    def at(self, offset: int, size: int) -> bytes:
        """``size`` bytes at ``offset``; the reading position stays."""
        data = os.pread(self._fd, size, offset)
        self.bytes_read += len(data)
        return data

    def stat(self) -> os.stat_result:
        """Of the open file, which may have been replaced under its name since."""
        return os.fstat(self._fd)

    def close(self) -> None:
        os.close(self._fd)


class StreamSource:
    """A `.zst` or `.gz` file as the bytes it holds, from its beginning."""

    def __init__(self, path: str) -> None:
        self._file = open(path, "rb", buffering=0)  # noqa: SIM115 - closed by close()
        self._stream: Any
        if path.endswith(".gz"):
            self._stream = gzip.GzipFile(fileobj=self._file)
        else:
            reader = zstandard.ZstdDecompressor(max_window_size=WINDOW_BYTES)
            self._stream = reader.stream_reader(self._file, read_across_frames=True)
        self.bytes_read = 0

    def read(self, size: int) -> bytes:
        """Raises `BrokenStream` when the file is damaged or cut."""
        try:
            data: bytes = self._stream.read(size)
        except (zstandard.ZstdError, zlib.error, EOFError, gzip.BadGzipFile) as error:
            raise BrokenStream(str(error)) from None
        self.bytes_read += len(data)
        return data

    def skip(self) -> int:
        return 0

    def stat(self) -> os.stat_result:
        """Of the compressed file."""
        return os.fstat(self._file.fileno())

    def close(self) -> None:
        self._stream.close()
        self._file.close()


class BrokenStream(Exception):
    """A compressed file ends early or is damaged."""


class Lines:
    """Iterator over the complete lines of a source that stands at ``offset``.

    After the end: ``end`` is where the last complete line ended, ``rest`` what is known of an
    unfinished one after it (at most ``keep`` bytes), ``reached`` where reading stopped,
    ``nul_bytes`` how many NULs were dropped.
    """

    def __init__(self, source: Source, offset: int, keep: int) -> None:
        self._source = source
        self._keep = keep
        self.end = offset
        self.reached = offset
        self.rest = b""
        self.nul_bytes = 0

    def __iter__(self) -> Iterator[Line]:
        kept, in_run = bytearray(), False
        while True:
            gap = self._source.skip() if self.nul_bytes else 0
            piece = self._source.read(PIECE_BYTES)
            self.reached += gap + len(piece)
            self.nul_bytes += gap
            if not piece:
                if gap:
                    continue
                self.rest = bytes(kept)
                return
            if not piece[0] and not piece.strip(b"\0"):
                self.nul_bytes += len(piece)
                continue
            begin = self.reached - len(piece)
            start, newline = 0, piece.find(b"\n")
            while newline >= 0:
                if kept:
                    in_run = self._take(kept, piece[start:newline], in_run)
                    data = bytes(kept)
                    kept.clear()
                else:
                    data = piece[start:newline]
                start, in_run = newline + 1, False
                line = Line(self.end, data, begin + start)
                self.end = line.end
                yield line
                newline = piece.find(b"\n", start)
            if start < len(piece):
                in_run = self._take(kept, piece[start:], in_run)

    def _take(self, kept: bytearray, part: bytes, in_run: bool) -> bool:
        """Append what is to be kept of the next part of a line; whether a run goes on."""
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
