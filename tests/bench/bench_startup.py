"""Start-up cost of a client against an empty Python in the same run: medians and ratios.

    python tests/bench/bench_startup.py [rounds]

Whole processes, from fork to exit, in turns so that a busy machine weighs on all alike. The
bar: `lore ping`, with a daemon answering, within 3 times `python -I -c pass`. Below it stand
the steps on the way there and what other shims load, to see where time goes.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.contract import Row
from support.daemon import make_home, remove_home, start_daemon

BAR = 3.0

BARE = "python -I -c pass"

CASES = {
    BARE: [sys.executable, "-I", "-c", "pass"],
    "import msgpack": [sys.executable, "-I", "-c", "import msgpack"],
    "import lore": [sys.executable, "-I", "-c", "import lore"],
    "import lore.wire.codec": [sys.executable, "-I", "-c", "import lore.wire.codec"],
    "import lore.launch": [sys.executable, "-I", "-c", "import lore.launch"],
    "import lore.client": [sys.executable, "-I", "-c", "import lore.client"],
    "Client() and ping": [sys.executable, "-I", "-c", "import lore; lore.Client().ping()"],
    "lore ping": [str(Path(sys.executable).parent / "lore"), "ping"],
    "lore call ping": [str(Path(sys.executable).parent / "lore"), "call", "ping"],
    "import asyncio": [sys.executable, "-I", "-c", "import asyncio"],
    "import lore.aio": [sys.executable, "-I", "-c", "import lore.aio"],
}


def run(command: list[str], env: dict[str, str]) -> float:
    """Seconds of one process, which must succeed."""
    began = time.perf_counter()
    subprocess.run(command, env=env, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


def measure(rounds: int = 20) -> dict[str, Any]:
    """Medians in milliseconds, ratios to the bare interpreter, and the verdict."""
    home = make_home()
    times: dict[str, list[float]] = {name: [] for name in CASES}
    try:
        with start_daemon(home) as daemon:
            env = {**daemon.env, "PYTHONDONTWRITEBYTECODE": ""}
            for command in CASES.values():
                run(command, env)  # compiled and cached
            for _ in range(rounds):
                for name, command in CASES.items():
                    times[name].append(run(command, env))
    finally:
        remove_home(home)
    medians = {name: statistics.median(found) for name, found in times.items()}
    ratios = {name: round(found / medians[BARE], 2) for name, found in medians.items()}
    return {
        "figure": "lore ping, whole process / python -I -c pass",
        "value": ratios["lore ping"],
        "bar": BAR,
        "ok": ratios["lore ping"] <= BAR,
        "ms": {name: round(found * 1e3, 1) for name, found in medians.items()},
        "ratios": ratios,
        "rounds": rounds,
        "load": round(os.getloadavg()[0], 1),
    }


def rows(size: str) -> list[Row]:
    """For the table."""
    found = measure({"smoke": 1}.get(size, 20))
    ms = found["ms"]
    note = f"p50 {ms['lore ping']} ms, bare Python {ms[BARE]} ms, n={found['rounds']}"
    return [
        Row("lore ping, whole process / python -I -c pass", found["value"], "x", BAR, note=note)
    ]


if __name__ == "__main__":
    result = measure(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
    print(json.dumps(result, indent=2))
    sys.exit(0 if result["ok"] else 1)
