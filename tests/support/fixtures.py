"""Fixtures for all tests: `home` (private, short), `daemon` (a real one) and `client`."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.daemon import RunningDaemon, make_home, remove_home, start_daemon
from support.wire import RawClient


@pytest.fixture
def home() -> Iterator[Path]:
    """A private directory for one daemon; gone afterwards."""
    made = make_home()
    yield made
    remove_home(made)


@pytest.fixture
def daemon(home: Path) -> Iterator[RunningDaemon]:
    """A daemon of its own for one test, stopped and proved gone at the end."""
    with start_daemon(home) as running:
        yield running


@pytest.fixture
def client(daemon: RunningDaemon) -> Iterator[RawClient]:
    """A bare connection to `daemon`, greeted, with map errors."""
    with daemon.connect() as connected:
        connected.hello()
        yield connected


ODD = [sys.executable, "-P", str(Path(__file__).with_name("odd_daemon.py"))]
"""Command of the daemon that misbehaves on demand (see odd_daemon.py)."""


@pytest.fixture
def odd(home: Path) -> Iterator[RunningDaemon]:
    """A daemon with the `test.*` methods."""
    with start_daemon(home, command=ODD) as running:
        yield running


@pytest.fixture
def odd_client(odd: RunningDaemon) -> Iterator[RawClient]:
    """A greeted connection to `odd`, with map errors."""
    with odd.connect() as connected:
        connected.hello()
        yield connected


@pytest.fixture(scope="module")
def shared_odd() -> Iterator[RunningDaemon]:
    """One `odd` daemon for the tests of a module that only ask."""
    made = make_home()
    try:
        with start_daemon(made, command=ODD) as running:
            yield running
    finally:
        remove_home(made)


@pytest.fixture
def shared_odd_client(shared_odd: RunningDaemon) -> Iterator[RawClient]:
    """A greeted connection to `shared_odd`, with map errors."""
    with shared_odd.connect() as connected:
        connected.hello()
        yield connected
