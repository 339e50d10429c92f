"""All connections: accepting, counting, draining.

Knows nothing of methods. The listening socket is made by `runtime.listen`; this serves it,
and can take another one when the first has vanished from the file system.
"""

import asyncio
import os
import socket
import sys
import time
from collections.abc import Callable
from typing import Any

import structlog

from lore.errors import ShuttingDown
from lore.wire.limits import CLIENTS
from lored.rpc.connection import Connection
from lored.rpc.dispatch import Dispatcher, Handler
from lored.rpc.handlers import session
from lored.rpc.subscriptions import Subscriptions
from lored.services.app import App

REFUSED_AT_ONCE = 32
"""Connections beyond the limit that are kept long enough to hear `busy`."""

log = structlog.get_logger()


class Server:
    """The clients of one daemon."""

    def __init__(self, instance: str) -> None:
        """``instance`` names this run of the daemon. Until `open` only ping and hello are
        answered."""
        self.instance = instance
        self.uid = os.geteuid()
        self.dispatcher = Dispatcher(instance)
        self.dispatcher.handle_by({"ping": session.ping, "hello": session.hello})
        self.subscriptions = Subscriptions()
        self.full_message = f"{CLIENTS} clients are connected; close one and try again"
        self.on_empty: Callable[[], None] = lambda: None
        """Called when the last connection has gone."""
        self.on_drain: Callable[[str], None] = lambda reason: None
        """Called with the reason when a client asks the daemon to end."""
        self._connections: set[Connection] = set()
        self._beyond: set[Connection] = set()
        self._listening: asyncio.AbstractServer | None = None

    async def listen(self, sock: socket.socket) -> None:
        """Serve this listening socket from now on, instead of an earlier one."""
        before = self._listening
        loop: Any = asyncio.get_running_loop()
        options: dict[str, Any] = {}
        if type(loop).__module__.startswith("uvloop") or sys.version_info >= (3, 13):
            # Else closing removes the path, even a supervisor's.
            options["cleanup_socket"] = False
        self._listening = await loop.create_unix_server(
            lambda: Connection(self), sock=sock, backlog=socket.SOMAXCONN, **options
        )
        if before is not None:
            before.close()

    def open(self, app: App, handlers: dict[str, Handler]) -> None:
        """Answer everything from now on, and what has waited for it."""
        self.subscriptions.listen(app)
        self.dispatcher.open(app, handlers)
        self.wake()

    def wake(self) -> None:
        """Let all connections look at their requests again."""
        for connection in self._connections:
            connection.wake()

    def admit(self, connection: Connection) -> bool:
        """Count a new connection in; False when there are too many."""
        self.dispatcher.counters.connections += 1
        if len(self._connections) < CLIENTS:
            self._connections.add(connection)
            return True
        log.warning("too_many_clients", limit=CLIENTS)
        self.dispatcher.counters.refused += 1
        if len(self._beyond) >= REFUSED_AT_ONCE:
            connection.abort()
        else:
            self._beyond.add(connection)
        return False

    def dismiss(self, connection: Connection) -> None:
        """A connection has gone."""
        self._beyond.discard(connection)
        for subscription_id in tuple(connection.subscriptions):
            self.subscriptions.remove(connection, subscription_id)
        if connection in self._connections:
            self._connections.discard(connection)
            if not self._connections:
                self.on_empty()

    @property
    def clients(self) -> int:
        """Connections now."""
        return len(self._connections)

    def describe(self) -> dict[str, Any]:
        """What `status` says about clients and requests."""
        return {
            "clients": self.clients,
            "subscriptions": len(self.subscriptions),
            "queues": {name: lane.depth for name, lane in self.dispatcher.lanes.items()},
        }

    def stop_accepting(self) -> None:
        """No new connections; requests from now on are refused as `shutting_down`."""
        self.dispatcher.draining = True
        if self._listening is not None:
            self._listening.close()
            self._listening = None

    async def finish(self, seconds: float) -> None:
        """Wait at most ``seconds`` for the open requests, then refuse what is left and close."""
        await self._wait(lambda: all(one.is_idle for one in self._connections), seconds)
        for connection in tuple(self._connections):
            for pending in tuple(connection.pending.values()):
                self.dispatcher.stop(
                    pending, ShuttingDown("the daemon stopped before this was done")
                )
            connection.close()
        self.subscriptions.close()

    async def close(self, seconds: float) -> None:
        """Give the clients ``seconds`` to read their last answers, then abort them."""
        await self._wait(lambda: not self._connections, seconds)
        for connection in (*self._connections, *self._beyond):
            connection.abort()

    @staticmethod
    async def _wait(done: Callable[[], bool], seconds: float) -> None:
        """Look every 5 ms; an event for each state would cost every request, a drain is rare."""
        deadline = time.monotonic() + seconds
        while not done() and time.monotonic() < deadline:  # noqa: ASYNC110 - see above
            await asyncio.sleep(0.005)
