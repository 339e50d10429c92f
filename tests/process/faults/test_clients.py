"""Many clients, and clients that misbehave, beside one that does not.

200 clients make mixed calls while sessions are indexed and some listen: every write counts
once, answers come in the order of the requests, events in the order of the changes.
"""

import asyncio
import os
import random
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgpack
import psutil
import pytest

from process.test_indexing import homes
from support.daemon import RunningDaemon, make_home, remove_home, start_daemon
from support.history import all_facts
from support.wire import RawClient

FULL = bool(os.environ.get("LORE_FULL"))
CLIENTS = 200
CALLS = int(os.environ.get("LORE_CALLS") or (1_000_000 if FULL else 10_000))
LISTENERS = 4
PIPELINED = 4
GROWTH_BYTES = 60 << 20
"""Of the daemon over the second half of the calls: caches fill in the first."""

HELLO = {"client": "crowd", "version": "1", "protocol": [1, 1], "errors": "map", "ordered": True}


class Member:
    """One of the crowd; keeps a few calls unanswered at a time."""

    def __init__(self, number: int, calls: int, path: str, project: str) -> None:
        self.number, self.calls, self.path, self.project = number, calls, path, project
        self.chance = random.Random(number)
        self.stated: set[str] = set()
        self.events: list[dict[str, Any]] = []
        self.lost = 0
        self.refused = 0
        self.times: list[float] = []

    def call(self, serial: int) -> tuple[str, dict[str, Any]]:
        kind = self.chance.random()
        if kind < 0.05:
            text = f"member {self.number} says {serial}: gate {self.chance.getrandbits(40)}"
            self.stated.add(text)
            return "remember_fact", {
                "text": text,
                "scope": "workspace",
                "entities": [f"member:{self.number}"],
                "idempotency_key": f"{self.number}-{serial}",
            }
        if kind < 0.70:
            return "ping", {}
        if kind < 0.90:
            return "facts", {"entities": [f"member:{self.number}"], "limit": 5}
        if kind < 0.92:
            return "recall_fact", {"query": f"gate member {self.number}", "limit": 3}
        if kind < 0.96:
            return "sessions", {"limit": 3, "everywhere": True}
        return "index_status", {}

    async def join(self) -> None:
        """Connect and greet; some listen as well."""
        self.reader, self.writer = await asyncio.open_unix_connection(self.path)
        self.unpacker = msgpack.Unpacker(raw=False, max_buffer_size=64 << 20)
        greetings = [[0, 0, "hello", [{**HELLO, "workspace": self.project}]]]
        if self.number < LISTENERS:
            greetings.append([0, 1, "subscribe", [{"topics": ["facts"]}]])
        for greeting in greetings:
            self.writer.write(msgpack.packb(greeting))
            message = None
            while message is None:
                self.unpacker.feed(await self.reader.read(1 << 16))
                message = next(self.unpacker, None)
            assert message[:3] == [1, greeting[1], None]

    async def run(self) -> None:
        """Make all calls."""
        reader, writer, unpacker = self.reader, self.writer, self.unpacker
        sent = answered = number = 0
        expected: list[int] = []
        again: list[tuple[str, dict[str, Any]]] = []
        asked: dict[int, tuple[float, tuple[str, dict[str, Any]]]] = {}
        while answered < self.calls or expected:
            while (again or sent < self.calls) and len(asked) < PIPELINED:
                if again:
                    call = again.pop()
                else:
                    sent += 1
                    call = self.call(sent)
                number += 1
                writer.write(msgpack.packb([0, number + 10, call[0], [call[1]]]))
                expected.append(number + 10)
                asked[number + 10] = (time.monotonic(), call)
            data = await reader.read(1 << 16)
            assert data, f"member {self.number} was cut off"
            unpacker.feed(data)
            for message in unpacker:
                if message[0] == 2:
                    self.note(message[1], message[2][0])
                    continue
                assert message[1] == expected.pop(0), "answers in the order of the requests"
                began, call = asked.pop(message[1])
                if message[2] is not None:  # too much at once: the same call again
                    assert message[2]["retryable"], message[2]
                    self.refused += 1
                    again.append(call)
                    continue
                answered += 1
                self.times.append(time.monotonic() - began)

    def note(self, name: str, params: dict[str, Any]) -> None:
        if name == "event":
            self.events.append(params)
        else:
            assert name == "events.lost"
            self.lost += params["count"]


async def crowd(daemon: RunningDaemon, project: str) -> list[Member]:
    members = [Member(n, CALLS // CLIENTS, daemon.socket, project) for n in range(CLIENTS)]
    sizes: list[int] = []
    process = psutil.Process(daemon.pid)

    async def weigh() -> None:
        while True:
            sizes.append(process.memory_info().rss)
            await asyncio.sleep(0.5)

    for one in members:
        await one.join()
    weighing = asyncio.ensure_future(weigh())
    await asyncio.gather(*(one.run() for one in members))
    weighing.cancel()
    late = sizes[len(sizes) // 2 :]
    assert max(late) - late[0] < GROWTH_BYTES, [size >> 20 for size in sizes]
    for one in members:
        one.writer.close()
    return members


@pytest.mark.timeout(7200 if FULL else 300)
def test_two_hundred_clients(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project = home / "user" / "project"
    project.mkdir(parents=True)
    with start_daemon(home) as daemon:
        for folder in homes():  # a backfill begins under the load
            shutil.copytree(folder, home / "user", dirs_exist_ok=True)
        began = time.monotonic()
        try:
            members = asyncio.run(crowd(daemon, str(project)))
        except AssertionError as error:  # the home goes, and its log with it
            defect = daemon.log().partition(" defect ")[2][:4000]
            raise AssertionError(f"{error}\n{defect}") from error
        seconds = time.monotonic() - began
        with daemon.connect(120) as client:
            client.hello()
            texts = [
                fact["text"]
                for fact in all_facts(client, scope="workspace", workspace=str(project))
            ]
            assert client.call("index_wait")["failed"] == 0
            assert client.call("verify")["ok"]
        stated = set().union(*(one.stated for one in members))
        assert len(texts) == len(stated) and set(texts) == stated
        for one in members[:LISTENERS]:
            serials = [event["seq"] for event in one.events]
            assert serials == sorted(set(serials)), "each change once, in order"
            numbers = [int(event["fact"]["id"].lstrip("F")) for event in one.events]
            assert numbers == sorted(set(numbers)), "in the order in which they were made"
            assert serials[-1] == len(serials) + one.lost, "what is missing is said"
        refused = sum(one.refused for one in members)
        times = sorted(time for one in members for time in one.times)
        with capsys.disabled():
            print(
                f"\n{CALLS} calls of {CLIENTS} clients in {seconds:.1f} s, {len(stated)} facts, "
                f"{refused} calls put off; "
                f"p50 {times[len(times) // 2] * 1e3:.0f} ms, "
                f"p99 {times[len(times) * 99 // 100] * 1e3:.0f} ms, daemon "
                f"{psutil.Process(daemon.pid).memory_info().rss >> 20} MiB"
            )


def misbehave(path: str, how: str, seconds: float) -> None:
    """What a bad client does, again and again for some seconds."""
    chance = random.Random(1)
    end = time.monotonic() + seconds
    whole = msgpack.packb([0, 1, "facts", [{"limit": 200}]])
    while time.monotonic() < end:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(5)
            try:
                sock.connect(path)
            except BlockingIOError:  # the queue of newcomers is full
                time.sleep(0.01)
                continue
            try:
                if how == "garbage":
                    sock.sendall(chance.randbytes(20_000))
                elif how == "half":
                    sock.sendall(whole[: chance.randrange(1, len(whole))])
                elif how == "death":
                    for _ in range(20):
                        sock.sendall(whole)
                    time.sleep(0.01)
                elif how == "silence":
                    for _ in range(32):
                        sock.sendall(whole)
                    time.sleep(min(1.0, max(0.0, end - time.monotonic())))
                else:
                    while time.monotonic() < end:
                        sock.sendall(whole * 32)
                        for _ in range(8):
                            sock.recv(1 << 20)
            except (BrokenPipeError, ConnectionResetError, TimeoutError):
                pass


@pytest.fixture(scope="module")
def furnished() -> Iterator[RunningDaemon]:
    """A daemon with facts to send."""
    home = make_home()
    try:
        with start_daemon(home, {"LORE_INDEX_ENABLED": "0"}) as daemon:
            with daemon.connect() as client:
                client.hello()
                for number in range(200):
                    client.call("remember_fact", text=f"gate {number} is shut", scope="global")
            yield daemon
    finally:
        remove_home(home)


@pytest.mark.parametrize("how", ["garbage", "half", "death", "silence", "flood"])
def test_a_bad_client_costs_the_others_nothing(furnished: RunningDaemon, how: str) -> None:
    seconds = 30.0 if FULL else 1.5
    before = psutil.Process(furnished.pid).memory_info().rss
    threads = [
        threading.Thread(target=misbehave, args=(furnished.socket, how, seconds), daemon=True)
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    stated = []
    with furnished.connect() as client:
        client.hello()
        while any(thread.is_alive() for thread in threads):
            text = f"{how} {len(stated)}: a heron"
            client.call("remember_fact", text=text, scope="global")
            stated.append(text)
        kept = {fact["text"] for fact in all_facts(client, scope="global")}
        assert set(stated) <= kept and stated
        while client.call("status")["clients"] > 1:
            pass
    assert psutil.Process(furnished.pid).memory_info().rss - before < GROWTH_BYTES
    assert "Traceback" not in furnished.log() and "defect" not in furnished.log()


def test_a_client_that_dies_in_a_write_leaves_all_or_nothing(furnished: RunningDaemon) -> None:
    for number in range(20):
        one = RawClient(furnished.socket)
        one.hello()
        lines = "\n".join(f'remember "dying {number} part {part}"' for part in range(5))
        one.send("apply", ops=lines, scope="global")
        one.close()
    with furnished.connect() as client:
        client.hello()
        client.call("remember_fact", text="the last word", scope="global")
        texts = [fact["text"] for fact in all_facts(client, scope="global")]
        for number in range(20):
            count = sum(text.startswith(f"dying {number} ") for text in texts)
            assert count in (0, 5), (number, count)
