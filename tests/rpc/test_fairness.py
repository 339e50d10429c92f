"""A client that floods does not make the others wait; lanes as such."""

import contextlib
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lored.rpc.lanes import Lane
from support.daemon import RunningDaemon, start_daemon
from support.wire import RawClient

FACTOR = 3.0
"""The bar: another client's p95 rises at most so much."""


@contextlib.contextmanager
def flood(daemon: RunningDaemon, method: str, params: dict[str, object]) -> Iterator[None]:
    """A flooding process for the time of the block."""
    script = str(Path(__file__).parents[1] / "support" / "flood.py")
    process = subprocess.Popen(
        [sys.executable, script, daemon.socket, method, json.dumps(params)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "flooding\n"
        yield
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def p95(client: RawClient, method: str, params: dict[str, object], count: int = 100) -> float:
    times = []
    for _ in range(count):
        began = time.perf_counter()
        client.call(method, **params)
        times.append(time.perf_counter() - began)
    return statistics.quantiles(times, n=20)[18]


CASES: dict[str, tuple[str, dict[str, object]]] = {
    "ping": ("ping", {}),
    "read": ("facts", {"scope": "global", "limit": 50}),
    "search": ("recall_fact", {"query": "cheese of the moon", "scope": "global"}),
    "write": ("remember_fact", {"text": "the moon is made of cheese", "scope": "global"}),
}


@pytest.mark.parametrize("case", CASES)
def test_a_flood_raises_the_p95_of_another_client_at_most_threefold(home: Path, case: str) -> None:
    method, params = CASES[case]
    with start_daemon(home, {"LORE_INDEX_ENABLED": "0"}) as daemon, daemon.connect() as client:
        client.hello()
        for number in range(100):
            client.call("remember_fact", text=f"fact {number} about cheese", scope="global")
        p95(client, method, params)
        ratios = []
        for _ in range(4):  # a shared machine has bad moments: one good round proves it
            alone = p95(client, method, params)
            with flood(daemon, method, params):
                ratios.append(p95(client, method, params) / alone)
            if ratios[-1] <= FACTOR:
                break
        assert min(ratios) <= FACTOR, ratios


class Client:
    def __init__(self, name: str) -> None:
        self.name, self.may_start = name, True


class Job:
    def __init__(self, owner: Client, log: list[str]) -> None:
        self.owner, self._log = owner, log

    def start(self) -> None:
        self._log.append(self.owner.name)


def test_turns_are_taken_round_robin() -> None:
    log: list[str] = []
    lane, a, b, c = Lane(1, 1), Client("a"), Client("b"), Client("c")
    for owner in (a, a, a, a, b, b, c):
        lane.submit(Job(owner, log))
    owners = {"a": a, "b": b, "c": c}
    for _ in range(7):
        lane.release(owners[log[-1]])
    assert "".join(log) == "abcabaa"
    assert lane.depth == {"running": 0, "waiting": 0}


def test_one_client_never_takes_all_slots() -> None:
    log: list[str] = []
    lane, a, b = Lane(3, 2), Client("a"), Client("b")
    for _ in range(5):
        lane.submit(Job(a, log))
    assert log == ["a", "a"]
    lane.submit(Job(b, log))
    assert log == ["a", "a", "b"]


def test_who_does_not_read_is_passed_over_until_it_does() -> None:
    log: list[str] = []
    lane, a, b = Lane(1, 1), Client("a"), Client("b")
    lane.submit(Job(b, log))
    a.may_start = False
    lane.submit(Job(a, log))
    lane.submit(Job(b, log))
    lane.release(b)
    assert log == ["b", "b"]
    lane.release(b)
    assert log == ["b", "b"]
    a.may_start = True
    lane.advance()
    assert log == ["b", "b", "a"]


def test_a_waiting_job_can_be_withdrawn() -> None:
    log: list[str] = []
    lane, a = Lane(1, 1), Client("a")
    first, second = Job(a, log), Job(a, log)
    lane.submit(first)
    lane.submit(second)
    assert lane.withdraw(second) and not lane.withdraw(second) and not lane.withdraw(first)
    lane.release(a)
    assert log == ["a"]
