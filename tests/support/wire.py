"""A bare MessagePack-RPC client for tests: ten lines of protocol, none of our client's code."""

import socket
import time
from collections.abc import Callable
from typing import Any

import msgpack


class Refusal(Exception):
    """The error element of a response, as it came: ``wire``; ``code`` if it is one of ours."""

    def __init__(self, wire: Any) -> None:
        super().__init__(wire)
        self.wire = wire
        self.code = wire["code"] if isinstance(wire, dict) else str(wire[1]).partition(":")[0]


class Hangup(Exception):
    """The daemon closed the connection."""


class RawClient:
    """One blocking connection. Events end in `events`, early responses are kept by id."""

    def __init__(self, path: str, timeout_s: float = 20.0) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(timeout_s)
        self.sock.connect(path)
        self.timeout_s = timeout_s
        self.events: list[tuple[str, dict[str, Any]]] = []
        self._unpacker = msgpack.Unpacker(raw=False, max_buffer_size=64 << 20)
        self._answers: dict[int, tuple[Any, Any]] = {}
        self.last_id = 0
        self.order: list[int] = []
        """Ids of the responses in the order they came."""

    def hello(self, **params: Any) -> dict[str, Any]:
        """Greet with map errors; keywords override."""
        words = {"client": "test", "version": "99.0.0", "protocol": [1, 1], "errors": "map"}
        return self.call("hello", **{**words, **params})

    def send(self, method: str, **params: Any) -> int:
        """Send a request; its id."""
        self.last_id += 1
        self.sock.sendall(msgpack.packb([0, self.last_id, method, [params]]))
        return self.last_id

    def notify(self, method: str, **params: Any) -> None:
        """Send a notification."""
        self.sock.sendall(msgpack.packb([2, method, [params]]))

    def wait(self, message_id: int) -> dict[str, Any]:
        """The result of a request sent before. Raises `Refusal`, `Hangup`, TimeoutError."""
        while message_id not in self._answers:
            self.read()
        error, result = self._answers.pop(message_id)
        if error is not None:
            raise Refusal(error)
        return result  # type: ignore[no-any-return]

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send and wait."""
        return self.wait(self.send(method, **params))

    def read(self) -> None:
        """Take at least one more piece of bytes."""
        try:
            data = self.sock.recv(1 << 16)
        except (ConnectionResetError, BrokenPipeError):
            raise Hangup from None
        if not data:
            raise Hangup
        self._unpacker.feed(data)
        for message in self._unpacker:
            if message[0] == 1:
                self._answers[message[1]] = (message[2], message[3])
                self.order.append(message[1])
            elif message[0] == 2:
                self.events.append((message[1], message[2][0]))

    def wait_event(
        self, wanted: Callable[[str, dict[str, Any]], bool], timeout_s: float = 20.0
    ) -> dict[str, Any]:
        """The first event (name, params) that ``wanted`` accepts; earlier ones are dropped."""
        deadline = time.monotonic() + timeout_s
        while True:
            while self.events:
                name, params = self.events.pop(0)
                if wanted(name, params):
                    return params
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError("no such event")
            self.sock.settimeout(left)
            try:
                self.read()
            finally:
                self.sock.settimeout(self.timeout_s)

    def wait_hangup(self, timeout_s: float = 20.0) -> None:
        """Read until the daemon closes. Raises TimeoutError."""
        self.sock.settimeout(timeout_s)
        try:
            while True:
                self.read()
        except Hangup:
            pass

    def close(self) -> None:
        """Hang up."""
        self.sock.close()

    def __enter__(self) -> "RawClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
