"""A tiny daemon for the clients' tests: the real codec over a real socket, answers by script.

It stands in for faults that a real daemon shows only when it breaks: hanging up at a chosen
moment, silence, another version, bytes that are no message. One thread a connection, so that
a blocking client and an event loop can both be tested against it from one process.
"""

import contextlib
import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lore import __version__, paths
from lore.errors import LoreError, NotFound
from lore.wire import fault
from lore.wire.codec import Codec, encode_error, encode_notification, encode_response
from lore.wire.messages import Request

Script = Callable[["Peer", dict[str, Any]], object]


class HangUp(Exception):
    """Raised by a script: close the connection without an answer."""


class Silence(Exception):
    """Raised by a script: never answer this request."""


class Peer:
    """One connection of the tiny daemon."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection

    def notify(self, method: str, **params: object) -> None:
        self.connection.sendall(encode_notification(method, params))


class TinyDaemon:
    """Listens at `where.socket`; `scripts` answer by method name; `seen` has every call."""

    def __init__(self, where: paths.Paths) -> None:
        self.where = where
        self.seen: list[tuple[str, dict[str, Any]]] = []
        self.connections = 0
        self.called = threading.Condition()
        self.scripts: dict[str, Script] = {
            "hello": lambda peer, params: {
                "version": __version__,
                "protocol": 1,
                "instance": "tiny",
                "revision": "r1",
                "limits": {},
            },
            "ping": lambda peer, params: {"pong": True},
        }
        self._listener: socket.socket | None = None
        self._peers: list[socket.socket] = []
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Bind and serve; again after `stop`."""
        os.makedirs(self.where.runtime_dir, mode=0o700, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.where.socket)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(self.where.socket)
        listener.listen(16)
        self._listener = listener
        self._spawn(self._accept, listener)

    def stop(self) -> None:
        """Hang up on everybody; the socket file stays, as after a kill."""
        if self._listener is not None:
            # A thread blocked in accept is only woken by a shutdown.
            with contextlib.suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self._listener = None
        self.hang_up()
        for thread in self._threads:
            thread.join(5)
            assert not thread.is_alive()
        self._threads.clear()

    def hang_up(self) -> None:
        """Close all connections, keep listening."""
        for peer in self._peers:
            with contextlib.suppress(OSError):
                peer.shutdown(socket.SHUT_RDWR)
        self._peers.clear()

    def methods(self) -> list[str]:
        """The calls seen, without hello."""
        return [method for method, _ in self.seen if method != "hello"]

    def wait_for(self, method: str, count: int = 1, seconds: float = 5) -> None:
        """Wait until `method` was called `count` times."""
        with self.called:
            assert self.called.wait_for(
                lambda: sum(name == method for name, _ in self.seen) >= count, seconds
            )

    def _spawn(self, target: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            self.connections += 1
            self._peers.append(connection)
            self._spawn(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        codec, peer = Codec("daemon"), Peer(connection)
        with connection, contextlib.suppress(OSError, HangUp):
            while data := connection.recv(65536):
                for message in codec.feed(data):
                    assert isinstance(message, Request), message
                    self._answer(peer, message)

    def _answer(self, peer: Peer, request: Request) -> None:
        script = self.scripts.get(request.method)
        with self.called:
            self.seen.append((request.method, request.params))
            self.called.notify_all()
        try:
            if script is None:
                raise NotFound(f"no method {request.method!r}")
            answer = encode_response(request.id, script(peer, request.params))
        except LoreError as error:
            answer = encode_error(request.id, fault.to_wire(error, "map"))
        except Silence:
            return
        peer.connection.sendall(answer)


@pytest.fixture
def where(monkeypatch: pytest.MonkeyPatch) -> Iterator[paths.Paths]:
    """A private home with a short path (sun_path holds 107 bytes), auto-start forbidden."""
    home = tempfile.mkdtemp(prefix="lore-", dir="/tmp")
    monkeypatch.setenv("LORE_HOME", home)
    monkeypatch.setenv("LORE_NO_SPAWN", "1")
    monkeypatch.delenv("LORE_SOCKET", raising=False)
    monkeypatch.delenv("LORE_REALM", raising=False)
    yield paths.resolve()
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def tiny(where: paths.Paths) -> Iterator[TinyDaemon]:
    """A running tiny daemon."""
    daemon = TinyDaemon(where)
    daemon.start()
    yield daemon
    daemon.stop()
