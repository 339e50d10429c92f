"""Two hundred clients with mixed calls, a subscription and a backfill: order, losses, memory.

    python -m tests.bench --only load [--size full]

Each client keeps two calls open. Checked: every call is answered once, a client's writes keep their
order, every acknowledged fact is stored once, events come in order. Each of these counts as a
fault; the bar is none. A call that is refused as busy is sent again after the pause that the
daemon names, as the client libraries do, until its deadline. What is given up then is counted
apart: refused (nothing was done) or late (a write may have been done).
"""

import asyncio
import itertools
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import msgpack
import psutil

from bench import corpus
from bench.contract import Row, line, number, percentile
from lore.errors import Busy
from lore.policy import pause_after, seconds_of
from support.daemon import RunningDaemon, make_home, remove_home, start_daemon
from support.wire import RawClient

CLIENTS = {"smoke": 10, "default": 200, "full": 200}
CALLS = {"smoke": 200, "default": 20_000, "full": 1_000_000}
BACKFILL_BYTES = {"smoke": 0, "default": 16_000_000, "full": 64_000_000}
PIPELINED = 2
FLOODED: dict[str, dict[str, Any]] = {
    "ping": {},
    "facts": {"scope": "global", "limit": 50},
    "recall_fact": {"query": "client turn", "scope": "global"},
    "remember_fact": {"text": "the moon is made of cheese", "scope": "global"},
}
WRITES = ("remember_fact", "apply")
GROWTH_BAR_MB = 30.0
"""From a quarter of the calls to the end: caches of SQLite that are not full before."""

Times = dict[str, list[float]]


def request(client: int, turn: int) -> tuple[str, dict[str, Any]]:
    """What a client asks in a turn: 4 of 10 are pings, 2 write, 4 read or search."""
    kind = (turn + client) % 10  # not all in step
    if kind == 0:
        return "remember_fact", {
            "text": f"client {client} turn {turn}",
            "scope": "global",
            "entities": [f"tool:client-{client}"],
        }
    if kind == 3:
        text = f"client {client} applied in turn {turn}"
        return "apply", {"ops": f'remember e=tool:applied-{client} "{text}"', "scope": "global"}
    if kind == 5:
        return "recall_fact", {"query": f"client {client}", "scope": "global", "limit": 3}
    if kind == 6:
        return "episodic_recall", {"query": "test failure", "everywhere": True, "limit": 3}
    if kind == 7:
        return "facts", {"scope": "global", "limit": 5}
    if kind == 8:
        return "sessions", {"everywhere": True, "limit": 5}
    return "ping", {}


class Client:
    """One connection."""

    def __init__(self, name: int, calls: int, times: Times) -> None:
        self.name, self.calls, self.times = name, calls, times
        self.stated: list[int] = []
        self.events: list[int] = []
        self.late = self.refused = self.repeated = 0
        """Calls without an answer in time, refused as busy to the last, and sent again."""
        self.acknowledged = self.uncertain = 0
        """Writes, and writes that were given up at their deadline: done or not."""
        self.faults: list[str] = []

    def _check(self, turn: int, error: Any, result: Any) -> None:
        method, params = request(self.name, turn)
        if error is not None:
            code = error["code"] if isinstance(error, dict) else error[1].partition(":")[0]
            if code == "timeout":
                self.late += 1
                self.uncertain += method in WRITES
            elif code == "busy":
                self.refused += 1
            else:
                self.faults.append(f"{method}: {error}")
            return
        self.acknowledged += method in WRITES
        if method == "remember_fact":
            if result["fact"]["text"] != params["text"] or not result["created"]:
                self.faults.append(f"turn {turn}: another fact came back")
            self.stated.append(int(result["fact"]["id"].lstrip("F")))

    async def run(self, path: str) -> None:
        """All calls."""
        reader, writer = await asyncio.open_unix_connection(path)
        unpacker = msgpack.Unpacker(raw=False)
        hello = {"client": "load", "version": "1", "protocol": [1, 1], "errors": "map"}
        writer.write(msgpack.packb([0, self.calls, "hello", [hello]]))
        if self.name == 0:
            topics = {"topics": ["facts"]}
            writer.write(msgpack.packb([0, self.calls + 1, "subscribe", [topics]]))
        began: dict[int, float] = {}
        tries: dict[int, int] = {}
        loop = asyncio.get_running_loop()

        def ask(turn: int) -> None:
            method, params = request(self.name, turn)
            tries[turn] = tries.get(turn, 0) + 1
            writer.write(msgpack.packb([0, turn, method, [params]]))

        def repeats(turn: int, error: Any) -> bool:
            """Whether the call goes on after a pause, as in the client libraries."""
            if not isinstance(error, dict) or error["code"] != "busy":
                return False
            pause = pause_after(Busy(error["message"], error["data"]), tries[turn])
            end = began[turn] + seconds_of(request(self.name, turn)[0])
            if pause is None or time.perf_counter() + pause >= end:
                return False
            self.repeated += 1
            loop.call_later(pause, ask, turn)
            return True

        sent = answered = 0
        while answered < self.calls:
            while sent < self.calls and len(began) < PIPELINED:
                began[sent] = time.perf_counter()
                ask(sent)
                sent += 1
            data = await asyncio.wait_for(reader.read(1 << 16), 120)
            if not data:
                self.faults.append(f"hung up after {answered} answers")
                return
            unpacker.feed(data)
            for message in unpacker:
                if message[0] == 2 and message[1] == "event":
                    self.events.append(message[2][0]["seq"])
                elif message[0] == 1 and message[1] < self.calls:
                    if message[1] in began and repeats(message[1], message[2]):
                        continue
                    start = began.pop(message[1], None)
                    if start is None:
                        self.faults.append(f"turn {message[1]} was answered twice")
                        continue
                    answered += 1
                    self._check(*message[1:])
                    method = request(self.name, message[1])[0]
                    self.times.setdefault(method, []).append((time.perf_counter() - start) * 1e3)
        writer.close()


async def drive(path: str, clients: list[Client], pid: int) -> tuple[float, float, float]:
    """Run all clients: seconds, and MB of the daemon at a quarter and at the end."""
    process = psutil.Process(pid)
    calls = sum(client.calls for client in clients)
    times = clients[0].times
    warm = 0.0

    async def watch() -> None:
        nonlocal warm
        while sum(map(len, times.values())) < calls / 4:
            await asyncio.sleep(0.02)
        warm = process.memory_info().rss / 1e6

    watching = asyncio.create_task(watch())
    began = time.perf_counter()
    await asyncio.gather(*(client.run(path) for client in clients))
    seconds = time.perf_counter() - began
    watching.cancel()
    return seconds, warm, process.memory_info().rss / 1e6


ASKED = {"smoke": 20, "default": 150, "full": 400}
"""Calls of the modest client for each p95."""
FACTOR = 3.0
"""What a flood may make of it."""


def p95(client: RawClient, count: int, method: str, **params: Any) -> float:
    """Milliseconds in which 95 of 100 calls are answered."""
    times = []
    for _ in range(count):
        began = time.perf_counter()
        client.call(method, **params)
        times.append((time.perf_counter() - began) * 1e3)
    return percentile(times, 0.95)


def fairness(daemon: RunningDaemon, size: str) -> Row:
    """The p95 of a modest client beside one that keeps 32 calls open, over that without it; the
    worst of four methods, each the better of two turns."""
    script = Path(__file__).parents[1] / "support" / "flood.py"
    found: dict[str, float] = {}
    with daemon.connect(60) as client:
        client.hello()
        for turn, (method, params) in itertools.product(range(2), FLOODED.items()):
            alone = p95(client, ASKED[size], method, **params)
            command = [sys.executable, str(script), daemon.socket, method, json.dumps(params)]
            flood = subprocess.Popen(command, stdout=subprocess.PIPE)
            try:
                assert flood.stdout is not None
                flood.stdout.readline()
                beside = p95(client, ASKED[size], method, **params)
                if flood.poll() is not None:
                    raise RuntimeError(f"the flood of {method} ended")
            finally:
                flood.kill()
                flood.communicate()
            ratio = beside / alone
            found[method] = min(found[method], ratio) if turn else ratio
    note = ", ".join(f"{name} {number(value)}" for name, value in found.items())
    return Row("load: p95 beside a flooding client", max(found.values()), "x", FACTOR, note=note)


def rows(size: str) -> list[Row]:
    """For the table."""
    count, calls = CLIENTS[size], CALLS[size]
    times: Times = {}
    clients = [Client(name, calls // count, times) for name in range(count)]
    home = make_home()
    try:
        if BACKFILL_BYTES[size]:
            corpus.grow(home / "user", BACKFILL_BYTES[size], now_ns=time.time_ns())
        with start_daemon(home) as daemon:
            seconds, warm, end = asyncio.run(drive(daemon.socket, clients, daemon.pid))
            stated = [number for client in clients for number in client.stated]
            faults = list(itertools.chain.from_iterable(client.faults for client in clients))
            faults += [
                f"client {c.name}: order of writes" for c in clients if c.stated != sorted(c.stated)
            ]
            if len(set(stated)) != len(stated):
                faults.append("an id was given twice")
            if clients[0].events != sorted(set(clients[0].events)):
                faults.append("events out of order")
            with daemon.connect(60) as client:
                client.hello()
                total = client.call("facts", scope="global", limit=1)["total"]
            fair = fairness(daemon, size)
            told = sum(client.acknowledged for client in clients)
            if not told <= total <= told + sum(client.uncertain for client in clients):
                faults.append(f"{total} facts stored, {told} acknowledged")
    finally:
        remove_home(home)
    late = sum(client.late for client in clients)
    refused = sum(client.refused for client in clients)
    done = sum(map(len, times.values()))
    worst = ", ".join(f"{m} {number(percentile(v, 0.99))}" for m, v in sorted(times.items()))
    return [
        Row(f"load: faults in {done:,} calls of {count} clients", len(faults), "", 0.0,
            note="; ".join(faults[:3]) or "none lost, doubled or misordered"),
        Row("load: growth of the daemon", max(end - warm, 0.0), "MB", GROWTH_BAR_MB,
            note=f"{warm:.0f} MB after a quarter, {end:.0f} MB at the end"),
        Row("load: calls a second", done / seconds, "/s", note=f"p99 ms: {worst}"),
        Row("load: calls given up at their deadline", late / done * 100, "%",
            note=f"{sum(client.uncertain for client in clients)} of them writes"),
        Row("load: calls refused as busy to the last", refused / done * 100, "%",
            note=f"{sum(client.repeated for client in clients):,} tries repeated as asked"),
        fair,
    ]  # fmt: skip


if __name__ == "__main__":
    for row in rows(sys.argv[1] if len(sys.argv) > 1 else "default"):
        print(line(row, 58))
