"""Two hundred clients at once, mixed calls: nothing lost, doubled or misordered, memory flat.

`LORE_FULL=1` makes 1,000,000 calls, else 6,000. Prints the p99 of each method.
"""

import asyncio
import os
import statistics
import time
from typing import Any

import msgpack
import psutil
import pytest

from lore.errors import Busy
from lore.policy import pause_after
from support.daemon import RunningDaemon
from support.wire import RawClient

CLIENTS = 200
CALLS = (1_000_000 if os.environ.get("LORE_FULL") else 6_000) // CLIENTS
PIPELINED = 1
"""Calls that each client keeps unanswered: 200 in all are enough to wait for each other."""
GROWTH_BYTES = 60 << 20
"""Allowed between the first fifth and the end: caches, SQLite's page caches."""


class Loader:
    """One client: keeps `PIPELINED` calls open, checks every answer."""

    def __init__(self, number: int, times: dict[str, list[float]]) -> None:
        self.number, self.times = number, times
        self.stated: list[int] = []
        self.events: list[int] = []
        self.tries: dict[int, int] = {}
        self.late = 0

    def request(self, turn: int) -> tuple[str, dict[str, Any]]:
        kind = (turn + self.number) % 10  # not all in step
        if kind == 0:
            return "remember_fact", {"text": f"client {self.number} turn {turn}", "scope": "global"}
        if kind == 5:
            return "recall_fact", {"query": f"client {self.number}", "scope": "global", "limit": 3}
        if kind == 7:
            return "facts", {"scope": "global", "limit": 5}
        return "ping", {}

    def repeats(self, turn: int, error: Any) -> bool:
        """Whether the call was refused as busy: it is sent again after the pause asked for."""
        if error is None or error["code"] != "busy":
            return False
        self.tries[turn] = self.tries.get(turn, 1) + 1
        pause = pause_after(Busy(error["message"], error["data"]), 1)
        assert pause is not None
        asyncio.get_running_loop().call_later(pause, self.ask, turn)
        return True

    def ask(self, turn: int) -> None:
        method, params = self.request(turn)
        self.writer.write(msgpack.packb([0, turn, method, [params]]))

    def check(self, turn: int, error: Any, result: Any) -> None:
        method, params = self.request(turn)
        if error is not None and error["code"] == "timeout" and method != "remember_fact":
            self.late += 1  # refused within its deadline by a machine that is too busy
            return
        assert error is None, error
        if method == "remember_fact":
            assert result["fact"]["text"] == params["text"] and result["created"]
            self.stated.append(int(result["fact"]["id"].lstrip("F")))
        elif method == "ping":
            assert result["pong"]
        else:
            assert isinstance(result["facts"], list)

    async def run(self, path: str) -> None:
        reader, writer = await asyncio.open_unix_connection(path)
        self.writer = writer
        unpacker = msgpack.Unpacker(raw=False)
        hello = {"client": "load", "version": "1", "protocol": [1, 1], "errors": "map"}
        writer.write(msgpack.packb([0, CALLS, "hello", [hello]]))
        if self.number == 0:
            writer.write(msgpack.packb([0, CALLS + 1, "subscribe", [{"topics": ["facts"]}]]))
        sent, answered, began = 0, set[int](), dict[int, float]()
        while len(answered) < CALLS:
            while sent < CALLS and sent - len(answered) < PIPELINED:
                began[sent] = time.perf_counter()
                self.ask(sent)
                sent += 1
            unpacker.feed(await reader.read(1 << 16))
            for message in unpacker:
                if message[0] == 2:
                    if message[1] == "event":
                        self.events.append(message[2][0]["seq"])
                elif message[1] < CALLS:
                    assert message[1] not in answered, "answered twice"
                    if self.repeats(message[1], message[2]):
                        continue
                    answered.add(message[1])
                    self.check(*message[1:])
                    method, _ = self.request(message[1])
                    self.times[method].append(time.perf_counter() - began.pop(message[1]))
        writer.close()


@pytest.mark.timeout(7200)
async def test_two_hundred_clients(daemon: RunningDaemon) -> None:
    times: dict[str, list[float]] = {
        name: [] for name in ("ping", "remember_fact", "recall_fact", "facts")
    }
    clients = [Loader(number, times) for number in range(CLIENTS)]
    process = psutil.Process(daemon.pid)
    warm = 0

    async def watch() -> None:
        nonlocal warm
        while sum(map(len, times.values())) < CLIENTS * CALLS / 5:
            await asyncio.sleep(0.05)
        warm = process.memory_info().rss

    watching = asyncio.create_task(watch())
    began = time.perf_counter()
    await asyncio.gather(*(client.run(daemon.socket) for client in clients))
    seconds = time.perf_counter() - began
    await watching
    assert process.memory_info().rss - warm < GROWTH_BYTES
    numbers = [number for client in clients for number in client.stated]
    assert len(set(numbers)) == len(numbers) == CLIENTS * CALLS // 10
    for client in clients:
        assert client.stated == sorted(client.stated)  # writes of a client keep their order
    assert clients[0].events == sorted(set(clients[0].events))
    with daemon.connect() as client:
        client.hello()
        assert client.call("facts", scope="global", limit=1)["total"] == len(numbers)
    late = sum(client.late for client in clients)
    again = sum(sum(client.tries.values()) - len(client.tries) for client in clients)
    print(f"\n{CLIENTS * CALLS} calls in {seconds:.1f} s, {again} sent again, {late} reads late")
    for name, found in times.items():
        print(f"{name}: p99 {statistics.quantiles(found, n=100)[98] * 1000:.1f} ms")


def test_pipelined_writes_of_a_client_happen_in_the_order_sent(client: RawClient) -> None:
    ids = [client.send("remember_fact", text=f"line {n}", scope="global") for n in range(40)]
    numbers = [int(client.wait(one)["fact"]["id"].lstrip("F")) for one in ids]
    assert numbers == sorted(numbers)
