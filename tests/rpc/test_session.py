"""Greeting, error forms, parameters, order: one conversation with a real daemon."""

import pytest

from lore.wire import limits
from lore.wire.methods import METHODS
from lored import __version__
from lored.rpc import handlers
from support.daemon import RunningDaemon
from support.wire import Hangup, RawClient, Refusal


def test_every_method_has_a_handler_and_no_other() -> None:
    assert set(handlers.load()) == {method.name for method in METHODS}


def test_hello_settles_protocol_limits_and_revision(daemon: RunningDaemon) -> None:
    with daemon.connect() as client:
        answer = client.hello(protocol=[1, 7])
        assert answer["protocol"] == limits.PROTOCOL_MAX
        assert answer["version"] == __version__
        assert answer["limits"]["request_bytes"] == limits.REQUEST_BYTES
        uuid, _, number = answer["revision"].partition(":")
        assert len(uuid) == 32 and number.isdecimal()
        with daemon.connect() as other:
            assert other.hello()["instance"] == answer["instance"]


@pytest.mark.parametrize(
    ("protocol", "code", "words"),
    [
        ([8, 9], "incompatible", "upgrade the daemon"),
        ([-1, 0], "incompatible", "upgrade test"),
        ([2, 1], "invalid", "[min, max]"),
        ("1", "invalid", "[min, max]"),
        ([1], "invalid", "[min, max]"),
        ([True, 1], "invalid", "[min, max]"),
    ],
)
def test_protocols_that_do_not_fit(
    daemon: RunningDaemon, protocol: object, code: str, words: str
) -> None:
    with daemon.connect() as client:
        with pytest.raises(Refusal) as refusal:
            client.hello(protocol=protocol, errors="map")
        # Nothing was settled, so the form is still that of a bare client.
        assert refusal.value.wire[0] == (1 if code == "invalid" else 0)
        assert refusal.value.wire[1].startswith(f"{code}: ") and words in refusal.value.wire[1]
        assert client.hello()["protocol"] == 1  # and it may try again


def test_hello_is_said_once(client: RawClient) -> None:
    with pytest.raises(Refusal) as refusal:
        client.hello()
    assert refusal.value.code == "conflict"


def test_a_bare_client_gets_pairs_and_answers_in_order(odd: RunningDaemon) -> None:
    with odd.connect() as client:
        assert client.call("ping") == {"pong": True, "version": __version__, "protocol": 1}
        with pytest.raises(Refusal) as refusal:
            client.call("test.fail", kind="x")
        assert refusal.value.wire == [0, "not_found: nothing of that name"]
        slow = client.send("test.sleep", seconds=0.1)
        ids = [client.send("ping") for _ in range(20)]
        client.wait(ids[-1])
        assert client.order[-21:] == [slow, *ids]


def test_unordered_and_ordered_clients(odd: RunningDaemon) -> None:
    with odd.connect() as client:
        client.hello()
        slow, quick = client.send("test.sleep", seconds=0.2), client.send("ping")
        client.wait(slow)
        assert client.order[-2:] == [quick, slow]
    with odd.connect() as client:
        client.hello(ordered=True)
        slow, quick = client.send("test.sleep", seconds=0.2), client.send("ping")
        client.wait(quick)
        assert client.order[-2:] == [slow, quick]


def test_calls_behind_hello_see_what_it_settled(odd: RunningDaemon) -> None:
    with odd.connect() as client:
        client.send(
            "hello",
            client="me",
            version="1.0",
            protocol=[1, 1],
            errors="map",
            workspace="/tmp",
            session_id="s",
        )
        later = client.wait(client.send("test.echo"))
        assert (later["client"], later["workspace"], later["session_id"]) == ("me", "/tmp", "s")
        with pytest.raises(Refusal) as refusal:
            client.call("test.fail", kind="x")
        assert refusal.value.wire == {
            "code": "not_found",
            "message": "nothing of that name",
            "retryable": False,
            "data": {"name": "x"},
        }


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"nmae": "x"}, "did you mean name"),
        ({"zzzzzz": 1}, "it takes name, choice"),
        ({"choice": "c"}, "one of a, b"),
        ({"name": 1}, "name must be text"),
        ({"number": 1.5}, "number must be an integer"),
        ({"number": True}, "number must be an integer"),
        ({"ratio": "1"}, "ratio must be a number"),
        ({"flag": 1}, "flag must be true or false"),
        ({"many": [1]}, "many must be a list of texts"),
        ({"many": {"a": "b"}}, "many must be a list of texts"),
        ({"map": []}, "map must be a map"),
        ({"ops": [1]}, "ops must be text or a list of maps"),
        ({"when": 5}, "when must be a date"),
        ({"name": "x", "alias": "y"}, "name is given twice"),
    ],
)
def test_wrong_parameters_are_named(
    shared_odd_client: RawClient, params: dict[str, object], words: str
) -> None:
    with pytest.raises(Refusal) as refusal:
        shared_odd_client.call("test.echo", **params)
    assert refusal.value.code == "invalid"
    assert words in refusal.value.wire["message"]


def test_right_parameters_arrive_under_their_names(shared_odd_client: RawClient) -> None:
    given = {
        "alias": "ü",
        "choice": "b",
        "number": -3,
        "ratio": 2,
        "flag": False,
        "many": "one",
        "map": {"k": [1]},
        "ops": [{"op": "x"}],
        "when": "yesterday",
        "free": [1, {"a": None}],
    }
    answer = shared_odd_client.call("test.echo", **given)["params"]
    assert answer["name"] == "ü" and "alias" not in answer
    assert answer["many"] == ["one"]
    assert answer["ops"] == [{"op": "x"}] and answer["when"] == "yesterday"
    assert shared_odd_client.call("test.echo", name=None)["params"] == {}


def test_a_missing_parameter_and_an_unknown_method(shared_odd_client: RawClient) -> None:
    with pytest.raises(Refusal, match="seconds is missing"):
        shared_odd_client.call("test.sleep")
    with pytest.raises(Refusal, match="did you mean recall_fact"):
        shared_odd_client.call("recall_fcat", query="x")


def test_absent_values_have_no_key(shared_odd_client: RawClient) -> None:
    assert shared_odd_client.call("test.nothing") == {"kept": {"list": [{"one": 1}]}}


def test_request_ids_differ(shared_odd_client: RawClient) -> None:
    ids = {shared_odd_client.call("test.echo")["request_id"] for _ in range(5)}
    assert len(ids) == 5


def test_a_defect_tells_only_where_to_look(odd: RunningDaemon, odd_client: RawClient) -> None:
    with pytest.raises(Refusal) as refusal:
        odd_client.call("test.fail", kind="defect", name="hunter2")
    assert refusal.value.code == "internal"
    request_id = refusal.value.wire["data"]["request_id"]
    assert "hunter2" not in str(refusal.value.wire) and "Traceback" not in str(refusal.value.wire)
    log = odd.log()
    line = next(line for line in log.splitlines() if " defect " in line)
    assert request_id in line and "ValueError" in line and "odd_daemon.py" in line
    assert "hunter2" not in log
    with pytest.raises(Refusal) as refusal:
        odd_client.call("test.fail", kind="result")
    assert refusal.value.code == "internal"
    assert odd_client.call("ping")["pong"]


@pytest.mark.parametrize(
    ("kind", "words", "mode"),
    [
        ("full", "free space", "disk_full"),
        ("readonly", "writable", "read_only"),
        ("files", "LimitNOFILE", "no_files"),
    ],
)
def test_faults_of_the_machine_name_the_remedy_and_stay_in_status(
    shared_odd_client: RawClient, kind: str, words: str, mode: str
) -> None:
    with pytest.raises(Refusal) as refusal:
        shared_odd_client.call("test.fail", kind=kind)
    assert refusal.value.code == "unavailable" and refusal.value.wire["retryable"]
    assert words in refusal.value.wire["message"]
    degraded = shared_odd_client.call("status")["degraded"]
    assert any(one["name"] == mode and words in one["remedy"] for one in degraded)


def test_notifications_are_done_and_not_answered(shared_odd_client: RawClient) -> None:
    client = shared_odd_client
    client.notify("test.sleep", seconds=0, name="noted")
    client.notify("no.such.method")
    client.call("ping")
    while "ended noted" not in client.call("test.seen")["log"]:
        pass
    assert sorted(client.order) == list(range(1, client.last_id + 1))  # one answer a request


def test_text_that_is_not_utf8_costs_one_request(shared_odd_client: RawClient) -> None:
    client = shared_odd_client
    latin = b"\x94\x00\xcd\x7f\xff\xa9test.echo\x91\x81\xa4name\xa3\xe9t\xe9"
    client.sock.sendall(latin)
    with pytest.raises(Refusal) as refusal:
        client.wait(0x7FFF)
    assert refusal.value.code == "invalid" and "UTF-8" in refusal.value.wire["message"]
    assert client.call("ping")["pong"]


def test_drain_is_for_clients_that_are_not_older(daemon: RunningDaemon) -> None:
    with daemon.connect() as bare, pytest.raises(Refusal, match="hello"):
        bare.call("drain")
    for version in ("0.0.9", "", "x"):
        with daemon.connect() as old:
            old.hello(version=version)
            with pytest.raises(Refusal) as refusal:
                old.call("drain")
            assert refusal.value.code == "incompatible"
            assert old.call("ping")["pong"]


def test_the_same_id_twice_at_once_is_a_hangup(odd: RunningDaemon) -> None:
    with odd.connect() as client:
        client.hello()
        client.send("test.sleep", seconds=0.4)
        client.last_id -= 1
        with pytest.raises((Hangup, BrokenPipeError)):
            client.send("test.sleep", seconds=0.4)
            client.call("ping")
