"""The inside of a daemon: stores, workspaces, services, built in order and taken down in order.

Importing this loads everything the daemon consists of (a third of a second), so it is loaded
while the socket already answers; see daemon.py. `lored.main` says which services there are.
"""

import asyncio
import importlib
import os
import time
from collections.abc import Awaitable, Iterable
from typing import Any

import structlog

from lore import realms
from lored.rpc import handlers
from lored.rpc.meters import meter_server
from lored.rpc.server import Server
from lored.runtime import drain
from lored.runtime.refusal import BAD_STORE, Refused
from lored.runtime.start import Ground
from lored.services.app import App
from lored.services.care.health import Health
from lored.services.events import Events
from lored.services.facts import statements
from lored.services.workspaces import Workspaces
from lored.store import driver
from lored.store.migrate import ForeignFile, NewerSchema
from lored.store.registry import Registry

ServiceTable = Iterable[tuple[str, str]]

log = structlog.get_logger()


class House:
    """Everything behind the socket of one daemon."""

    def __init__(self, ground: Ground, table: ServiceTable) -> None:
        """Load all modules; nothing is opened yet. May run on any thread. Raises
        `ImportError` when a package is missing."""
        paths = ground.paths
        registry = Registry(
            global_db=paths.global_db,
            workspaces_dir=paths.workspaces_dir,
            sessions_db=paths.sessions_db,
            backups_dir=paths.backups_dir,
            rules=statements.rules(ground.settings),
        )
        workspaces = Workspaces(
            registry,
            os.path.expanduser("~"),
            realm=paths.realm,
            rules=realms.parse(ground.settings.realms),
        )
        self.app = App(paths, ground.settings, registry, Events(), workspaces)
        self.health = Health(self.app)
        self.handlers = handlers.load()
        self._classes: list[tuple[str, type]] = []
        for name, where in table:
            module, _, attribute = where.partition(":")
            self._classes.append((name, getattr(importlib.import_module(module), attribute)))
        self._started: list[tuple[str, Any]] = []

    async def open(self) -> None:
        """Open the stores, make the services and start them. Raises `Refused` for a store.

        A service that fails to start leaves a degraded mode: a memory without search is still
        a memory.
        """
        try:
            await self.app.registry.open()
            await self.app.workspaces.load()
        except (NewerSchema, ForeignFile) as error:
            raise Refused(str(error), BAD_STORE) from None
        except driver.Error as error:
            raise Refused(
                f"a store in {self.app.paths.data_dir} cannot be opened ({error}); "
                "nothing was changed; check the disk, then: lored check",
                BAD_STORE,
            ) from error
        except OSError as error:
            raise Refused(f"{error.filename}: {error.strerror}", BAD_STORE) from None
        self.app.services["operations"] = self.app.operations
        for name, kind in self._classes:
            self.app.services[name] = self.health if name == "health" else kind(self.app)
        for name, service in self.app.services.items():
            self._started.append((name, service))
            began = time.monotonic()
            try:
                if hasattr(service, "start"):
                    await service.start()
            except Exception as error:
                log.error("service_failed", service=name, exc_info=error)
                self.health.set_standing(
                    f"no_{name}",
                    f"the service {name} did not start ({type(error).__name__})",
                    "see lore logs, then: lore restart",
                )
            log.debug("service", name=name, ms=(time.monotonic() - began) * 1000)

    def furnish(self, server: Server) -> None:
        """Let the server answer with this house, and health speak of the server."""
        server.dispatcher.on_fault = self.health.note_fault
        self.app.registry.on_replaced = self._store_replaced
        self.health.observers.append(server.describe)
        self.health.meters.append(lambda page: meter_server(server, page))
        server.open(self.app, self.handlers)

    @property
    def busy(self) -> bool:
        """Whether there is work that an idle exit would interrupt."""
        if len(self.app.operations):
            return True
        indexing = self.app.services.get("indexing")
        if indexing is None:
            return False
        looking_first = indexing.state == "starting" and not indexing.looking.swept
        return indexing.state == "indexing" or looking_first

    async def settings_changed(self) -> None:
        """The settings of the app are new ones: tell whoever keeps some."""
        self.app.workspaces.realm_rules = realms.parse(self.app.settings.realms)
        for name, service in self.app.services.items():
            if hasattr(service, "settings_changed"):
                try:
                    await service.settings_changed()
                except Exception as error:
                    log.error("settings_failed", service=name, exc_info=error)

    async def _store_replaced(self, name: str) -> None:
        """A damaged store has another file now: tell whoever keeps some of it in memory."""
        for service_name, service in self.app.services.items():
            if hasattr(service, "store_replaced"):
                try:
                    await service.store_replaced(name)
                except Exception as error:
                    log.error("store_replaced", service=service_name, exc_info=error)

    async def stop_services(self, seconds: float) -> None:
        """Stop what was started, in reverse, all within ``seconds``."""
        deadline = time.monotonic() + seconds
        for name, service in reversed(self._started):
            if hasattr(service, "stop"):
                await _bounded(name, service.stop(), max(0.1, deadline - time.monotonic()))

    def closing_steps(self) -> list[drain.Step]:
        """Services, then stores."""
        seconds = drain.SERVICES_SECONDS
        return [
            drain.Step("services", seconds + 0.1, lambda: self.stop_services(seconds)),
            drain.Step("stores", drain.STORES_SECONDS, self.app.registry.close),
        ]


async def _bounded(name: str, work: Awaitable[object], seconds: float) -> None:
    """Await a service's stop, but not for ever."""
    task = asyncio.ensure_future(work)
    done, _ = await asyncio.wait({task}, timeout=seconds)
    if not done:
        task.cancel()
        log.error("drain_hangs", step=name)
    elif not task.cancelled() and task.exception() is not None:
        log.error("drain_failed", step=name, exc_info=task.exception())
