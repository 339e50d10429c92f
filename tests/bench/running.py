"""The benches by name, in the order of the table, and how one is run."""

import importlib
import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Final

from bench.contract import Row

BENCHES: Final = {
    "ping": "bench.bench_ping",
    "startup": "bench.bench_startup",
    "start": "bench.bench_start",
    "agents": "bench.bench_agents",
    "parse": "bench.bench_parse",
    "fold": "bench.bench_fold",
    "redact": "bench.bench_redact",
    "input": "bench.bench_input",
    "facts": "bench.bench_facts",
    "remind": "bench.bench_remind",
    "indexing": "bench.bench_indexing",
    "idle": "bench.bench_idle",
    "search": "bench.bench_search",
    "load": "bench.bench_load",
    "locomo": "bench.bench_locomo",
    "sets": "bench.bench_sets",
    "history": "bench.bench_history",
    "silence": "bench.bench_silence",
}

GROUPS: Final = {"quality": ("locomo", "sets", "history", "silence")}
"""Names that stand for several."""


def chosen(names: Sequence[str]) -> list[str]:
    """``names`` with groups taken apart, each once, in the order of the table; none = all."""
    wanted = {part for name in names for part in GROUPS.get(name, (name,))}
    return [name for name in BENCHES if not names or name in wanted]


def measure(name: str, size: str) -> list[Row]:
    """The rows of one bench, in this process."""
    found: list[Row] = importlib.import_module(BENCHES[name]).rows(size)
    return found


def apart(name: str, size: str) -> tuple[list[Row], bool]:
    """The rows of one bench from a process of its own, and whether it ran to its end."""
    spawn = multiprocessing.get_context("spawn")
    try:
        with ProcessPoolExecutor(1, mp_context=spawn) as pool:
            return pool.submit(measure, name, size).result(), True
    except BrokenProcessPool:
        return [Row(name, None, note="its process died")], False
    except Exception as error:
        text = f"{type(error).__name__}: {error}".splitlines()[0]
        return [Row(name, None, note=text[:200])], False
