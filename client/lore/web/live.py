"""Live pages: one subscription to the daemon, told on to every open page.

A page hears only which topics changed, never what: it asks for itself anew, so it is drawn by
the same code as at first and shows what its filters ask for. Whatever happens while a page is
busy is one more entry in a small set, so a slow browser costs nothing.

Between the drawing of a page and its first stream there is a gap. So each page carries the mark
of the moment when its request came, and a stream begins with what changed since that mark.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable
from typing import Final

from lore.errors import LoreError
from lore.web.memory import TOPICS, Memory

STREAMS: Final = 32
"""Open streams at once; each visible page has one."""

HEARTBEAT_SECONDS: Final = 15.0
"""A comment after this much silence, so that both ends notice a dead connection."""

AGAIN_SECONDS: Final = (0.5, 1.0, 2.0, 5.0)
"""Waits between tries to subscribe while there is no daemon; the last one repeats."""


class _Listener:
    """One open page: the topics it shows, those of them that changed since it was last told."""

    def __init__(self, topics: frozenset[str]) -> None:
        self.topics = topics
        self.changed: set[str] = set()
        self.arrived = asyncio.Event()

    def tell(self, topics: Iterable[str]) -> None:
        wanted = self.topics.intersection(topics)
        if wanted:
            self.changed |= wanted
            self.arrived.set()


class Live:
    """The subscription and its listeners."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._listeners: set[_Listener] = set()
        self._ending = False
        self.mark = 0
        """Counts what was heard; a page gives back the mark that it was drawn at."""
        self._last = dict.fromkeys(TOPICS, 0)
        self._task: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        """Open pages now."""
        return len(self._listeners)

    @property
    def is_full(self) -> bool:
        """Whether another stream must be refused."""
        return self._ending or len(self._listeners) >= STREAMS

    async def stream(self, topics: Iterable[str], since: int) -> AsyncIterator[str]:
        """Server-sent events for one page that was drawn at the mark ``since``: `change` with
        the names of the topics that did."""
        listener = _Listener(frozenset(topics).intersection(TOPICS))
        self._listeners.add(listener)
        listener.tell(topic for topic, last in self._last.items() if last > since)
        if self._task is None:
            self._task = asyncio.create_task(self._listen())
        try:
            yield "retry: 2000\n\n"
            while not self._ending:
                try:
                    await asyncio.wait_for(listener.arrived.wait(), HEARTBEAT_SECONDS)
                except TimeoutError:
                    yield ": still here\n\n"
                    continue
                listener.arrived.clear()
                changed, listener.changed = sorted(listener.changed), set()
                if changed:
                    yield f"event: change\ndata: {' '.join(changed)}\n\n"
        finally:
            self._listeners.discard(listener)

    async def _listen(self) -> None:
        """Hear the daemon for as long as the view runs, whatever happens to the daemon."""
        tries = 0
        while True:
            try:
                await self._memory.connect()
                # What came before the subscription is in place nobody has heard.
                opened = self._memory.events(lambda: self._tell(TOPICS))
                async with contextlib.aclosing(opened) as events:
                    async for event in events:
                        tries = 0
                        topic = event.get("topic")
                        self._tell([topic] if topic in TOPICS else TOPICS)
            except LoreError:
                self._tell(["status"])
            await asyncio.sleep(AGAIN_SECONDS[min(tries, len(AGAIN_SECONDS) - 1)])
            tries += 1

    def _tell(self, topics: Iterable[str]) -> None:
        self.mark += 1
        self._last |= dict.fromkeys(topics, self.mark)
        for listener in self._listeners:
            listener.tell(topics)

    async def close(self) -> None:
        """End all streams and the subscription."""
        self._ending = True
        for listener in self._listeners:
            listener.arrived.set()
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
