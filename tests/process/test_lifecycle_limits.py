"""Limits of the machine: too few file descriptors."""

import sys
from pathlib import Path

import pytest

from support.daemon import start_daemon
from support.wire import Hangup, RawClient

FEW = ["/bin/sh", "-c", 'ulimit -n 90; exec "$@"', "sh", sys.executable]


def test_without_descriptors_newcomers_are_refused_and_the_rest_goes_on(home: Path) -> None:
    command = [*FEW, "-P", "-m", "lored.main", "run"]
    with start_daemon(home, {"LORE_INDEX_ENABLED": "0"}, command=command) as daemon:
        first = daemon.connect()
        first.hello()
        crowd: list[RawClient] = []
        with pytest.raises((Hangup, BrokenPipeError)):
            for _ in range(90):
                crowd.append(daemon.connect())
                crowd[-1].call("ping")
        assert first.call("ping")["pong"]
        degraded = first.call("status")["degraded"]
        assert [one for one in degraded if one["name"] == "few_descriptors" and one["remedy"]]
        for client in crowd:
            client.close()
        while "few_descriptors" in [one["name"] for one in first.call("status")["degraded"]]:
            pass
        with daemon.connect() as again:
            assert again.call("ping")["pong"]
        first.close()
