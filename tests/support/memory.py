"""A fact memory without a daemon: real stores, real services, in a private directory."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from lore.paths import Paths, resolve
from lored.rpc.handlers import facts as fact_handlers
from lored.rpc.handlers import triage as triage_handlers
from lored.services.app import App, Call
from lored.services.events import Event, Events
from lored.services.facts.front import Facts
from lored.services.facts.snapshot import Snapshots
from lored.services.facts.triage import Triage
from lored.services.settings import Settings
from lored.services.workspaces import Workspaces
from lored.store.registry import Registry

HANDLERS = {**fact_handlers.HANDLERS, **triage_handlers.HANDLERS}


class Memory:
    """An open house with the fact services; `memory.remember_fact(text=...)` calls a method as
    dispatch would, the parameters being valid already."""

    def __init__(self, app: App, call: Call) -> None:
        self.app = app
        self.call = call
        self.events: list[Event] = []
        app.events.listen(self.events.append)

    def __getattr__(self, method: str) -> Any:
        handler = HANDLERS[method]

        async def run(**params: Any) -> Any:
            given = {key.rstrip("_"): value for key, value in params.items() if value is not None}
            return await handler(self.app, self.call, given)

        return run

    async def apply_text(self, *lines: str, **more: Any) -> Any:
        """Run operations given as lines."""
        return await self.apply(ops="\n".join(lines), **more)


def paths_in(folder: Path) -> Paths:
    """Locations below ``folder``."""
    return resolve({"LORE_HOME": str(folder), "HOME": str(folder)})


@asynccontextmanager
async def open_memory(
    folder: Path, workspace: Path | None = None, *, embed: bool = False, **settings: Any
) -> AsyncIterator[Memory]:
    """Open (again) the memory in ``folder``, called from ``workspace`` (an existing directory)."""
    paths = paths_in(folder)
    registry = Registry(
        global_db=paths.global_db,
        workspaces_dir=paths.workspaces_dir,
        sessions_db=paths.sessions_db,
        backups_dir=paths.backups_dir,
    )
    await registry.open()
    try:
        workspaces = Workspaces(registry, str(folder))
        await workspaces.load()
        app = App(paths, Settings(**settings), registry, Events(), workspaces)
        if embed:
            from lored.services.search.embedding import Embedding

            app.services["embedding"] = Embedding(app)
            await app.services["embedding"].start()
        app.services["facts"] = Facts(app)
        app.services["triage"] = Triage(app)
        app.services["snapshots"] = Snapshots(app)
        await app.services["facts"].start()
        try:
            call = Call("test", "tester", str(workspace) if workspace else None)
            yield Memory(app, call)
        finally:
            await app.services["facts"].stop()
            if embed:
                await app.services["embedding"].stop()
    finally:
        await registry.close()
