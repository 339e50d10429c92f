"""How long texts lie in the sessions store: as text, or as one zstd frame when that is smaller.

Pure. The worker encodes, readers decode; nothing else looks inside a stored value. A value
of SQLite type TEXT is the text, a BLOB is a zstd frame with its content size in the header.
"""

import threading
from typing import Final

import zstandard

SMALLEST: Final = 256
"""Characters from which compression is tried: below, a frame's overhead eats what it saves."""

LEVEL: Final = 3
"""Twice as fast as 6 for 2 % more bytes on transcripts."""


class _Codec(threading.local):
    """zstandard's objects serve one thread at a time."""

    def __init__(self) -> None:
        self.compress = zstandard.ZstdCompressor(level=LEVEL, write_checksum=False).compress
        self.decompress = zstandard.ZstdDecompressor().decompress


_CODEC: Final = _Codec()


def encode(text: str) -> str | bytes:
    """``text`` in its stored form. The text must be clean UTF-8 (no lone surrogates)."""
    if len(text) < SMALLEST:
        return text
    raw = text.encode()
    packed = _CODEC.compress(raw)
    return packed if len(packed) < len(raw) else text


def decode(value: str | bytes) -> str:
    """The text of a stored value. Raises `zstandard.ZstdError` when the frame is damaged."""
    return value if isinstance(value, str) else _CODEC.decompress(value).decode()
