"""`lore mcp` as an agent uses it: by the official SDK's own client over stdio."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from support.cli import LORE
from support.daemon import environment


@asynccontextmanager
async def mcp_session(home: Path, cwd: Path, *words: str) -> AsyncIterator[Any]:
    """A conversation by the SDK's own client."""
    from mcp.client.session import ClientSession
    from mcp.client.stdio import StdioServerParameters, stdio_client

    parameters = StdioServerParameters(
        command=sys.executable,
        args=[*LORE[1:], "mcp", *words],
        env=environment(home),
        cwd=str(cwd),
    )
    async with (
        stdio_client(parameters) as (reading, writing),
        ClientSession(reading, writing) as opened,
    ):
        await opened.initialize()
        yield opened


def text_of(result: Any) -> str:
    return str(result.content[0].text)
