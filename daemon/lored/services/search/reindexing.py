"""`reindex`: text index and vectors anew, from what is stored; old entries serve until then."""

import asyncio
from functools import partial
from typing import Any

from lored.services.app import App
from lored.store.sessions import retexting


class Reindexing:
    """The service ``reindexing``."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def run(self, *, model: str | None, text: bool) -> dict[str, Any]:
        """Rebuild the text indexes when ``text``; compute vectors of ``model`` (default: the
        present one) otherwise or when a model is named. The vectors follow in the background
        and go on after a restart. Raises `Invalid` for an unknown model."""
        answer: dict[str, Any] = {"accepted": True}
        if model is not None or not text:
            answer.update(await self._app.get("embedding").reindex(model))
        if text:
            answer["messages"] = await self._messages()
            answer["facts_stores"] = await self._facts()
        return answer

    async def _messages(self) -> int:
        database, after, done = self._app.registry.sessions, 0, 0
        while rows := await database.read(partial(retexting.read, after=after)):
            made = await asyncio.to_thread(retexting.forms, rows)
            await database.write(partial(retexting.put, made=made))
            after, done = rows[-1][0], done + len(rows)
        return done

    async def _facts(self) -> int:
        registry = self._app.registry
        scopes = [None, *registry.known_workspaces()]
        for workspace_id in scopes:
            async with registry.facts(workspace_id) as database:
                await database.write(retexting.rebuild_facts)
        return len(scopes)
