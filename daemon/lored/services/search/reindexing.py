"""`reindex`: text index and vectors anew, from what is stored; old entries serve until then.

A store whose index has another form of tools' outputs (`core.outputs.FORM`) is brought up to
the present one in the background after the start; how far that came stands in the store.
"""

import asyncio
import contextlib
import time
from functools import partial
from typing import Any, Final

import structlog

from lored.services.app import App, Call
from lored.services.operations import EVENT_SECONDS, Operation
from lored.store import driver
from lored.store.database import StoreBusy
from lored.store.sessions import retexting

BEGIN_SECONDS: Final = 5.0
"""After the start: the first answers and new sessions come first."""

REST: Final = 2.0
"""Pause after a portion, in times of what it took: nobody waits for this."""

log = structlog.get_logger()


class Reindexing:
    """The service ``reindexing``."""

    def __init__(self, app: App, begin_seconds: float = BEGIN_SECONDS) -> None:
        self._app = app
        self._begin = begin_seconds
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """See whether the index is of another form, and begin to bring it up."""
        due = await self._app.registry.sessions.read(retexting.due)
        if due is not None:
            self._task = asyncio.create_task(self._bring_up(*due), name="words of outputs")

    async def stop(self) -> None:
        """End at the next step; the next start goes on from there."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def caught_up(self) -> None:
        """Until the index has the present form, or the store cannot be written."""
        if self._task is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

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
            after, done = rows[-1].message, done + len(rows)
            operation.advance(len(rows))
        await database.write(partial(retexting.reached, after=None))
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

    async def _bring_up(self, begin: int, last: int) -> None:
        await asyncio.sleep(self._begin if last else 0)
        database = self._app.registry.sessions
        after: int | None = begin
        done = 0
        try:
            while after is not None:
                began = time.monotonic()
                rows = await database.read(partial(retexting.read_outputs, after=after, last=last))
                made = await asyncio.to_thread(retexting.forms, rows)
                after = rows[-1].message if rows else None
                done += len(rows)
                await database.write(partial(_put, made=made, after=after))
                await asyncio.sleep(REST * (time.monotonic() - began) if rows else 0)
        except (driver.Error, StoreBusy) as error:
            log.warning("words of outputs wait for the next start", error=repr(error))
            return
        if done:
            log.info("words of outputs brought up", messages=done)


def _put(conn: driver.Connection, *, made: retexting.Forms, after: int | None) -> None:
    retexting.put(conn, made)
    retexting.reached(conn, after)
