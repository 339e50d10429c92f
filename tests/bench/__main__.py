"""The resource contract, measured on this machine: one table of figure, bar and verdict.

    python -m tests.bench [--size smoke|default|full] [--only NAME ...] [--json FILE]

Run it from the root of a checkout whose Python has `.[test]` installed. Each bench is a process
of its own, so that none sees the memory or the imports of another. Exit code 1 when a bar is
missed or a bench fails; what cannot be measured here (a package that cannot be had, data that
is not there) is a row with its reason and no failure.
"""

import argparse
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.contract import SIZES, Row, as_json, complain, head, line, machine
from bench.running import BENCHES, GROUPS, apart
from bench.running import chosen as named

WIDTH = 58


def main() -> int:
    """Measure and print; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--size", choices=SIZES, default="default")
    parser.add_argument(
        "--only", nargs="+", default=[], choices=(*BENCHES, *GROUPS), metavar="NAME"
    )
    parser.add_argument("--json", metavar="FILE", help="write rows and machine there too")
    chosen = parser.parse_args()
    about = machine()
    print(" ".join(f"{key}={value}" for key, value in about.items()))
    print(f"size={chosen.size}\n\n{head(WIDTH)}", flush=True)
    rows: list[Row] = []
    sound = True
    for name in named(chosen.only):
        began = time.monotonic()
        complain(f"... {name}")
        found, ended = apart(name, chosen.size)
        sound &= ended
        rows += found
        for row in found:
            print(line(row, WIDTH), flush=True)
        complain(f"... {name}: {time.monotonic() - began:.0f} s")
    missed = [row.what for row in rows if row.verdict == "MISSED"]
    counts = {
        verdict: sum(row.verdict == verdict for row in rows)
        for verdict in ("ok", "MISSED", "not run")
    }
    print("\n" + ", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    if chosen.json:
        report = {"machine": about, "size": chosen.size, "rows": as_json(rows)}
        Path(chosen.json).write_text(json.dumps(report, indent=1) + "\n", "utf-8")
    return int(bool(missed) or not sound)


if __name__ == "__main__":
    sys.exit(main())
