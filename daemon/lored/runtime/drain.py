"""The end of a daemon, in order and in time.

1. Stop accepting; new requests on open connections are answered `shutting_down`.
2. Open requests may finish, 3 s; then they are answered `shutting_down` and cancelled.
3. Services stop in reverse order (watcher, worker, queues), together at most a second.
4. Clients read their last answers, then are aborted.
5. Stores close: writer queues empty, readers end, checkpoint, writers last.
6. Our socket leaves the file system if it is still ours; the lock is released last.

Every step has its time; one that hangs is named in the log and left behind. The sum stays
below `signals.FORCE_SECONDS`, whose thread ends the process whatever happens here.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

import structlog

REQUESTS_SECONDS: Final = 3.0
"""For open requests: the longest write takes less, a search has to be asked again."""

SERVICES_SECONDS: Final = 0.7
"""For all services together."""

CLIENTS_SECONDS: Final = 0.1
"""For clients to read what was sent; it lies in their buffers already."""

STORES_SECONDS: Final = 0.6
"""For the stores: a checkpoint of 4 MiB and a few joins of threads."""

log = structlog.get_logger()


class Step(NamedTuple):
    """One part of the drain: name, seconds, what to do."""

    name: str
    seconds: float
    run: Callable[[], Awaitable[object]]


async def drain(steps: list[Step]) -> list[str]:
    """Run the steps in order, each within its seconds; the names of those that did not end.

    A step that fails is logged and counts as ended: what it held is given up, not waited for.
    """
    left_behind: list[str] = []
    for step in steps:
        began = time.monotonic()
        task = asyncio.ensure_future(step.run())
        done, _ = await asyncio.wait({task}, timeout=step.seconds)
        if not done:
            log.error("drain_hangs", step=step.name, seconds=step.seconds)
            left_behind.append(step.name)
            task.cancel()  # and not awaited: it may ignore that
        elif task.cancelled() or task.exception() is not None:
            log.error("drain_failed", step=step.name, exc_info=task.exception())
        else:
            log.debug("drained", step=step.name, ms=(time.monotonic() - began) * 1000)
    return left_behind
