"""Mutated frames against a real daemon: no crash, no hang, no growth.

`LORE_FULL=1` sends 1,000,000 frames, else 10,000.
"""

import os
import random
import socket
from typing import Any

import msgpack
import psutil
import pytest

from lore.wire.methods import METHODS
from support.daemon import RunningDaemon

FRAMES = 1_000_000 if os.environ.get("LORE_FULL") else 10_000
GROWTH_BYTES = 40 << 20
"""Allowed beyond the state after a first tenth: caches fill, nothing more."""

VALUES: list[Any] = [
    None,
    True,
    -1,
    1 << 62,
    1.5,
    float("nan"),
    "",
    "x" * 5000,
    "\udc80",
    b"\xff\x00",
    [],
    [[[[[[]]]]]],
    {},
    {"a": {"b": 1}},
    {1: 2},
    ["a"] * 50,
    msgpack.ExtType(5, b"x"),
    msgpack.Timestamp(1, 2),
]

HARMLESS = [method.name for method in METHODS if not method.mutates and method.deadline != "long"]


def frame(chance: random.Random) -> bytes:
    """A request that is wrong in shape, in values or in bytes, or right by accident."""
    method = chance.choice([*HARMLESS, "nonsense"])
    params = {
        chance.choice(["query", "id", "limit", "scope", "text", "x", "topics", "protocol"]): (
            chance.choice(VALUES)
        )
        for _ in range(chance.randrange(3))
    }
    message: list[Any] = [chance.choice([0, 0, 0, 2]), chance.randrange(1 << 32), method, [params]]
    if message[0] == 2:
        del message[1]
    if chance.random() < 0.2:
        message[chance.randrange(len(message))] = chance.choice(VALUES)
    data = bytearray(msgpack.packb(message, unicode_errors="surrogateescape", strict_types=False))
    kind = chance.random()
    if kind < 0.3:
        for _ in range(chance.randrange(1, 4)):
            data[chance.randrange(len(data))] = chance.randrange(256)
    elif kind < 0.4:
        del data[chance.randrange(len(data)) :]
    elif kind < 0.5:
        data[chance.randrange(len(data)) : 0] = chance.randbytes(chance.randrange(1, 20))
    return bytes(data)


def resident(pid: int) -> int:
    return int(psutil.Process(pid).memory_info().rss)


@pytest.mark.timeout(120 + FRAMES // 200)  # on a machine that is busy with other things, too
def test_mutated_frames_do_no_harm(daemon: RunningDaemon) -> None:
    chance = random.Random(20260528)
    sent, after_warm_up = 0, 0
    while sent < FRAMES:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(30)
            sock.connect(daemon.socket)
            burst = [frame(chance) for _ in range(chance.randrange(1, 200))]
            sent += len(burst)
            try:
                sock.sendall(b"".join(burst))
                sock.shutdown(socket.SHUT_WR)
                while sock.recv(1 << 16):
                    pass
            except (BrokenPipeError, ConnectionResetError):
                pass
        if not after_warm_up and sent > FRAMES // 10:
            after_warm_up = resident(daemon.pid)
    with daemon.connect() as client:
        assert client.call("ping")["pong"]
    assert resident(daemon.pid) - after_warm_up < GROWTH_BYTES
    log = daemon.log()
    assert [line for line in log.splitlines() if " defect " in line or " loop " in line] == []
