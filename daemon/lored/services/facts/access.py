"""Access counters: counted in memory, written in batches, so that a read costs no commit.

A crash loses at most the counts of `fact_access_flush_seconds`; nothing else depends on them.
"""

import asyncio
import contextlib
from collections.abc import Iterable, Mapping
from functools import partial

import structlog

from lored.core.clock import Micros
from lored.services.app import App
from lored.store.facts import rows as facts

MOST_FACTS = 2_000
"""Facts with unwritten counts of one store; then they are written at once."""

log = structlog.get_logger()


class Access:
    """The counts that are not written yet, by store."""

    def __init__(self, app: App, seconds: float) -> None:
        self._app = app
        self._seconds = seconds
        self._seen: dict[str | None, dict[int, tuple[int, Micros]]] = {}
        self._last: Micros = 0
        self._due = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to write counts in the background."""
        self._task = asyncio.create_task(self._run(), name="fact access counters")

    async def stop(self) -> None:
        """Write what is left."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        await self.flush()

    def note(self, workspace_id: str | None, ids: Iterable[int], at: Micros) -> None:
        """Count one access of each of the facts (internal ids) of a store. Instants are whole
        milliseconds: uses within one are put a microsecond apart, so that they keep their order."""
        if at // 1_000 == self._last // 1_000:
            at = self._last + 1
        self._last = at
        seen = self._seen.setdefault(workspace_id, {})
        for fact_id in ids:
            seen[fact_id] = (seen.get(fact_id, (0, 0))[0] + 1, at)
        if seen:
            self._due.set()

    def pending(self, workspace_id: str | None) -> Mapping[int, tuple[int, Micros]]:
        """Internal id -> (accesses, the last one) that the store does not have yet."""
        return dict(self._seen.get(workspace_id, {}))

    async def flush(self) -> None:
        """Write all counts; a store that cannot be written keeps its counts for later."""
        for workspace_id in list(self._seen):
            seen = self._seen.pop(workspace_id)
            rows = [(fact_id, count, last) for fact_id, (count, last) in seen.items()]
            try:
                async with self._app.registry.facts(workspace_id) as database:
                    await database.write(partial(facts.count_access, seen=rows))
            except Exception as error:  # also a store that is being replaced: none ends the task
                log.warning("access counters not written", error=str(error))
                for fact_id, (count, last) in seen.items():
                    old = self._seen.setdefault(workspace_id, {}).get(fact_id, (0, 0))
                    self._seen[workspace_id][fact_id] = (old[0] + count, max(last, old[1]))

    async def _run(self) -> None:
        while True:
            await self._due.wait()
            full = any(len(seen) >= MOST_FACTS for seen in self._seen.values())
            if not full:
                await asyncio.sleep(self._seconds)
            self._due.clear()
            await self.flush()
