"""The codec by example: what is a message, what is refused, what ends the stream."""

import re

import msgpack
import pytest

from lore import errors
from lore.wire import limits
from lore.wire.codec import (
    Codec,
    encode_error,
    encode_notification,
    encode_request,
    encode_response,
)
from lore.wire.messages import BadMessage, FramingError, Notification, Request, Response


def read(data: bytes, role: str = "daemon") -> object:
    (message,) = Codec(role).feed(data)
    return message


def read_value(value: object) -> object:
    return read(msgpack.packb(value))


def test_the_three_messages() -> None:
    params = {"text": "naïve ✓", "n": 3, "x": 0.5, "on": True, "tags": ["a"], "none": None}
    assert read(encode_request(7, "remember_fact", params)) == Request(7, "remember_fact", params)
    assert read(encode_notification("event", {"seq": 1})) == Notification("event", {"seq": 1})
    assert read(encode_response(7, {"ok": True}), "client") == Response(7, None, {"ok": True})
    error = [1, "invalid: no"]
    assert read(encode_error(7, error), "client") == Response(7, error, None)


@pytest.mark.parametrize("params", [[], [[]], [{}]])
def test_no_parameters_in_all_their_spellings(params: object) -> None:
    assert read_value([0, 0, "ping", params]) == Request(0, "ping", {})


@pytest.mark.parametrize(
    ("value", "answered", "reason"),
    [
        ([0, 5, b"ping", []], 5, "method name"),
        ([0, 5, 3, []], 5, "method name"),
        ([0, 5, "ping", {}], 5, "array with one map"),
        ([0, 5, "ping", [1]], 5, "array with one map"),
        ([0, 5, "ping", [{}, {}]], 5, "array with one map"),
        ([0, 5, "ping"], 5, "4 elements"),
        ([0, 5, "ping", [], 1], 5, "4 elements"),
        ([0], None, "4 elements"),
        ([0, -1, "ping", []], None, "message id"),
        ([0, 1 << 32, "ping", []], None, "message id"),
        ([0, "5", "ping", []], None, "message id"),
        ([0, True, "ping", []], None, "message id"),
        ([2, "event"], None, "3 elements"),
        ([2, 1, []], None, "method name"),
        ([1, 5, None], None, "4 elements"),
        ([0, 5, "f", [{"a": {1: 2}}]], 5, "map key of type int"),
        ([0, 5, "f", [{"a": {b"k": 2}}]], 5, "map key of type bytes"),
        ([0, 5, "f", [{"a": 1 << 53}]], 5, "2\\^53"),
        ([0, 5, "f", [{"a": -(1 << 53)}]], 5, "2\\^53"),
        ([0, 5, "f", [{"a": float("nan")}]], 5, "finite"),
        ([0, 5, "f", [{"a": float("-inf")}]], 5, "finite"),
        ([0, 5, "f", [{"a": b"raw"}]], 5, "binary"),
        ([0, 5, "f", [{"a": msgpack.ExtType(5, b"x")}]], 5, "ExtType"),
        ([0, 5, "f", [{"a": msgpack.Timestamp(1)}]], 5, "Timestamp"),
    ],
)
def test_one_message_is_refused_and_the_stream_goes_on(
    value: object, answered: int | None, reason: str
) -> None:
    codec = Codec("daemon")
    bad, good = codec.feed(msgpack.packb(value) + encode_request(6, "ping", {}))
    assert isinstance(bad, BadMessage)
    assert bad.id == answered
    assert re.search(reason, bad.reason), bad.reason
    assert good == Request(6, "ping", {})


@pytest.mark.parametrize(
    "data",
    [
        b"\x94\x00\x05\xa1f\x91\x81\xa1a\xa4caf\xe9",  # Latin-1, as Vim sends it
        b"\x94\x00\x05\xa4caf\xe9\x90",
        b"\x94\x00\x05\xa1f\x91\x81\xa4caf\xe9\x01",
        b"\x94\x00\x05\xa1f\x91\x81\xa1a\xa3\xed\xa0\x80",  # a lone surrogate
    ],
)
def test_text_that_is_not_utf8_refuses_that_request_only(data: bytes) -> None:
    codec = Codec("daemon")
    assert codec.feed(data + encode_request(6, "ping", {})) == [
        BadMessage(5, "text is not valid UTF-8"),
        Request(6, "ping", {}),
    ]


@pytest.mark.parametrize(
    "data",
    [
        b"\x94\x00\x05\xa1f\x91\x81\xc0\x01",  # nil as a key
        b"\x94\x00\x05\xa1f\x91\x81\x90\x01",  # an array as a key
        b"\x94\x00\x05\xa1f\x91\x81\xa1a\xc7\x03\xff\x01\x02\x03",  # a timestamp of 3 bytes
        b"\x94\x00\x05\xa1f\x91\x81\xa1a\xc7\x0c\xff\xff\xff\xff\xff" + b"\xff" * 8,
    ],
)
def test_what_cannot_be_decoded_refuses_that_request_only(data: bytes) -> None:
    bad, good = Codec("daemon").feed(data + encode_request(6, "ping", {}))
    assert isinstance(bad, BadMessage)
    assert bad.id == 5
    assert good == Request(6, "ping", {})


@pytest.mark.parametrize(
    "data",
    [
        b"\xc1",
        b"\x05",
        b"GET / HTTP/1.1\r\n",
        b"{}",
        b"\x80",
        b"\x90",
        b"\x91\x03",
        b"\x91\xa1x",
        b"\x94\x00\x05\xc1",
    ],
)
def test_what_is_no_message_ends_the_stream(data: bytes) -> None:
    codec = Codec("daemon")
    good = encode_request(6, "ping", {})
    with pytest.raises(FramingError) as caught:
        codec.feed(good + data)
    assert caught.value.before == [Request(6, "ping", {})]
    assert caught.value.code == "invalid"
    with pytest.raises(FramingError):
        codec.feed(good)


def nested(levels: int) -> bytes:
    """A request whose message array, parameter array and map begin ``levels`` levels."""
    inside = levels - 3
    return b"\x94\x00\x05\xa1f\x91\x81\xa1a" + b"\x91" * (inside - 1) + b"\x90"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (nested(limits.DEPTH + 1), "nested deeper than 32"),
        (b"\x94\x00\x05\xa1f" + b"\xdd\x00\x00\x27\x10" * 600, "nested deeper"),
        (b"\x94\x00\x05\xa1f\xdc\x27\x11", "10000 entries"),
        (b"\x94\x00\x05\xa1f\xdd\xff\xff\xff\xff", "10000 entries"),
        (b"\x94\x00\x05\xa1f\xdf\xff\xff\xff\xff", "10000 entries"),
        (b"\x94\x00\x05\xa1f\x91\x81\xa1a\xdb\xff\xff\xff\xff", "1048576 bytes"),
        (b"\x94\x00\x05\xa1f\x91\x81\xa1a\xc6\x7f\xff\xff\xff", "1048576 bytes"),
        (b"\x94\x00\x05\xa1f\x91\x81\xa1a\xc9\x7f\xff\xff\xff\x01", "1048576 bytes"),
        (b"\x94\x00\x05\xa1f\x9f" + (b"\xdc\x27\x10" + b"\x90" * 10000) * 11, "100000 values"),
    ],
)
def test_limits_end_the_stream_and_tell_the_asker(data: bytes, reason: str) -> None:
    with pytest.raises(FramingError, match=reason) as caught:
        Codec("daemon").feed(data)
    assert (caught.value.code, caught.value.request_id) == ("limit", 5)


def test_the_largest_request_passes_and_one_byte_more_does_not() -> None:
    room = limits.REQUEST_BYTES - len(encode_request(1, "f", {"a": "x" * 70000})) + 70000
    data = encode_request(1, "f", {"a": "x" * room})
    assert len(data) == limits.REQUEST_BYTES
    assert len(Codec("daemon").feed(data * 3)) == 3
    assert isinstance(read(nested(limits.DEPTH)), Request)
    with pytest.raises(errors.Limit):
        encode_request(1, "f", {"a": "x" * (room + 1)})
    with pytest.raises(FramingError, match="larger"):
        Codec("daemon").feed(msgpack.packb([0, 1, "f", [{"a": "x" * (room + 1)}]]))


def test_responses_may_be_larger_than_requests() -> None:
    result = {"text": "x" * (limits.RESPONSE_BYTES - 100)}
    assert read(encode_response(1, result), "client") == Response(1, None, result)
    many = {"rows": list(range(20_000))}
    assert read(encode_response(1, many), "client") == Response(1, None, many)
    with pytest.raises(errors.Limit, match="8388608"):
        encode_response(1, {"text": "x" * limits.RESPONSE_BYTES})


def deep(levels: int) -> object:
    value: object = []
    for _ in range(levels - 1):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [b"x", 1 << 53, float("inf"), {1: 2}, {b"k": 1}, {1, 2}, object(), "\udc80", {"\ud800": 1}],
)
def test_the_encoder_refuses_what_the_decoder_would(value: object) -> None:
    for encode in (
        lambda: encode_response(1, {"a": value}),
        lambda: encode_request(1, "f", {"a": [value]}),
        lambda: encode_notification("event", {"a": value}),
        lambda: encode_error(1, {"data": value}),
    ):
        with pytest.raises(errors.Invalid, match="cannot be sent"):
            encode()


def test_depth_is_the_same_on_both_sides() -> None:
    deepest = {"a": deep(limits.DEPTH - 3)}
    assert isinstance(read(encode_request(1, "f", deepest)), Request)
    with pytest.raises(errors.Invalid, match="nested"):
        encode_request(1, "f", {"a": deep(limits.DEPTH - 2)})
    result = {"a": deep(limits.DEPTH - 2)}
    assert read(encode_response(1, result), "client") == Response(1, None, result)
    with pytest.raises(errors.Invalid, match="nested"):
        encode_response(1, {"a": deep(limits.DEPTH - 1)})


def test_messages_print_and_compare_by_content() -> None:
    assert repr(Request(1, "ping", {})) == "Request(id=1, method='ping', params={})"
    assert Request(1, "ping", {}) != Request(2, "ping", {})
    assert Request(1, "ping", {}) != BadMessage(1, "ping")
    assert len({Response(1, None, {}), Response(1, None, {})}) == 1


def test_an_unknown_role_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="daemon or client"):
        Codec("server")
