"""Ping against a bare uvloop + msgpack echo in the same run: medians and their ratio.

    python tests/bench/bench_ping.py [rounds]

Both servers are processes of their own, both are asked by the same blocking client with the
same bytes, in turns of 200 calls so that a busy machine weighs on both alike. The bar is 2.5.
"""

import contextlib
import json
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgpack

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.contract import Row
from support.daemon import make_home, remove_home, start_daemon

BAR = 2.5
TURN = 200

ECHO = """
import asyncio, sys, msgpack, uvloop
class Echo(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport
        self.unpacker = msgpack.Unpacker(raw=False)
    def data_received(self, data):
        self.unpacker.feed(data)
        for message in self.unpacker:
            self.transport.write(msgpack.packb([1, message[1], None, message[3]]))
async def main():
    server = await asyncio.get_running_loop().create_unix_server(Echo, sys.argv[1])
    print("ready", flush=True)
    await server.serve_forever()
uvloop.run(main())
"""


@contextlib.contextmanager
def bare_echo(path: str) -> Iterator[None]:
    """The least that answers a MessagePack-RPC request."""
    process = subprocess.Popen(
        [sys.executable, "-c", ECHO, path], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "ready\n"
        yield
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def turn(sock: socket.socket, count: int) -> list[float]:
    """Round trips in seconds."""
    request = msgpack.packb([0, 7, "ping", [{}]])
    unpacker = msgpack.Unpacker(raw=False)
    times = []
    for _ in range(count):
        began = time.perf_counter()
        sock.sendall(request)
        while True:
            unpacker.feed(sock.recv(65536))
            message = next(unpacker, None)
            if message is not None:
                break
        times.append(time.perf_counter() - began)
        assert message[1] == 7 and message[2] is None
    return times


def measure(rounds: int = 50) -> dict[str, Any]:
    """Figures in microseconds, the ratio of the medians, and the verdict."""
    home = make_home()
    bare: list[float] = []
    ours: list[float] = []
    try:
        with (
            bare_echo(f"{home}/echo"),
            start_daemon(home) as daemon,
            socket.socket(socket.AF_UNIX) as one,
            socket.socket(socket.AF_UNIX) as two,
        ):
            one.connect(f"{home}/echo")
            two.connect(daemon.socket)
            turn(one, TURN), turn(two, TURN)
            for _ in range(rounds):
                bare += turn(one, TURN)
                ours += turn(two, TURN)
    finally:
        remove_home(home)
    ratio = statistics.median(ours) / statistics.median(bare)
    return {
        "figure": "ping p50 / bare uvloop+msgpack echo p50",
        "value": round(ratio, 2),
        "bar": BAR,
        "ok": ratio <= BAR,
        "bare_p50_us": round(statistics.median(bare) * 1e6, 1),
        "ping_p50_us": round(statistics.median(ours) * 1e6, 1),
        "ping_p99_us": round(statistics.quantiles(ours, n=100)[98] * 1e6, 1),
        "calls": len(ours),
    }


def rows(size: str) -> list[Row]:
    """For the table."""
    found = measure({"smoke": 1}.get(size, 50))
    note = (
        f"p50 {found['ping_p50_us']} us, bare echo {found['bare_p50_us']} us, "
        f"p99 {found['ping_p99_us']} us, n={found['calls']}"
    )
    return [Row("ping p50 / bare uvloop+msgpack echo", found["value"], "x", BAR, note=note)]


if __name__ == "__main__":
    found = measure(int(sys.argv[1]) if len(sys.argv) > 1 else 50)
    print(json.dumps(found))
    sys.exit(0 if found["ok"] else 1)
