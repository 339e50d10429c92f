"""Frames between the daemon and its model process: four bytes of length, then MessagePack.

Request: {id, lane (`query` or `bulk`), kind (`embed` or `tokens`), texts}. Answer: {id,
vectors: bytes of float32 rows, rows: [tokens per text] for `tokens`} or {id, error}.
"""

import struct
from typing import Any, BinaryIO, Final

import msgpack

LENGTH: Final = struct.Struct("<I")

FRAME_BYTES: Final = 64 << 20
"""Most of one frame: 64 texts of 256 tokens as float32[384] are 25 MB."""


def pack(message: dict[str, Any]) -> bytes:
    """A message as a frame."""
    body: bytes = msgpack.packb(message)
    return LENGTH.pack(len(body)) + body


def unpack(body: bytes) -> dict[str, Any]:
    """The message of a frame's body."""
    message: dict[str, Any] = msgpack.unpackb(body)
    return message


def read(stream: BinaryIO) -> dict[str, Any] | None:
    """The next message of a blocking stream, None at its end."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    body = stream.read(length)
    return unpack(body) if len(body) == length else None
