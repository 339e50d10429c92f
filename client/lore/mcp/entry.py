"""`lore mcp`: from the first byte to the end of input, or of the agent that started us."""

from __future__ import annotations

import os
import threading
import time

from lore.errors import Unavailable
from lore.mcp import catalogue
from lore.mcp.front import Front, Wire

PARENT_SECONDS = 2.0
"""How often we look whether our agent still lives: its death usually ends our input, but not
when a sibling holds the other end of the pipe."""


def run(*, aliases: bool, workspace: str | None) -> int:
    """Serve MCP on standard input and output; returns the exit code.

    ``aliases`` adds the tools of Recursive and Remind by their own names. Raises
    `Unavailable` when the SDK is not installed.
    """
    _end_with_parent()
    offered = catalogue.TOOLS + (catalogue.alias_tools() if aliases else ())
    wire = Wire()
    session_id = os.environ.get("LORE_SESSION")
    front = Front(wire, offered, workspace, session_id)
    if not front.run():
        return 0
    try:
        from lore.mcp.server import serve
    except ImportError as error:
        raise Unavailable(
            f"the MCP SDK is missing ({error.name}); run: pip install 'lored[mcp]'"
        ) from None
    serve(wire, front, offered, workspace, session_id)
    return 0


def project_folder() -> str | None:
    """The project that the agent works in: what it says in its environment, else our own
    directory."""
    for name in ("CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR"):
        if os.path.isdir(os.environ.get(name, "")):
            return os.environ[name]
    try:
        return os.getcwd()
    except OSError:
        return None


def _end_with_parent() -> None:
    """Leave at once when the process that started us is gone."""
    parent = os.getppid()

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(PARENT_SECONDS)
        os._exit(0)

    threading.Thread(target=look, name="parent", daemon=True).start()
