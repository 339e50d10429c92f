"""The table that all benches fill: what was measured, the bar, the verdict, and the machine.

A bench is a module with `rows(size) -> list[Row]`; ``size`` is `smoke`, `default` or `full`.
Bars are those of the resource contract; a row without a bar is there to be read. A figure that
could not be measured is a row too, with the reason.
"""

import math
import os
import platform
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

SIZES = ("smoke", "default", "full")
"""`smoke`: does it run; `default`: the bars in minutes; `full`: the sizes that the contract
names (1 GB of transcripts, 1,500,000 messages, 1,000,000 calls)."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table.

    ``figure`` is in ``unit``; None means not run, and ``note`` says why. ``bar`` is the most
    (``better`` low) or the least (``better`` high) that is allowed, None where there is none.
    """

    what: str
    figure: float | None
    unit: str = ""
    bar: float | None = None
    better: Literal["low", "high"] = "low"
    note: str = ""

    @property
    def verdict(self) -> str:
        """`ok`, `MISSED`, `not run`, or empty without a bar."""
        if self.figure is None:
            return "not run"
        if self.bar is None:
            return ""
        good = self.figure <= self.bar if self.better == "low" else self.figure >= self.bar
        return "ok" if good else "MISSED"


def not_run(what: str, reason: str, **more: Any) -> Row:
    """A row for what could not be measured."""
    return Row(what, None, note=reason, **more)


def percentile(values: Sequence[float], share: float) -> float:
    """The value below or at which ``share`` (0 to 1) of ``values`` lie (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * share) - 1)]


def spread(values: Sequence[float], unit: str = "ms") -> str:
    """p50, p95, p99 of ``values`` as a note."""
    parts = (f"p{int(s * 100)} {number(percentile(values, s))}" for s in (0.5, 0.95, 0.99))
    return f"{', '.join(parts)} {unit}, n={len(values)}"


def number(value: float) -> str:
    """Three significant digits, thousands parted."""
    if value == 0 or not math.isfinite(value):
        return str(value).removesuffix(".0")
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{digits}f}"


def fsync_ms(rounds: int = 20) -> float:
    """Median milliseconds of a 4 KiB write and fsync in the folder for temporary files."""
    with tempfile.TemporaryFile() as file:
        times = []
        for _ in range(rounds):
            began = time.perf_counter()
            file.write(b"x" * 4096)
            file.flush()
            os.fsync(file.fileno())
            times.append((time.perf_counter() - began) * 1e3)
    return statistics.median(times)


def machine() -> dict[str, Any]:
    """What the figures were measured on, and how busy it was."""
    from lored.store import driver

    found: dict[str, Any] = {
        "system": platform.platform(terse=True),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "sqlite": driver.capabilities(),
        "fsync_ms": round(fsync_ms(), 2),
        "load_1m": round(os.getloadavg()[0], 1),
    }
    if hasattr(os, "sysconf"):
        found["memory_gib"] = round(
            os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1
        )
    return found


def _cpu() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def line(row: Row, width: int) -> str:
    """A row as text; ``width`` is that of the first column."""
    figure = "-" if row.figure is None else f"{number(row.figure)} {row.unit}".rstrip()
    bar = ""
    if row.bar is not None:
        bar = f"{'<=' if row.better == 'low' else '>='} {number(row.bar)}"
    return f"{row.what:{width}}  {figure:>14}  {bar:>9}  {row.verdict:8} {row.note}".rstrip()


def head(width: int) -> str:
    """The heading over the rows."""
    return f"{'what':{width}}  {'figure':>14}  {'bar':>9}  {'verdict':8} how"


def as_json(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Rows for `--json`."""
    return [{**asdict(row), "verdict": row.verdict} for row in rows]


def room_for(size: int) -> bool:
    """Whether ``size`` bytes and a quarter more fit into the folder for temporary files."""
    return shutil.disk_usage(tempfile.gettempdir()).free > size * 1.25


def complain(text: str) -> None:
    """Progress for who waits, apart from the table."""
    print(text, file=sys.stderr, flush=True)
