"""`redact`: look through what is stored for secrets, and take them out of sessions.

Facts are a person's own words: secrets in them are reported with the fact's id, never changed
(`lore forget ID --hard` removes one). The answer names rules and places, never a secret.

A fix that was interrupted has left clean rows and perhaps words in the text index or in free
pages: so a fix always ends with these, also when it finds no row left to clean.
"""

import asyncio
from collections import Counter
from functools import partial
from typing import Any, Final

import msgpack

from lored.core import redact
from lored.services.app import App, Call
from lored.services.operations import Operation
from lored.store.search import text as text_index
from lored.store.sessions import redaction

PLACES: Final = 100
"""Places named in an answer; all are counted."""


class Redaction:
    """The service ``redaction``."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def run(self, call: Call, *, fix: bool) -> dict[str, Any]:
        """Scan everything; with ``fix`` replace what is found in sessions.

        Returns `found` [{rule, count}], `places` (the first `PLACES`), `removed`.
        """
        with self._app.operations.under_way(call, "redact") as operation:
            return await self._run(operation, fix)

    async def _run(self, operation: Operation, fix: bool) -> dict[str, Any]:
        counts: Counter[str] = Counter()
        places: list[dict[str, Any]] = []
        removed = 0
        database = self._app.registry.sessions
        rows_there = await database.read(redaction.count)
        operation.begin("looking for secrets", "rows", rows_there)
        for column in redaction.COLUMNS:
            after = 0
            while True:
                rows = await database.read(partial(redaction.portion, column=column, after=after))
                if not rows:
                    break
                after = rows[-1][0]
                dirty = await asyncio.to_thread(_clean, rows)
                operation.advance(len(rows))
                for row, _, found in dirty:
                    counts.update(found)
                    if len(places) < PLACES:
                        place = {"table": column.table, "row": str(row), "rules": sorted(found)}
                        places.append(place)
                if fix and dirty:
                    fresh = [(row, said) for row, said, _ in dirty]
                    await database.write(partial(redaction.replace, column=column, rows=fresh))
                    removed += len(fresh)
        if fix:
            operation.begin("writing the store anew", "steps", 4)
            await self._folds()
            operation.advance()
            await database.write(text_index.purge_messages)
            operation.advance()
            await database.write_raw(lambda c: c.execute("VACUUM"))
            operation.advance()
            await database.checkpoint()
            operation.advance()
        await self._facts(counts, places)
        return {
            "found": [{"rule": rule, "count": count} for rule, count in sorted(counts.items())],
            "places": places,
            "removed": removed,
        }

    async def _folds(self) -> None:
        """The states that summaries grow from hold words of the session, too."""
        database, after = self._app.registry.sessions, 0
        while True:
            rows = await database.read(partial(redaction.folds, after=after))
            if not rows:
                return
            after = rows[-1][0]
            fresh = await asyncio.to_thread(_clean_folds, rows)
            if fresh:
                await database.write(partial(redaction.replace_folds, rows=fresh))

    async def _facts(self, counts: "Counter[str]", places: list[dict[str, Any]]) -> None:
        registry = self._app.registry
        for workspace_id in (None, *registry.known_workspaces()):
            async with registry.facts(workspace_id) as database:
                rows = await database.read(lambda c: list(redaction.texts(c)))
            for name, said in rows:
                found = Counter(one.rule for one in redact.scan(said))
                counts.update(found)
                if found and len(places) < PLACES:
                    scope = "global" if workspace_id is None else "workspace"
                    places.append(
                        {
                            "fact": f"{scope}:{name}",
                            "workspace": workspace_id,
                            "rules": sorted(found),
                            "remedy": f"lore forget {scope}:{name} --hard",
                        }
                    )


def _clean(rows: list[tuple[int, str]]) -> list[tuple[int, str, dict[str, int]]]:
    cleaned = ((row, *redact.redact(said)) for row, said in rows)
    return [(row, said, counts) for row, said, counts in cleaned if counts]


def _clean_folds(rows: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    fresh = []
    for row, packed in rows:
        state = msgpack.unpackb(packed, strict_map_key=False)
        cleaned = _clean_value(state)
        if cleaned != state:
            fresh.append((row, msgpack.packb(cleaned)))
    return fresh


def _clean_value(value: Any) -> Any:
    if isinstance(value, str):
        return redact.redact(value)[0]
    if isinstance(value, list):
        return [_clean_value(one) for one in value]
    if isinstance(value, dict):
        return {_clean_value(key): _clean_value(one) for key, one in value.items()}
    return value
