"""The memory as pages ask it: calls over the socket, and lists that every page needs, kept for
a moment. Holds no store.
"""

import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, Final

from lore import paths
from lore.aio import Client

Map = dict[str, Any]

KEPT_SECONDS: Final = 5.0
"""How long a list for the filters is reused; several pages load at once."""

TOPICS: Final = ("facts", "conflicts", "sessions", "progress", "status")


class Memory:
    """One connection for all pages, made again by itself when the daemon was restarted."""

    def __init__(self, where: paths.Paths | None = None) -> None:
        # Without a workspace of its own, so that subscriptions hear of all.
        self._client = Client(name="lore-web", where=where)
        self._kept: dict[str, tuple[float, Any]] = {}

    async def connect(self) -> None:
        """Connect now. Raises what `lore.Client` raises."""
        await self._client.connect()

    async def close(self) -> None:
        """Hang up."""
        await self._client.close()

    async def call(self, method: str, **params: Any) -> Map:
        """One call; None, False, empty text and empty lists are left out. Raises the typed
        errors of `lore.errors`."""
        given = {k: v for k, v in params.items() if v not in (None, False, "", [], ())}
        return await self._client.call(method, given)

    async def events(self, on_open: Callable[[], None]) -> AsyncGenerator[Map]:
        """All events of all workspaces; see `lore.aio.Client.events`."""
        async for event in self._client.events(TOPICS, on_open=on_open):
            yield event

    async def kept(self, name: str, seconds: float, ask: Callable[[], Awaitable[Any]]) -> Any:
        """What ``ask`` answers, asked again after ``seconds``."""
        now = time.monotonic()
        self._kept = {key: entry for key, entry in self._kept.items() if entry[0] > now}
        if name not in self._kept:
            self._kept[name] = (now + seconds, await ask())
        return self._kept[name][1]

    async def root(self, workspace: str) -> str | None:
        """The folder of a workspace, None for an unknown one."""
        for _ in range(2):
            for one in await self.workspaces():
                if one["id"] == workspace:
                    return str(one["root"])
            self._kept.pop("workspaces")  # it may be new
        return None

    async def workspaces(self) -> list[Map]:
        """Known workspaces, those with facts first, then by root."""

        async def ask() -> list[Map]:
            found: list[Map] = (await self.call("workspace", action="list"))["workspaces"]
            return sorted(found, key=lambda one: (not one.get("facts"), one["root"]))

        found: list[Map] = await self.kept("workspaces", KEPT_SECONDS, ask)
        return found

    async def agents(self) -> list[str]:
        """Agents whose sessions are known, by name."""

        async def ask() -> list[str]:
            roots = (await self.call("sources"))["roots"]
            return sorted({root["agent"] for root in roots if root.get("sessions")})

        found: list[str] = await self.kept("agents", KEPT_SECONDS, ask)
        return found
