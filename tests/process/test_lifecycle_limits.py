"""Limits of the machine: too few file descriptors."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.daemon import start_daemon
from support.wire import Hangup, RawClient, Refusal

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


@contextlib.contextmanager
def small_disk(path: Path, size: str) -> Iterator[None]:
    """A file system of its own at ``path``; skips the test where that is not allowed."""
    path.mkdir(mode=0o700)
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "none", str(path)],
        capture_output=True,
        check=False,
    )
    if done.returncode:
        pytest.skip("cannot mount a small file system here")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)


def fill(path: Path) -> None:
    """Use up all space."""
    with contextlib.suppress(OSError), open(path, "wb", buffering=0) as file:
        for size in (1 << 16, 1 << 10):
            with contextlib.suppress(OSError):
                while True:
                    file.write(b"x" * size)


def test_a_full_disk_is_said_and_loses_nothing_acknowledged(home: Path) -> None:
    with small_disk(home / "data", "8m"):
        with start_daemon(home, {"LORE_INDEX_ENABLED": "0"}) as daemon, daemon.connect() as client:
            client.hello()
            stated = [client.call("remember_fact", text="before", scope="global")["fact"]["id"]]
            fill(home / "data" / "filler")
            with pytest.raises(Refusal) as refusal:
                for number in range(500):
                    text = f"{number} " + "while full " * 200
                    answer = client.call("remember_fact", text=text, scope="global")
                    stated.append(answer["fact"]["id"])
            assert refusal.value.code == "unavailable" and "free space" in str(refusal.value)
            degraded = client.call("status")["degraded"]
            assert "disk_full" in [one["name"] for one in degraded]
            assert client.call("facts", scope="global", limit=1)["total"] == len(stated)
            (home / "data" / "filler").unlink()
            stated.append(client.call("remember_fact", text="after", scope="global")["fact"]["id"])
        with start_daemon(home, {"LORE_INDEX_ENABLED": "0"}) as daemon, daemon.connect() as client:
            client.hello()
            assert client.call("facts", scope="global", limit=1)["total"] == len(set(stated))
