"""Events to the clients that asked for them, with a bound and an honest count of what is lost.

Each subscription has its own queue, used only while its client does not read (or has not got
the answer to `subscribe` yet). When it is full, later events are counted, not kept; once the
client reads again it gets what was queued, then one `events.lost {subscription, count,
revision}`, and asks `changes` what it missed. `seq` counts lost events too.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import structlog

from lore.errors import Invalid, Limit, LoreError
from lore.wire.limits import SUBSCRIPTION_EVENTS, SUBSCRIPTIONS
from lored.services.app import App
from lored.services.events import Event

if TYPE_CHECKING:
    from lored.rpc.connection import Connection

TOPICS: Final = frozenset({"facts", "conflicts", "sessions", "progress", "status"})

Token = Callable[[str | None], Awaitable[str]]
"""The revision token of now for a workspace id."""

log = structlog.get_logger()


class Subscription:
    """What one client wants to hear: topics, and one workspace or all."""

    def __init__(
        self,
        token: "Token",
        owner: "Connection",
        subscription_id: str,
        topics: frozenset[str],
        workspace: str | None,
    ) -> None:
        self.id, self.topics, self.workspace = subscription_id, topics, workspace
        self._token, self._owner = token, owner
        self._queue: deque[tuple[int, Event]] = deque()
        self._seq = 0
        self._lost = 0
        self._opened = False
        self._report: asyncio.Task[None] | None = None

    def wants(self, event: Event) -> bool:
        """Whether the event is for this subscription; one without a workspace is for all."""
        return event.topic in self.topics and (
            self.workspace is None or event.workspace is None or event.workspace == self.workspace
        )

    def open(self) -> None:
        """The client has the answer to `subscribe`: events may follow."""
        if not self._opened:
            self._opened = True
            self.flush()

    def push(self, event: Event) -> None:
        """Send the event, queue it, or count it as lost."""
        self._seq += 1
        if self._lost or len(self._queue) >= SUBSCRIPTION_EVENTS:
            self._lost += 1
            self._owner.dispatcher.counters.events_lost += 1
            self.flush()  # the last report may have failed
            return
        self._queue.append((self._seq, event))
        self.flush()

    def flush(self) -> None:
        """Send what waits while the client reads."""
        if not self._opened:
            return
        while self._queue and self._owner.may_start:
            seq, event = self._queue.popleft()
            self._send(seq, event)
        if self._lost and not self._queue and self._owner.may_start and self._report is None:
            self._report = asyncio.get_running_loop().create_task(self._tell_lost())

    def _send(self, seq: int, event: Event) -> None:
        params: dict[str, Any] = {
            **event.payload,
            "subscription": self.id,
            "seq": seq,
            "topic": event.topic,
            "workspace": event.workspace,
        }
        if event.origin is self._owner:
            params["own"] = True
        try:
            self._owner.send_event("event", params)
        except LoreError as error:  # a payload that may not cross is a defect of its service
            log.error("defect", event_topic=event.topic, exc_info=error)

    async def _tell_lost(self) -> None:
        try:
            try:
                revision = await self._token(self.workspace)
            except Exception as error:  # a busy or damaged store: the next event tries again
                log.warning("loss_untold", subscription=self.id, error=str(error))
                return
            count, self._lost = self._lost, 0
            self._owner.send_event(
                "events.lost", {"subscription": self.id, "count": count, "revision": revision}
            )
        finally:
            self._report = None

    def close(self) -> None:
        """No more events."""
        self._opened = False
        self._queue.clear()
        if self._report is not None:
            self._report.cancel()


class Subscriptions:
    """All subscriptions of all connections; one listener on the event bus."""

    def __init__(self) -> None:
        self._token: Token | None = None
        self._all: set[Subscription] = set()
        self._serial = 0
        self._stop_listening: Callable[[], None] = lambda: None

    def listen(self, app: App) -> None:
        """Hear what the services publish from now on."""
        from lored.services.facts import revisions

        self._token = partial(revisions.token, app)
        self._stop_listening = app.events.listen(self._hear)

    def __len__(self) -> int:
        return len(self._all)

    def _hear(self, event: Event) -> None:
        for subscription in tuple(self._all):
            if subscription.wants(event):
                subscription.push(event)

    def add(self, owner: "Connection", topics: list[str], workspace: str | None) -> Subscription:
        """A new subscription of a connection, closed until its answer is sent.

        Raises `Invalid` for an unknown topic, `Limit` beyond `SUBSCRIPTIONS`.
        """
        unknown = sorted(set(topics) - TOPICS)
        if unknown or not topics:
            raise Invalid(
                f"subscribe: unknown topic {unknown[0][:80]!r}"
                if unknown
                else "subscribe: no topic",
                {"topics": sorted(TOPICS)},
            )
        if len(owner.subscriptions) >= SUBSCRIPTIONS:
            raise Limit(f"{SUBSCRIPTIONS} subscriptions on one connection; unsubscribe one first")
        self._serial += 1
        if self._token is None:
            raise RuntimeError("subscribed before the daemon was open")
        found = Subscription(self._token, owner, f"s{self._serial}", frozenset(topics), workspace)
        owner.subscriptions[found.id] = found
        self._all.add(found)
        return found

    def remove(self, owner: "Connection", subscription_id: str) -> bool:
        """End a subscription of this connection; False when it has none of that id."""
        found = owner.subscriptions.pop(subscription_id, None)
        if found is None:
            return False
        self._all.discard(found)
        found.close()
        return True

    def close(self) -> None:
        """Stop hearing events."""
        self._stop_listening()
