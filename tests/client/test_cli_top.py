"""`lore top`: rates from counters, and the command over a real daemon."""

import json
import os
import pty
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lore.cli.top import rates, read
from support.cli import LORE, Lore
from support.daemon import RunningDaemon, environment, start_daemon

BEFORE = """\
# TYPE lored_requests counter
lored_requests_total{method="ping",outcome="ok"} 10
lored_requests_total{method="facts",outcome="ok"} 100
lored_request_seconds_bucket{method="facts",le="0.005"} 90
lored_request_seconds_bucket{method="facts",le="0.02"} 100
lored_request_seconds_bucket{method="facts",le="+Inf"} 100
lored_request_seconds_count{method="facts"} 100
lored_request_seconds_sum{method="facts"} 0.5
lored_clients 3
"""
AFTER = """\
lored_requests_total{method="ping",outcome="ok"} 14
lored_requests_total{method="facts",outcome="ok"} 119
lored_requests_total{method="facts",outcome="busy"} 1
lored_requests_total{method="odd\\"one",outcome="ok"} 2
lored_request_seconds_bucket{method="facts",le="0.005"} 108
lored_request_seconds_bucket{method="facts",le="0.02"} 120
lored_request_seconds_bucket{method="facts",le="+Inf"} 120
lored_request_seconds_count{method="facts"} 120
lored_request_seconds_sum{method="facts"} 0.7
"""


def test_rates_are_those_between_two_looks() -> None:
    assert rates(read(BEFORE), read(AFTER), 2.0) == [
        {"method": "facts", "per_second": 10.0, "failed": 1, "mean_ms": 10.0, "p95_ms": 20.0},
        {"method": "ping", "per_second": 2.0, "failed": 0},
        {"method": 'odd\\"one', "per_second": 1.0, "failed": 0},
    ]
    assert rates(read(AFTER), read(AFTER), 2.0) == []


@pytest.fixture
def served(home: Path) -> Iterator[RunningDaemon]:
    with start_daemon(home, {"LORE_INDEX_ENABLED": "0"}) as daemon:
        yield daemon


def test_one_frame(served: RunningDaemon, home: Path) -> None:
    lore = Lore(home)
    one = lore.json("top", "--once", "--interval", "0.2")
    assert one["pid"] == served.pid and one["seconds"] >= 0.2
    assert {row["method"] for row in one["methods"]} >= {"metrics"}
    assert one["memory"]["daemon_bytes"] > 0 and one["degraded"] == []
    assert {store["name"] for store in one["stores"]} == {"global", "sessions"}
    shown = lore("top", "--once", "--interval", "0.2").out
    assert f"pid {served.pid}" in shown and "a second" in shown and "\x1b" not in shown
    assert "0.1 to 3600" in lore("top", "--interval", "0", code=2).err


def test_frames_follow_each_other_in_a_pipe(served: RunningDaemon, home: Path) -> None:
    command = [*LORE, "--json", "top", "--interval", "0.1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment(home)) as process:
        assert process.stdout is not None
        frames = [json.loads(process.stdout.readline()) for _ in range(3)]
        process.terminate()
    assert {one["schema"] for one in frames} == {"lore.top/1"}


def test_on_a_terminal_a_frame_takes_the_place_of_the_last(
    served: RunningDaemon, home: Path
) -> None:
    ours, theirs = pty.openpty()
    env = environment(home, {"TERM": "xterm"})
    command = [*LORE, "top", "--interval", "0.1"]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=env)
    os.close(theirs)
    try:
        shown = b""
        while shown.count(b"a second") < 4:
            shown += os.read(ours, 65536)
        assert b"\x1b[" in shown
    finally:
        process.terminate()
        process.wait(10)
        os.close(ours)
