"""The daemon's side of the worker: starts it, feeds it one job at a time, takes its batches.

- The worker starts with the first job and ends after `IDLE_SECONDS` without one.
- Back-pressure: at most `BATCHES_AHEAD` batches are held; then the pipe fills and the worker
  waits. Memory here is bounded by frames of `frames.FRAME_BYTES`.
- A worker that says nothing for `SILENCE_SECONDS` is killed; a job whose worker died is
  `crashed`, or `killed` when somebody else ended the worker by a signal (a user, the system
  out of memory). The caller decides what becomes of the file.
- Restarts are capped: after `RESTARTS` deaths within `RESTART_SECONDS` it is left alone for
  that long, and `broken` says so. A defect must not become a loop of processes.

The worker dies with the daemon by whatever death: it watches its parent, and its input ends.
"""

import asyncio
import os
import signal
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Any, Final, NamedTuple

from lored import __version__, tied
from lored.child import Child
from lored.core.batches import Batch, unpack
from lored.ingest import frames
from lored.ingest.reading import Job

IDLE_SECONDS: Final = 90.0
"""A session at work writes more often than this; starting costs 0.3 s and memory is given
back in between."""

SILENCE_SECONDS: Final = 60.0
"""The worker says something every second, except inside one call into a regular expression or
a model, which are bounded to fractions of this."""

BATCHES_AHEAD: Final = 2
"""One is written while the next is made."""

RESTARTS: Final = 5
RESTART_SECONDS: Final = 60.0
READY_SECONDS: Final = 30.0
"""From its start to its greeting: 0.3 s alone, some seconds on a loaded machine."""

STOP_SECONDS: Final = 1.0
"""From the end of its input to SIGKILL; a worker has nothing to save."""

END_SECONDS: Final = 0.5
"""From the end of a worker's output to its exit code, which says who ended it."""

KILLS: Final = (-signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT, -signal.SIGHUP)
"""Exit codes of a process that another one ended; a crash of its own gives others."""

OnBatch = Callable[[Batch], Awaitable[None]]
OnAsk = Callable[[str], Awaitable[dict[str, Any]]]
OnBeat = Callable[[int], None]


class Outcome(NamedTuple):
    """How a job ended: an outcome of `ingest.worker`, `crashed` or `killed`; why; bytes read."""

    kind: str
    text: str = ""
    bytes_read: int = 0


class Broken(Exception):
    """The worker does not start or keeps dying; it is tried again later."""


class _Died(Exception):
    pass


class Pipeline:
    """One worker process at most, one job at a time."""

    def __init__(self, memory_bytes: int, log: Any) -> None:
        self._memory_bytes = memory_bytes
        self._log = log
        self._process: Child | None = None
        self._deaths: deque[float] = deque(maxlen=RESTARTS)
        self._number = 0
        self._idle: asyncio.TimerHandle | None = None
        self.starts = 0
        self.replaced = False
        """Our package on disk is not the one that this process runs."""

    @property
    def pid(self) -> int | None:
        """The worker's process id while it runs."""
        return None if self._process is None else self._process.pid

    @property
    def broken_until(self) -> float | None:
        """Monotonic time until which the worker is left alone, None when it may start."""
        if len(self._deaths) < RESTARTS or self._deaths[-1] - self._deaths[0] > RESTART_SECONDS:
            return None
        until = self._deaths[-1] + RESTART_SECONDS
        return until if until > time.monotonic() else None

    async def run(
        self,
        job: Job,
        options: dict[str, Any],
        *,
        on_batch: OnBatch,
        on_ask: OnAsk,
        on_beat: OnBeat,
    ) -> Outcome:
        """Do one job; ``on_batch`` is awaited for each batch in order before the next is given.

        Raises `Broken` when the worker may not be started now, and whatever ``on_batch``
        raises (the worker is then replaced, since it is ahead of what is stored).
        """
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        process = self._process or await self._start()
        self._number += 1
        batches: asyncio.Queue[Batch | Outcome] = asyncio.Queue(BATCHES_AHEAD)
        reader = asyncio.ensure_future(
            self._receive(process, self._number, batches, on_ask, on_beat)
        )
        try:
            await self._send(process, ["job", self._number, asdict(job), options])
            while True:
                item = await batches.get()
                if isinstance(item, Outcome):
                    if item.kind != "crashed":
                        self._rest()
                    elif await self._bury(process):
                        return item._replace(kind="killed", text="the worker was killed")
                    return item
                await on_batch(item)
        except BaseException:
            reader.cancel()
            await self._kill(process)
            raise

    async def _receive(
        self,
        process: Child,
        number: int,
        batches: "asyncio.Queue[Batch | Outcome]",
        on_ask: OnAsk,
        on_beat: OnBeat,
    ) -> None:
        """Read frames until the job ends; always ends with an `Outcome`."""
        try:
            while True:
                kind, about, *values = await self._frame(process)
                if about != number:
                    raise frames.BrokenFrame("a frame of another job")
                if kind == "batch":
                    await batches.put(unpack(values[0]))
                elif kind == "ask":
                    await self._send(process, ["known", await on_ask(values[0])])
                elif kind == "beat":
                    on_beat(values[0])
                else:
                    await batches.put(Outcome(*values))
                    return
        except (_Died, frames.BrokenFrame, ValueError, TypeError) as error:
            await batches.put(Outcome("crashed", str(error)))
        except asyncio.CancelledError:
            raise
        except Exception as error:
            self._log.error("worker pipe", error=repr(error))
            await batches.put(Outcome("crashed", repr(error)))

    async def _frame(self, process: Child) -> Any:
        try:
            async with asyncio.timeout(SILENCE_SECONDS):
                head = await process.reader.readexactly(4)
                body = await process.reader.readexactly(frames.length(head))
        except (asyncio.IncompleteReadError, ConnectionError):
            raise _Died("the worker died") from None
        except TimeoutError:
            raise _Died(f"the worker was silent for {SILENCE_SECONDS:g} s") from None
        return frames.decode(body)

    @staticmethod
    async def _send(process: Child, value: Any) -> None:
        try:
            process.writer.write(frames.encode(value))
            await process.writer.drain()
        except (ConnectionError, RuntimeError):
            return  # the reader notices the death and says so

    async def _start(self) -> Child:
        if self.broken_until is not None:
            raise Broken(f"the worker died {RESTARTS} times within {RESTART_SECONDS:g} s")
        environment = {
            **os.environ,
            # One thread: two would compete with requests for the cores.
            "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
            "TOKENIZERS_PARALLELISM": "false",
        }
        environment.pop("NOTIFY_SOCKET", None)
        arguments = tied.command("lored.ingest.worker", str(self._memory_bytes))
        process = await Child.start(arguments, environment, limit=1 << 20)
        self.starts += 1
        try:
            async with asyncio.timeout(READY_SECONDS):
                kind, _, *release = await self._frame(process)
            if kind != "ready":
                raise frames.BrokenFrame("no greeting")
        except (_Died, frames.BrokenFrame, TimeoutError, ValueError) as error:
            await self._bury(process)
            raise Broken(f"the worker does not start: {error}") from None
        except BaseException:
            await self._kill(process)
            raise
        if release != [__version__]:
            # Replaced on disk while this daemon runs: the two need not understand each other.
            await self._kill(process)
            self.replaced = True
            raise Broken(f"another release is installed than this daemon's, {__version__}")
        self._process = process
        self._log.info("worker started", worker=process.pid)
        return process

    def _rest(self) -> None:
        loop = asyncio.get_running_loop()
        self._idle = loop.call_later(IDLE_SECONDS, lambda: loop.create_task(self.stop()))

    async def _bury(self, process: Child) -> bool:
        """Count a death; whether somebody else killed it."""
        self._deaths.append(time.monotonic())
        killed = await process.ended(END_SECONDS) and process.returncode in KILLS
        await self._kill(process)
        self._log.warning("worker died", worker=process.pid, code=process.returncode)
        return killed

    async def _kill(self, process: Child) -> None:
        if self._process is process:
            self._process = None
        if not await process.kill():
            self._log.error("worker hangs in the system and is left behind", worker=process.pid)

    async def stop(self) -> None:
        """End the worker; it has nothing to save."""
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        process, self._process = self._process, None
        if process is None:
            return
        process.end_input()
        if await process.ended(STOP_SECONDS):
            process.close()
        else:
            await self._kill(process)
