"""Errors cross the wire in both forms and come back typed."""

import msgpack
import pytest

from lore import errors
from lore.wire import fault


@pytest.mark.parametrize("code", sorted(errors.BY_CODE))
def test_both_forms_come_back(code: str) -> None:
    sent = errors.from_code(code, "fact F9: not in workspace", {"id": "F9"})
    kind = 1 if code == "invalid" else 0
    assert fault.to_wire(sent) == [kind, f"{code}: fact F9: not in workspace"]
    for form in ("pair", "map"):
        wire = msgpack.unpackb(msgpack.packb(fault.to_wire(sent, form)))
        back = fault.from_wire(wire)
        assert type(back) is type(sent)
        assert (back.message, back.retryable) == (sent.message, sent.retryable)
        assert back.data == (sent.data if form == "map" else {})


def test_the_map_says_whether_to_retry() -> None:
    busy = errors.Unavailable("the disk is full; free some space")
    busy.retryable = False
    wire = fault.to_wire(busy, "map")
    assert wire == {"code": "unavailable", "message": busy.message, "retryable": False}
    assert fault.from_wire(wire).retryable is False
    assert errors.Unavailable("x").retryable is True


@pytest.mark.parametrize(
    ("wire", "message"),
    [
        ("plain text", "plain text"),
        ([0, "from_the_future: text"], "from_the_future: text"),
        ([0, "no code"], "no code"),
        ([1001, b"x"], "unknown error form: [1001, b'x']"),
        (17, "unknown error form: 17"),
        ({"code": "from_the_future", "message": "m"}, "m"),
        ({}, "None"),
    ],
)
def test_unknown_forms_are_defects_with_their_text(wire: object, message: str) -> None:
    error = fault.from_wire(wire)
    assert type(error) is errors.Internal
    assert error.message == message


def test_an_unknown_code_is_kept() -> None:
    error = fault.from_wire({"code": "from_the_future", "message": "m", "data": {"a": 1}})
    assert error.data == {"a": 1, "code": "from_the_future"}


def test_a_message_with_a_file_name_that_is_not_text_can_be_sent() -> None:
    wire = fault.to_wire(errors.NotFound("no file caf\udce9"), "map")
    assert msgpack.unpackb(msgpack.packb(wire))["message"] == "no file caf?"
