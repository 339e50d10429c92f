"""Frames between daemon and worker: four bytes of length, then one MessagePack value.

Both ends are ours, so a frame that breaks the rules is a defect or a dying peer: the worker
is then replaced. Bytes stay bytes (keys, vectors, compressed texts).
"""

import struct
from typing import Any, BinaryIO, Final

import msgpack

FRAME_BYTES: Final = 32 << 20
"""Largest frame. A batch is cut at `BATCH_BYTES` of text; one record may hold 64,000
characters in four forms, and the state of a parser some hundred KB."""

_LENGTH: Final = struct.Struct(">I")


class BrokenFrame(Exception):
    """The peer sent something that is no frame, or ended within one."""


def encode(value: Any) -> bytes:
    """``value`` as one frame. Raises `BrokenFrame` when it is larger than `FRAME_BYTES`."""
    body: bytes = msgpack.packb(value, use_bin_type=True)
    if len(body) > FRAME_BYTES:
        raise BrokenFrame(f"a frame of {len(body)} bytes is larger than {FRAME_BYTES}")
    return _LENGTH.pack(len(body)) + body


def decode(body: bytes) -> Any:
    """The value of a frame's body."""
    try:
        return msgpack.unpackb(body, raw=False, strict_map_key=False)
    except (ValueError, msgpack.UnpackException) as error:
        raise BrokenFrame(str(error)) from None


def length(head: bytes) -> int:
    """Size of the body after the four bytes ``head``."""
    (size,) = _LENGTH.unpack(head)
    if size > FRAME_BYTES:
        raise BrokenFrame(f"a frame claims {size} bytes")
    return int(size)


def read(stream: BinaryIO) -> Any | None:
    """The next value of a blocking stream, None at its end."""
    head = stream.read(_LENGTH.size)
    if not head:
        return None
    if len(head) < _LENGTH.size:
        raise BrokenFrame("ended within a frame")
    size = length(head)
    body = stream.read(size)
    if len(body) < size:
        raise BrokenFrame("ended within a frame")
    return decode(body)
