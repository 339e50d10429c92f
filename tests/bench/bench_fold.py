"""The summary fold: bytes a second, and that an append costs the same in a long session.

    python tests/bench/bench_fold.py

Records come from the real samples. A long session is the same records again and again with
new keys; the cost of folding one more batch is measured at several lengths.
"""

import statistics
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgpack

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.contract import Row, line
from lored.core import summary
from lored.core.transcripts.records import Action, Compaction, Message, Record
from support.replay import SAMPLES, SHARED, read

SPEED_BAR = 60.0
"""MB of transcript a second: half the time that the bar of 30 MB/s for everything leaves."""
GROWTH_BAR = 1.5
"""Cost of a batch at the greatest length by that at the least."""
STATE_BAR = 128_000
BATCH = 200
LENGTHS = (0, 1_000, 10_000, 100_000)


def rows(size: str) -> list[Row]:
    """For the table."""
    quick = size == "smoke"
    lengths = (0, 200, 1_000) if quick else LENGTHS
    folder = SHARED if SHARED.is_dir() and not quick else SAMPLES
    files = [
        (agent, path)
        for agent, pattern in (
            ("claude-code", "claude/.claude/projects/**/*.jsonl"),
            ("codex", "codex/.codex/sessions/**/*.jsonl"),
            ("recursive", "recursive/.recursive/**/transcript.jsonl"),
        )
        for path in sorted(folder.glob(pattern))
        if path.name != "journal.jsonl"
    ]
    sessions = [[record for _, record in read(agent, path)] for agent, path in files]
    bytes_ = sum(path.stat().st_size for _, path in files)
    best = min(_timed(sessions) for _ in range(1 if quick else 3))
    costs, held = appends([r for records in sessions for r in records], lengths, 2 if quick else 15)
    low, high = lengths[1], lengths[-1]
    note = ", ".join(f"{cost * 1e3:.2f} ms after {length:,}" for length, cost in costs.items())
    return [
        Row("summary fold, per core, of transcript", bytes_ / 1e6 / best, "MB/s", SPEED_BAR,
            "high", f"{len(files)} files"),
        Row(f"summary append of {BATCH}: after {high:,} / {low:,}", costs[high] / costs[low], "x",
            GROWTH_BAR, note=note),
        Row("summary state", held / 1e3, "KB", STATE_BAR / 1e3, note=f"after {high:,} records"),
    ]  # fmt: skip


def appends(
    stream: list[Record], lengths: tuple[int, ...], rounds: int
) -> tuple[dict[int, float], int]:
    """Seconds of folding and rendering one more batch, by the records before it; and the bytes
    of the state at the end."""
    costs: dict[int, float] = {}
    state = summary.begin()
    packed = b""
    length = turn = 0
    for wanted in lengths:
        while length < wanted:
            summary.fold(state, _fresh(stream[:BATCH], turn))
            turn += 1
            length += BATCH
        packed = msgpack.packb(state)
        times = []
        for _ in range(rounds):
            batch = _fresh(stream[:BATCH], turn)
            turn += 1
            copy = msgpack.unpackb(packed)
            start = time.process_time()
            summary.fold(copy, batch)
            summary.render(copy, {})
            times.append(time.process_time() - start)
        costs[wanted] = statistics.median(times)
    return costs, len(packed)


def main() -> int:
    """Print the rows; 1 when a bar is missed."""
    found = rows("default")
    for row in found:
        print(line(row, 50))
    return int(any(row.verdict == "MISSED" for row in found))


def _timed(sessions: list[list[Record]]) -> float:
    start = time.process_time()
    for records in sessions:
        summary.fold(summary.begin(), records)
    return time.process_time() - start


def _fresh(records: list[Record], turn: int) -> list[Any]:
    """The records with keys of their own, so that none counts as seen before."""
    return [
        replace(record, key=f"{record.key}:{turn}")
        if isinstance(record, Message | Action | Compaction)
        else record
        for record in records
    ]


if __name__ == "__main__":
    sys.exit(main())
