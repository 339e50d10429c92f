"""Children of the daemon end with it, also when it dies while they still load."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from lored import tied

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
