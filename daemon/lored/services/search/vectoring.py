"""Vectors of the model proper for what is stored, in the background, newest first.

Facts first, then what people and models said in sessions; output of tools gets none (the
text index finds it, and it is most of the volume). Nothing here is a state of its own: what
is missing is read from the stores, so an interruption at any point costs nothing and the
next look goes on. Until a row has its vector, the static one stands in.

A model that cannot run is tried again at the next news, at most every `PAUSE_SECONDS`.
"""

import asyncio
import contextlib
import time
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import structlog

from lore.errors import Invalid
from lored.core.quantized import Float32, quantize
from lored.core.stored_text import decode
from lored.core.tokens import SHORT_MESSAGE_CHARS
from lored.embed.base import STATIC, Model
from lored.embed.warm import ModelDown
from lored.services.app import App
from lored.services.events import Event
from lored.store.driver import Connection
from lored.store.migrate import ForeignFile, NewerSchema
from lored.store.search import vectors

if TYPE_CHECKING:
    from lored.services.search.embedding import Embedding

log = structlog.get_logger()

BEGIN_SECONDS: Final = 3.0
"""After the start: the first answers come first."""

SETTLE_SECONDS: Final = 1.0
"""After news: a batch of them comes together."""

PAUSE_SECONDS: Final = 120.0
"""Between tries of a model that cannot run."""

PLAN_MESSAGES: Final = 1_024
"""Messages chosen at once: sorting a million by time takes 0.2 s."""

BATCH_MESSAGES: Final = 16
"""Texts given to the model at once: half a second of work, so a stop is soon obeyed."""

WRITE_MESSAGES: Final = 64
"""Vectors written in one transaction."""

QUEUED_FACTS: Final = 10_000
"""Facts waiting for their vector; what is beyond is found by the next look at the stores."""

BEFORE_CHARS: Final = 200
"""Of the end of the message before that a short message is embedded with: on LoCoMo +1.0 R@10,
+1.3 MRR against the message alone."""

_SPOKEN: Final = (0, 1, 3)
"""`messages.role` of user, assistant, summary."""


class Vectoring:
    """The background work of the service `embedding`."""

    def __init__(self, app: App, embedding: "Embedding") -> None:
        self._app = app
        self._embedding = embedding
        self._news = asyncio.Event()
        self._facts: deque[tuple[str | None, int]] = deque(maxlen=QUEUED_FACTS)
        self._look: set[str | None] = set()
        self._task: asyncio.Task[None] | None = None
        self._forget_events: Any = None
        self.waiting = 0
        """Messages without a vector of the model, when last looked."""
        self.made = 0
        """Vectors stored since the start."""
        self.problem: str | None = None
        """Why the model cannot run, in words."""
        self._idle = asyncio.Event()

    def start(self) -> None:
        """Begin, when there is a model."""
        if self._embedding.warm is None:
            self._idle.set()
            return
        self._look = {None, *self._app.registry.known_workspaces()}
        self._forget_events = self._app.events.listen(self._heard)
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """End at the next step; nothing is lost."""
        if self._forget_events is not None:
            self._forget_events()
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def enqueue(self, workspace: str | None, rowid: int) -> None:
        """A new fact."""
        if self._task is not None:
            self._facts.append((workspace, rowid))
            self._wake()

    async def reindex(self, model: str | None) -> dict[str, Any]:
        """Look at all stores again now. Raises `Invalid` for a model that is not configured."""
        configured = self._app.settings.embed_model
        if model is not None and model != configured:
            raise Invalid(
                f"model {model!r} is not the configured one; set embed_model = {model!r} in "
                "config.toml and restart: everything is embedded anew, old vectors serve until then"
            )
        warm = self._embedding.warm
        if warm is None:
            return {"accepted": False, "reason": "there is no model beyond the static table"}
        self._look = {None, *self._app.registry.known_workspaces()}
        self._wake()
        return {"accepted": True, "model": configured, "waiting": self.waiting}

    async def caught_up(self) -> None:
        """Until nothing is left to do (or the model cannot run)."""
        await self._idle.wait()

    def report(self) -> dict[str, Any]:
        """What is done and left."""
        return {"vectors_waiting": self.waiting, "vectors_made": self.made}

    # -- the loop ------------------------------------------------------------------------------

    def _heard(self, event: Event) -> None:
        if event.topic == "sessions":
            self._wake()

    def _wake(self) -> None:
        self._idle.clear()
        self._news.set()

    async def _run(self) -> None:
        self._news.set()
        await asyncio.sleep(BEGIN_SECONDS)
        while True:
            if not self._news.is_set():
                self._idle.set()
            await self._news.wait()
            await asyncio.sleep(SETTLE_SECONDS)
            self._news.clear()
            try:
                await self._catch_up()
                self.problem = None
            except Exception as error:  # also a store that is busy or being replaced
                self.problem = str(error) or type(error).__name__
                log.warning("vectoring_paused", reason=self.problem)
                self._idle.set()
                await asyncio.sleep(PAUSE_SECONDS)
                self._news.set()

    async def _catch_up(self) -> None:
        warm = self._embedding.warm
        if warm is None:
            return
        if not self._look and not self._facts and not await self._planned():
            return  # nothing to do: the process need not run
        model = await warm.start()
        while self._look:
            workspace = next(iter(self._look))
            await self._fill_facts(model, workspace, None)
            self._look.discard(workspace)
        await self._fill_queued(model)
        while plan := await self._planned():
            for start in range(0, len(plan), WRITE_MESSAGES):
                await self._fill_messages(model, plan[start : start + WRITE_MESSAGES])
                await self._fill_queued(model)
        await self._app.registry.sessions.write(partial(_drop_others, kept={model.name, STATIC}))

    async def _planned(self) -> list[int]:
        segment = self._embedding.segment
        columns = self._embedding.columns

        def choose(conn: Connection) -> tuple[list[int], int]:
            columns.refresh(conn)
            return columns.missing(segment or "", _SPOKEN, PLAN_MESSAGES)

        plan, self.waiting = await self._app.registry.sessions.read(choose)
        return plan

    async def _embed(self, texts: list[str]) -> Float32:
        warm = self._embedding.warm
        if warm is None:
            raise ModelDown("there is no model")
        return await warm.embed(texts, bulk=True)

    async def _fill_messages(self, model: Model, ids: list[int]) -> None:
        """Vectors of some messages; those that vanish meanwhile are skipped."""
        database = self._app.registry.sessions
        texts = await database.read(lambda c: spoken_texts(c, ids))
        rows: list[tuple[int, bytes]] = []
        numbers = list(texts)
        for start in range(0, len(numbers), BATCH_MESSAGES):
            part = numbers[start : start + BATCH_MESSAGES]
            found = await self._embed([texts[number] for number in part])
            rows += zip(part, quantize(found), strict=True)

        def write(conn: Connection) -> None:
            marks = ",".join("?" * len(rows))
            there = {
                row[0]
                for row in conn.execute(
                    f"SELECT id FROM messages WHERE id IN ({marks})", [row[0] for row in rows]
                )
            }
            vectors.put_messages(conn, model.name, [row for row in rows if row[0] in there])

        began = time.monotonic()
        await database.write(write)
        self.made += len(rows)
        self.waiting = max(0, self.waiting - len(rows))
        if time.monotonic() - began > 1.0:
            await asyncio.sleep(1.0)  # the writer is busy with more urgent work

    async def _fill_queued(self, model: Model) -> None:
        """The vectors of new facts, those of one store together: each write is a synced commit
        that the next statement waits for."""
        while self._facts:
            workspace = self._facts[0][0]
            ids: list[int] = []
            while self._facts and self._facts[0][0] == workspace and len(ids) < BATCH_MESSAGES:
                ids.append(self._facts.popleft()[1])
            await self._fill_facts(model, workspace, ids)

    async def _fill_facts(self, model: Model, workspace: str | None, ids: list[int] | None) -> None:
        """The vectors of some facts, or of all of a store that have none. A store that is not for
        this release is passed over."""
        try:
            async with self._app.registry.facts(workspace) as database:
                while True:
                    found = await database.read(lambda c: _facts_without(c, model, ids))
                    if not found:
                        return
                    made = await self._embed([text for _, text in found])
                    rows = [
                        (number, vector)
                        for (number, _), vector in zip(found, quantize(made), strict=True)
                    ]
                    await database.write(partial(_put_facts, model=model, rows=rows))
                    self.made += len(rows)
                    if ids is not None:
                        return
        except (NewerSchema, ForeignFile) as error:
            log.warning("vectoring_skips", reason=str(error))


def spoken_texts(conn: Connection, ids: list[int]) -> dict[int, str]:
    """What is embedded of each message: its text, a short one after the end of what was said
    before it in the session."""
    marks = ",".join("?" * len(ids))
    found: dict[int, str] = {}
    for number, session, position, stored in conn.execute(
        f"SELECT id, session, position, text FROM messages WHERE id IN ({marks})", ids
    ).fetchall():
        text = decode(stored)
        if len(text) < SHORT_MESSAGE_CHARS:
            before = said_before(conn, session, position)
            text = f"{before} {text}" if before else text
        found[number] = text
    return {number: found[number] for number in ids if number in found}


def said_before(conn: Connection, session: int, position: int) -> str:
    """The end of what was said before a place in a session; empty when nothing was."""
    before = conn.execute(
        "SELECT text FROM messages WHERE session = ? AND position < ?"
        " AND role IN (0, 1, 3) ORDER BY position DESC LIMIT 1",
        (session, position),
    ).fetchone()
    return "" if before is None else decode(before[0])[-BEFORE_CHARS:]


def _drop_others(conn: Connection, *, kept: set[str]) -> None:
    """Delete the vectors of models that are no longer used, now that nothing is missing."""
    for (name,) in conn.execute("SELECT name FROM vector_segments").fetchall():
        if name not in kept:
            vectors.drop_message_segment(conn, name)


def _facts_without(conn: Connection, model: Model, ids: list[int] | None) -> list[tuple[int, str]]:
    number = vectors.segment_id(conn, model.name)
    among = "" if ids is None else f" AND f.id IN ({','.join('?' * len(ids))})"
    return [
        (row[0], row[1])
        for row in conn.execute(
            f"SELECT f.id, f.text FROM facts f JOIN fact_texts t ON t.id = f.id"
            f" WHERE f.text <> ''{among} AND NOT EXISTS ("
            "SELECT 1 FROM fact_vectors v WHERE v.segment = ? AND v.fact = f.id)"
            f" ORDER BY f.id DESC LIMIT {WRITE_MESSAGES}",
            (*(ids or ()), -1 if number is None else number),
        )
    ]


def _put_facts(conn: Connection, *, model: Model, rows: list[tuple[int, bytes]]) -> None:
    marks = ",".join("?" * len(rows))
    there = {
        row[0]
        for row in conn.execute(
            f"SELECT id FROM fact_texts WHERE id IN ({marks})", [row[0] for row in rows]
        )
    }
    vectors.put_facts(conn, model.name, [row for row in rows if row[0] in there])
