"""What the daemon checks about itself while it runs: its socket, and its watchdog's proof.

The socket. Logging out removes /run/user/<uid>, a cleaner may sweep a folder: a daemon whose
path is gone is alive but unreachable. Each minute (and at SIGHUP) the path is compared with
our socket. Gone, or a dead leftover in its place: we hold the lock, so we bind again, at the
path that the rules give now, and publish it. A living socket of somebody else can only be the
supervisor's, which wants to start the daemon itself: then we leave.

The watchdog. A beat is sent only by the loop, and only while the writers of the stores
answer; a writer may be busy with one long statement (VACUUM) for `STUCK_SECONDS`.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from lored.runtime import listen
from lored.runtime.listen import Listener
from lored.runtime.notify import Notifier
from lored.runtime.refusal import Refused

SOCKET_SECONDS: Final = 60.0
"""Period of the look at our own socket."""

STUCK_SECONDS: Final = 300.0
"""A writer silent for so long is not busy but stuck; then the beats end."""

log = structlog.get_logger()


class SocketCheck:
    """Keeps the daemon reachable."""

    def __init__(
        self,
        current: Listener,
        *,
        resolve: Callable[[], str],
        serve: Callable[[Listener], Awaitable[None]],
        leave: Callable[[str], None],
        degrade: Callable[[str, str | None, str], None],
    ) -> None:
        """``resolve`` gives the path that the rules name now; ``serve`` takes a new listener
        into use; ``leave`` ends the daemon; ``degrade`` enters or leaves a degraded mode."""
        self.current = current
        self._resolve, self._serve = resolve, serve
        self._leave, self._degrade = leave, degrade

    async def watch(self) -> None:
        """Check each minute, for ever."""
        while True:
            await asyncio.sleep(SOCKET_SECONDS)
            await self.check()

    async def check(self) -> None:
        """One look, and the repair."""
        if self.current.is_in_place():
            return
        try:
            path = self._resolve()
            answered = await asyncio.to_thread(listen.is_answered, path)
            if answered and path == self.current.path:
                self._leave("another socket took the place of ours")
                return
            fresh = listen.bind(path)
        except (Refused, ValueError) as error:
            self._degrade("no_socket", f"the socket has vanished: {error}", "lore restart")
            log.error("socket_gone", path=self.current.path, text=str(error))
            return
        log.warning("socket_rebound", path=path, before=self.current.path)
        self.current = fresh
        await self._serve(fresh)
        self._degrade("no_socket", None, "")


async def beat(notifier: Notifier, stuck_writers: Callable[[float], Awaitable[list[str]]]) -> None:
    """Send watchdog beats while loop and writers prove to work; returns without a watchdog."""
    if notifier.watchdog_seconds is None:
        return
    period = notifier.watchdog_seconds / 3
    last_proof = time.monotonic()
    while True:
        stuck = await stuck_writers(period)
        now = time.monotonic()
        if not stuck:
            last_proof = now
        if now - last_proof < STUCK_SECONDS:
            notifier.beat()
        else:
            log.error("watchdog_withheld", stores=",".join(stuck))
        await asyncio.sleep(period)
