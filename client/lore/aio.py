"""The asyncio client: many calls at once over one connection, events as async iterators.

Connecting, starting and the version rule are those of the blocking client (handshake.py), run
in a thread once per connection; the open socket is then handed to the event loop. One reader
task sorts answers to their waiting calls and events to the queue. The rule of repeating a
call is that of client.py.
"""

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Self

from lore import handshake, paths, realms
from lore.calls import AsyncCalls
from lore.errors import Busy, Internal, LoreError, ShuttingDown, Timeout
from lore.policy import (
    STARTING_SECONDS,
    EventQueue,
    Lost,
    hello_words,
    may_repeat,
    pause_after,
    seconds_of,
)
from lore.wire import fault
from lore.wire.codec import encode_request
from lore.wire.limits import INFLIGHT_REQUESTS
from lore.wire.messages import FramingError, Message, Notification, Response

_SUBSCRIBE_TRIES = 2
"""Once more after a connection that was found dead."""

_UNSUBSCRIBE_SECONDS = 2.0
"""How long leaving an event loop waits for the daemon to confirm an unsubscription."""


class Client(AsyncCalls):
    """A connection to this user's memory daemon inside one event loop.

    `async with Client(workspace=...) as memory: await memory.recall_fact(query="...")`. The
    parameters are those of `lore.Client`; calls may run concurrently and are cancelled in the
    daemon when their task is. Raises what `lore.Client` raises.
    """

    def __init__(
        self,
        *,
        workspace: str | None = None,
        name: str = "lore-python-aio",
        session_id: str | None = None,
        timeout: float | None = None,
        start: bool = True,
        start_timeout: float | None = None,
        where: paths.Paths | None = None,
    ) -> None:
        self._hello = hello_words(name, workspace, session_id)
        self._timeout, self._start, self._start_timeout = timeout, start, start_timeout
        self._paths = where or realms.here(workspace)
        self._connection: _Connection | None = None
        self._opening = asyncio.Lock()

    async def __aenter__(self) -> Self:
        await self.connect()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    @property
    def server(self) -> dict[str, Any]:
        """What the daemon said in hello; empty before the first connection."""
        return self._connection.server if self._connection is not None else {}

    async def connect(self) -> None:
        """Connect now (starting a daemon if need be); calls do it by themselves."""
        await self._live()

    async def close(self) -> None:
        """Hang up; calls still waiting fail with `Unavailable`. A later call connects again."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def call(
        self, method: str, params: dict[str, Any] | None = None, *, timeout: float | None = None
    ) -> dict[str, Any]:
        """Call `method` by its wire name; see `lore.Client.call`."""
        named = params or {}
        limit = timeout or self._timeout
        seconds = limit or seconds_of(method)
        end, tries = time.monotonic() + seconds, 0
        while True:
            try:
                return await self._call(method, named, seconds, limit is not None)
            except Busy as refusal:
                tries += 1
                pause = pause_after(refusal, tries)
                left = end - time.monotonic()
                if pause is None or pause >= left:
                    raise
                await asyncio.sleep(pause)
                if limit is not None:  # else the next try gets the method's own time anew
                    seconds = left - pause

    async def _call(
        self, method: str, named: dict[str, Any], seconds: float, limited: bool
    ) -> dict[str, Any]:
        """One call, once more where the connection was lost and that is safe."""
        for last_try in (False, True):
            connection = await self._live()
            try:
                patience = STARTING_SECONDS if connection.starting and not limited else 0.0
                return await connection.ask(method, named, seconds + patience)
            except ShuttingDown:
                if last_try or not self._start:
                    raise
                await self._drop(connection)
            except Lost as lost:
                await self._drop(connection)
                if last_try or not (lost.unseen or may_repeat(method, named)):
                    raise lost.as_unavailable(method) from None
        raise AssertionError("unreachable: the last try returns or raises")

    async def events(
        self,
        topics: Sequence[str],
        *,
        workspace: str | None = None,
        on_open: Callable[[], None] | None = None,
    ) -> AsyncIterator[dict[str, Any]]:
        """Subscribe and iterate over the events (see `lore.Client.events`), each subscription
        with a queue of its own; `on_open` is called once the subscription is in place. Close the
        iterator (`contextlib.aclosing`) to unsubscribe."""
        params: dict[str, Any] = {"topics": list(topics)}
        if workspace is not None:
            params["workspace"] = workspace
        connection, subscription, revision = await self._subscribe(params)
        if on_open is not None:
            on_open()
        try:
            while True:
                try:
                    yield await connection.next_event(subscription)
                except Lost:
                    connection, subscription, revision = await self._subscribe(params)
                    connection.queues[subscription].mark_renewed(revision)
        finally:
            await connection.unsubscribe(subscription)

    async def _subscribe(self, params: dict[str, Any]) -> "tuple[_Connection, str, object]":
        """Subscribe; the answer and the connection that holds it. Repeating is safe, as the
        daemon ends the subscriptions of a dead connection."""
        for _ in range(_SUBSCRIBE_TRIES):
            connection = await self._live()
            with contextlib.suppress(Lost):
                answer = await connection.ask("subscribe", params, seconds_of("subscribe"))
                return connection, str(answer["subscription"]), answer.get("revision")
        raise Lost(unseen=True).as_unavailable("subscribe")

    async def _live(self) -> "_Connection":
        async with self._opening:
            if self._connection is None or self._connection.is_lost:
                link = await asyncio.to_thread(
                    handshake.open_link,
                    self._paths,
                    self._hello,
                    start=self._start,
                    start_seconds=self._start_timeout,
                )
                self._connection = await _Connection.adopt(link)
            return self._connection

    async def _drop(self, connection: "_Connection") -> None:
        if self._connection is connection:
            self._connection = None
        await connection.close()


class _Connection(asyncio.Protocol):
    """One open link inside the loop: answers to their calls, events to their queues."""

    def __init__(self, link: handshake.Link) -> None:
        self.server = link.server
        self.is_lost = False
        self.starting = link.starting
        self.queues: dict[str, EventQueue] = {}
        self._early: dict[str, EventQueue] = {}
        self._link = link
        self._waiting: dict[int, tuple[str, asyncio.Future[object]]] = {}
        # More would not be read by the daemon, and this bounds what a slow one costs here.
        self._slots = asyncio.Semaphore(INFLIGHT_REQUESTS)
        self._arrived = asyncio.Event()
        self._closed = asyncio.get_running_loop().create_future()
        self._transport: asyncio.Transport

    @classmethod
    async def adopt(cls, link: handshake.Link) -> "_Connection":
        """Move a link from blocking use into the running loop."""
        taken = socket.socket(fileno=link.stream.detach())
        taken.setblocking(False)
        connection = cls(link)
        loop = asyncio.get_running_loop()
        try:
            await loop.create_unix_connection(lambda: connection, sock=taken)
        except BaseException:
            taken.close()
            raise
        connection._sort(link.pending)
        return connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        try:
            self._sort(self._link.codec.feed(data))
        except FramingError as error:
            self._fail(Internal(f"the daemon broke the protocol: {error.reason}"))
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(Lost(unseen=False))
        if not self._closed.done():
            self._closed.set_result(None)

    async def close(self) -> None:
        """Hang up and wait until the descriptor is free."""
        self._transport.abort()
        await asyncio.shield(self._closed)

    async def ask(self, method: str, params: dict[str, Any], seconds: float) -> dict[str, Any]:
        """One call. Raises `Lost`, `Timeout` or the daemon's error; a cancelled or timed out
        call is cancelled in the daemon too."""
        message_id = self._link.take_id()
        data = encode_request(message_id, method, params)
        answer: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(seconds), self._slots:
                if self.is_lost:
                    raise Lost(unseen=True)
                self._waiting[message_id] = (method, answer)
                self._transport.write(data)
                result = await answer
                self.starting = False
        except TimeoutError:
            self._cancel(message_id)
            raise Timeout(f"{method}: no answer within {seconds:g} s") from None
        except asyncio.CancelledError:
            self._cancel(message_id)
            raise
        finally:
            self._waiting.pop(message_id, None)
        if not isinstance(result, dict):
            raise Internal(f"{method}: the daemon answered {type(result).__name__}")
        return result

    async def next_event(self, subscription: str) -> dict[str, Any]:
        """The next event of a subscription; raises `Lost` when it has ended."""
        while True:
            queue = self.queues.get(subscription)
            if queue:
                return queue.popleft()
            if queue is None or self.is_lost:
                raise Lost(unseen=True)
            self._arrived.clear()
            await self._arrived.wait()

    async def unsubscribe(self, subscription: str) -> None:
        """End a subscription; without effect on a connection that is gone."""
        self.queues.pop(subscription, None)
        if not self.is_lost:
            with contextlib.suppress(LoreError, Lost):
                await self.ask("unsubscribe", {"subscription": subscription}, _UNSUBSCRIBE_SECONDS)

    def _cancel(self, message_id: int) -> None:
        if message_id in self._waiting and not self.is_lost:
            cancel = encode_request(self._link.take_id(), "cancel", {"id": message_id})
            self._transport.write(cancel)

    def _sort(self, messages: list[Message]) -> None:
        for message in messages:
            if isinstance(message, Response):
                self._settle(message)
            elif isinstance(message, Notification):
                self._queue_of(str(message.params.get("subscription"))).take_in(message)
                self._arrived.set()

    def _queue_of(self, subscription: str) -> EventQueue:
        """The queue of a subscription, or of one whose answer may still be on its way, as
        events can overtake it; events of ended subscriptions go nowhere."""
        if subscription in self.queues:
            return self.queues[subscription]
        if not any(method == "subscribe" for method, _ in self._waiting.values()):
            self._early.clear()
            return EventQueue()
        return self._early.setdefault(subscription, EventQueue())

    def _settle(self, message: Response) -> None:
        method, answer = self._waiting.get(message.id, ("", None))
        if answer is None or answer.done():
            return  # the answer to a call that nobody waits for any more
        if message.error is not None:
            answer.set_exception(fault.from_wire(message.error))
            return
        if method == "subscribe" and isinstance(message.result, dict):
            # Now, not when the caller wakes: its first events may be in the same bytes.
            subscription = str(message.result.get("subscription"))
            self.queues[subscription] = self._early.pop(subscription, EventQueue())
        answer.set_result(message.result)

    def _fail(self, reason: Exception) -> None:
        self.is_lost = True
        for _, answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(reason)
        self._arrived.set()
