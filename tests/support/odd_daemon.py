"""The real daemon with a few more methods, which misbehave on demand: `test.*`.

Run as a script in place of `lored run`. The methods are added to the tables that dispatch
reads; nothing of the daemon is replaced. Deadlines are shorter (quick 0.5 s, write 1 s).
"""

import asyncio
import errno
import os
import signal
import subprocess
import sys
import time
from typing import Any

from lore.errors import NotFound
from lore.wire import limits
from lore.wire.methods import BY_NAME, Method, Param
from lored.main import main
from lored.rpc import handlers, parameters
from lored.services.app import App, Call
from lored.store import driver
from lored.store.database import PENDING_READS

limits.DEADLINES["quick"] = 0.5
limits.DEADLINES["write"] = 1.0

_log: list[str] = []
_more: dict[str, Any] = {}
_load = handlers.load
handlers.load = lambda: _load() | _more


async def sleep(app: App, call: Call, params: dict[str, Any]) -> dict[str, Any]:
    """Wait, and note when it was cancelled."""
    name = params.get("name", "")
    _log.append(f"began {name}")
    try:
        await asyncio.sleep(params["seconds"])
    except asyncio.CancelledError:
        _log.append(f"cancelled {name}")
        raise
    _log.append(f"ended {name}")
    return {"slept": name}


async def hang(app: App, call: Call, params: dict[str, Any]) -> dict[str, Any]:
    """Never end, whatever one does."""
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            _log.append("ignored cancel")


async def block(app: App, call: Call, params: dict[str, Any]) -> dict[str, Any]:
    """Block the event loop."""
    await asyncio.sleep(0)
    time.sleep(params["seconds"])  # the fault under test
    return {}


def mark(app: App, call: Call, params: dict[str, Any]) -> dict[str, Any]:
    """Note a name, at once."""
    _log.append(f"began {params['name']}")
    return {}


async def block_until(app: App, call: Call, params: dict[str, Any]) -> dict[str, Any]:
    """Block the event loop while somebody holds the named pipe open for writing."""
    await asyncio.sleep(0)
    with open(params["name"], "rb") as pipe:  # the fault under test
        pipe.read()
    return {}


async def overload(app: App, call: Call, params: dict[str, Any]) -> dict[str, Any]:
    """Have reads of the global store refused as too many, until `seconds` is 0."""
    app.registry.global_._pending_reads += PENDING_READS if params["seconds"] else -PENDING_READS
    return {}


async def stick(app: App, call: Call, params: dict[str, Any]) -> dict[str, Any]:
    """Block the writer thread of the global store."""
    await app.registry.global_.write(lambda conn: time.sleep(params["seconds"]))
    return {}


async def fill(app: App, call: Call, params: dict[str, Any]) -> dict[str, Any]:
    """An answer of that many bytes, after a moment."""
    await asyncio.sleep(0.1)
    return {"text": "x" * params["bytes"]}


async def fail(app: App, call: Call, params: dict[str, Any]) -> dict[str, Any]:
    """Raise what is asked for."""
    kind = params["kind"]
    if kind == "defect":
        raise ValueError(f"the secret is {params['name']}")
    if kind == "full":
        raise driver.OperationalError("database or disk is full")
    if kind == "readonly":
        raise driver.OperationalError("attempt to write a readonly database")
    if kind == "files":
        raise OSError(errno.EMFILE, "Too many open files")
    if kind == "result":
        return {1: b"no plain data"}  # type: ignore[dict-item]
    raise NotFound("nothing of that name", {"name": kind})


async def publish(app: App, call: Call, params: dict[str, Any]) -> dict[str, Any]:
    """Publish that many events of that size."""
    for number in range(params["count"]):
        app.events.publish("facts", {"action": "test", "n": number, "pad": "x" * params["bytes"]})
    return {}


async def child(app: App, call: Call, params: dict[str, Any]) -> dict[str, Any]:
    """Start a child that ignores every polite signal."""
    code = (
        "import signal,time\n"
        "for s in (15, 2, 1): signal.signal(s, signal.SIG_IGN)\n"
        "print(flush=True); time.sleep(600)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    if params.get("name") == "stopped":
        os.kill(process.pid, signal.SIGSTOP)
    return {"pid": process.pid}


def nothing(app: App, call: Call, params: dict[str, Any]) -> dict[str, Any]:
    """A result with absent values at several depths."""
    return {"gone": None, "kept": {"gone": None, "list": [{"gone": None, "one": 1}]}}


def seen(app: App, call: Call, params: dict[str, Any]) -> dict[str, Any]:
    """What the handlers noted."""
    return {"log": list(_log)}


def echo(app: App, call: Call, params: dict[str, Any]) -> dict[str, Any]:
    """What dispatch made of the parameters and the caller."""
    return {
        "params": params,
        "client": call.client,
        "workspace": call.workspace,
        "session_id": call.session_id,
        "request_id": call.request_id,
    }


_seconds = Param("seconds", "number", "", required=True)
_name = Param("name", "text", "", aliases=("alias",))
for _method, _handler in (
    (Method("test.sleep", "", (_seconds, _name), ""), sleep),
    (Method("test.sleep_long", "", (_seconds, _name), "", deadline="long"), sleep),
    (Method("test.sleep_write", "", (_seconds, _name), "", deadline="write"), sleep),
    (Method("test.hang", "", (), ""), hang),
    (Method("test.block", "", (_seconds,), "", deadline="long"), block),
    (Method("test.block_until", "", (_name,), "", deadline="long"), block_until),
    (Method("test.mark", "", (_name,), ""), mark),
    (Method("test.sleep_search", "", (_seconds, _name), "", deadline="search"), sleep),
    (Method("test.overload", "", (_seconds,), ""), overload),
    (Method("test.stick", "", (_seconds,), "", deadline="long"), stick),
    (Method("test.fill", "", (Param("bytes", "int", "", required=True),), ""), fill),
    (
        Method(
            "test.fill_long", "", (Param("bytes", "int", "", required=True),), "", deadline="long"
        ),
        fill,
    ),
    (Method("test.fail", "", (Param("kind", "text", "", required=True), _name), ""), fail),
    (
        Method(
            "test.publish",
            "",
            (
                Param("count", "int", "", required=True),
                Param("bytes", "int", "", required=True),
            ),
            "",
        ),
        publish,
    ),
    (Method("test.child", "", (_name,), ""), child),
    (Method("test.nothing", "", (), ""), nothing),
    (Method("test.seen", "", (), ""), seen),
    (
        Method(
            "test.echo",
            "",
            (
                _name,
                Param("choice", "text", "", choices=("a", "b")),
                Param("number", "int", ""),
                Param("ratio", "number", ""),
                Param("flag", "bool", ""),
                Param("many", "list", ""),
                Param("map", "map", ""),
                Param("ops", "ops", ""),
                Param("when", "date", ""),
                Param("free", "any", ""),
            ),
            "",
        ),
        echo,
    ),
):
    BY_NAME[_method.name] = _method
    parameters.FORMS[_method.name] = parameters.Form(_method)
    _more[_method.name] = _handler

if __name__ == "__main__":
    sys.exit(main(["run"]))
