"""Where a message ends: a scan of MessagePack headers that decodes nothing.

The scan walks from header to header and skips what lies between, so that a message costs a
step for each value in it, whatever its bytes. It knows the end of a message before anything
is decoded, which gives three things that a streaming decoder does not: a decode error is an
error of one message and never of the stream; depth, entries and number of values are bounded
before memory is spent on them (3 KB of nested array headers make msgpack's decoder reserve
67 MB, 1 MiB of empty arrays keeps it busy for 0.5 s); and the quadratic buffering of its
Python version is avoided.
"""

from lore.wire.messages import FramingError

_HEADER_SIZES = {
    0xC4: 2, 0xC5: 3, 0xC6: 5,  # bin 8, 16, 32
    0xC7: 2, 0xC8: 3, 0xC9: 5,  # ext 8, 16, 32: one more byte for the type
    0xD9: 2, 0xDA: 3, 0xDB: 5,  # str 8, 16, 32
    0xDC: 3, 0xDD: 5,  # array 16, 32
    0xDE: 3, 0xDF: 5,  # map 16, 32
}  # fmt: skip
"""Bytes of a header that carries a length, by its first byte (MessagePack specification)."""

_FIXED_SIZES = {
    0xC0: 1, 0xC2: 1, 0xC3: 1,  # nil, false, true
    0xCA: 5, 0xCB: 9,  # float 32, 64
    0xCC: 2, 0xCD: 3, 0xCE: 5, 0xCF: 9,  # uint 8, 16, 32, 64
    0xD0: 2, 0xD1: 3, 0xD2: 5, 0xD3: 9,  # int 8, 16, 32, 64
    0xD4: 3, 0xD5: 4, 0xD6: 6, 0xD7: 10, 0xD8: 18,  # fixext 1, 2, 4, 8, 16
}  # fmt: skip

_CONTAINER, _LENGTH, _NEVER = 0, -1, -2

_ARRAYS = frozenset((*range(0x90, 0xA0), 0xDC, 0xDD))
"""First bytes of an array: every message is one."""


def _classify(first: int) -> int:
    """The size of a value with this first byte, or how its size is found."""
    if first < 0x80 or first >= 0xE0:
        return 1  # fixint
    if first < 0xA0 or first >= 0xDC:
        return _CONTAINER
    if first < 0xC0:
        return 1 + (first & 0x1F)  # fixstr
    if first in _FIXED_SIZES:
        return _FIXED_SIZES[first]
    return _LENGTH if first in _HEADER_SIZES else _NEVER


_SIZES = tuple(map(_classify, range(256)))


class Framer:
    """Cuts a stream into whole messages, as bytes.

    Limits of one message: `size` in bytes, `entries` of one array or map, `values` in all,
    `depth` of containers. Between pieces `_next` is where the next header stands, which may
    lie beyond what has arrived; `_open` holds, for each open container from the outside in,
    how many values it still wants; `_seen` counts values; `_done` says that only bytes of the
    last value are missing.
    """

    __slots__ = (
        "_buffer",
        "_depth",
        "_done",
        "_entries",
        "_next",
        "_open",
        "_seen",
        "_size",
        "_values",
    )

    def __init__(self, size: int, entries: int, values: int, depth: int) -> None:
        self._size, self._entries, self._values, self._depth = size, entries, values, depth
        self._buffer = bytearray()
        self._open: list[int] = []
        self._next = self._seen = 0
        self._done = False

    def feed(self, piece: "bytes | bytearray | memoryview", whole: list[bytes]) -> None:
        """Take the next bytes of the stream; append the messages they complete to `whole`.

        Raises `FramingError` for a message beyond a limit, a value that is no array, and the
        one byte that MessagePack never uses. The framer must not be used after that.
        """
        if self._buffer:
            self._buffer += piece
            buffer: bytes | bytearray = self._buffer
        else:
            buffer = bytes(piece)  # most messages come in one piece and are cut from it
        start = 0
        try:
            while self._scan(buffer, start):
                stop = self._next
                whole.append(bytes(buffer[start:stop]))
                start, self._seen, self._done = stop, 0, False
        finally:
            self._next -= start
            if buffer is self._buffer:
                del self._buffer[:start]
            elif start < len(buffer):
                self._buffer += buffer[start:]

    def beginning(self) -> bytes:
        """The first bytes of the message that is not complete, enough for its id."""
        return bytes(self._buffer[:32])

    def _scan(self, buffer: "bytes | bytearray", start: int) -> bool:
        """Go on over the message that begins at `start`; True when it is whole."""
        opened, seen, at, done = self._open, self._seen, self._next, self._done
        end, sizes = len(buffer), _SIZES
        while at < end and not done:
            first = buffer[at]
            size = sizes[first]
            if at == start and first not in _ARRAYS:
                raise FramingError("not a message: expected an array [type, ...]")
            if size > 0:
                at += size
            elif size == _CONTAINER:
                if first < 0xA0:
                    wanted = first & 0x0F
                    at += 1
                else:
                    head = _HEADER_SIZES[first]
                    if at + head > end:
                        break
                    wanted = int.from_bytes(buffer[at + 1 : at + head])
                    if wanted > self._entries:
                        raise FramingError(f"more than {self._entries} entries", "limit")
                    at += head
                if len(opened) >= self._depth:
                    raise FramingError(f"nested deeper than {self._depth} levels", "limit")
                if wanted:
                    opened.append(wanted * 2 if first < 0x90 or first >= 0xDE else wanted)
                    seen += 1
                    continue
            elif size == _LENGTH:
                head = _HEADER_SIZES[first]
                if at + head > end:
                    break
                at += head + int.from_bytes(buffer[at + 1 : at + head])
                if 0xC7 <= first <= 0xC9:
                    at += 1
            else:
                raise FramingError("byte 0xc1 is not MessagePack")
            seen += 1
            if seen > self._values:
                raise FramingError(f"more than {self._values} values", "limit")
            if at - start > self._size:
                raise FramingError(f"message larger than {self._size} bytes", "limit")
            while opened:
                opened[-1] -= 1
                if opened[-1]:
                    break
                opened.pop()
            done = not opened
        self._seen, self._next, self._done = seen, at, done
        return done and at <= end
