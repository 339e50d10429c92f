"""Summaries of another version are folded again, before anything is read.

What is to be read anew is written into the cursors, portion by portion, so it is not forgotten
when the daemon ends in between; the next sweep finds it.
"""

import asyncio
from collections.abc import Collection
from typing import Final

import structlog

from lored.core import summary
from lored.core.reconcile import Cursor
from lored.core.transcripts import PARSERS, parser_name
from lored.services.indexing.roots import Root
from lored.store import driver
from lored.store.database import Database, StoreBusy
from lored.store.sessions import cursors, refolding

RETRY_SECONDS: Final = 60.0
"""Wait while the store cannot be written: nothing else could be indexed either."""

log = structlog.get_logger()


async def refold(database: Database, roots: Collection[Root]) -> list[Cursor]:
    """Let sessions be read anew whose summaries are of another version (`store.sessions.
    refolding`); the cursors as they are then, none when nothing had to be done."""
    while True:
        try:
            return await _refold(database, roots)
        except (driver.Error, StoreBusy) as error:
            log.warning("summaries of another version wait", error=repr(error))
            await asyncio.sleep(RETRY_SECONDS)


async def _refold(database: Database, roots: Collection[Root]) -> list[Cursor]:
    version = summary.VERSION
    if not await database.read(lambda c: refolding.is_due(c, version)):
        return []
    after: int | None = 0
    found = 0
    while after is not None:
        start = after
        after, others = await database.write(
            lambda c, start=start: refolding.look_through(c, version, start)  # type: ignore[misc]
        )
        found += others
    whole = [path for root in roots for path in root.cursors if found and _is_database(root, path)]
    await database.write(lambda c: refolding.finish(c, version, whole))
    if not found:
        return []
    log.info("summaries of another version", sessions=found)
    return await database.read(cursors.load)


def _is_database(root: Root, path: str) -> bool:
    parser = parser_name(root.spec.agent, path)
    return parser is not None and hasattr(PARSERS.get(parser), "parse_database")
