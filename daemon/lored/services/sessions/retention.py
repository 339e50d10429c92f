"""`retention_days`: sessions that ended longer ago leave the memory, once a day.

They go as by `forget_session` (tombstone, index, vectors; subagents with their parents), a few
at a time, without the proof by byte scan. 0 keeps everything, also what its agent deleted.
"""

import asyncio
from typing import Any, Final

import structlog

from lored.core.clock import DAY, Micros
from lored.services.app import App
from lored.services.moments import now
from lored.store.driver import Connection
from lored.store.sessions import forget

PERIOD_SECONDS: Final = 86_400.0
FIRST_SECONDS: Final = 300.0
"""Not at once: the start belongs to the people who wait for it."""

PORTION: Final = 20
"""Sessions of one transaction, so that other writers get in between."""

log = structlog.get_logger()


class Retention:
    """The service ``retention``."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to look daily."""
        self._task = asyncio.create_task(self._daily(), name="retention")

    async def stop(self) -> None:
        """End."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _daily(self) -> None:
        await asyncio.sleep(FIRST_SECONDS)
        while True:
            try:
                dropped = await self.run()
                if dropped:
                    log.info("retention", sessions=dropped)
            except Exception as error:  # whatever it is, the next day must come
                log.warning("retention", error=str(error) or type(error).__name__)
            await asyncio.sleep(PERIOD_SECONDS)

    async def run(self) -> int:
        """Drop what is due; returns how many sessions went."""
        days = self._app.settings.retention_days
        if days <= 0:
            return 0
        before, dropped = now() - days * DAY, 0
        while True:
            ids, paths = await self._app.registry.sessions.write(lambda c: _drop(c, before))
            if not ids:
                return dropped
            dropped += len(ids)
            await self._app.get("indexing").reload(paths)

    def status(self) -> dict[str, Any]:
        """The policy, for `status`."""
        days = self._app.settings.retention_days
        return {"days": days} if days else {"keeps": "everything"}


def _drop(conn: Connection, before: Micros) -> tuple[list[int], list[str]]:
    """One portion, oldest first: internal ids and the files that they came from."""
    ended = conn.execute(
        "SELECT id FROM sessions WHERE is_subagent = 0"
        " AND coalesce(ended_at, started_at, indexed_at) < ? ORDER BY ended_at LIMIT ?",
        (before, PORTION),
    )
    ids = forget.with_subagents(conn, [row[0] for row in ended])
    files = forget.measure(conn, ids).files if ids else []
    forget.remove(conn, ids, now(), "retention")
    return ids, files
