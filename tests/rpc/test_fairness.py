"""A client that floods does not make the others wait; lanes as such, and what they refuse."""

import os
from pathlib import Path

import pytest

from lore.wire.limits import CLIENTS
from lore.wire.methods import BY_NAME
from lored.rpc.lanes import Lane, lane_of, make_lanes
from support.daemon import RunningDaemon
from support.wire import RawClient, Refusal

AHEAD = 4
"""Requests of the flood that may be begun before: one slot of its lane, and what one turn of
the loop reads."""


FLOOD = 31
"""Requests that the flooding client has open, with its greeting as many as it may."""


@pytest.mark.parametrize("method", ["mark", "sleep", "sleep_search", "sleep_write"])
def test_who_asks_once_is_served_beside_a_flood(
    odd: RunningDaemon, odd_client: RawClient, home: Path, method: str
) -> None:
    """Counted in requests, not in seconds: all of them lie in the sockets before the first is
    looked at, the flood's in front."""
    gate = home / "gate"
    os.mkfifo(gate)
    more = {} if method == "mark" else {"seconds": 0.01}
    with odd.connect(60) as flooding, odd.connect(60) as modest:
        flooding.hello()
        modest.hello()
        odd_client.send("test.block_until", name=str(gate))
        with gate.open("wb"):  # which waits until the daemon reads, its loop blocked
            for number in range(FLOOD):
                flooding.send(f"test.{method}", name=f"flood {number}", **more)
            asked = modest.send(f"test.{method}", name="modest", **more)
        modest.wait(asked)
        log = odd_client.call("test.seen")["log"]
    began = [line for line in log if line.startswith("began ")]
    assert began.index("began modest") <= AHEAD, began


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


def test_a_lane_foresees_how_long_a_newcomer_waits() -> None:
    log: list[str] = []
    lane, a, b, c = Lane(2, 1), Client("a"), Client("b"), Client("c")
    lane.learn(10.0)  # the first of many: a tenth counts
    assert lane.held_seconds == 1.0
    assert lane.foresee(a) == 0.0
    lane.submit(Job(a, log))
    assert lane.foresee(a) == 1.0, "its own job ends first"
    assert lane.foresee(b) == 0.0
    lane.submit(Job(b, log))
    assert lane.foresee(c) == 0.5, "one of two slots comes free twice a second"
    for _ in range(30):
        lane.submit(Job(a, log))
    assert lane.foresee(a) == 31.0
    assert lane.foresee(c) == 1.0, "of the flood one job counts, not thirty"


def test_greetings_never_wait_for_each_other() -> None:
    """200 clients at once, each greeting held up for the 0.3 s that the revision may take: the
    last ones were refused as busy, in a form that their clients had not asked for yet."""
    log: list[str] = []
    lane = make_lanes()[lane_of(BY_NAME["hello"])]
    lane.learn(3.0)
    for number in range(CLIENTS):
        client = Client(str(number))
        assert lane.foresee(client) == 0.0
        lane.submit(Job(client, log))
    assert len(log) == CLIENTS


def test_what_would_come_too_late_is_refused_before_it_is_begun(
    odd: RunningDaemon, odd_client: RawClient
) -> None:
    """The deadline of a write is 1 s here; eight of 0.4 s each fill its lane."""
    crowd = [odd.connect(60) for _ in range(40)]
    for client in crowd:
        client.hello()
    for client in crowd[:8]:
        client.call("test.sleep_write", seconds=0.4, name="learnt")
    asked = [
        client.send("test.sleep_write", seconds=0.4, name=f"job {number}")
        for number, client in enumerate(crowd)
    ]
    done, refused = set(), set()
    for number, (client, message) in enumerate(zip(crowd, asked, strict=True)):
        try:
            client.wait(message)
            done.add(number)
        except Refusal as refusal:
            assert refusal.code == "busy" and refusal.wire["retryable"], refusal.wire
            assert refusal.wire["data"]["retry_after_ms"] >= 50
            refused.add(number)
        client.close()
    log = odd_client.call("test.seen")["log"]
    assert len(done) >= 8 and refused
    assert {int(line[10:]) for line in log if line.startswith("began job ")} == done
    assert {int(line[10:]) for line in log if line.startswith("ended job ")} == done
