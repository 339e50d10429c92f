"""Sessions kept here whose folders belong to another realm by now: named, never moved silently.

A rule of `[realms]` decides for what is indexed from then on; what was read before stays where
it is until somebody forgets it here. The daemon of that realm reads the transcripts itself, so
nothing has to be carried over: `lore forget workspace` is the whole move.
"""

import asyncio

import structlog

from lore import realms
from lored.services.app import App
from lored.services.events import Event
from lored.store import driver
from lored.store.database import StoreBusy
from lored.store.sessions import totals

NAMED = 3
"""Folders that are named in `status`."""

log = structlog.get_logger()


class Strays:
    """The service ``strays``."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._found: dict[tuple[str, str], int] = {}
        self._looking: asyncio.Task[None] | None = None
        self._leave = app.events.listen(self._hear)

    async def start(self) -> None:
        """Look once; again when the rules change and when sessions are forgotten."""
        self._look_soon()

    async def stop(self) -> None:
        """No look comes after this."""
        self._leave()
        if self._looking is not None:
            self._looking.cancel()

    async def settings_changed(self) -> None:
        """The rules may be other ones."""
        self._look_soon()

    def _hear(self, event: Event) -> None:
        if event.topic == "sessions" and event.payload.get("action") == "forgotten":
            self._look_soon()

    def _look_soon(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
        self._looking = asyncio.get_running_loop().create_task(self._look())

    async def _look(self) -> None:
        rules = self._app.workspaces.realm_rules
        found: dict[tuple[str, str], int] = {}
        if rules:
            try:
                folders = await self._app.registry.sessions.read(totals.folders)
            except (driver.Error, StoreBusy) as error:
                log.warning("strays", error=repr(error))
                return
            roots = {one["id"]: str(one["root"]) for one in self._app.workspaces.known()}
            for cwd, workspace, count in folders:
                realm = await asyncio.to_thread(realms.of, cwd, rules)
                if realm != self._app.paths.realm:
                    key = realm, roots.get(workspace or "", cwd)
                    found[key] = found.get(key, 0) + count
        self._found = found

    def degraded(self) -> list[dict[str, str]]:
        """One mode for each realm that sessions kept here belong to."""
        modes = []
        for realm in sorted({realm for realm, _ in self._found}):
            mine = {folder: n for (name, folder), n in self._found.items() if name == realm}
            named = ", ".join(sorted(mine)[:NAMED]) + (", ..." if len(mine) > NAMED else "")
            modes.append(
                {
                    "name": "other_realm",
                    "reason": f"{sum(mine.values())} sessions of {named} were indexed here before "
                    f"these folders came to {'the realm ' + realm if realm else 'no realm'}",
                    "remedy": f"run elsewhere: lore forget workspace {sorted(mine)[0]} (the "
                    "daemon of those folders reads their transcripts itself)",
                }
            )
        return modes
