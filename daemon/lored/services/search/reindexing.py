"""`reindex`: text index and vectors anew, from what is stored; old entries serve until then."""

import asyncio
from functools import partial
from typing import Any

from lored.services.app import App, Call
from lored.services.operations import EVENT_SECONDS, Operation
from lored.store.sessions import retexting


class Reindexing:
    """The service ``reindexing``."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def run(self, call: Call, *, model: str | None, text: bool, wait: bool) -> dict[str, Any]:
        """Rebuild the text indexes when ``text``; compute vectors of ``model`` (default: the
        present one) otherwise or when a model is named. The vectors follow in the background
        and go on after a restart; with ``wait`` the answer comes when they are there. Raises
        `Invalid` for an unknown model."""
        answer: dict[str, Any] = {"accepted": True}
        with self._app.operations.under_way(call, "reindex") as operation:
            if model is not None or not text:
                answer.update(await self._app.get("embedding").reindex(model))
            if text:
                answer["messages"] = await self._messages(operation)
                answer["facts_stores"] = await self._facts(operation)
            if wait and answer["accepted"]:
                answer["vectors"] = await self._vectors(operation)
                if problem := self._app.get("embedding").vectoring.problem:
                    answer["reason"] = problem
        return answer

    async def _vectors(self, operation: Operation) -> int:
        """Follow the background work until it is done, or rests since the model cannot run."""
        vectoring = self._app.get("embedding").vectoring
        before = vectoring.made
        operation.begin("computing vectors", "texts")
        done = asyncio.ensure_future(vectoring.caught_up())
        try:
            while not done.done():
                await asyncio.wait({done}, timeout=EVENT_SECONDS)
                made = vectoring.made - before
                operation.total = made + vectoring.waiting
                operation.advance(made - operation.done)
        finally:
            done.cancel()
        return operation.done

    async def _messages(self, operation: Operation) -> int:
        database, after, done = self._app.registry.sessions, 0, 0
        operation.begin("indexing words", "messages", await database.read(retexting.count))
        while rows := await database.read(partial(retexting.read, after=after)):
            made = await asyncio.to_thread(retexting.forms, rows)
            await database.write(partial(retexting.put, made=made))
            after, done = rows[-1][0], done + len(rows)
            operation.advance(len(rows))
        return done

    async def _facts(self, operation: Operation) -> int:
        registry = self._app.registry
        scopes = [None, *registry.known_workspaces()]
        operation.begin("indexing words of facts", "stores", len(scopes))
        for workspace_id in scopes:
            async with registry.facts(workspace_id) as database:
                await database.write(retexting.rebuild_facts)
            operation.advance()
        return len(scopes)
