"""`forget_session`: sessions and all that was derived from them, out of the store, with proof.

1. One transaction deletes messages, actions, summaries, index and vector rows, leaves a
   tombstone per session and blocks its files: reading them again brings nothing back.
2. The text index is rewritten, the log folded in, and all files of ours are scanned for
   stretches of the forgotten texts, in the form in which they were stored. What is still
   found in the store (bytes in free pages) is removed by rewriting the file.
3. The answer counts what went and says what the scan saw. Messages that another session
   holds too (a fork) stay with that session, and the answer names it.

The agent's own transcript is never touched: the answer names those files. Once 1 has begun, all
is done to its end, whether the caller waits for that or not.
"""

import asyncio
import os
from functools import partial
from typing import Any, Final

from lore.errors import Invalid, NotFound
from lored.services.app import App, Call
from lored.services.facts import remains
from lored.services.moments import now
from lored.services.operations import Operation
from lored.services.sessions.reading import Sessions
from lored.store.sessions import forget, listing
from lored.store.sessions.forget import Removed
from lored.store.sessions.listing import Filters

SESSIONS: Final = 10_000
"""Most sessions of one call; more are forgotten by calling again."""

WORDS_LEAST: Final = 3
"""Characters of a `query`; fewer stand in nearly every message."""

MESSAGES_AT_ONCE: Final = 20_000
"""Messages looked through by one read, so that other readers get their turn."""

CHECKPOINTS: Final = 20
CHECKPOINT_PAUSE: Final = 0.05
"""A reader of a moment ago may still hold the log."""


class Forget:
    """The service `forget`."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def sessions(self, params: dict[str, Any], call: Call) -> dict[str, Any]:
        """Forget what `id`, `query` or `path` means; with `dry_run` only say what would go."""
        with self._app.operations.under_way(call, "forget_session") as operation:
            return await self._sessions(operation, params, call)

    async def _sessions(
        self, operation: Operation, params: dict[str, Any], call: Call
    ) -> dict[str, Any]:
        operation.begin("looking for sessions", "steps")
        ids = await self._chosen(params)
        database = self._app.registry.sessions
        ids = await database.read(lambda c: forget.with_subagents(c, ids))
        removed = await database.read(lambda c: forget.measure(c, ids))
        answer = _describe(removed)
        facts = await self._facts(removed) if params.get("facts") else []
        if facts:
            answer["facts"] = [f"{fact['scope']}:{fact['id']}" for fact in facts]
        if params.get("dry_run") or not ids:
            return {**answer, "dry_run": bool(params.get("dry_run"))}
        answer["proof"] = await operation.finish(self._forget(operation, ids, removed, facts, call))
        return answer

    async def _forget(
        self,
        operation: Operation,
        ids: list[int],
        removed: Removed,
        facts: list[dict[str, Any]],
        call: Call,
    ) -> dict[str, Any]:
        operation.begin("removing", "steps", 2 + len(facts))
        await self._remove(ids)
        operation.advance()
        for fact in facts:
            await self._forget_fact(fact, call)
            operation.advance()
        await self._app.get("indexing").reload(removed.files)
        operation.advance()
        proof = await self._prove(operation, removed)
        for name in removed.sessions:
            self._app.events.publish("sessions", {"action": "forgotten", "session": {"id": name}})
        return proof

    async def _chosen(self, params: dict[str, Any]) -> list[int]:
        given = [name for name in ("id", "query", "path") if params.get(name)]
        if len(given) != 1:
            raise Invalid("forget_session: give exactly one of id, query and path")
        sessions: Sessions = self._app.get("sessions")
        if given == ["id"]:
            return [(await sessions.resolve(params["id"])).id]
        if given == ["path"]:
            filters = Filters(workspace=await self._workspace(params["path"]), subagents=True)
            page = await self._app.registry.sessions.read(
                lambda c: listing.page(c, filters, after=None, limit=SESSIONS)
            )
            return page.ids
        return await self._saying(params["query"].strip())

    async def _workspace(self, path: str) -> str:
        """The workspace of a path or id; also of a folder that belongs to another realm by now,
        of which nothing is stated or asked here but may still be forgotten."""
        workspaces = self._app.workspaces
        if path.startswith("/"):
            found = await workspaces.identify(path)
        else:
            known = await workspaces.resolve(path)
            found = None if known is None else known.id
        if found is None:
            raise NotFound(f"{path} is in no workspace")
        return found

    async def _saying(self, words: str) -> list[int]:
        """Sessions that hold ``words`` literally: what only resembles them must not go."""
        if len(words) < WORDS_LEAST:
            raise Invalid(f"forget_session: query={words!r} is too short to tell sessions apart")
        database = self._app.registry.sessions
        found = await database.read(lambda c: forget.doing(c, words))
        after: int | None = 0
        while after is not None:
            look = partial(forget.saying, words=words, after=after, count=MESSAGES_AT_ONCE)
            more, after = await database.read(look)
            found |= more
        return sorted(found)

    async def _remove(self, ids: list[int]) -> None:
        database, at = self._app.registry.sessions, now()
        await database.write_raw(lambda c: forget.erasing(c, True))
        try:
            await database.write(lambda c: forget.remove(c, ids, at, "forget_session"))
            await database.write(forget.purge)
        finally:
            await database.write_raw(lambda c: forget.erasing(c, False))
        await self._fold()

    async def _fold(self) -> None:
        """Fold the log into the file and empty it."""
        database = self._app.registry.sessions
        for _ in range(CHECKPOINTS):
            await database.checkpoint()
            try:
                if os.stat(database.path + "-wal").st_size == 0:
                    return
            except FileNotFoundError:
                return
            await asyncio.sleep(CHECKPOINT_PAUSE)

    async def _prove(self, operation: Operation, removed: Removed) -> dict[str, Any]:
        paths = self._app.paths

        def look() -> remains.Scan:
            files = list(remains.files_under((paths.data_dir, paths.state_dir)))
            operation.begin("looking for what is left", "bytes", remains.weigh(files))
            return remains.scan(files, removed.needles, operation.advance)

        scan = await asyncio.to_thread(look)
        rewritten = False
        if any(path.startswith(paths.sessions_db) for path in scan.found):
            rewritten = True
            await self._app.registry.sessions.write_raw(forget.rewrite)
            await self._fold()
            scan = await asyncio.to_thread(look)
        return {
            "files": scan.files,
            "bytes": scan.read_bytes,
            "looked_for": len(removed.needles),
            "found": sum(len(hits) for hits in scan.found.values()),
            "found_in": sorted(scan.found),
            "rewritten": rewritten,
            "note": "texts are looked for as stored (compressed from 256 characters on)",
        }

    async def _facts(self, removed: Removed) -> list[dict[str, Any]]:
        service = self._app.get("facts")
        found: list[dict[str, Any]] = []
        for name in removed.sessions:
            found += await service.facts_of_session(name)
        return found

    async def _forget_fact(self, fact: dict[str, Any], call: Call) -> None:
        params = {"id": fact["uid"], "hard": True, "reason": "its session was forgotten"}
        if fact.get("workspace"):
            params["workspace"] = fact["workspace"]
        await self._app.get("facts").forget(call, params)


def _describe(removed: Removed) -> dict[str, Any]:
    return {
        "sessions": removed.sessions,
        "removed": {
            "messages": removed.messages,
            "shared_messages": removed.links,
            "actions": removed.actions,
            "compactions": removed.compactions,
        },
        "transcripts": removed.files,
        "kept": [
            {"session": name, "messages": count, "reason": "this session holds them too"}
            for name, count in sorted(removed.kept.items())
        ],
    }
