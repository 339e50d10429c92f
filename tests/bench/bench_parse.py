"""Parsing: MB of transcript a second and core, per agent, on the samples.

    python tests/bench/bench_parse.py [agent ...]

Each file is read whole, then parsed line by line (documents and databases at once), the best
of five rounds by processor time. The bar is for the three agents whose files are large; a
sample of a few KB mostly shows the cost of starting.
"""

import sqlite3
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.contract import Row
from lored.core.transcripts import parser_for
from support.transcripts import Sample, all_samples, content

BAR = 30.0
"""MB/s and core of parsing and normalising, so that 10 GB of old sessions take minutes."""
BARRED = ("claude-code", "codex", "recursive")
ROUNDS = 5


def prepared(sample: Sample) -> tuple[int, Callable[[], int]]:
    """Bytes of a sample, and what parses it and counts its records."""
    path = str(sample.path)
    parser: Any = parser_for(sample.agent, path)
    data = content(sample.path)
    if hasattr(parser, "parse_database"):

        def database() -> int:
            connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
            found = sum(len(records) for _, records, _ in parser.parse_database(connection, {}))
            connection.close()
            return found

        return len(data), database
    if hasattr(parser, "parse_document"):
        return len(data), lambda: len(list(parser.parse_document(path, data)))
    lines = data.split(b"\n")

    def by_line() -> int:
        state, offset, found = parser.begin(path), 0, 0
        for line in lines:
            if line:
                found += len(list(parser.parse(state, line, offset)))
            offset += len(line) + 1
        return found

    return len(data), by_line


def measure(wanted: list[str], rounds: int = ROUNDS) -> dict[str, tuple[float, int, int, int]]:
    """Per agent: MB/s, files, bytes, records."""
    work: dict[str, list[tuple[int, Callable[[], int]]]] = defaultdict(list)
    for sample in all_samples():
        if not wanted or sample.agent in wanted:
            work[sample.agent].append(prepared(sample))
    results = {}
    for agent, jobs in sorted(work.items()):
        size = sum(bytes_ for bytes_, _ in jobs)
        best, found = float("inf"), 0
        for _ in range(rounds):
            start = time.process_time()
            found = sum(job() for _, job in jobs)
            best = min(best, time.process_time() - start)
        results[agent] = (size / 1e6 / max(best, 1e-9), len(jobs), size, found)
    return results


def rows(size: str) -> list[Row]:
    """For the table: the agents whose files are large."""
    found = measure(list(BARRED), 1 if size == "smoke" else ROUNDS)
    return [
        Row(
            f"parsing {agent}, per core",
            speed,
            "MB/s",
            BAR,
            "high",
            f"{files} files, {bytes_ / 1e6:.1f} MB, {records} records",
        )
        for agent, (speed, files, bytes_, records) in found.items()
    ]


def main(wanted: list[str]) -> int:
    """Print a table of figures; 1 when a bar is missed."""
    missed = 0
    print(f"{'agent':14}{'files':>6}{'MB':>9}{'records':>9}{'MB/s':>8}  bar  verdict")
    for agent, (speed, files, size, found) in measure(wanted).items():
        bar = BAR if agent in BARRED else None
        verdict = "" if bar is None else "ok" if speed >= bar else "MISSED"
        missed += verdict == "MISSED"
        print(f"{agent:14}{files:6}{size / 1e6:9.2f}{found:9}{speed:8.1f}{bar or '':>5}  {verdict}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
