"""Backfill, appends, memory and disk on a corpus grown from real transcripts.

    python -m tests.bench --only indexing [--size full]

A daemon is started over the corpus and reads it to the end, once with the text index only and
once with the static vectors, which are computed by the same worker (vectors of the larger model
follow later in a process of their own and are switched off here). Speed is bytes by the
processor time of daemon and worker together: what one core does in a second. Elapsed time,
in which both work at once, stands beside it.
`python tests/bench/stages.py` tells where the time goes.
"""

import contextlib
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench import corpus
from bench.contract import Row, line, not_run, percentile, room_for, spread
from bench.usage import Meter, Usage
from support.claude import said, session_id, session_path
from support.daemon import make_home, remove_home, start_daemon
from support.wire import RawClient

BYTES = {"smoke": 600_000, "default": 64_000_000, "full": 1_000_000_000}
LONG_LINE = {"smoke": 2_000_000, "default": 256_000_000, "full": 2_000_000_000}
APPENDS = {"smoke": 3, "default": 60, "full": 200}
DEADLINE_S = 3_600.0
POLL_S = 0.005
NEWEST_WORD = "zyxquetzalnewest"


def until(found: Callable[[], bool], seconds: float = 60.0, every: float = POLL_S) -> float:
    """Seconds until ``found`` says yes, asked ``every`` so many. Raises TimeoutError."""
    began = time.perf_counter()
    while not found():
        if time.perf_counter() - began > seconds:
            raise TimeoutError
        time.sleep(every)
    return time.perf_counter() - began


def is_found(client: RawClient, word: str) -> bool:
    """Whether a search everywhere finds ``word``."""
    return bool(client.call("episodic_recall", query=word, everywhere=True, limit=1)["sessions"])


def await_index(client: RawClient, meter: Meter) -> dict[str, Any]:
    """Wait until everything is read, looking at the processes meanwhile and asking nothing:
    questions would be part of what is measured."""
    asked = client.send("index_wait")
    client.sock.settimeout(0.25)
    try:
        while asked not in client.order:
            meter.look()
            with contextlib.suppress(TimeoutError):
                client.read()
    finally:
        client.sock.settimeout(DEADLINE_S)
    return client.wait(asked)


def backfill(home: Path, size: int, *, embed: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read everything below ``home``: figures, and the counts of `index_wait`."""
    env = {"LORE_EMBED_ENABLED": str(int(embed)), "LORE_EMBED_MODEL": "static"}
    began = time.perf_counter()
    with start_daemon(home, env) as daemon, daemon.connect(DEADLINE_S) as client:
        client.hello()
        meter = Meter(daemon.pid)
        before = meter.look().cpu_s
        ready = time.perf_counter()
        until(lambda: is_found(client, NEWEST_WORD), 600, every=0.05)
        newest = time.perf_counter()
        counts = await_index(client, meter)
        elapsed = time.perf_counter() - ready
        used: Usage = meter.look()
        status = client.call("index_status")
        client.call("maintain")
        stored = sum(f.stat().st_size for f in Path(daemon.paths.sessions_db).parent.glob(
            Path(daemon.paths.sessions_db).name + "*"))  # fmt: skip
    figures = {
        "per_core": size / 1e6 / (used.cpu_s - before),
        "by_process": used.by_process,
        "elapsed": size / 1e6 / elapsed,
        "newest_s": newest - began,
        "newest_after_ready_s": newest - ready,
        "used": used,
        "stored": stored,
        "messages": sum(root["messages"] for root in status["roots"]),
    }
    return figures, counts


def appends(home: Path, count: int) -> list[float]:
    """Milliseconds from the end of a write to the first search that finds it."""
    path = session_path(home / "user", session_id(7))
    times = []
    env = {"LORE_EMBED_MODEL": "static"}
    with start_daemon(home, env) as daemon, daemon.connect() as client:
        client.hello()
        client.call("index_wait")
        for number in range(count):
            word = f"wanted{number}needle"
            text = said(session_id(7), f"the {word} is here", 10 + number)
            with open(path, "ab") as file:
                file.write(text)
            times.append(until(lambda word=word: is_found(client, word)) * 1e3)
            time.sleep(0.3 if count > 10 else 0)  # as far apart as a quick agent's steps
    return times


def long_line(size: int) -> tuple[Usage, float]:
    """What was used by a daemon that reads one line of ``size`` bytes, and the seconds it took."""
    home = make_home()
    try:
        path = session_path(home / "user", session_id(9))
        text = json.dumps("x" * 65_000 + " long line ").encode()[1:-1]
        with open(path, "wb") as file:
            file.write(said(session_id(9), "before the long line", 1))
            whole = said(session_id(9), "MARK", 2)
            start, end = whole.split(b"MARK")
            file.write(start)
            for _ in range(max(1, size // len(text))):
                file.write(text)
            file.write(end)
            file.write(said(session_id(9), f"after it the {NEWEST_WORD}", 3))
        began = time.perf_counter()
        env = {"LORE_EMBED_MODEL": "static"}
        with start_daemon(home, env) as daemon, daemon.connect(DEADLINE_S) as client:
            client.hello()
            meter = Meter(daemon.pid)

            def found() -> bool:
                meter.look()
                return is_found(client, NEWEST_WORD)

            until(found, DEADLINE_S)
            return meter.look(), time.perf_counter() - began
    finally:
        remove_home(home)


def rows(size: str) -> list[Row]:
    """For the table."""
    wanted = BYTES[size]
    if not room_for(4 * wanted + LONG_LINE[size]):
        return [not_run("backfill", f"needs {5 * wanted / 1e9:.0f} GB of temporary space")]
    home = make_home()
    found: dict[bool, dict[str, Any]] = {}
    latencies: list[float] = []
    try:
        user = home / "user"
        grown = corpus.grow(user, wanted, now_ns=time.time_ns(), shared=size != "smoke")
        last = session_path(user, session_id(7))
        last.write_bytes(said(session_id(7), f"the {NEWEST_WORD} of all sessions", 1))
        for embed in (False, True):
            for old in ("data", "state"):
                remove_home(home / old)
            found[embed], _ = backfill(home, grown.bytes, embed=embed)
        latencies = appends(home, APPENDS[size])
    finally:
        remove_home(home)
    long, seconds = long_line(LONG_LINE[size])
    mb = f"{grown.bytes / 1e6:.0f} MB, {grown.files} files"
    result = []
    for embed, bar in ((False, 30.0), (True, 15.0)):
        figures = found[embed]
        result.append(
            Row(
                f"backfill, {'with static vectors' if embed else 'text index only'}, per core",
                figures["per_core"],
                "MB/s",
                bar,
                "high",
                f"{mb}, {figures['messages']:,} messages; processor seconds: "
                + ", ".join(f"{k} {v:.1f}" for k, v in figures["by_process"].items())
                + f"; elapsed {figures['elapsed']:.1f} MB/s",
            )
        )
    both = found[True]
    result += [
        Row("newest session searchable after the start", both["newest_s"], "s", 2.0,
            note=f"{both['newest_after_ready_s']:.2f} s after the daemon was ready"),
        Row("append to searchable, p95, by events", percentile(latencies, 0.95), "ms", 250.0,
            note=spread(latencies)),
        *(
            Row(f"peak memory of the {kind}, backfill", both["used"].peaks.get(kind, 0) / 1e6,
                "MB", bar, note=both["used"].memory(kind))
            for kind, bar in (("daemon", 150.0), ("worker", 300.0))
        ),
        *(
            Row(f"peak memory of the {kind}, line of {LONG_LINE[size] / 1e6:,.0f} MB",
                long.peaks.get(kind, 0) / 1e6, "MB", bar,
                note=f"{long.memory(kind)}; read in {seconds:.1f} s")
            for kind, bar in (("daemon", 150.0), ("worker", 300.0))
        ),
        Row("disk share of the transcripts", both["stored"] / grown.bytes * 100, "%", 25.0,
            note=f"{both['stored'] / 1e6:.1f} MB with vectors; text only "
            f"{found[False]['stored'] / grown.bytes * 100:.1f} %"),
    ]  # fmt: skip
    return result


if __name__ == "__main__":
    for row in rows(sys.argv[1] if len(sys.argv) > 1 else "default"):
        print(line(row, 58))
