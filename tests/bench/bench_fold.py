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
ROUNDS = 15


def main() -> int:
    folder = SHARED if SHARED.is_dir() else SAMPLES
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
    size = sum(path.stat().st_size for _, path in files)
    best = min(_timed(sessions) for _ in range(3))
    speed = size / 1e6 / best
    bad = [
        _verdict(
            "fold", f"{speed:.0f} MB/s of transcript", f">= {SPEED_BAR:.0f}", speed >= SPEED_BAR
        )
    ]

    stream = [r for records in sessions for r in records]
    costs: dict[int, float] = {}
    state = summary.begin()
    length = turn = 0
    for wanted in LENGTHS:
        while length < wanted:
            summary.fold(state, _fresh(stream[:BATCH], turn))
            turn += 1
            length += BATCH
        packed = msgpack.packb(state)
        times = []
        for _ in range(ROUNDS):
            batch = _fresh(stream[:BATCH], turn)
            turn += 1
            copy = msgpack.unpackb(packed)
            start = time.process_time()
            summary.fold(copy, batch)
            summary.render(copy, {})
            times.append(time.process_time() - start)
        costs[wanted] = statistics.median(times)
        print(f"  after {wanted:>7} records: {costs[wanted] * 1e3:.2f} ms for {BATCH} more, "
              f"state {len(packed) / 1e3:.1f} KB")  # fmt: skip
    growth = costs[LENGTHS[-1]] / costs[LENGTHS[1]]
    bad.append(
        _verdict(
            "append cost, 100,000 against 1,000",
            f"x{growth:.2f}",
            f"<= {GROWTH_BAR}",
            growth <= GROWTH_BAR,
        )
    )
    held = len(msgpack.packb(state))
    bad.append(_verdict("state", f"{held} bytes", f"<= {STATE_BAR}", held <= STATE_BAR))
    return int(not all(bad))


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


def _verdict(what: str, figure: str, bar: str, good: bool) -> bool:
    print(f"{what}: {figure} (bar {bar}): {'ok' if good else 'MISSED'}")
    return good


if __name__ == "__main__":
    sys.exit(main())
