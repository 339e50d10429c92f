"""The blocking client against a daemon that fails at chosen moments."""

import os
import threading
import time
from typing import Any

import pytest

from lore import Client, errors
from lore.paths import Paths
from lore.policy import EVENTS_WAITING, EventQueue
from lore.wire.messages import Notification

from .conftest import HangUp, Silence, TinyDaemon


def once(action: type[Exception], then: object) -> Any:
    """A script that fails the first time and answers `then` afterwards."""
    calls: list[int] = []

    def script(peer: object, params: dict[str, Any]) -> object:
        calls.append(1)
        if len(calls) == 1:
            raise action("first time")
        return then

    return script


def test_hello_carries_the_callers_words(tiny: TinyDaemon) -> None:
    with Client(workspace="/w", name="probe", session_id="s1") as client:
        assert client.call("ping") == {"pong": True}
        assert client.server["instance"] == "tiny"
    method, words = tiny.seen[0]
    assert method == "hello"
    assert words["client"] == "probe"
    assert (words["workspace"], words["session_id"]) == ("/w", "s1")
    assert (words["protocol"], words["errors"]) == ([1, 1], "map")


def test_methods_of_the_table_are_methods(tiny: TinyDaemon) -> None:
    tiny.scripts["remember_fact"] = lambda peer, params: params
    tiny.scripts["import"] = lambda peer, params: params
    with Client() as client:
        assert client.remember_fact(text="x", tags=["a"], source=None, global_=True) == {
            "text": "x",
            "tags": ["a"],
            "global": True,
        }
        assert client.import_(path="/p") == {"path": "/p"}
        assert client.ping.__doc__
        with pytest.raises(AttributeError, match="rember_fact"):
            client.rember_fact  # type: ignore[attr-defined]


@pytest.mark.parametrize("code", sorted(errors.BY_CODE))
def test_errors_are_typed(tiny: TinyDaemon, code: str) -> None:
    def refuse(peer: object, params: object) -> object:
        raise errors.from_code(code, "F9 is not there", {"id": "F9"})

    tiny.scripts["fact"] = refuse
    with Client(start=False) as client, pytest.raises(errors.BY_CODE[code]) as caught:
        client.fact(id="F9")
    assert caught.value.message == "F9 is not there"
    assert caught.value.data == {"id": "F9"}


def test_no_daemon_names_the_remedy(where: Paths) -> None:
    with pytest.raises(errors.Unavailable, match=r"no memory daemon listens at .*lore up"):
        Client()
    with pytest.raises(errors.Unavailable, match="may not start one"):
        Client(start=False)


@pytest.mark.parametrize("method", ["recall_fact", "remember_fact"])
def test_a_daemon_restarted_between_calls_is_not_noticed(tiny: TinyDaemon, method: str) -> None:
    tiny.scripts[method] = lambda peer, params: {"done": True}
    with Client() as client:
        client.ping()
        tiny.stop()
        tiny.start()
        assert client.call(method, {"text": "x"}) == {"done": True}
    assert tiny.methods().count(method) == 1


def test_an_idempotent_call_is_sent_once_more(tiny: TinyDaemon) -> None:
    tiny.scripts["recall_fact"] = once(HangUp, {"facts": []})
    with Client() as client:
        assert client.recall_fact(query="x") == {"facts": []}
    assert tiny.methods() == ["recall_fact", "recall_fact"]


def test_any_other_call_is_not_repeated(tiny: TinyDaemon) -> None:
    tiny.scripts["remember_fact"] = once(HangUp, {"created": True})
    with Client() as client:
        with pytest.raises(errors.Unavailable, match="may have been done"):
            client.remember_fact(text="x")
        assert tiny.methods() == ["remember_fact"]
        assert client.ping() == {"pong": True}


def test_a_key_makes_a_call_repeatable(tiny: TinyDaemon) -> None:
    tiny.scripts["remember_fact"] = once(HangUp, {"created": True})
    with Client() as client:
        assert client.remember_fact(text="x", idempotency_key="k") == {"created": True}
    assert [params["idempotency_key"] for name, params in tiny.seen if name != "hello"] == [
        "k",
        "k",
    ]


def test_repeats_only_once(tiny: TinyDaemon) -> None:
    def hang_up(peer: object, params: object) -> object:
        raise HangUp

    tiny.scripts["recall_fact"] = hang_up
    with Client() as client, pytest.raises(errors.Unavailable, match="hung up"):
        client.recall_fact(query="x")
    assert tiny.methods() == ["recall_fact", "recall_fact"]


def test_shutting_down_is_sent_to_the_next_daemon(tiny: TinyDaemon) -> None:
    tiny.scripts["remember_fact"] = once(errors.ShuttingDown, {"created": True})
    with Client() as client:
        assert client.remember_fact(text="x") == {"created": True}
    assert tiny.connections == 2


def test_timeout_cancels_and_leaves_the_connection_usable(tiny: TinyDaemon) -> None:
    def silence(peer: object, params: object) -> object:
        raise Silence

    tiny.scripts["recall"] = silence
    tiny.scripts["cancel"] = lambda peer, params: {"cancelled": True}
    with Client() as client:
        with pytest.raises(errors.Timeout, match="recall: no answer within"):
            client.recall(query="x", timeout=0.05)
        assert client.ping() == {"pong": True}
    assert tiny.connections == 1
    assert tiny.methods() == ["recall", "cancel", "ping"]


def test_a_late_answer_is_not_taken_for_the_next(tiny: TinyDaemon) -> None:
    proceed = threading.Event()

    def late(peer: object, params: object) -> object:
        assert proceed.wait(5)
        return {"late": True}

    tiny.scripts["recall"] = late
    tiny.scripts["cancel"] = lambda peer, params: {"cancelled": False}
    with Client() as client:
        with pytest.raises(errors.Timeout):
            client.recall(query="x", timeout=0.05)
        proceed.set()
        assert client.ping() == {"pong": True}


def test_a_budget_bounds_everything(where: Paths, tiny: TinyDaemon) -> None:
    def silence(peer: object, params: object) -> object:
        raise Silence

    tiny.scripts["context"] = silence
    started = time.monotonic()
    with Client(budget=0.2) as client:
        with pytest.raises(errors.Timeout):
            client.context()
        with pytest.raises((errors.Timeout, errors.Unavailable)):
            client.ping()
    assert time.monotonic() - started < 2
    tiny.scripts["hello"] = silence
    started = time.monotonic()
    with pytest.raises(errors.Unavailable, match="does not answer"):
        Client(budget=0.1)
    assert time.monotonic() - started < 2


def test_values_that_may_not_cross_are_refused_before_sending(tiny: TinyDaemon) -> None:
    with Client() as client:
        for value in (b"raw", 2**60, float("nan"), {1: 2}, {"a", "b"}, "\udcff"):
            with pytest.raises(errors.Invalid, match="cannot be sent"):
                client.call("ping", {"value": value})
        with pytest.raises(errors.Limit, match="1048576"):
            client.call("ping", {"value": "x" * (1 << 20)})
        assert client.ping() == {"pong": True}
    assert tiny.methods() == ["ping"]


def test_a_daemon_that_breaks_the_protocol(tiny: TinyDaemon) -> None:
    def garbage(peer: Any, params: object) -> object:
        peer.connection.sendall(b"\xc1")
        raise Silence

    tiny.scripts["ping"] = garbage
    with Client() as client:
        with pytest.raises(errors.Internal, match="broke the protocol"):
            client.ping()
        tiny.scripts["ping"] = lambda peer, params: {"pong": True}
        assert client.ping() == {"pong": True}


def test_protocols_that_do_not_meet(tiny: TinyDaemon) -> None:
    tiny.scripts["hello"] = lambda peer, params: {"version": "9.0.0", "protocol": 9}
    with pytest.raises(errors.Incompatible, match=r"daemon 9\.0\.0 .*protocol 9.*upgrade"):
        Client()


def test_an_older_client_does_not_drain_a_newer_daemon(tiny: TinyDaemon) -> None:
    tiny.scripts["hello"] = lambda peer, params: {"version": "9.0.0", "protocol": 1}
    with Client() as client:
        client.ping()
    assert "drain" not in tiny.methods()


def test_events_in_order_and_to_the_end(tiny: TinyDaemon) -> None:
    def subscribe(peer: Any, params: dict[str, Any]) -> object:
        assert params == {"topics": ["facts"], "workspace": "/w"}
        for seq in range(3):  # even before the answer
            peer.notify("event", subscription="s1", seq=seq, topic="facts")
        return {"subscription": "s1", "revision": "r1"}

    tiny.scripts["subscribe"] = subscribe
    tiny.scripts["unsubscribe"] = lambda peer, params: {"unsubscribed": True}
    with Client() as client:
        events = client.events(["facts"], workspace="/w", timeout=0.1)
        assert [event["seq"] for event in events] == [0, 1, 2]
        assert tiny.methods() == ["subscribe", "unsubscribe"]


def test_events_survive_a_restart(tiny: TinyDaemon) -> None:
    def subscribe(peer: Any, params: dict[str, Any]) -> object:
        number = tiny.methods().count("subscribe")
        peer.notify("event", subscription=f"s{number}", seq=0, topic="facts", number=number)
        return {"subscription": f"s{number}", "revision": f"r{number}"}

    tiny.scripts["subscribe"] = subscribe
    tiny.scripts["unsubscribe"] = lambda peer, params: {"unsubscribed": True}
    with Client() as client:
        events = client.events(["facts"], timeout=5)
        assert next(events)["number"] == 1
        tiny.stop()
        tiny.start()
        following = [next(events), next(events)]
        assert {"topic": "events.lost", "revision": "r2"} in following
        assert any(event.get("number") == 2 for event in following)


def test_events_beyond_the_bound_are_counted() -> None:
    queue = EventQueue()
    for seq in range(EVENTS_WAITING + 1):
        queue.take_in(Notification("event", {"seq": seq}))
    assert list(queue) == [
        {"topic": "events.lost", "count": EVENTS_WAITING},
        {"seq": EVENTS_WAITING},
    ]


def test_the_pointer_file_leads_to_a_daemon_elsewhere(
    tiny: TinyDaemon, where: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.makedirs(where.state_dir, exist_ok=True)
    with open(where.pointer, "w") as file:
        file.write(where.socket + "\n")
    monkeypatch.setenv("LORE_SOCKET", where.runtime_dir + "/other.sock")
    with Client() as client:
        assert client.ping() == {"pong": True}


def busy(times: int, then: object, after: object = 20) -> Any:
    """A script that is busy so many times."""
    left = [times]

    def script(peer: object, params: dict[str, Any]) -> object:
        if left[0]:
            left[0] -= 1
            raise errors.Busy("too many", {} if after is None else {"retry_after_ms": after})
        return then

    return script


def test_a_busy_daemon_is_asked_again_as_it_wishes(tiny: TinyDaemon) -> None:
    tiny.scripts["remember_fact"] = busy(3, {"created": True})
    with Client() as client:
        began = time.monotonic()
        assert client.call("remember_fact", {"text": "x"}) == {"created": True}
        assert time.monotonic() - began > 0.06
    assert tiny.methods() == ["remember_fact"] * 4


@pytest.mark.parametrize(("after", "tries"), [(None, 1), (5_000, 1), (200, 2)])
def test_busy_is_told_when_it_says_no_time_or_too_late_a_one(
    tiny: TinyDaemon, after: object, tries: int
) -> None:
    tiny.scripts["ping"] = busy(1000, {}, after)
    with Client() as client, pytest.raises(errors.Busy):
        client.call("ping", timeout=0.5)
    assert tiny.methods() == ["ping"] * tries
