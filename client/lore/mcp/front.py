"""The first moments: handshake, lists and first tool calls, answered before the SDK is loaded.

Loading the official SDK takes 0.4 to 1.4 s of processor time, and agents start every server
before the user may type. So this part reads lines from standard input itself and answers what
depends on nothing (`initialize`, `ping`, the lists of tools, prompts and templates) from
`catalogue`, and calls of tools from `tools`, one after the other. The first line that needs
more, or a quiet moment after the handshake, brings the SDK in: it is given the handshake again,
its answer to that is dropped, and everything that follows is its own.

Failure cases: a line that is not JSON, a batch, an opening request other than `initialize`
(newer protocols) all go to the SDK, unanswered. A version that is not in `VERSIONS` is
answered with the newest of them, as the SDK does; a test keeps both lists equal. A call in an
odd form (an unknown tool, arguments that are no map, a task) goes to the SDK, too.
"""

from __future__ import annotations

import json
import os
import select
import time
from typing import TYPE_CHECKING, Any

from lore.mcp import catalogue

if TYPE_CHECKING:
    import asyncio

    from lore.mcp.tools import Tools

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Protocols with an `initialize` handshake, oldest first."""

QUIET_SECONDS = 2.0
"""Silence after the handshake after which the SDK is loaded, so that no later request waits for
it; agents send their whole opening within one."""

INTERNAL = -32603
"""JSON-RPC's code for an error of the server."""

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
    """What comes before the SDK. `replay` is what the SDK must be told, `dropped` the id of
    the one answer of it that was given already."""

    def __init__(
        self,
        wire: Wire,
        tools: tuple[dict[str, Any], ...],
        workspace: str | None,
        session_id: str | None,
    ) -> None:
        self._wire, self._tools = wire, tools
        self._calls = _Calls(workspace, session_id)
        self.replay: list[bytes] = []
        self.dropped: object = None
        self.client = ""

    def run(self) -> bool:
        """Answer until the SDK is needed; False at the end of input."""
        try:
            return self._run()
        finally:
            self._calls.close()

    def _run(self) -> bool:
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
            try:
                result = self._answer(str(method), message.get("params"))
            except Exception as error:  # odd arguments: the request fails, not the server
                self._send(message["id"], error={"code": INTERNAL, "message": str(error)})
                continue
            if result is None or (greeted and method == "initialize"):
                self.replay.append(line)
                return True
            if method == "initialize":
                greeted, self.dropped = True, message["id"]
                self.replay.append(line)
            self._send(message["id"], result=result)

    def _send(self, asked: object, **answer: dict[str, Any]) -> None:
        document = {"jsonrpc": "2.0", "id": asked, **answer}
        text = json.dumps(document, ensure_ascii=False)
        self._wire.write_line(text.encode("utf-8", "backslashreplace") + b"\n")

    def _answer(self, method: str, params: Any) -> dict[str, Any] | None:
        given = params if isinstance(params, dict) else {}
        if method == "initialize":
            return self._initialize(given)
        if method == "tools/call":
            return self._call(given)
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

    def _call(self, given: dict[str, Any]) -> dict[str, Any] | None:
        name, arguments = given.get("name"), given.get("arguments") or {}
        known = any(tool["name"] == name for tool in self._tools)
        if not known or not isinstance(arguments, dict) or "task" in given:
            return None
        return self._calls.call(str(name), arguments, self.client)

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


class _Calls:
    """Calls of tools one at a time, on an event loop that exists only if there are any."""

    def __init__(self, workspace: str | None, session_id: str | None) -> None:
        self._where = (workspace, session_id)
        self._runner: asyncio.Runner | None = None
        self._tools: Tools | None = None

    def call(self, name: str, given: dict[str, Any], agent: str) -> dict[str, Any]:
        """The result of one tool."""
        import asyncio

        from lore.mcp.tools import Tools

        if self._runner is None or self._tools is None:
            self._runner, self._tools = asyncio.Runner(), Tools(*self._where)
            self._tools.agent = agent
        return self._runner.run(self._tools.call(name, dict(given)))

    def close(self) -> None:
        """Hang up; the SDK opens a connection of its own."""
        if self._runner is not None and self._tools is not None:
            self._runner.run(self._tools.close())
            self._runner.close()


def _message(line: bytes) -> dict[str, Any] | None:
    """A line as one JSON-RPC message; None for anything else."""
    try:
        message = json.loads(line)
    except ValueError:
        return None
    fits = isinstance(message, dict) and message.get("jsonrpc") == "2.0" and "method" in message
    return message if fits else None
