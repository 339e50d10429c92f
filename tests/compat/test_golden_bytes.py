"""Bytes of protocol 1 as they were first sent: read and written the same for ever."""

from typing import Any

import pytest

from lore.wire import fault
from lore.wire.codec import (
    Codec,
    encode_error,
    encode_notification,
    encode_request,
    encode_response,
)
from lore.wire.messages import Message, Notification, Request, Response
from lore.wire.methods import BY_NAME

from . import write_golden

GOLDEN = write_golden.load()


def as_message(value: list[Any]) -> Message:
    match value:
        case [0, number, method, [] | [[]]]:
            return Request(number, method, {})
        case [0, number, method, [params]]:
            return Request(number, method, params)
        case [1, number, error, result]:
            return Response(number, error, result)
        case [2, method, [params]]:
            return Notification(method, params)
    raise AssertionError(value)


@pytest.mark.parametrize("line", GOLDEN, ids=lambda line: line["name"])
def test_golden_bytes_are_read_as_ever(line: dict[str, Any]) -> None:
    raw = bytes.fromhex(line["hex"])
    for role in ("daemon", "client"):
        assert Codec(role).feed(raw) == [as_message(line["message"])]


@pytest.mark.parametrize("line", GOLDEN, ids=lambda line: line["name"])
def test_golden_bytes_are_written_as_ever(line: dict[str, Any]) -> None:
    message = as_message(line["message"])
    if isinstance(message, Request):
        if line["message"][3] in ([], [[]]):
            pytest.skip("a spelling of other clients")
        data = encode_request(message.id, message.method, message.params)
    elif isinstance(message, Notification):
        data = encode_notification(message.method, message.params)
    else:
        assert isinstance(message, Response)
        if message.error is None:
            data = encode_response(message.id, message.result)
        else:
            data = encode_error(message.id, message.error)
    assert data.hex() == line["hex"]


@pytest.mark.parametrize(
    "line", [one for one in GOLDEN if one["message"][0] == 0], ids=lambda line: line["name"]
)
def test_what_old_clients_send_is_still_known(line: dict[str, Any]) -> None:
    request = as_message(line["message"])
    assert isinstance(request, Request)
    method = BY_NAME[request.method]
    known = {name for param in method.params for name in (param.name, *param.aliases)}
    assert set(request.params) <= known
    assert {param.name for param in method.params if param.required} <= set(request.params) | (
        set() if request.params else {param.name for param in method.params}
    )


@pytest.mark.parametrize(
    "line",
    [one for one in GOLDEN if one["name"].startswith("error ")],
    ids=lambda line: line["name"],
)
def test_old_errors_keep_their_type(line: dict[str, Any]) -> None:
    code = line["name"].split()[1]
    error = fault.from_wire(line["message"][2])
    assert error.code == code
    assert error.message == "fact F9: not in this workspace"


def test_every_method_and_message_has_golden_bytes() -> None:
    missing = set(write_golden.messages()) - {line["name"] for line in GOLDEN}
    assert not missing, "run python tests/compat/write_golden.py"


def test_names_are_unique() -> None:
    names = [line["name"] for line in GOLDEN]
    assert len(set(names)) == len(names)
