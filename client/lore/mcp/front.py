"""The first moments: the handshake and the lists, answered before the SDK is loaded.

Loading the official SDK takes 0.4 to 1 s of processor time, and agents start every server
before the user may type. So this part reads lines from standard input itself and answers what
depends on nothing (`initialize`, `ping`, the lists of tools, prompts and templates) from
`catalogue`. The first line that needs more, or a quiet moment after the handshake, brings the
SDK in: it is given the handshake again, its answer to that is dropped, and everything that
follows is its own.

Failure cases: a line that is not JSON, a batch, an opening request other than `initialize`
(newer protocols) all go to the SDK, unanswered. A version that is not in `VERSIONS` is
answered with the newest of them, as the SDK does; a test keeps both lists equal.
"""

from __future__ import annotations

import json
import os
import select
import time
from typing import Any

from lore.mcp import catalogue

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Protocols with an `initialize` handshake, oldest first."""

QUIET_SECONDS = 2.0
"""Silence after the handshake after which the SDK is loaded, so that the first tool call does
not wait for it; agents send their whole opening within one."""

LINE_BYTES = 16 << 20
"""Longest line taken: beyond it the peer is not an MCP client."""


class Wire:
    """Standard input and output as lines of bytes, on private descriptors: whatever a library
    prints goes to standard error and cannot tear a message."""

    def __init__(self) -> None:
        self._in, self._out = os.dup(0), os.dup(1)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(2, 1)
        os.close(null)
        self._buffer = bytearray()
        self._searched = 0
        self.ended = False

    def read_line(self, seconds: float | None = None) -> bytes | None:
        """The next line with its end; empty at the end of input; None after ``seconds``."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while True:
            end = self._buffer.find(b"\n", self._searched)
            if end >= 0:
                line = bytes(self._buffer[: end + 1])
                del self._buffer[: end + 1]
                self._searched = 0
                return line
            self._searched = len(self._buffer)
            if self.ended or self._searched > LINE_BYTES:
                rest, self._buffer, self._searched = bytes(self._buffer), bytearray(), 0
                self.ended = True
                return rest
            if deadline is not None:
                wait = max(deadline - time.monotonic(), 0)
                if not select.select([self._in], [], [], wait)[0]:
                    return None
            piece = os.read(self._in, 1 << 16)
            self.ended = not piece
            self._buffer += piece

    def write_line(self, line: bytes) -> None:
        """One message with its line end, whole."""
        view = memoryview(line)
        while view:
            view = view[os.write(self._out, view) :]


class Front:
    """The handshake before the SDK. `replay` is what the SDK must be told, `dropped` the id of
    the one answer of it that was given already."""

    def __init__(self, wire: Wire, tools: tuple[dict[str, Any], ...]) -> None:
        self._wire, self._tools = wire, tools
        self.replay: list[bytes] = []
        self.dropped: object = None
        self.client = ""

    def run(self) -> bool:
        """Answer until the SDK is needed; False at the end of input."""
        greeted = False
        while True:
            line = self._wire.read_line(QUIET_SECONDS if greeted else None)
            if line is None:
                return True
            if not line:
                return False
            message = _message(line)
            method = message.get("method") if message is not None else None
            if message is None or not (greeted or method == "initialize"):
                self.replay.append(line)
                return True
            if "id" not in message:
                if method == "notifications/initialized":
                    self.replay.append(line)
                continue
            result = self._answer(str(method), message.get("params"))
            if result is None or (greeted and method == "initialize"):
                self.replay.append(line)
                return True
            if method == "initialize":
                greeted, self.dropped = True, message["id"]
                self.replay.append(line)
            answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
            self._wire.write_line(json.dumps(answer, ensure_ascii=False).encode() + b"\n")

    def _answer(self, method: str, params: Any) -> dict[str, Any] | None:
        given = params if isinstance(params, dict) else {}
        if method == "initialize":
            return self._initialize(given)
        if given.get("cursor") is not None:
            return None
        if method == "ping":
            return {}
        if method == "tools/list":
            return {"tools": list(self._tools)}
        if method == "prompts/list":
            return {"prompts": list(catalogue.PROMPTS)}
        if method == "resources/templates/list":
            return {"resourceTemplates": list(catalogue.TEMPLATES)}
        return None

    def _initialize(self, params: dict[str, Any]) -> dict[str, Any] | None:
        version, info = params.get("protocolVersion"), params.get("clientInfo")
        if not isinstance(version, str) or not isinstance(info, dict):
            return None  # the SDK words the refusal
        self.client = str(info.get("name", ""))
        return {
            "protocolVersion": version if version in VERSIONS else VERSIONS[-1],
            "capabilities": catalogue.capabilities(),
            "serverInfo": catalogue.server_info(),
            "instructions": catalogue.INSTRUCTIONS,
        }


def _message(line: bytes) -> dict[str, Any] | None:
    """A line as one JSON-RPC message; None for anything else."""
    try:
        message = json.loads(line)
    except ValueError:
        return None
    fits = isinstance(message, dict) and message.get("jsonrpc") == "2.0" and "method" in message
    return message if fits else None
