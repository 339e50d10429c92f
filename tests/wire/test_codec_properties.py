"""The codec on all inputs: any split of a stream, any value, any damage."""

import itertools
import os
import random
import resource
import sys
import time
from typing import Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lore.wire import limits
from lore.wire.codec import (
    Codec,
    encode_error,
    encode_notification,
    encode_request,
    encode_response,
)
from lore.wire.framing import Framer
from lore.wire.messages import BadMessage, FramingError, Message, Notification, Request, Response

unhurried = settings(deadline=None)
"""On a busy machine a single example may take long."""

TEXT = st.text(max_size=40)  # Hypothesis never makes lone surrogates by default
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-limits.INTEGER_MAX, limits.INTEGER_MAX)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(TEXT, inner, max_size=20),
    max_leaves=30,
)
PARAMS = st.dictionaries(TEXT, VALUES, max_size=6)
IDS = st.integers(0, (1 << 32) - 1)
METHODS = st.text(min_size=1, max_size=20)

REQUESTS = st.builds(Request, IDS, METHODS, PARAMS)
NOTIFICATIONS = st.builds(Notification, METHODS, PARAMS)
RESPONSES = st.builds(Response, IDS, st.none(), VALUES) | st.builds(
    Response, IDS, st.builds(lambda text: [0, text], TEXT), st.none()
)


def encode(message: Message) -> bytes:
    if isinstance(message, Request):
        return encode_request(message.id, message.method, message.params)
    if isinstance(message, Notification):
        return encode_notification(message.method, message.params)
    assert isinstance(message, Response)
    if message.error is not None:
        return encode_error(message.id, message.error)
    return encode_response(message.id, message.result)


def outcome(role: str, pieces: list[bytes]) -> tuple[list[Message], str | None]:
    """All messages of a stream, and the reason if it failed."""
    codec, messages = Codec(role), []
    for piece in pieces:
        try:
            messages += codec.feed(piece)
        except FramingError as error:
            return messages + error.before, error.reason
    return messages, None


def cut(stream: bytes, places: list[int]) -> list[bytes]:
    marks = sorted({0, len(stream), *(place % (len(stream) + 1) for place in places)})
    return [stream[a:b] for a, b in itertools.pairwise(marks)]


@unhurried
@given(
    st.sampled_from(["daemon", "client"]),
    st.lists(REQUESTS | NOTIFICATIONS | RESPONSES, min_size=1, max_size=6),
    st.lists(st.integers(0, 1 << 20), max_size=12),
)
def test_any_split_gives_the_same_messages(
    role: str, messages: list[Message], places: list[int]
) -> None:
    stream = b"".join(map(encode, messages))
    assert outcome(role, cut(stream, places)) == (messages, None)


@unhurried
@given(st.lists(REQUESTS, min_size=1, max_size=3))
def test_byte_by_byte_gives_the_same_messages(messages: list[Message]) -> None:
    stream = b"".join(map(encode, messages))
    assert outcome("daemon", [bytes([byte]) for byte in stream]) == (messages, None)


@unhurried
@given(
    st.binary(max_size=60)
    | st.builds(
        lambda message, at, noise: encode(message)[:at] + noise + encode(message)[at:],
        REQUESTS,
        st.integers(0, 60),
        st.binary(min_size=1, max_size=8),
    ),
    st.lists(st.integers(0, 1 << 20), max_size=6),
)
def test_any_split_of_a_damaged_stream_gives_the_same_outcome(
    stream: bytes, places: list[int]
) -> None:
    assert outcome("daemon", cut(stream, places)) == outcome("daemon", [stream])


ANYTHING = st.recursive(
    SCALARS
    | st.binary(max_size=30)
    | st.integers(-(1 << 63), (1 << 64) - 1)
    | st.floats(width=32)
    | st.builds(msgpack.ExtType, st.integers(0, 127), st.binary(max_size=40))
    | st.builds(msgpack.Timestamp, st.integers(0, 1 << 34), st.integers(0, 999_999_999)),
    lambda inner: (
        st.lists(inner, max_size=17)
        | st.dictionaries(TEXT | st.integers(0, 99) | st.binary(max_size=4), inner, max_size=17)
    ),
    max_leaves=20,
)


def pack(value: Any, single: bool) -> bytes:
    try:
        return msgpack.packb(value, use_single_float=single)
    except OverflowError:  # too large for a single
        return msgpack.packb(value)


@unhurried
@given(st.lists(st.lists(ANYTHING, max_size=3), min_size=1, max_size=3), st.booleans())
def test_the_framer_ends_messages_where_msgpack_does(values: list[Any], single: bool) -> None:
    packed = [pack(value, single) for value in values]
    framer, whole = Framer(1 << 20, 10_000, 100_000, 100), []
    framer.feed(b"".join(packed), whole)
    assert whole == packed


@unhurried
@given(ANYTHING)
def test_a_request_is_taken_whole_or_refused_by_its_id(value: Any) -> None:
    (message,) = Codec("daemon").feed(msgpack.packb([0, 77, "f", [{"value": value}]]))
    assert isinstance(message, Request | BadMessage)
    assert message.id == 77


@pytest.mark.timeout(3600)
def test_mutated_frames_neither_crash_nor_hang_nor_grow() -> None:
    """Bit flips, cuts, splices and insertions; every outcome is messages or a FramingError."""
    frames = 1_000_000 if os.environ.get("LORE_FULL") else 20_000
    chance = random.Random(20260528)
    seeds = [
        encode_request(1, "ping", {}),
        encode_request(2, "remember_fact", {"text": "naïve " * 9, "tags": ["a", "b"], "n": 70000}),
        encode_request(3, "apply", {"ops": [{"op": "forget", "id": f"F{n}"} for n in range(30)]}),
        encode_notification("event", {"seq": 9, "x": [1.5, None, True, {"y": {"z": []}}]}),
        encode_response(4, {"facts": [{"id": "F1", "score": 0.5}] * 5}),
        msgpack.packb([0, 5, "f", [{"b": b"x" * 300, "e": msgpack.ExtType(1, b"y" * 70)}]]),
    ]
    slowest = 0.0
    before = 0
    for number in range(frames):
        if number == frames // 10:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        data = bytearray(chance.choice(seeds) + chance.choice(seeds))
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(data))
            match chance.randrange(5):
                case 0:
                    data[at] ^= 1 << chance.randrange(8)
                case 1:
                    data[at] = chance.choice(
                        b"\xc1\xc4\xc6\xc7\xc9\xd4\xd9\xdb\xdc\xdd\xde\xdf\xff"
                    )
                case 2:
                    del data[at : at + chance.randint(1, 9)]
                case 3:
                    data[at:at] = chance.randbytes(chance.randint(1, 9))
                case 4:
                    other = chance.choice(seeds)
                    data[at:] = other[chance.randrange(len(other)) :]
            data = data or bytearray(b"\x90")
        began = time.perf_counter()
        outcome("daemon", [bytes(data)])
        outcome("client", [bytes(data)])
        slowest = max(slowest, time.perf_counter() - began)
    growth = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    unit = 1 if sys.platform == "darwin" else 1024
    assert growth * unit < 16 << 20
    assert slowest < 2.0
