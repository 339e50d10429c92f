"""Children of the daemon end with it, also when it dies while they still load."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from lored import tied
from support.daemon import RunningDaemon, start_daemon
from support.wire import RawClient

PARENT = """
import subprocess, sys
from lored import tied
child = subprocess.Popen(tied.command(*sys.argv[1:]), stdin=subprocess.PIPE)
print(child.pid, flush=True)
sys.stdin.read()
"""


def ended_within(pid: int, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.005)
    return False


@pytest.mark.parametrize(
    "words", [["lored.ingest.worker", str(1 << 30)], ["lored.embed.process", "minilm"]]
)
def test_a_child_dies_with_a_parent_that_is_killed_before_it_is_ready(words: list[str]) -> None:
    for delay in (0.0, 0.05, 0.2):
        parent = subprocess.Popen(
            [sys.executable, "-P", "-c", PARENT, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert parent.stdout is not None and parent.stdin is not None
        child = int(parent.stdout.readline())
        time.sleep(delay)  # the moment of the kill
        parent.kill()
        parent.wait()
        gone = ended_within(child, 2.0)
        if not gone:
            os.kill(child, signal.SIGKILL)
        parent.stdout.close()
        parent.stdin.close()
        assert gone, f"left behind when killed after {delay} s"


def test_a_child_of_a_dead_parent_does_not_begin() -> None:
    done = subprocess.run(
        [*tied.command("this")[:4], "1", "lored.no_such_module"], capture_output=True, check=False
    )
    assert done.returncode == 0 and done.stderr == b""


def model_of(daemon: RunningDaemon, client: RawClient, *, loaded: bool) -> psutil.Process:
    """The daemon's model process, begun by the context of a session that starts."""
    client.hello()
    client.call("context")
    end = time.monotonic() + 30
    while time.monotonic() < end:
        found = [one for one in daemon.children() if "lored.embed.process" in one.cmdline()]
        if found and (not loaded or client.call("status")["embedding"].get("process")):
            return found[0]
        time.sleep(0.005)
    raise AssertionError("no model process")


@pytest.mark.parametrize("how", ["killed", "stopped"])
@pytest.mark.parametrize("loaded", [False, True])
def test_the_model_process_ends_with_its_daemon(home: Path, how: str, loaded: bool) -> None:
    with start_daemon(home, may_be_dead=True) as daemon, daemon.connect() as client:
        model = model_of(daemon, client, loaded=loaded)
        daemon.remember_family()
        if how == "killed":
            daemon.kill()
        else:
            daemon.stop()
        assert ended_within(model.pid, 2.0)
