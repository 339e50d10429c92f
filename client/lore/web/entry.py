"""From the printed link to the end: listens, serves, and knows when nobody is left.

The view ends on Ctrl-C, SIGTERM, SIGHUP (its terminal was closed), when the process that
started it is gone, and after a time without any request; an open, visible page counts as use.
"""

import asyncio
import contextlib
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from typing import Final

import uvicorn
from starlette.types import ASGIApp

from lore import paths
from lore.errors import Invalid, LoreError
from lore.web import app
from lore.web.gate import Doors
from lore.web.live import Live
from lore.web.memory import Memory

ADDRESS: Final = "127.0.0.1"
"""Never another one: whoever wants to look from afar forwards the port through ssh."""

WATCH_SECONDS: Final = 1.0
"""How often we look whether our parent lives and somebody still looks."""

LEAVE_SECONDS: Final = 2
"""For requests in flight at the end."""


class _Server(uvicorn.Server):
    """uvicorn without its own signal handling, which would raise the signal again."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Nothing: `serve` watches the signals."""
        yield


def run(
    *,
    where: paths.Paths,
    workspace: str | None,
    port: int,
    idle_minutes: float,
    tell: Callable[[str], None],
) -> str:
    """Serve until the end and return its reason; ``tell`` gets the link once it works.

    ``workspace`` is a path in, or the id of, the workspace that pages show first, ``port`` 0 for
    any free one. Raises `Invalid` when the port is taken, else what `lore.Client` raises.
    """
    sock = listen(port)
    with sock:
        return asyncio.run(_run(sock, where, workspace, idle_minutes, tell))


def listen(port: int) -> socket.socket:
    """A listening socket on the loopback address. Raises `Invalid` when that cannot be."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        # Else a port that was used a minute ago is refused.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((ADDRESS, port))
        sock.listen(64)
    except (OSError, OverflowError) as error:
        sock.close()
        said = error.strerror if isinstance(error, OSError) else "ports go up to 65535"
        raise Invalid(f"port {port}: {said}; leave --port away to get a free one") from None
    return sock


async def _run(
    sock: socket.socket,
    where: paths.Paths,
    workspace: str | None,
    idle_minutes: float,
    tell: Callable[[str], None],
) -> str:
    memory = Memory(where)
    try:
        await memory.connect()
        doors, port = Doors(), sock.getsockname()[1]
        guarded, live = app.build(memory, doors, port, await _home(memory, workspace))
        ending = _ending()
        tell(f"http://{ADDRESS}:{port}{doors.base}enter?token={doors.token}")
        return await _serve(sock, guarded, doors, live, idle_minutes, ending)
    finally:
        await memory.close()


async def _home(memory: Memory, workspace: str | None) -> str | None:
    """The id of the workspace we were started in, None where there is none. Raises `Invalid`
    for an unknown id."""
    if not workspace:
        return None
    if not workspace.startswith("/"):
        if await memory.root(workspace) is None:
            raise Invalid(f"no workspace {workspace}; `lore workspace list` shows all")
        return workspace
    try:
        found = (await memory.call("workspace", path=workspace)).get("id")
    except LoreError:
        return None  # a folder that is gone, or of a file system that does not answer
    return str(found) if found else None


def _ending() -> "asyncio.Future[str]":
    """Becomes the reason of the end; from now on signals are one."""
    loop = asyncio.get_running_loop()
    ending: asyncio.Future[str] = loop.create_future()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, _end, ending, signal.Signals(number).name)
    return ending


def _end(ending: "asyncio.Future[str]", why: str) -> None:
    if not ending.done():
        ending.set_result(why)


async def _serve(
    sock: socket.socket,
    guarded: ASGIApp,
    doors: Doors,
    live: Live,
    idle_minutes: float,
    ending: "asyncio.Future[str]",
) -> str:
    server = _Server(
        uvicorn.Config(
            guarded,
            log_config=None,
            # Tracebacks hold stored text, which a terminal must not get as it is.
            log_level="debug" if os.environ.get("LORE_DEBUG") else "critical",
            access_log=False,  # it would hold the token
            server_header=False,
            date_header=False,
            proxy_headers=False,
            lifespan="off",
            ws="none",
            http="h11",
            limit_concurrency=128,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=LEAVE_SECONDS,
        )
    )
    watching = asyncio.create_task(_watch(doors, live, idle_minutes * 60, ending))
    serving = asyncio.create_task(server.serve(sockets=[sock]))
    try:
        await asyncio.wait((ending, serving), return_when=asyncio.FIRST_COMPLETED)
        _end(ending, "the server stopped")
        return ending.result()
    finally:
        watching.cancel()
        await live.close()
        server.should_exit = True
        await serving


async def _watch(
    doors: Doors, live: Live, idle_seconds: float, ending: "asyncio.Future[str]"
) -> None:
    """End when our parent is gone or nobody came for ``idle_seconds``."""
    parent = os.getppid()
    while True:
        await asyncio.sleep(WATCH_SECONDS)
        if os.getppid() != parent:
            _end(ending, "what started it is gone")
        if len(live):
            doors.last_seen = time.monotonic()
        elif time.monotonic() - doors.last_seen > idle_seconds:
            _end(ending, f"nobody looked for {idle_seconds / 60:g} min")
