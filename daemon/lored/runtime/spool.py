"""Writes that waited for the daemon, taken in once each.

Clients that could not reach the socket left one file per write (`lore.spool`). Files are taken
in the order of their names; each goes through the same checks and the same handler as a call,
with dates read relative to the moment of the statement. After the commit the file is removed;
a crash in between is harmless, since statements carry an idempotency key and the other
operations refuse to happen twice. What is refused (also because somebody was faster) is set
aside in `refused/` with its reason and reported, never deleted.
"""

import asyncio
import inspect
import json
import os
import stat
from typing import Any, Final

import structlog

from lore.errors import LoreError
from lore.spool import FORMAT, METHODS
from lore.wire.limits import REQUEST_BYTES
from lore.wire.methods import BY_NAME
from lored.core import clock
from lored.rpc import handlers
from lored.rpc.faults import translate
from lored.rpc.parameters import Form
from lored.services.app import App, Call
from lored.services.moments import zone
from lored.store.migrate import ForeignFile, NewerSchema

LOOK_SECONDS: Final = 2.0
"""How long a spooled write may lie before it is seen: one listing of a folder that is nearly
always empty."""

REFUSED: Final = "refused"

log = structlog.get_logger()


class _Refused(Exception):
    """This file will never be a write; the text says why."""


class Spool:
    """The intake of one daemon."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._folder = app.paths.spool_dir
        self._task: asyncio.Task[None] | None = None
        self._seen_mtime = 0
        self._handlers = handlers.load()
        self.taken = 0

    async def start(self) -> None:
        """Take in what waits, then keep looking."""
        await self._take_all()
        self._task = asyncio.create_task(self._look(), name="spool")

    async def stop(self) -> None:
        """End; what is not taken in waits for the next start."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                changed = os.stat(self._folder).st_mtime_ns
            except OSError:
                continue
            if changed != self._seen_mtime:
                await self._take_all()

    async def _take_all(self) -> None:
        try:
            before = os.stat(self._folder).st_mtime_ns
            names = sorted(name for name in os.listdir(self._folder) if name.endswith(".json"))
        except OSError:
            return
        for name in names:
            if not await self._take(name):
                return  # later files may build on this one; the next look tries again
        self._seen_mtime = before if not names else 0

    async def _take(self, name: str) -> bool:
        """One file; False when it must wait."""
        path = f"{self._folder}/{name}"
        try:
            entry = await asyncio.to_thread(_read, path)
            method, call, params = self._prepare(entry, name)
            answer = self._handlers[method](self._app, call, params)
            if inspect.isawaitable(answer):
                await answer
        except _Refused as error:
            await asyncio.to_thread(self._set_aside, name, str(error))
            return True
        except LoreError as error:
            if error.retryable:
                log.warning("spool", file=name, waits=error.code)
                return False
            await asyncio.to_thread(self._set_aside, name, f"{error.code}: {error}")
            return True
        except FileNotFoundError:
            return True
        except OSError as error:
            log.warning("spool", file=name, waits=str(error))
            return False
        except Exception as error:
            known = translate(error)
            if known is not None and not isinstance(error, NewerSchema | ForeignFile):
                # A busy or full store, perhaps well at the next look.
                log.warning("spool", file=name, waits=known.message)
                return False
            log.error("spool", file=name, exc_info=error)
            await asyncio.to_thread(self._set_aside, name, str(known or repr(error)))
            return True
        else:
            self.taken += 1
        await asyncio.to_thread(os.unlink, path)
        return True

    def _prepare(self, entry: dict[str, Any], name: str) -> tuple[str, Call, dict[str, Any]]:
        method = BY_NAME.get(str(entry.get("method")))
        if entry.get("format") != FORMAT or method is None or method.name not in METHODS:
            raise _Refused("not a spooled write of a form that this release knows")
        at = clock.parse_instant(entry.get("at"))
        given, workspace = entry.get("params"), entry.get("workspace")
        if at is None or not isinstance(given, dict):
            raise _Refused("no instant or no parameters")
        params = Form(method).read(given)
        for param in method.params:
            if param.type == "date" and param.name in params:
                try:
                    moment = clock.parse_when(params[param.name], now=at, zone=zone())
                except ValueError as error:
                    raise _Refused(str(error)) from None
                params[param.name] = clock.to_wire(moment)
        if any(param.name == "valid_from" for param in method.params):
            params.setdefault("valid_from", clock.to_wire(at))
        call = Call(
            request_id=f"spool-{name[:20]}",
            client=str(entry.get("client", "spool"))[:100],
            workspace=workspace if isinstance(workspace, str) else None,
        )
        return method.name, call, params

    def _set_aside(self, name: str, why: str) -> None:
        folder = f"{self._folder}/{REFUSED}"
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with open(f"{folder}/{name}.reason", "w", encoding="utf-8") as file:
            file.write(why + "\n")
        os.rename(f"{self._folder}/{name}", f"{folder}/{name}")
        log.warning("spool", file=name, refused=why)

    def status(self) -> dict[str, Any]:
        """Counts for `status`: waiting, taken since the start, refused (with the folder)."""
        waiting = refused = 0
        try:
            waiting = sum(name.endswith(".json") for name in os.listdir(self._folder))
            refused = sum(
                name.endswith(".json") for name in os.listdir(f"{self._folder}/{REFUSED}")
            )
        except OSError:
            pass
        return {"files": waiting, "taken": self.taken, "refused": refused, "folder": self._folder}

    def degraded(self) -> list[dict[str, str]]:
        """Writes that could not be taken in."""
        refused = self.status()["refused"]
        if not refused:
            return []
        return [
            {
                "name": "spool",
                "reason": f"{refused} writes from a sandbox were refused",
                "remedy": f"read the reasons in {self._folder}/{REFUSED}, then remove the files",
            }
        ]


def _read(path: str) -> dict[str, Any]:
    if not stat.S_ISREG(os.lstat(path).st_mode):
        raise _Refused("not a file of ours")
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with open(handle, "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid():
            raise _Refused("not a file of ours")
        data = file.read(REQUEST_BYTES + 1)
    if len(data) > REQUEST_BYTES:
        raise _Refused(f"larger than {REQUEST_BYTES} bytes")
    try:
        entry = json.loads(data)
        data.decode("utf-8")
    except (ValueError, RecursionError):
        raise _Refused("not JSON") from None
    if not isinstance(entry, dict):
        raise _Refused("not an object")
    return entry
