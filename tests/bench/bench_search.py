"""episodic_recall over the socket at 150,000 (full: 1,500,000) messages, also during a backfill.

    python -m tests.bench --only search [--size full]

The daemon runs as shipped: text index, static vectors, and the model that embeds each question
in its own process (no question is asked twice, so none comes from a cache).
"""

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench import corpus, message_store
from bench.contract import Row, complain, line, not_run, percentile, room_for, spread
from bench.usage import Meter
from support.daemon import RunningDaemon, make_home, remove_home, start_daemon
from support.wire import RawClient

MESSAGES = {"smoke": (1_000,), "default": (150_000,), "full": (150_000, 1_500_000)}
BARS = {1_000: 30.0, 150_000: 30.0, 1_500_000: 100.0}
BACKFILL_FACTOR = 3.0
BACKFILL_BYTES = {"smoke": 400_000, "default": 64_000_000, "full": 200_000_000}
ROUNDS = {"smoke": 4, "default": 200, "full": 400}
BYTES_A_MESSAGE = 3_000


def ask(client: RawClient, asked: list[str], **more: Any) -> list[float]:
    """Milliseconds of each question; ``asked`` is used up."""
    times = []
    while asked:
        began = time.perf_counter()
        client.call("episodic_recall", query=asked.pop(), **more)
        times.append((time.perf_counter() - began) * 1e3)
    return times


def during_backfill(client: RawClient, asked: list[str]) -> list[float]:
    """As `ask`, as long as there is something to read."""
    times: list[float] = []
    while asked:
        times += ask(client, [asked.pop()], everywhere=True)
        if len(times) % 10 == 0 and client.call("index_status")["state"] == "idle":
            break
    return times


def measure(home: Path, count: int, size: str) -> list[Row]:
    """Rows for one store."""
    rounds = ROUNDS[size]
    asked = message_store.questions(8 * rounds)

    def take() -> list[str]:
        nonlocal asked
        found, asked = asked[:rounds], asked[rounds:]
        return found

    project = home / "user" / "project"
    project.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    with start_daemon(home) as daemon, daemon.connect() as client:
        client.hello()
        workspace = client.call("workspace", path=str(project))["id"]
        path = daemon.paths.sessions_db
    complain(f"... writing {count:,} messages")
    began = time.perf_counter()
    message_store.keep(path, count, time.time_ns() // 1_000, workspace)
    filled = time.perf_counter() - began
    bar = BARS[count]
    about = f"episodic_recall p95, {count:,} messages"
    with start_daemon(home) as daemon, daemon.connect(60) as client:
        client.hello()
        first = ask(client, take()[:1], everywhere=True)[0]
        ask(client, take()[:10], everywhere=True)
        found = [
            _row(f"{about}, everywhere", ask(client, take(), everywhere=True), bar),
            _row(f"{about}, one workspace", ask(client, take(), workspace=str(project)), bar),
            _row(
                f"{about}, agent and dates",
                ask(client, take(), everywhere=True, agent="codex", since="200 days ago"),
                bar,
            ),
            Row(f"first recall after the start, {count:,} messages", first, "ms",
                note=f"store written or copied in {filled:.0f} s, "
                f"{Path(path).stat().st_size / 1e6:.0f} MB"),
            _memory(daemon, count),
        ]  # fmt: skip
    corpus.grow(home / "user", BACKFILL_BYTES[size], now_ns=time.time_ns(), shared=size != "smoke")
    with start_daemon(home) as daemon, daemon.connect(60) as client:
        client.hello()
        times = during_backfill(client, take())
        read = client.call("index_status")["progress"]["bytes_done"]
    found.append(_row(f"{about}, during a backfill", times, bar * BACKFILL_FACTOR))
    if read == 0:
        found[-1] = not_run(found[-1].what, "nothing was read meanwhile")
    return found


def _row(what: str, times: list[float], bar: float) -> Row:
    return Row(what, percentile(times, 0.95), "ms", bar, note=spread(times))


def _memory(daemon: RunningDaemon, count: int) -> Row:
    used = Meter(daemon.pid).look()
    what = f"memory of the daemon, {count:,} messages"
    return Row(what, used.peaks["daemon"] / 1e6, "MB", 150.0, note=used.memory("daemon"))


def rows(size: str) -> list[Row]:
    """For the table."""
    found: list[Row] = []
    for count in MESSAGES[size]:
        if not room_for(count * BYTES_A_MESSAGE + BACKFILL_BYTES[size] * 2):
            what = f"episodic_recall at {count:,} messages"
            found.append(not_run(what, f"needs {count * BYTES_A_MESSAGE / 1e9:.0f} GB"))
            continue
        home = make_home()
        try:
            found += measure(home, count, size)
        finally:
            remove_home(home)
    return found


if __name__ == "__main__":
    for row in rows(sys.argv[1] if len(sys.argv) > 1 else "default"):
        print(line(row, 58))
