"""`status`, `health` and `metrics`: what the daemon knows about itself, spoken aloud.

Health is proved, not assumed: every open store's writer must answer, and the loop does by
running this. A degraded mode is {name, reason, remedy}. Any service may have degraded modes of
its own in a method `degraded()`, and a part of `status` in a method `status()`. What a call ran
into (disk full, ...) stays in the list for `FAULT_SECONDS` after it was last seen.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import Any, Final, TypeVar

import structlog

from lored.services.app import App
from lored.services.care import memory
from lored.services.care.openmetrics import Page
from lored.store import driver, migrate
from lored.store.database import Database

T = TypeVar("T")

WRITER_SECONDS: Final = 2.0
"""A writer that does not answer within this is reported; transactions take milliseconds."""

PART_SECONDS: Final = 1.0
"""For one service's part of `status`; the call itself has 2 s."""

FAULT_SECONDS: Final = 600.0
"""How long a fault that a call ran into is shown after it was last seen."""

FEW_DESCRIPTORS: Final = 20
"""Free descriptors below which clients and stores may soon be refused."""

Degraded = dict[str, str]

log = structlog.get_logger()


class Health:
    """The daemon's view of itself."""

    def __init__(self, app: App) -> None:
        self._app = app
        self.about: dict[str, Any] = {"pid": os.getpid()}
        """Identity, set by the composition root: version, protocol, instance, socket, ..."""
        self.observers: list[Callable[[], dict[str, Any]]] = []
        """More parts of `status`, from layers above."""
        self.meters: list[Callable[[Page], None]] = []
        """More metrics, from layers above."""
        self.standing: dict[str, Degraded] = {}
        """Degraded modes by name that hold until taken out (settings not readable, ...)."""
        self._faults: dict[str, tuple[float, str]] = {}
        self._told: list[Degraded] | None = None

    def note_fault(self, name: str, remedy: str) -> None:
        """A call ran into this; say so for a while."""
        self._faults[name] = (time.monotonic(), remedy)
        self._tell()

    def set_standing(self, name: str, reason: str | None, remedy: str = "") -> None:
        """Enter a degraded mode, or leave it (``reason`` None)."""
        if reason is None:
            self.standing.pop(name, None)
        else:
            self.standing[name] = {"name": name, "reason": reason, "remedy": remedy}
        self._tell()

    async def store_replaced(self, name: str) -> None:
        """A damaged store was replaced: what calls met of it is over, and the rest is told."""
        self._faults.pop("corrupt", None)
        self._tell()

    def _tell(self) -> None:
        """Publish the list when it has changed."""
        now = self.degraded()
        if now != self._told:
            self._told = now
            self._app.events.publish("status", {"degraded": now})

    def degraded(self) -> list[Degraded]:
        """All degraded modes now, each with its remedy."""
        now = time.monotonic()
        self._faults = {n: f for n, f in self._faults.items() if now - f[0] < FAULT_SECONDS}
        found = list(self.standing.values())
        found += [
            {"name": name, "reason": f"a call failed: {name.replace('_', ' ')}", "remedy": remedy}
            for name, (_, remedy) in self._faults.items()
        ]
        if not driver.HAS_VEC:
            found.append(
                {
                    "name": "no_sqlite_vec",
                    "reason": f"vectors are searched with numpy: {driver.VEC_REASON}",
                    "remedy": "pip install --upgrade pysqlite3 sqlite-vec, then: lore restart",
                }
            )
        left, limit = memory.descriptors()
        if left < FEW_DESCRIPTORS:
            found.append(
                {
                    "name": "few_descriptors",
                    "reason": f"{limit - left} of {limit} file descriptors are in use",
                    "remedy": "raise LimitNOFILE (ulimit -n), then: lore restart",
                }
            )
        unwritten = [
            name for name, one in self._app.registry.open_stores().items() if one.lacks_room
        ]
        if unwritten:
            found.append(
                {
                    "name": "disk_full",
                    "reason": f"the disk is full: {', '.join(unwritten)} can be read only",
                    "remedy": f"free space for {self._app.paths.data_dir}; writing then goes on",
                }
            )
        for recovery in self._app.registry.recoveries:
            found.append(
                {
                    "name": "store_recovered",
                    "reason": "; ".join(f"{key}: {value}" for key, value in recovery.items()),
                    "remedy": "check it with: lore verify; the damaged file was kept",
                }
            )
        for service in self._app.services.values():
            if service is not self and hasattr(service, "degraded"):
                try:
                    found += service.degraded()
                except Exception as error:
                    log.error("degraded_failed", exc_info=error)
        return found

    async def status(self) -> dict[str, Any]:
        """The whole map of `status`: identity, stores, roots, queues, memory, degraded modes."""
        answer: dict[str, Any] = dict(self.about)
        answer["uptime_seconds"] = round(time.monotonic() - self.about.get("started", 0.0), 1)
        answer.pop("started", None)
        answer["driver"] = driver.capabilities()
        for observe in self.observers:
            answer.update(observe())
        speaking = {
            name: service
            for name, service in self._app.services.items()
            if service is not self and hasattr(service, "status")
        }
        # All at once: each may take its whole time where something hangs.
        answer["stores"], *parts = await asyncio.gather(
            self._stores(), *(self._part(name, service) for name, service in speaking.items())
        )
        answer.update(zip(speaking, parts, strict=True))
        index = answer.pop("indexing", None)
        if isinstance(index, dict):
            answer["roots"] = index.pop("roots", [])
            answer["index"] = index
        answer["memory"] = memory.measure()
        answer["degraded"] = self.degraded()
        return answer

    async def _part(self, name: str, service: Any) -> Any:
        """What a service says in its own `status`, sync or async, or why it does not: one
        part that hangs must not hide the others."""
        try:
            found = service.status()
            return await _within(found, PART_SECONDS) if isawaitable(found) else found
        except TimeoutError:
            return {"reason": f"{name} does not answer within {PART_SECONDS:g} s"}
        except Exception as error:
            log.error("status_failed", service=name, exc_info=error)
            return {"reason": f"{name} cannot say ({type(error).__name__}); see lore logs"}

    async def _stores(self) -> list[dict[str, Any]]:
        stores = self._app.registry.open_stores()
        roots = self._app.workspaces.roots()
        revisions = await asyncio.gather(*map(self._revision, stores.values()))
        return [
            {
                "name": name,
                "path": database.path,
                **({"root": roots[name]} if name in roots else {}),
                "bytes": _size(database.path),
                "wal_bytes": _size(database.path + "-wal"),
                "uuid": database.uuid,
                "revision": revision,
                "queue": dict(database.queue_depths),
            }
            for (name, database), revision in zip(stores.items(), revisions, strict=True)
        ]

    @staticmethod
    async def _revision(database: Database) -> int | None:
        """The revision, or None when the readers are busy: `status` must not wait for them."""
        try:
            return await _within(database.read(migrate.revision), PART_SECONDS)
        except (TimeoutError, RuntimeError, driver.Error):
            return None

    async def stuck_writers(self, seconds: float = WRITER_SECONDS) -> list[str]:
        """Names of the stores whose writer does not answer within ``seconds``."""

        async def ask(name: str, database: Database) -> str | None:
            try:
                await _within(database.write_raw(_touch), seconds)
            except (TimeoutError, driver.Error):
                return name
            except (RuntimeError, ValueError):
                return None  # closed meanwhile: an idle workspace store
            return None

        stores = {
            name: database
            for name, database in self._app.registry.open_stores().items()
            if not database.lacks_room
        }
        answers = await asyncio.gather(*(ask(name, one) for name, one in stores.items()))
        return [name for name in answers if name]

    async def health(self) -> dict[str, Any]:
        """`ok`, or `reasons` [{name, reason, remedy}] why not."""
        reasons: list[Degraded] = [
            {
                "name": "writer_stuck",
                "reason": f"the writer of the {name} store does not answer",
                "remedy": "wait for a long write to end (lore status), else: lore restart",
            }
            for name in await self.stuck_writers()
        ]
        reasons += self.degraded()
        return {"ok": not reasons, "reasons": reasons}

    async def metrics(self) -> str:
        """OpenMetrics 1.0 text."""
        page = Page()
        about = self.about
        page.gauge(
            "lored_info",
            "Version and protocol",
            [({"version": about.get("version"), "protocol": about.get("protocol")}, 1)],
        )
        uptime = time.monotonic() - about.get("started", 0.0)
        page.gauge("lored_uptime_seconds", "Time since the start", [({}, uptime)])
        stores = await self._stores()
        for key, doc in (
            ("bytes", "Size of the store file"),
            ("wal_bytes", "Size of its log file"),
            ("revision", "Changes counted by the store"),
        ):
            values = [({"store": s["name"]}, s[key]) for s in stores if s[key] is not None]
            page.gauge(f"lored_store_{key}", doc, values)
        for key in ("writes", "reads"):
            values = [({"store": s["name"]}, s["queue"][key]) for s in stores]
            page.gauge(f"lored_store_pending_{key}", f"{key} waiting or running", values)
        measured = memory.measure()
        page.gauge(
            "lored_resident_bytes",
            "Resident memory",
            [({"process": name.removesuffix("_bytes")}, size) for name, size in measured.items()],
        )
        page.gauge("lored_degraded", "Degraded modes", [({}, len(self.degraded()))])
        self._meter_index(page, await self._index_roots())
        for meter in self.meters:
            meter(page)
        return page.text()

    async def _index_roots(self) -> list[dict[str, Any]]:
        indexing = self._app.services.get("indexing")
        part = await self._part("indexing", indexing) if indexing is not None else {}
        roots: list[dict[str, Any]] = part.get("roots", [])
        return roots

    @staticmethod
    def _meter_index(page: Page, roots: list[dict[str, Any]]) -> None:
        for key, doc in (
            ("sessions", "Sessions indexed"),
            ("messages", "Messages indexed"),
            ("pending", "Files that wait to be read"),
            ("lag_ms", "Age of the oldest change not read yet"),
        ):
            values = [({"agent": r["agent"], "path": r["path"]}, r[key]) for r in roots]
            page.gauge(f"lored_index_{key}", doc, values)


async def _within(work: Awaitable[T], seconds: float) -> T:
    """Await at most ``seconds``, also if the work does not obey its cancellation (which
    `asyncio.wait_for` would wait for). Raises `TimeoutError`."""
    task = asyncio.ensure_future(work)
    done, _ = await asyncio.wait({task}, timeout=seconds)
    if not done:
        task.cancel()
        raise TimeoutError
    return task.result()


def _touch(connection: Any) -> None:
    connection.execute("SELECT 1").fetchone()


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
