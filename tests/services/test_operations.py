"""Long operations: what is told of them, and how they end when nobody waits."""

import asyncio
from typing import Any

import pytest

from lored.services.app import Call
from lored.services.events import Event, Events
from lored.services.operations import Operation, Operations, Stopped


class House:
    """A bus, its operations, and what was told."""

    def __init__(self) -> None:
        self.events = Events()
        self.told: list[Event] = []
        self.heard = asyncio.Event()
        self.events.listen(self._hear)
        self.operations = Operations(self.events)
        self.owner = object()
        self.call = Call("test", "tester", connection=self.owner)

    def _hear(self, event: Event) -> None:
        self.told.append(event)
        self.heard.set()

    @property
    def last(self) -> dict[str, Any]:
        return self.told[-1].payload


async def test_beginning_middle_and_end_are_told_with_a_rate() -> None:
    house = House()
    with house.operations.under_way(house.call, "verify") as one:
        assert house.call.operation is one
        assert house.last["operation"] == "verify" and "total" not in house.last
        one.begin("checking stores", "bytes", 100)
        one.sample()
        one.advance(40)
        house.heard.clear()
        await asyncio.wait_for(house.heard.wait(), 10)
        assert house.last["step"] == "checking stores" and house.last["unit"] == "bytes"
        assert (house.last["done"], house.last["total"]) == (40, 100)
        assert house.last["rate"] > 0 and house.last["eta_s"] > 0
        assert house.operations.status()[0]["id"] == house.last["id"]
    assert house.last["outcome"] == "done" and house.operations.status() == []
    assert house.call.operation is None
    assert all(event.topic == "progress" for event in house.told)
    assert all(event.origin is house.owner for event in house.told)


async def test_a_caller_that_leaves_stops_work_in_a_thread() -> None:
    house, begun = House(), asyncio.Event()
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[str] = loop.create_future()

    def work(one: Operation) -> None:
        try:
            while True:
                one.advance()
                loop.call_soon_threadsafe(begun.set)
        except Stopped:
            loop.call_soon_threadsafe(ended.set_result, "stopped")

    async def handler() -> None:
        with house.operations.under_way(house.call, "import") as one:
            await asyncio.to_thread(work, one)

    task = asyncio.create_task(handler())
    await asyncio.wait_for(begun.wait(), 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.wait_for(ended, 10) == "stopped"
    assert house.last["outcome"] == "stopped"


async def test_what_must_not_stop_half_way_goes_on_and_is_listed_until_its_end() -> None:
    house, gate, done = House(), asyncio.Event(), []

    async def work() -> str:
        await gate.wait()
        done.append("all")
        return "all"

    async def handler() -> str:
        with house.operations.under_way(house.call, "restore") as one:
            return await one.finish(work())

    task = asyncio.create_task(handler())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [one["operation"] for one in house.operations.status()] == ["restore"]
    assert not done and "outcome" not in house.last
    stopping = asyncio.create_task(house.operations.stop())
    await asyncio.sleep(0)
    assert not stopping.done()
    gate.set()
    await asyncio.wait_for(stopping, 10)
    assert done == ["all"]
    assert house.operations.status() == [] and house.last["outcome"] == "done"


async def test_a_part_of_another_operation_is_none_of_its_own() -> None:
    house = House()

    async def inner() -> str:
        with house.operations.under_way(house.call, "forget_fact") as one:
            return await one.finish(asyncio.sleep(0, one.name))

    with house.operations.under_way(house.call, "forget_session") as one:
        assert await one.finish(inner()) == "forget_session"
        assert len(house.operations.status()) == 1
    assert house.operations.status() == [] and house.last["outcome"] == "done"


async def test_a_failure_is_told_and_movement_is_seen_once() -> None:
    house = House()
    with (
        pytest.raises(ValueError, match="broken"),
        house.operations.under_way(house.call, "verify") as one,
    ):
        assert not one.has_moved()
        one.begin("checking", "stores", 2)
        assert one.has_moved() and not one.has_moved()
        one.advance()
        assert one.has_moved()
        raise ValueError("broken")
    assert house.last["outcome"] == "failed"
