"""The asyncio client: calls at once, cancellation, repeating, events."""

import asyncio
import contextlib
import threading
from typing import Any

import pytest

from lore import errors
from lore.aio import Client
from lore.paths import Paths
from lore.wire.limits import INFLIGHT_REQUESTS

from .conftest import HangUp, Silence, TinyDaemon


def silence(peer: object, params: object) -> object:
    raise Silence


async def test_calls_at_once_get_their_own_answers(tiny: TinyDaemon) -> None:
    tiny.scripts["fact"] = lambda peer, params: {"fact": {"id": params["id"]}}
    async with Client(workspace="/w", name="probe") as client:
        assert client.server["instance"] == "tiny"
        answers = await asyncio.gather(*(client.fact(id=f"F{n}") for n in range(100)))
    assert [answer["fact"]["id"] for answer in answers] == [f"F{n}" for n in range(100)]
    assert tiny.connections == 1
    assert tiny.seen[0][1]["workspace"] == "/w"


async def test_a_slow_call_does_not_hold_up_others(tiny: TinyDaemon) -> None:
    kept: list[Any] = []

    def keep(peer: Any, params: object) -> object:
        kept.append(peer)
        raise Silence

    tiny.scripts["recall"] = keep
    async with Client() as client:
        slow = asyncio.create_task(client.recall(query="x"))
        assert await client.ping() == {"pong": True}
        assert not slow.done()
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow
        await asyncio.to_thread(tiny.wait_for, "cancel")


async def test_no_more_requests_are_open_than_the_daemon_reads(tiny: TinyDaemon) -> None:
    tiny.scripts["recall"] = silence
    async with Client() as client:
        calls = [
            asyncio.create_task(client.recall(query="x")) for _ in range(INFLIGHT_REQUESTS + 5)
        ]
        await asyncio.to_thread(tiny.wait_for, "recall", INFLIGHT_REQUESTS)
        with pytest.raises(errors.Timeout):
            await client.ping(timeout=0.05)
        assert tiny.methods().count("recall") == INFLIGHT_REQUESTS
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        assert await client.ping() == {"pong": True}


async def test_timeout_and_typed_errors(tiny: TinyDaemon) -> None:
    def refuse(peer: object, params: object) -> object:
        raise errors.Ambiguous("F9 is in both scopes", {"candidates": ["global:F9"]})

    tiny.scripts["recall"] = silence
    tiny.scripts["fact"] = refuse
    async with Client() as client:
        with pytest.raises(errors.Timeout, match="recall"):
            await client.recall(query="x", timeout=0.05)
        with pytest.raises(errors.Ambiguous) as caught:
            await client.fact(id="F9")
        assert caught.value.data == {"candidates": ["global:F9"]}
        with pytest.raises(errors.Invalid, match="cannot be sent"):
            await client.call("ping", {"x": b"raw"})
        with pytest.raises(AttributeError):
            client.rember  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("method", "params", "repeated"),
    [
        ("recall_fact", {"query": "x"}, True),
        ("remember_fact", {"text": "x"}, False),
        ("remember_fact", {"text": "x", "idempotency_key": "k"}, True),
    ],
)
async def test_repeating_after_a_hang_up(
    tiny: TinyDaemon, method: str, params: dict[str, Any], repeated: bool
) -> None:
    def once(peer: object, given: object) -> object:
        if tiny.methods().count(method) == 1:
            raise HangUp
        return {"done": True}

    tiny.scripts[method] = once
    async with Client() as client:
        if repeated:
            assert await client.call(method, params) == {"done": True}
        else:
            with pytest.raises(errors.Unavailable, match="may have been done"):
                await client.call(method, params)
        assert await client.ping() == {"pong": True}
    assert tiny.methods().count(method) == 1 + repeated


async def test_a_busy_daemon_is_asked_again_as_it_wishes(tiny: TinyDaemon) -> None:
    left = [2]

    def script(peer: object, params: dict[str, Any]) -> object:
        if left[0]:
            left[0] -= 1
            raise errors.Busy("too many", {"retry_after_ms": 20})
        return {"created": True}

    tiny.scripts["remember_fact"] = script
    tiny.scripts["ping"] = lambda peer, params: busy()
    async with Client() as client:
        assert await client.remember_fact(text="x") == {"created": True}
        with pytest.raises(errors.Busy):
            await client.call("ping", timeout=0.5)
    assert tiny.methods() == ["remember_fact"] * 3 + ["ping"]


def busy() -> object:
    raise errors.Busy("too many", {"retry_after_ms": 5_000})


async def test_shutting_down_goes_to_the_next_daemon(tiny: TinyDaemon) -> None:
    def once(peer: object, params: object) -> object:
        if tiny.methods().count("remember_fact") == 1:
            raise errors.ShuttingDown("draining")
        return {"created": True}

    tiny.scripts["remember_fact"] = once
    async with Client() as client:
        assert await client.remember_fact(text="x") == {"created": True}
    assert tiny.connections == 2


async def test_a_restarted_daemon_is_found_again(tiny: TinyDaemon) -> None:
    async with Client() as client:
        await client.ping()
        await asyncio.to_thread(tiny.stop)
        tiny.start()
        assert await client.ping() == {"pong": True}


async def test_no_daemon(where: Paths) -> None:
    with pytest.raises(errors.Unavailable, match="lore up"):
        async with Client():
            pass


async def test_a_daemon_that_breaks_the_protocol(tiny: TinyDaemon) -> None:
    def garbage(peer: Any, params: object) -> object:
        peer.connection.sendall(b"\xc1")
        raise Silence

    tiny.scripts["fact"] = garbage
    async with Client() as client:
        with pytest.raises(errors.Internal, match="broke the protocol"):
            await client.fact(id="F1")
        assert await client.ping() == {"pong": True}


async def test_events_to_their_subscription(tiny: TinyDaemon) -> None:
    def subscribe(peer: Any, params: dict[str, Any]) -> object:
        name = params["topics"][0]
        peer.notify("event", subscription=name, seq=1, topic=name)
        return {"subscription": name, "revision": "r1"}

    def more(peer: Any, params: dict[str, Any]) -> object:
        for name in ("facts", "sessions", "nobody"):
            peer.notify("event", subscription=name, seq=2, topic=name)
        peer.notify("events.lost", subscription="facts", count=3, revision="r9")
        return {"pong": True}

    tiny.scripts["subscribe"] = subscribe
    tiny.scripts["ping"] = more
    tiny.scripts["unsubscribe"] = lambda peer, params: {"unsubscribed": params["subscription"]}
    async with Client() as client:
        facts = client.events(["facts"], workspace="/w")
        sessions = client.events(["sessions"])
        first = asyncio.create_task(anext(facts))
        second = asyncio.create_task(anext(sessions))
        await asyncio.to_thread(tiny.wait_for, "subscribe", 2)
        await client.ping()
        got = [await first, await anext(facts), await anext(facts)]
        assert [event.get("seq") for event in got] == [1, 2, None]
        assert got[-1] == {
            "topic": "events.lost",
            "subscription": "facts",
            "count": 3,
            "revision": "r9",
        }
        assert [(await second)["seq"], (await anext(sessions))["seq"]] == [1, 2]
        async with contextlib.aclosing(facts), contextlib.aclosing(sessions):
            pass
        assert tiny.methods().count("unsubscribe") == 2


async def test_events_survive_a_restart(tiny: TinyDaemon) -> None:
    def subscribe(peer: Any, params: dict[str, Any]) -> object:
        time = tiny.methods().count("subscribe")
        if time == 1:
            peer.notify("event", subscription="s", seq=1, topic="facts")
        return {"subscription": "s", "revision": f"r{time}"}

    tiny.scripts["subscribe"] = subscribe
    tiny.scripts["unsubscribe"] = lambda peer, params: {"unsubscribed": "s"}
    async with Client() as client, contextlib.aclosing(client.events(["facts"])) as events:
        # An event tells that the subscription was answered: one that was not has lost nothing.
        assert (await anext(events))["seq"] == 1
        waiting = asyncio.create_task(anext(events))
        tiny.stop()  # the loop must not run in between: it would find nobody to connect to
        tiny.start()
        assert await waiting == {"topic": "events.lost", "revision": "r2"}


async def test_nothing_is_left_open(tiny: TinyDaemon) -> None:
    threads = threading.active_count()
    for _ in range(3):
        async with Client() as client:
            await client.ping()
        assert client.server == {}
        await client.close()
    assert threading.active_count() <= threads + 4  # the executor's and the tiny daemon's
