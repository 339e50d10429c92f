"""From nothing to the first answer, and from kill -9 under load to all that was acknowledged.

    python -m tests.bench --only start

Whole processes of `lored run`, asked over the socket until they answer. Files are in the page
cache, as after any earlier use; a bare interpreter that loads what no daemon of this kind can
do without (asyncio, numpy, sqlite3) is started in the same turns.
"""

import contextlib
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import psutil

from bench.contract import Row, line, percentile, spread
from lore.paths import resolve
from support.daemon import environment, make_home, remove_home
from support.wire import Hangup, RawClient

ROUNDS = {"smoke": 1, "default": 15, "full": 40}
KILLS = {"smoke": 1, "default": 8, "full": 40}
RUN = [sys.executable, "-P", "-m", "lored.main", "run"]
BARE = [sys.executable, "-I", "-c", "import asyncio, numpy, sqlite3"]
UNDER_LOAD = 50
"""Acknowledged facts of a round before the kill."""
FACTS_BEFORE = {"smoke": 20, "default": 2_000, "full": 20_000}


@contextlib.contextmanager
def started(home: Path) -> Iterator[tuple["subprocess.Popen[bytes]", RawClient, float]]:
    """A daemon, a connection that has been answered, and the milliseconds until then."""
    env = environment(home)
    path = resolve(env).socket
    began = time.perf_counter()
    process = subprocess.Popen(RUN, env=env, stdin=subprocess.DEVNULL)
    client = None
    try:
        while client is None:
            try:
                client = RawClient(path, 60)
                client.call("ping")
            except (OSError, Hangup) as error:
                client = None
                if process.poll() is not None:
                    raise RuntimeError(f"daemon ended with {process.returncode}") from error
                if time.perf_counter() - began > 60:
                    raise TimeoutError("no answer within 60 s") from error
                time.sleep(0.002)
        yield process, client, (time.perf_counter() - began) * 1e3
    finally:
        if client is not None:
            client.close()
        if process.poll() is None:
            process.terminate()
        process.wait(30)


def spent(pid: int) -> float:
    """Seconds of processor time of a process, its own."""
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def write(path: str, told: list[str], number: int) -> None:
    """State facts until the daemon is gone; texts that were acknowledged go to ``told``."""
    with contextlib.suppress(Hangup, OSError, socket.timeout), RawClient(path, 20) as client:
        client.hello()
        for count in range(1_000_000):
            text = f"round {number} fact {count} of the recovery bench"
            client.call("remember_fact", text=text, scope="global", entities=[f"tool:r{number}"])
            told.append(text)


def recovery(home: Path, number: int, told: list[str]) -> tuple[float, float]:
    """Kill a daemon under load, start it again, and prove that what it acknowledged is there.

    The milliseconds from that start to its first durable write, and the seconds of processor
    time it used for them. Raises AssertionError when something is lost.
    """
    mine: list[str] = []
    with started(home) as (process, client, _):
        thread = threading.Thread(
            target=write, args=(resolve(environment(home)).socket, mine, number)
        )
        thread.start()
        deadline = time.monotonic() + 20
        while len(mine) < UNDER_LOAD and time.monotonic() < deadline:
            time.sleep(0.002)
        process.kill()
        thread.join(30)
    told += mine
    began = time.perf_counter()
    with started(home) as (process, client, _):
        client.call("remember_fact", text=f"written after kill {number}", scope="global")
        took, used = (time.perf_counter() - began) * 1e3, spent(process.pid)
        there: set[str] = set()
        after: dict[str, str] = {}
        while True:
            page = client.call(
                "facts", scope="global", limit=200, entities=[f"tool:r{number}"], **after
            )
            there |= {fact["text"] for fact in page["facts"]}
            if not page.get("next"):
                break
            after = {"after": page["next"]}
        lost = [text for text in mine if text not in there]
        assert not lost, f"lost {len(lost)} of {len(mine)}: {lost[:3]}"
    return took, used


def rows(size: str) -> list[Row]:
    """For the table."""
    home = make_home()
    try:
        with started(home) as (_, client, _):
            for number in range(FACTS_BEFORE[size]):
                client.call("remember_fact", text=f"fact {number} before", scope="global")
        times, used, bare = [], [], []
        for _ in range(ROUNDS[size]):
            began = time.perf_counter()
            subprocess.run(BARE, check=True)
            bare.append((time.perf_counter() - began) * 1e3)
            with started(home) as (process, _, took):
                times.append(took)
                used.append(spent(process.pid))
        told: list[str] = []
        kills = [recovery(home, number, told) for number in range(KILLS[size])]
    finally:
        remove_home(home)
    base = percentile(bare, 0.5)
    after = [took for took, _ in kills]
    return [
        Row("start to first answer, p50", percentile(times, 0.5), "ms", 300.0,
            note=f"{spread(times)}; {percentile(used, 0.5) * 1e3:.0f} ms of processor time; "
            f"Python with asyncio, numpy, sqlite3 alone {base:.0f} ms"),
        Row("kill -9 under load to first durable write, worst", max(after) / 1e3, "s", 2.0,
            note=f"{spread(after)}; {max(cpu for _, cpu in kills):.2f} s of processor time; "
            f"{len(told):,} acknowledged facts, all there"),
    ]  # fmt: skip


if __name__ == "__main__":
    for row in rows(sys.argv[1] if len(sys.argv) > 1 else "default"):
        print(line(row, 58))
