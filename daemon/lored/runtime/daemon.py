"""The life of one daemon process: start in order, serve, stop in order and in time.

The socket answers `ping` and `hello` as soon as the lock is held. Everything else is loaded
and opened after that (house.py), while other calls wait for it; if that fails, they are
answered with the reason before the process ends, so that a client which started us hears it.

When the loop has ended the process leaves by `os._exit`: stores are closed and everything is
synced by then, and the interpreter's own ending would wait for threads that may hang (a stat
on a dead mount, a writer).
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
from typing import TYPE_CHECKING, Any, Final

import structlog
import uvloop

from lore.errors import Invalid, Unavailable
from lore.wire.limits import PROTOCOL_MAX
from lored import __version__
from lored.core import clock
from lored.rpc.server import Server
from lored.runtime import config, drain, listen, logs, places, selfcheck, start
from lored.runtime.idle import Idle
from lored.runtime.logs import Sink
from lored.runtime.notify import Notifier
from lored.runtime.refusal import BAD_SETUP, OK, SOFTWARE, Refused
from lored.runtime.signals import Signals
from lored.runtime.start import Ground
from lored.services.care import memory

if TYPE_CHECKING:
    from lored.runtime.house import House, ServiceTable

FAREWELL_SECONDS: Final = 0.3
"""How long a start that failed answers with the reason: its starter has connected by then."""

log = structlog.get_logger()


def run(services: "ServiceTable") -> int:
    """Serve until told to stop. Returns an exit code if the start is refused, else exits."""
    began = time.monotonic()
    os.umask(0o077)
    os.chdir("/")
    start.fill_standard_descriptors()
    faulthandler.enable(2)
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
        code = _refuse(Refused(f"a defect of lored; see {paths.log_file}", SOFTWARE), sink)
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
        services: "ServiceTable",
        notifier: Notifier,
        sink: Sink,
        began: float,
    ) -> None:
        self._ground, self._table, self._notifier = ground, services, notifier
        self._sink, self._began = sink, began
        self._listener = ground.listener
        self._house: House | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    async def live(self) -> int:
        """Start, serve, drain; the exit code."""
        loop = asyncio.get_running_loop()
        logs.report_loop_errors(loop)
        self._stop_reason: asyncio.Future[str] = loop.create_future()
        self._signals = Signals(loop, stop=self.stop, reload=self._hang_up, force=self._force)
        self._signals.install()
        self._server = Server(uuid.uuid4().hex[:12])
        self._server.on_drain = self.stop
        await self._server.listen(self._listener.sock)
        opening = self._spawn(self._open())
        await asyncio.wait({opening, self._stop_reason}, return_when=asyncio.FIRST_COMPLETED)
        failure = opening.exception() if opening.done() else None
        if failure is not None:
            await self._say_farewell(failure)
            await self._drain()
            raise failure
        reason = await self._stop_reason
        log.info("stopping", reason=reason)
        self._notifier.stopping(reason)
        left_behind = await self._drain()
        log.info("stopped", left_behind=",".join(left_behind) or None)
        return OK

    # -- start ----------------------------------------------------------------------------

    async def _open(self) -> None:
        """Load and open the house, and let calls in."""
        self._house = house = await asyncio.to_thread(self._load)
        await house.open()
        house.health.about = {
            "pid": os.getpid(),
            "version": __version__,
            "protocol": PROTOCOL_MAX,
            "instance": self._server.instance,
            "started": self._began,
            "started_at": clock.to_wire(int(time.time()) * clock.SECOND),
            "realm": self._ground.paths.realm or None,
            "data": self._ground.paths.data_dir,
            "log": None if self._sink.journal else self._sink.path,
        }
        self._announce()
        self._watch(house)
        house.furnish(self._server)
        self._notifier.ready(f"serving {self._listener.path}")
        log.info(
            "serving",
            version=__version__,
            pid=os.getpid(),
            socket=self._listener.path,
            activated=self._listener.activated,
            python=sys.version.split()[0],
            ms=(time.monotonic() - self._began) * 1000,
        )

    def _load(self) -> "House":
        try:
            made: House = importlib.import_module("lored.runtime.house").House(
                self._ground, self._table
            )
        except ImportError as error:
            if isinstance(error, ModuleNotFoundError) and not str(error.name).startswith("lore"):
                what = f"{error.name} is missing; run: pip install 'lored[daemon]'"
            else:  # a package that does not load here, or a file of ours that does not fit
                what = f"{error}; run: pip install --force-reinstall 'lored[daemon]'"
            raise Refused(what, BAD_SETUP) from error
        return made

    def _announce(self) -> None:
        if self._house is not None:
            self._house.health.about["socket"] = self._listener.path
            self._house.health.about["activated"] = self._listener.activated

    def _watch(self, house: "House") -> None:
        self._check = selfcheck.SocketCheck(
            self._listener,
            resolve=lambda: start.locate()[0].socket,
            serve=self._move,
            leave=self.stop,
            degrade=house.health.set_standing,
        )
        self._spawn(self._check.watch())
        self._spawn(selfcheck.beat(self._notifier, house.health.stuck_writers))
        if self._listener.activated:
            idle = Idle(
                seconds=lambda: house.app.settings.idle_exit_seconds,
                is_busy=lambda: bool(self._server.clients) or house.busy,
                leave=lambda: self.stop("idle"),
            )
            self._server.on_empty = idle.touch
            self._spawn(idle.watch())

    def _spawn(self, work: Any) -> "asyncio.Task[Any]":
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _say_farewell(self, failure: BaseException) -> None:
        """Answer whoever waits with the reason of a failed start."""
        message = failure.message if isinstance(failure, Refused) else "a defect; see its log"
        self._server.dispatcher.fail(Unavailable(f"lored cannot start: {message}"))
        self._server.wake()
        await asyncio.sleep(FAREWELL_SECONDS)

    # -- while serving --------------------------------------------------------------------

    async def _move(self, fresh: listen.Listener) -> None:
        """Serve at another path, because the first has vanished."""
        self._listener = fresh
        await self._server.listen(fresh.sock)
        start.describe(self._ground.lock, fresh)
        with contextlib.suppress(OSError):
            listen.publish(self._ground.paths.pointer, fresh.path)
        self._announce()
        self._notifier.status(f"serving {fresh.path}")

    def _hang_up(self) -> None:
        """SIGHUP: read the settings again, reopen the log, look at the socket."""
        if self._house is not None and self._server.dispatcher.is_open:
            self._spawn(self._reload(self._house))

    async def _reload(self, house: "House") -> None:
        self._notifier.reloading()
        path = self._ground.paths.config_file
        try:
            house.app.settings = config.load(path)
        except Invalid as error:
            log.error("settings_refused", text=error.message)
            house.health.set_standing(
                "settings",
                f"the settings before the last reload are in force: {error.message}",
                f"correct {path}, then: kill -HUP {os.getpid()}",
            )
        else:
            house.health.set_standing("settings", None)
            self._sink.reopen()
            logs.configure(self._sink, house.app.settings.log_level)
            await house.settings_changed()
            log.info("settings_read")
        await self._check.check()
        self._notifier.ready(f"serving {self._listener.path}")

    # -- end ------------------------------------------------------------------------------

    def stop(self, reason: str) -> None:
        """Begin the end; only the first reason counts."""
        if not self._stop_reason.done():
            self._stop_reason.set_result(reason)

    async def _drain(self) -> list[str]:
        """End everything in order; the names of what did not end in time."""
        self._signals.arm()
        server = self._server
        server.stop_accepting()
        for task in self._tasks:
            task.cancel()
        grace, clients = drain.REQUESTS_SECONDS, drain.CLIENTS_SECONDS
        requests = drain.Step("requests", grace + 0.1, lambda: server.finish(grace))
        farewell = drain.Step("clients", clients + 0.1, lambda: server.close(clients))
        if self._house is None:
            return await drain.drain([requests, farewell])
        services, stores = self._house.closing_steps()
        return await drain.drain([requests, services, farewell, stores])

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
        faulthandler.dump_traceback(2)
        self.let_go()
        os._exit(SOFTWARE)
