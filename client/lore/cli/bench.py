"""`bench`: how fast this memory is on this machine, by reading only.

Writes nothing: the user's facts are not a test bed. The benchmarks with bars, which fill
stores of their own, are in the source tree under tests/bench.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from lore.cli.arguments import Arg, Verb
from lore.cli.invocation import Invocation
from lore.cli.render import Screen

ROUNDS = {"ping": 500, "recall_fact": 100, "episodic_recall": 50, "context": 50}
"""Calls of each method: enough for a p95, done in a few seconds."""

PROCESSES = 15
"""Starts of a whole process per figure."""

QUERY = "test failure configuration"
"""Ordinary words, so that the search has something to weigh in any memory."""


def bench(inv: Invocation) -> int:
    """Measure calls and whole processes."""
    share = min(max(inv.options.rounds or 100, 1), 1000) / 100
    params: dict[str, dict[str, Any]] = {
        "ping": {},
        "recall_fact": {"query": QUERY, "limit": 10},
        "episodic_recall": {"query": QUERY, "everywhere": True, "limit": 10},
        "context": {},
    }
    backend = inv.backend
    rows = [
        _row(method, max(int(count * share), 3), partial(backend.call, method, params[method]))
        for method, count in ROUNDS.items()
    ]
    own = [sys.executable, "-m", "lore.cli.main", "ping"]
    bare = [sys.executable, "-I", "-c", "pass"]
    for name, words in (("python -I -c pass", bare), ("lore ping (process)", own)):
        rows.append(_row(name, max(int(PROCESSES * share), 3), partial(_start, words)))
    data = {"figures": rows, "query": QUERY}
    return inv.show(data, lambda screen: _table(screen, rows))


def _start(words: list[str]) -> None:
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def _row(name: str, count: int, work: Callable[[], Any]) -> dict[str, Any]:
    times = []
    for _ in range(count):
        started = time.perf_counter()
        work()
        times.append((time.perf_counter() - started) * 1000)
    times.sort()
    p50, p95 = times[count // 2], times[min(int(count * 0.95), count - 1)]
    figures = {"p50_ms": p50, "p95_ms": p95, "max_ms": times[-1]}
    return {"name": name, "count": count, **{key: round(ms, 3) for key, ms in figures.items()}}


def _table(screen: Screen, rows: list[dict[str, Any]]) -> None:
    figures = ("p50_ms", "p95_ms", "max_ms")
    screen.table(
        [(row["name"], str(row["count"]), *(f"{row[key]:.2f}" for key in figures)) for row in rows],
        head=("what", "times", "p50 ms", "p95 ms", "max ms"),
    )


VERBS = (
    Verb(
        "bench",
        bench,
        (Arg("--rounds", kind="int", metavar="PERCENT", help="share of the usual rounds, 100"),),
        examples=("lore bench", "lore bench --rounds 20 --json"),
    ),
)
