"""The official SDK's server over our tools. Loading this module costs about a second, which
is why front.py runs before it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from lore.errors import LoreError
from lore.mcp import catalogue
from lore.mcp.front import Front, Wire
from lore.mcp.text import fact_line, session_line
from lore.mcp.tools import Tools

Map = dict[str, Any]

RESOURCES_LISTED = 20
"""Newest facts and sessions in the list of resources; the templates reach all."""


def build(tools: Tools, offered: tuple[Map, ...]) -> Server[Any]:
    """The SDK's server with our handlers. Results are made from the maps of `catalogue`, so
    that both ways of answering agree; the models add what newer protocols demand."""

    async def list_tools(ctx: Any, params: Any) -> Any:
        return types.ListToolsResult.model_validate({"tools": list(offered)})

    async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> Any:
        if params.name not in {tool["name"] for tool in offered}:
            raise MCPError(types.INVALID_PARAMS, f"no tool {params.name!r}")
        tools.agent = tools.agent or _client_name(ctx)
        result = await tools.call(params.name, dict(params.arguments or {}))
        return types.CallToolResult.model_validate(result)

    async def list_resources(ctx: Any, params: Any) -> Any:
        try:
            facts = await tools.ask("facts", {"limit": RESOURCES_LISTED})
            sessions = await tools.ask("sessions", {"limit": RESOURCES_LISTED})
        except LoreError as error:
            raise MCPError(types.INTERNAL_ERROR, error.message) from None
        found = {"resources": [*_resources(facts, sessions)]}
        return types.ListResourcesResult.model_validate(found)

    async def list_templates(ctx: Any, params: Any) -> Any:
        listed = {"resourceTemplates": list(catalogue.TEMPLATES)}
        return types.ListResourceTemplatesResult.model_validate(listed)

    async def read_resource(ctx: Any, params: types.ReadResourceRequestParams) -> Any:
        uri = str(params.uri)
        kind, _, name = uri.removeprefix("lore://").partition("/")
        if not uri.startswith("lore://") or kind not in ("fact", "session") or not name:
            raise MCPError(types.INVALID_PARAMS, f"{uri}: use lore://fact/ID or lore://session/ID")
        try:
            body, _ = await tools.one(f"fact:{name}" if kind == "fact" else name)
        except LoreError as error:
            raise MCPError(types.INVALID_PARAMS, error.message) from None
        content = {"uri": uri, "mimeType": "text/plain", "text": body}
        return types.ReadResourceResult.model_validate({"contents": [content]})

    async def list_prompts(ctx: Any, params: Any) -> Any:
        return types.ListPromptsResult.model_validate({"prompts": list(catalogue.PROMPTS)})

    async def get_prompt(ctx: Any, params: types.GetPromptRequestParams) -> Any:
        given = await _prompt(tools, params.name, dict(params.arguments or {}))
        return types.GetPromptResult.model_validate(given)

    info = catalogue.server_info()
    return Server(
        info["name"],
        version=info["version"],
        title=info["title"],
        instructions=catalogue.INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
    )


def _client_name(ctx: Any) -> str:
    info = getattr(getattr(ctx.session, "client_params", None), "client_info", None)
    return str(getattr(info, "name", "") or "")


def _resources(facts: Map, sessions: Map) -> Iterator[Map]:
    for item in facts.get("facts", ()):
        name = f"{item['scope']}:{item['id']}"
        yield {"uri": f"lore://fact/{name}", "name": name, "description": fact_line(item)}
    for session in sessions.get("sessions", ()):
        uri = f"lore://session/{session['id']}"
        yield {"uri": uri, "name": session["id"], "description": session_line(session)}


async def _prompt(tools: Tools, name: str, given: dict[str, str]) -> Map:
    if name == "recall":
        topic = given.get("topic", "")
        result = await tools.call("recall", {"query": topic})
        ask = f"What do we know about {topic!r}? Use the notes below and say what is missing."
    elif name == "triage":
        result = await tools.call("triage", {})
        ask = "For each conflict below, say which side holds and why; then settle it with triage."
    else:
        raise MCPError(types.INVALID_PARAMS, f"no prompt {name!r}")
    body = f"{ask}\n\n{result['content'][0]['text']}"
    return {"messages": [{"role": "user", "content": {"type": "text", "text": body}}]}


class _Input:
    """What the SDK reads: the handshake again, then the rest of our input, line by line."""

    def __init__(self, wire: Wire, replay: list[bytes]) -> None:
        self._wire, self._replay = wire, replay

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self.readline()
        if not line:
            raise StopIteration
        return line

    def readline(self) -> str:
        """The next line; empty at the end."""
        line = self._replay.pop(0) if self._replay else self._wire.read_line()
        return (line or b"").decode("utf-8", "replace")


class _Output:
    """Where the SDK writes: its second answer to the handshake is dropped."""

    def __init__(self, wire: Wire, dropped: object) -> None:
        self._wire, self._dropped = wire, dropped

    def write(self, line: str) -> int:
        """One message and its line end."""
        if self._dropped is not None:
            answer = json.loads(line)
            if answer.get("id") == self._dropped and "method" not in answer:
                self._dropped = None
                return len(line)
        self._wire.write_line(line.encode("utf-8", "backslashreplace"))
        return len(line)

    def flush(self) -> None:
        """Nothing is held back."""


async def _serve(wire: Wire, front: Front, tools: Tools, offered: tuple[Map, ...]) -> None:
    server = build(tools, offered)
    options = server.create_initialization_options(NotificationOptions())
    source: Any = anyio.wrap_file(_Input(wire, front.replay))  # type: ignore[arg-type]
    sink: Any = anyio.wrap_file(_Output(wire, front.dropped))  # type: ignore[arg-type]
    try:
        async with stdio_server(source, sink) as (reading, writing):
            await server.run(reading, writing, options)
    finally:
        await tools.close()


def serve(
    wire: Wire,
    front: Front,
    offered: tuple[Map, ...],
    workspace: str | None,
    session_id: str | None,
) -> None:
    """Serve until the input ends."""

    async def main() -> None:
        tools = Tools(workspace, session_id)
        tools.agent = front.client
        await _serve(wire, front, tools, offered)

    anyio.run(main)
