"""Deadlines, cancel, in-flight and output bounds, broken streams, too many clients."""

import socket
import time
from concurrent.futures import ThreadPoolExecutor

import msgpack
import pytest

from lore import Client
from lore.wire import limits
from support.daemon import RunningDaemon
from support.wire import Hangup, RawClient, Refusal


def test_the_server_enforces_the_deadline_and_cancels_the_handler(odd_client: RawClient) -> None:
    began = time.monotonic()
    with pytest.raises(Refusal) as refusal:
        odd_client.call("test.sleep", seconds=60, name="late")
    assert refusal.value.code == "timeout" and refusal.value.wire["retryable"]
    assert 0.4 < time.monotonic() - began < 5
    assert "cancelled late" in odd_client.call("test.seen")["log"]


def test_handlers_that_ignore_their_deadline_hold_nobody_up(
    odd: RunningDaemon, odd_client: RawClient
) -> None:
    hung = [odd.connect() for _ in range(8)]  # more than the lane has slots
    for client in hung:
        client.hello()
        client.send("test.hang")
    for client in hung:
        with pytest.raises(Refusal, match=r"timeout|busy"):
            client.wait(client.last_id)
    while True:
        try:
            assert odd_client.call("test.sleep", seconds=0) == {"slept": ""}
            break
        except Refusal as refusal:
            # The slots come back a second after the deadline.
            assert refusal.code in ("timeout", "busy")
    for client in hung:
        client.close()


def test_cancel_of_a_running_a_waiting_and_an_answered_request(odd_client: RawClient) -> None:
    client = odd_client
    running = client.send("test.sleep_write", seconds=0.9, name="running")
    waiting = client.send("test.sleep_write", seconds=0.9, name="waiting")  # one write at a time
    assert client.call("cancel", id=waiting) == {"cancelled": True}
    assert client.call("cancel", id=running) == {"cancelled": True}
    for message_id in (running, waiting):
        with pytest.raises(Refusal, match="cancelled by the client"):
            client.wait(message_id)
    assert client.call("cancel", id=running) == {"cancelled": False}
    assert client.call("cancel", id=12345) == {"cancelled": False}
    log = client.call("test.seen")["log"]
    assert "cancelled running" in log and "began waiting" not in log
    assert sorted(client.order) == list(range(1, client.last_id + 1))


def test_cancel_reaches_a_request_behind_a_full_house(odd_client: RawClient) -> None:
    client = odd_client
    open_ones = [
        client.send("test.sleep_long", seconds=30, name=str(n))
        for n in range(limits.INFLIGHT_REQUESTS + 4)
    ]
    for message_id in open_ones:
        client.send("cancel", id=message_id)
    for message_id in open_ones:
        with pytest.raises(Refusal, match="cancelled"):
            client.wait(message_id)
    assert client.call("ping")["pong"]


def test_what_was_asked_before_a_half_close_is_answered(odd: RunningDaemon) -> None:
    with odd.connect() as client:
        client.hello()
        slow, quick = client.send("test.sleep", seconds=0.2), client.send("ping")
        client.sock.shutdown(socket.SHUT_WR)
        assert client.wait(quick)["pong"] and client.wait(slow) == {"slept": ""}
        with pytest.raises(Hangup):
            client.read()


def test_the_handlers_of_a_client_that_dies_are_cancelled(
    odd: RunningDaemon, odd_client: RawClient
) -> None:
    client = odd.connect()
    client.hello()
    client.send("test.sleep_long", seconds=60, name="orphan")
    while "began orphan" not in odd_client.call("test.seen")["log"]:
        pass
    client.close()
    while "cancelled orphan" not in odd_client.call("test.seen")["log"]:
        pass


def test_silence_is_ended_and_talk_is_not(daemon: RunningDaemon) -> None:
    began = time.monotonic()
    with daemon.connect() as talker, daemon.connect() as silent:
        talker.call("ping")
        silent.wait_hangup(timeout_s=limits.HELLO_SECONDS + 10)
        assert time.monotonic() - began > limits.HELLO_SECONDS - 0.5
        assert talker.call("ping")["pong"]


def test_a_client_that_does_not_read_is_cut_off(odd: RunningDaemon, odd_client: RawClient) -> None:
    with odd.connect() as greedy:
        greedy.hello()
        for _ in range(4):  # all under way before the first answer fills the buffers
            greedy.send("test.fill_long", bytes=6 << 20)
        while "lored_connections_overrun_total 1" not in odd_client.call("metrics")["text"]:
            pass
        greedy.wait_hangup()


def test_no_request_of_a_client_that_does_not_read_is_begun(
    odd: RunningDaemon, odd_client: RawClient
) -> None:
    with odd.connect() as lazy:
        lazy.hello()
        for _ in range(20):
            lazy.send("test.fill", bytes=7 << 20)
        # Unread, they wait until it is too late to begin: 7 MiB are kept, not 140.
        for _ in range(20):
            odd_client.call("test.sleep", seconds=0.05)
        assert odd_client.call("status")["memory"]["daemon_bytes"] < 200 << 20
        outcomes = []
        for message_id in range(2, lazy.last_id + 1):
            try:
                outcomes.append(len(lazy.wait(message_id)["text"]))
            except Refusal as refusal:
                outcomes.append(refusal.code)
        assert outcomes[0] == 7 << 20 and outcomes[-1] == "busy"


def test_the_largest_answer_passes_and_a_larger_one_is_refused(odd_client: RawClient) -> None:
    size = limits.RESPONSE_BYTES - 100
    assert len(odd_client.call("test.fill", bytes=size)["text"]) == size
    with pytest.raises(Refusal) as refusal:
        odd_client.call("test.fill", bytes=limits.RESPONSE_BYTES)
    assert refusal.value.code == "limit"


def test_pipelined_requests_are_each_answered_once(odd_client: RawClient) -> None:
    client = odd_client
    first = client.last_id + 1
    pieces = [msgpack.packb([0, first + n, "ping", [{}]]) for n in range(5000)]
    client.sock.sendall(b"".join(pieces))
    client.last_id += 5000
    for n in range(5000):
        assert client.wait(first + n)["pong"]
    assert len(client.order) == len(set(client.order)) == client.last_id


@pytest.mark.parametrize(
    "junk",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\xc1\xc1\xc1",
        b"{}\n",
        msgpack.packb([9, 1, "ping", []]),
        msgpack.packb("ping"),
        b"\xdd\xff\xff\xff\xff",
        b"\xdb\xff\xff\xff\xff" + b"x" * (limits.REQUEST_BYTES + (1 << 17)),
    ],
    ids=["http", "reserved", "json", "type", "text", "array", "size"],
)
def test_what_is_no_message_ends_the_connection_only(
    shared_odd: RunningDaemon, junk: bytes
) -> None:
    with shared_odd.connect() as client:
        client.call("ping")
        before = client.send("ping")  # complete before the junk: still answered
        try:
            client.sock.sendall(junk)
            assert client.wait(before)["pong"]
            client.wait_hangup()
        except (BrokenPipeError, ConnectionResetError, Hangup):
            pass
    with shared_odd.connect() as client:
        assert client.call("ping")["pong"]


def test_too_deep_a_request_is_told_so_before_the_hangup(shared_odd: RunningDaemon) -> None:
    deep: object = []
    for _ in range(limits.DEPTH):
        deep = [deep]
    with shared_odd.connect() as client:
        client.hello()
        with pytest.raises(Refusal) as refusal:
            client.call("test.echo", free=deep)
        assert refusal.value.code == "limit"
        client.wait_hangup()


def pings(daemon: RunningDaemon) -> bool:
    """Whether our own client gets an answer."""
    with Client(where=daemon.paths, start=True) as client:
        return bool(client.ping()["pong"])


def refused(client: RawClient) -> int:
    """Connections refused so far."""
    page: str = client.call("metrics")["text"]
    (line,) = [
        one for one in page.splitlines() if one.startswith("lored_connections_refused_total")
    ]
    return int(float(line.split()[-1]))


def test_clients_beyond_the_limit_hear_busy(daemon: RunningDaemon) -> None:
    clients = [daemon.connect() for _ in range(limits.CLIENTS)]
    try:
        for client in clients:
            client.call("ping")
        with daemon.connect() as one_more, pytest.raises(Refusal, match="busy"):
            one_more.call("ping")
        with daemon.connect() as one_more, pytest.raises(Refusal, match="busy"):
            one_more.hello()
        waiting = ThreadPoolExecutor(1).submit(pings, daemon)
        while refused(clients[0]) < 3:
            time.sleep(0.01)
        clients.pop().close()
        while True:
            with daemon.connect() as again:
                try:
                    assert again.call("ping")["pong"]
                    break
                except Refusal:
                    continue  # the daemon has not noticed the close yet
        assert waiting.result(20), "the client library comes again until there is room"
    finally:
        for client in clients:
            client.close()
