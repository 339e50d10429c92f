"""What an idle daemon costs with 10,000 transcripts under watch: processor time, disk reads.

    python -m tests.bench --only idle

The transcripts are small, old and read; then nothing happens. The time measured holds at least
one full look at all roots, which comes every minute.
"""

import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.contract import Row, line
from bench.usage import Meter
from support.claude import said, session_id, session_path
from support.daemon import make_home, remove_home, start_daemon

FILES = {"smoke": 100, "default": 10_000, "full": 10_000}
SECONDS = {"smoke": 1.0, "default": 125.0, "full": 305.0}
"""More than two (five) sweeps of 60 s, so that their share is that of a long time."""
PER_FOLDER = 100
SETTLE_S = 95.0
"""After the last work the worker ends within this (90 s idle)."""


def fill(user: Path, count: int) -> None:
    """Small transcripts, a day old, in folders of `PER_FOLDER`."""
    old = time.time() - 86_400
    for number in range(count):
        name = session_id(number)
        path = session_path(user, name, f"-srv-project-{number // PER_FOLDER}")
        path.write_bytes(
            said(name, f"question {number} about caches", 1)
            + said(name, f"answer {number}: it is the ttl", 2, role="assistant")
        )
        os.utime(path, (old, old))


def rows(size: str) -> list[Row]:
    """For the table."""
    home = make_home()
    try:
        fill(home / "user", FILES[size])
        with start_daemon(home, {"LORE_EMBED_MODEL": "static"}) as daemon:
            with daemon.connect(1_200) as client:
                client.hello()
                began = time.perf_counter()
                client.call("index_wait")
                took = time.perf_counter() - began
                roots = client.call("index_status")["roots"]
            watched = sum(root["files"] for root in roots)
            modes = ", ".join(sorted({str(root["mode"]) for root in roots if root["files"]}))
            deadline = time.monotonic() + (SETTLE_S if size != "smoke" else 0)
            while time.monotonic() < deadline and daemon.children():
                time.sleep(0.5)
            meter = Meter(daemon.pid)
            before, start = meter.look(), time.perf_counter()
            time.sleep(SECONDS[size])
            after, span = meter.look(), time.perf_counter() - start
    finally:
        remove_home(home)
    assert watched == FILES[size], f"{watched} files watched"
    about = f"{watched:,} files ({modes}), read in {took:.1f} s; {span:.0f} s of nothing"
    return [
        Row("idle: share of a core", (after.cpu_s - before.cpu_s) / span * 100, "%", 0.1,
            note=about),
        Row("idle: bytes read from the disk", after.disk_bytes - before.disk_bytes, "B", 0.0,
            note=f"{after.reads - before.reads} calls of read"),
        Row("idle: memory of the daemon with so many files",
            after.peaks["daemon"] / 1e6, "MB", 150.0,
            note=f"peak since the start; {after.memory('daemon')}"),
    ]  # fmt: skip


if __name__ == "__main__":
    for row in rows(sys.argv[1] if len(sys.argv) > 1 else "default"):
        print(line(row, 58))
