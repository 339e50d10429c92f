"""The life of one daemon process: start in order, serve, stop in order and in time.

Which services exist is told by `lored.main`; how each step works is told by the other modules
of this folder. When the loop has ended the process leaves by `os._exit`: stores are closed
and everything is synced by then, and the interpreter's own ending would wait for threads that
may hang (a stat on a dead mount, a writer).
"""

import asyncio
import contextlib
import faulthandler
import importlib
import os
import signal
import sys
import time
import uuid
from collections.abc import Awaitable, Iterable
from typing import Any

import structlog
import uvloop

from lore.errors import Invalid
from lore.wire.limits import PROTOCOL_MAX
from lored import __version__
from lored.core import clock
from lored.rpc.handlers import HANDLERS
from lored.rpc.meters import meter_server
from lored.rpc.server import Server
from lored.runtime import config, drain, listen, logs, places, selfcheck, start
from lored.runtime.idle import Idle
from lored.runtime.logs import Sink
from lored.runtime.notify import Notifier
from lored.runtime.refusal import BAD_STORE, OK, SOFTWARE, Refused
from lored.runtime.signals import Signals
from lored.runtime.start import Ground
from lored.services import memory
from lored.services.app import App
from lored.services.events import Events
from lored.services.health import Health
from lored.services.workspaces import Workspaces
from lored.store import driver
from lored.store.migrate import ForeignFile, NewerSchema
from lored.store.registry import Registry

ServiceTable = Iterable[tuple[str, str]]

log = structlog.get_logger()


def run(services: ServiceTable) -> int:
    """Serve until told to stop. Returns an exit code if the start is refused, else exits."""
    began = time.monotonic()
    os.umask(0o077)
    os.chdir("/")
    faulthandler.enable()
    notifier = Notifier()
    sink: Sink | None = None
    try:
        start.check_codec()
        paths, settings = start.locate()
        places.prepare(paths)
        sink = Sink(paths.log_file, journal=logs.under_journal(os.environ), terminal=os.isatty(2))
        logs.configure(sink, settings.log_level)
        start.limit_process()
        ground = start.take(paths, settings)
    except Refused as refusal:
        return _refuse(refusal, sink)
    daemon = Daemon(ground, services, notifier, sink, began)
    loop = uvloop.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        code = loop.run_until_complete(daemon.live())
    except Refused as refusal:
        code = _refuse(refusal, sink)
    except BaseException as error:
        log.critical("defect", exc_info=error)
        code = _refuse(Refused(f"a defect of lored; see {paths.log_file}", SOFTWARE), None)
    daemon.let_go()
    os._exit(code)


def _refuse(refusal: Refused, sink: Sink | None) -> int:
    """Say why on stderr (which a client that started us reads) and in the log."""
    if sink is not None:
        sink.write("critical", f"cannot start: {refusal.message}")
    if sink is None or not (sink.terminal or sink.journal):
        with contextlib.suppress(OSError):
            print(f"lored: cannot start: {refusal.message}", file=sys.stderr, flush=True)
    return refusal.code


class Daemon:
    """One daemon between its start and its end."""

    def __init__(
        self,
        ground: Ground,
        services: ServiceTable,
        notifier: Notifier,
        sink: Sink,
        began: float,
    ) -> None:
        self._ground, self._table, self._notifier = ground, tuple(services), notifier
        self._sink, self._began = sink, began
        paths = ground.paths
        registry = Registry(
            global_db=paths.global_db,
            workspaces_dir=paths.workspaces_dir,
            sessions_db=paths.sessions_db,
            backups_dir=paths.backups_dir,
        )
        workspaces = Workspaces(registry, os.path.expanduser("~"))
        self._app = App(paths, ground.settings, registry, Events(), workspaces)
        self._health = Health(self._app)
        self._stop_reason: asyncio.Future[str] | None = None
        self._listener = ground.listener
        self._started: list[tuple[str, Any]] = []
        self._tasks: set[asyncio.Task[Any]] = set()

    async def live(self) -> int:
        """Start, serve, drain; the exit code."""
        loop = asyncio.get_running_loop()
        logs.report_loop_errors(loop)
        self._stop_reason = loop.create_future()
        self._signals = Signals(loop, stop=self.stop, reload=self._hang_up, force=self._force)
        self._signals.install()
        try:
            await self._open_stores()
            await self._start_services()
            server = await self._serve()
        except BaseException:
            self._signals.arm()
            await drain.drain(self._closing_steps(None))
            raise
        reason = await self._stop_reason
        self._signals.arm()
        log.info("stopping", reason=reason)
        self._notifier.stopping(reason)
        for task in self._tasks:
            task.cancel()
        left_behind = await drain.drain(self._closing_steps(server))
        log.info("stopped", left_behind=",".join(left_behind) or None)
        return OK

    # -- start ----------------------------------------------------------------------------

    async def _open_stores(self) -> None:
        try:
            await self._app.registry.open()
            await self._app.workspaces.load()
        except (NewerSchema, ForeignFile) as error:
            raise Refused(str(error), BAD_STORE) from None
        except driver.Error as error:
            raise Refused(
                f"a store in {self._ground.paths.data_dir} cannot be opened ({error}); "
                "nothing was changed; check the disk, then: lored check",
                BAD_STORE,
            ) from error
        except OSError as error:
            raise Refused(f"{error.filename}: {error.strerror}", BAD_STORE) from None

    async def _start_services(self) -> None:
        """Make all, then start them in order. One that fails leaves a degraded mode, since a
        memory without search is still a memory."""
        app = self._app
        for name, where in self._table:
            module, _, attribute = where.partition(":")
            if name == "health":
                app.services[name] = self._health
                continue
            try:
                app.services[name] = getattr(importlib.import_module(module), attribute)(app)
            except ImportError as error:
                log.warning("service_missing", service=name, exc_info=error)
        for name, service in app.services.items():
            self._started.append((name, service))
            try:
                if hasattr(service, "start"):
                    await service.start()
            except Exception as error:
                log.error("service_failed", service=name, exc_info=error)
                reason = f"the service {name} did not start ({type(error).__name__})"
                self._health.set_standing(f"no_{name}", reason, "see lore logs, then: lore restart")

    async def _serve(self) -> Server:
        instance = uuid.uuid4().hex[:12]
        server = Server(self._app, HANDLERS, instance)
        server.on_drain = self.stop
        server.dispatcher.on_fault = self._health.note_fault
        self._health.observers.append(server.describe)
        self._health.meters.append(lambda page: meter_server(server, page))
        self._health.about = {
            "pid": os.getpid(),
            "version": __version__,
            "protocol": PROTOCOL_MAX,
            "instance": instance,
            "started": self._began,
            "started_at": clock.to_wire(int(time.time()) * clock.SECOND),
            "realm": self._ground.paths.realm or None,
            "data": self._ground.paths.data_dir,
            "log": None if self._sink.journal else self._sink.path,
        }
        self._announce()
        await server.listen(self._listener.sock)
        self._watch(server)
        self._notifier.ready(f"serving {self._listener.path}")
        log.info(
            "serving",
            version=__version__,
            pid=os.getpid(),
            socket=self._listener.path,
            activated=self._listener.activated,
            python=sys.version.split()[0],
            sqlite=f"{driver.NAME} {driver.VERSION}",
            ms=(time.monotonic() - self._began) * 1000,
        )
        return server

    def _announce(self) -> None:
        self._health.about["socket"] = self._listener.path
        self._health.about["activated"] = self._listener.activated

    def _watch(self, server: Server) -> None:
        self._check = selfcheck.SocketCheck(
            self._listener,
            resolve=lambda: start.locate()[0].socket,
            serve=lambda fresh: self._move(server, fresh),
            leave=self.stop,
            degrade=self._health.set_standing,
        )
        self._spawn(self._check.watch())
        self._spawn(selfcheck.beat(self._notifier, self._health.stuck_writers))
        if self._listener.activated:
            idle = Idle(
                seconds=lambda: self._app.settings.idle_exit_seconds,
                is_busy=lambda: bool(server.clients) or self._has_work(),
                leave=lambda: self.stop("idle"),
            )
            server.on_empty = idle.touch
            self._spawn(idle.watch())

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _has_work(self) -> bool:
        return any(getattr(service, "busy", False) for service in self._app.services.values())

    # -- while serving --------------------------------------------------------------------

    async def _move(self, server: Server, fresh: listen.Listener) -> None:
        """Serve at another path, because the first has vanished."""
        self._listener = fresh
        await server.listen(fresh.sock)
        start.describe(self._ground.lock, fresh)
        with contextlib.suppress(OSError):
            listen.publish(self._ground.paths.pointer, fresh.path)
        self._announce()
        self._notifier.status(f"serving {fresh.path}")

    def _hang_up(self) -> None:
        """SIGHUP: read the settings again, reopen the log, look at the socket."""
        self._spawn(self._reload())

    async def _reload(self) -> None:
        self._notifier.reloading()
        try:
            self._app.settings = config.load(self._ground.paths.config_file)
        except Invalid as error:
            log.error("settings_refused", text=error.message)
            self._health.set_standing(
                "settings",
                f"the settings before the last reload are in force: {error.message}",
                f"correct {self._ground.paths.config_file}, then: kill -HUP {os.getpid()}",
            )
        else:
            self._health.set_standing("settings", None)
            self._sink.reopen()
            logs.configure(self._sink, self._app.settings.log_level)
            for service in self._app.services.values():
                if hasattr(service, "reload"):
                    await service.reload()
            log.info("settings_read")
        await self._check.check()
        self._notifier.ready(f"serving {self._listener.path}")

    # -- end ------------------------------------------------------------------------------

    def stop(self, reason: str) -> None:
        """Begin the end; only the first reason counts."""
        if self._stop_reason is not None and not self._stop_reason.done():
            self._stop_reason.set_result(reason)

    def _closing_steps(self, server: Server | None) -> list[drain.Step]:
        steps = []
        if server is not None:
            server.stop_accepting()
            grace = drain.REQUESTS_SECONDS
            steps.append(drain.Step("requests", grace + 0.1, lambda: server.finish(grace)))
        deadline = time.monotonic() + drain.REQUESTS_SECONDS + drain.SERVICES_SECONDS

        async def stop_services() -> None:
            for name, service in reversed(self._started):
                if hasattr(service, "stop"):
                    began = time.monotonic()
                    log.debug("stopping_service", service=name)
                    await _bounded(name, service.stop(), max(0.1, deadline - began))

        steps.append(drain.Step("services", drain.SERVICES_SECONDS, stop_services))
        if server is not None:
            seconds = drain.CLIENTS_SECONDS
            steps.append(drain.Step("clients", seconds + 0.1, lambda: server.close(seconds)))
        steps.append(drain.Step("stores", drain.STORES_SECONDS, self._app.registry.close))
        return steps

    def let_go(self) -> None:
        """The last acts, all quick: children, socket, lock."""
        for pid in memory.children():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        listen.remove(self._listener)
        self._ground.lock.release()

    def _force(self, reason: str) -> None:
        """Called on the signal thread when the drain hangs."""
        log.critical("forced_end", reason=reason)
        faulthandler.dump_traceback()
        self.let_go()
        os._exit(SOFTWARE)


async def _bounded(name: str, work: Awaitable[object], seconds: float) -> None:
    """Await a service's stop, but not for ever."""
    task = asyncio.ensure_future(work)
    done, _ = await asyncio.wait({task}, timeout=seconds)
    if not done:
        task.cancel()
        log.error("drain_hangs", step=name)
    elif not task.cancelled() and task.exception() is not None:
        log.error("drain_failed", step=name, exc_info=task.exception())
