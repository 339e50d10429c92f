"""Fixtures for all tests: `home` (private, short), `daemon` (a real one) and `client`."""

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
