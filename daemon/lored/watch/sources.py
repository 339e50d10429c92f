"""The bytes of a transcript file, plain or compressed, from any place on.

A source gives its bytes one after the other (`read`), can skip a hole of a sparse file
without reading it, shows its beginning, and moves to an offset while telling what stands
before it, so that a cursor can be verified. Offsets are those of the uncompressed content.
"""

import errno
import gzip
import io
import os
import zlib
from typing import Any, Final, Protocol

import zstandard

WINDOW_BYTES: Final = 128 << 20
"""Largest zstd window accepted (what the tool's own `--long` needs): a frame may not claim
memory at will."""

ZSTD_INPUT_BYTES: Final = 1 << 10
"""Compressed bytes decoded at once: the most they can become (blocks of one repeated byte, four
bytes for 128 KiB) is 32 MiB."""

PIECE_BYTES: Final = 256 << 10
"""Read at once: large enough to hide the system call, small enough for any cache."""


class BrokenStream(Exception):
    """A compressed file ends early or is damaged."""


class Source(Protocol):
    """Bytes from some offset on. ``bytes_read`` counts what was read from the content."""

    bytes_read: int

    def read(self, size: int) -> bytes:
        """The next bytes, at most ``size``; b"" at the end."""
        ...

    def skip(self) -> int:
        """Length of the hole at the current place, which then is behind; 0 without one."""
        ...

    def head(self, size: int) -> bytes:
        """The first bytes of the content; the place stays."""
        ...

    def move(self, offset: int, before: int) -> bytes | None:
        """Go forward to ``offset``; the ``before`` bytes in front of it, None when the content
        is shorter."""
        ...

    def before(self, offset: int, size: int) -> bytes | None:
        """The ``size`` bytes in front of ``offset``; the place stays. None where going back is
        not possible."""
        ...

    def stat(self) -> os.stat_result:
        """Of the open file, which may have been replaced under its name since."""
        ...

    def close(self) -> None: ...


def open_source(path: str) -> "PlainSource | StreamSource":
    """The source of a file by the ending of its name. Raises OSError."""
    if path.endswith((".zst", ".gz")):
        return StreamSource(path)
    return PlainSource(path)


class PlainSource:
    """An uncompressed file. Owns the descriptor."""

    def __init__(self, path: str) -> None:
        # NONBLOCK: a FIFO in a session folder must not hang the reader.
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK
        self._fd = os.open(path, flags)
        self._at = 0
        self.bytes_read = 0

    def _pread(self, size: int, offset: int) -> bytes:
        data = os.pread(self._fd, size, offset)
        self.bytes_read += len(data)
        return data

    def read(self, size: int) -> bytes:
        data = self._pread(size, self._at)
        self._at += len(data)
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

    def head(self, size: int) -> bytes:
        return self._pread(size, 0)

    def move(self, offset: int, before: int) -> bytes | None:
        if os.fstat(self._fd).st_size < offset:
            return None
        self._at = offset
        return self.before(offset, before)

    def before(self, offset: int, size: int) -> bytes | None:
        size = min(size, offset)
        return self._pread(size, offset - size)

    def stat(self) -> os.stat_result:
        return os.fstat(self._fd)

    def close(self) -> None:
        os.close(self._fd)


class StreamSource:
    """A `.zst` or `.gz` file as the bytes it holds. Raises `BrokenStream` from every reading
    method when the file is damaged or cut."""

    def __init__(self, path: str) -> None:
        self._file = open(path, "rb", buffering=0)  # noqa: SIM115 - closed by close()
        self._stream: gzip.GzipFile | _Frames
        if path.endswith(".gz"):
            self._stream = gzip.GzipFile(fileobj=self._file)
        else:
            self._stream = _Frames(self._file)
        self._ahead = b""
        self._start = b""
        self.bytes_read = 0

    def read(self, size: int) -> bytes:
        if self._ahead:
            data, self._ahead = self._ahead[:size], self._ahead[size:]
            return data
        return self._next(size)

    def _next(self, size: int) -> bytes:
        try:
            data: bytes = self._stream.read(size)
        except (zstandard.ZstdError, zlib.error, EOFError, gzip.BadGzipFile) as error:
            raise BrokenStream(str(error)) from None
        self.bytes_read += len(data)
        return data

    def skip(self) -> int:
        return 0

    def head(self, size: int) -> bytes:
        while len(self._start) < size and self.bytes_read == len(self._start):
            data = self._next(size - len(self._start))
            if not data:
                break
            self._start += data
            self._ahead += data
        return self._start[:size]

    def move(self, offset: int, before: int) -> bytes | None:
        last, at = b"", 0
        while at < offset:
            data = self.read(min(PIECE_BYTES, offset - at))
            if not data:
                return None
            at += len(data)
            last = (last + data)[-before:]
        return last

    def before(self, offset: int, size: int) -> bytes | None:
        return None

    def stat(self) -> os.stat_result:
        return os.fstat(self._file.fileno())

    def close(self) -> None:
        self._stream.close()
        self._file.close()


class _Frames:
    """The content of zstd frames, one after the other, which knows when one is cut (zstandard's
    own reader just ends there)."""

    def __init__(self, file: io.FileIO) -> None:
        self._file = file
        self._frame: Any = None
        self._input = b""
        self._output = memoryview(b"")

    def read(self, size: int) -> bytes:
        while not self._output:
            if not self._input:
                self._input = self._file.read(ZSTD_INPUT_BYTES)
            if not self._input:
                if self._frame is not None:
                    raise EOFError("it ends within a frame")
                return b""
            if self._frame is None:
                decompressor = zstandard.ZstdDecompressor(max_window_size=WINDOW_BYTES)
                self._frame = decompressor.decompressobj()
            self._output = memoryview(self._frame.decompress(self._input))
            self._input = b""
            if self._frame.eof:
                self._input, self._frame = self._frame.unused_data, None
        data, self._output = bytes(self._output[:size]), self._output[size:]
        return data

    def close(self) -> None:
        self._frame = None
