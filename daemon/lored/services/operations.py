"""Long operations under way: what each does, how far it is, and the events that tell it.

Whoever does the work counts an `Operation` up, in any thread; a ticker on the event loop tells
the subscribers of `progress`, so the rate of events does not depend on the work. The beginning
and the end are told at once.

An operation ends early when its caller goes away. Then it must leave what it began either
undone, or done to its end: work in a thread learns by `advance` that it is to stop (and a
transaction is taken back); work that must not stop half-way runs under `finish`, which goes on
without the caller and keeps the operation in the list until it is done.
"""

import asyncio
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from lored.services.events import Events
from lored.services.pace import Pace

T = TypeVar("T")

EVENT_SECONDS: Final = 0.25
"""A bar on a terminal needs no more than four a second."""


class Stopped(Exception):
    """Raised by `Operation.advance`: nobody waits for this work any more."""


class Operation:
    """One long piece of work, in one or more steps."""

    def __init__(self, number: int, name: str, client: str, owner: object) -> None:
        self.id = f"O{number}"
        self.name, self.client, self.owner = name, client, owner
        self.step, self.unit = "", ""
        self.done = 0
        self.total: int | None = None
        """Of this step; None while it is not known."""
        self.began = time.monotonic()
        self.stopped = False
        self.tail: asyncio.Future[Any] | None = None
        self._pace = Pace()
        self._seen: tuple[str, int] = ("", 0)

    def begin(self, step: str, unit: str, total: int | None = None) -> None:
        """The next step, in words ("looking for secrets"), counted in ``unit`` (plural)."""
        self._pace.clear()
        self.step, self.unit, self.done, self.total = step, unit, 0, total

    def advance(self, count: int = 1) -> None:
        """So much more is done; may be called in any thread. Raises `Stopped`."""
        self.done += count
        if self.stopped:
            raise Stopped

    def sample(self) -> None:
        """Note how far it is, for the rate."""
        self._pace.note(self.done)

    def has_moved(self) -> bool:
        """Whether anything was done since this was asked last."""
        before, self._seen = self._seen, (self.step, self.done)
        return before != self._seen

    def describe(self) -> dict[str, Any]:
        """The map of an event and of `status`: operation, id, client, step, unit, done,
        seconds, and where known total, rate (units a second) and eta_s."""
        found: dict[str, Any] = {
            "operation": self.name,
            "id": self.id,
            "client": self.client,
            "step": self.step,
            "unit": self.unit,
            "done": self.done,
            "seconds": round(time.monotonic() - self.began, 1),
        }
        if self.total is not None:
            found["total"] = max(self.total, self.done)
        if self._pace.rate > 0:
            found["rate"] = round(self._pace.rate, 1)
            if self.total is not None:
                left = max(0, self.total - self.done)
                found["eta_s"] = round(left / self._pace.rate, 1)
        return found

    async def finish(self, work: Coroutine[Any, Any, T]) -> T:
        """Do ``work`` to its end, whether the caller waits for that or not. The last thing
        that an operation does."""
        if self.tail is not None:  # within such work already
            return await work
        tail = asyncio.ensure_future(work)
        self.tail = tail
        return await asyncio.shield(tail)


class Operations:
    """All long operations of the daemon; a service for `status` and for the end."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._running: dict[str, Operation] = {}
        self._ticker: asyncio.Task[None] | None = None
        self._serial = 0

    def __len__(self) -> int:
        return len(self._running)

    def status(self) -> list[dict[str, Any]]:
        """What runs now, oldest first."""
        return [one.describe() for one in self._running.values()]

    async def stop(self) -> None:
        """Wait for what must be done to its end."""
        tails = [one.tail for one in self._running.values() if one.tail is not None]
        if tails:
            await asyncio.wait(tails)

    @contextmanager
    def under_way(self, call: Any, name: str) -> Iterator[Operation]:
        """An operation of a call for as long as the block runs (or its `finish`). ``name`` is
        the method; the call gets the operation, so that its deadline moves while it does."""
        if call.operation is not None:  # a part of another one
            yield call.operation
            return
        self._serial += 1
        one = Operation(self._serial, name, call.client, call.connection)
        call.operation = one
        self._running[one.id] = one
        self._tell(one)
        if self._ticker is None:
            self._ticker = asyncio.get_running_loop().create_task(self._tick())
        outcome = "failed"
        try:
            yield one
            outcome = "done"
        except (asyncio.CancelledError, Stopped):
            outcome = "stopped"
            raise
        finally:
            call.operation = None
            if one.tail is not None and not one.tail.done():
                one.tail.add_done_callback(lambda tail: self._end(one, _outcome(tail)))
            else:
                one.stopped = True
                self._end(one, outcome)

    def _end(self, one: Operation, outcome: str) -> None:
        del self._running[one.id]
        if not self._running and self._ticker is not None:
            self._ticker.cancel()
            self._ticker = None
        self._tell(one, outcome=outcome)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(EVENT_SECONDS)
            for one in tuple(self._running.values()):
                one.sample()
                self._tell(one)

    def _tell(self, one: Operation, **more: str) -> None:
        self._events.publish("progress", {**one.describe(), **more}, origin=one.owner)


def _outcome(tail: "asyncio.Future[Any]") -> str:
    if tail.cancelled():
        return "stopped"
    return "failed" if tail.exception() is not None else "done"
