"""`lore top`: what the daemon does from moment to moment.

Two looks at `metrics` and `status` make a frame: rates and times are those of the calls between
them. On a terminal the frames take each other's place (rich where it is installed), elsewhere
they follow each other; `--json` writes one document a frame.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from lore.cli.arguments import Arg, Usage, Verb
from lore.cli.daemon import index_line, show_degraded
from lore.cli.invocation import Answer, Invocation
from lore.cli.render import Screen, one_line
from lore.cli.times import ago, seconds, size

INTERVAL_SECONDS = 2.0
"""Between two frames."""

METHODS_SHOWN = 12
"""The busiest methods; all are in the JSON."""

_LINE = re.compile(r"^(?P<name>\w+)(?:\{(?P<labels>.*)\})? (?P<value>\S+)$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')

Metrics = dict[tuple[str, str, str], float]
"""(metric, method, outcome or bucket) -> value."""


def read(text: str) -> Metrics:
    """The request counters in OpenMetrics text."""
    found: Metrics = {}
    for line in text.splitlines():
        match = _LINE.match(line)
        if match and match["name"].startswith("lored_request"):
            labels = dict(_LABEL.findall(match["labels"] or ""))
            more = labels.get("outcome") or labels.get("le") or ""
            found[match["name"], labels.get("method", ""), more] = float(match["value"])
    return found


def rates(before: Metrics, now: Metrics, elapsed: float) -> list[Answer]:
    """Per method what was answered between two looks ``elapsed`` seconds apart, busiest first:
    `method`, `per_second`, `failed` (count), and of those that were measured `mean_ms` and
    `p95_ms` (the bound of the bucket that holds it, absent beyond the last)."""
    grown = {key: value - before.get(key, 0.0) for key, value in now.items()}
    methods: dict[str, Answer] = {}
    for (name, method, outcome), count in grown.items():
        if name == "lored_requests_total" and count > 0:
            row = methods.setdefault(method, {"method": method, "per_second": 0.0, "failed": 0})
            row["per_second"] += count / elapsed
            row["failed"] += 0 if outcome == "ok" else int(count)
    for method, row in methods.items():
        row["per_second"] = round(row["per_second"], 2)
        count = grown.get(("lored_request_seconds_count", method, ""), 0.0)
        if count > 0:
            total = grown.get(("lored_request_seconds_sum", method, ""), 0.0)
            row["mean_ms"] = round(max(total, 0.0) / count * 1000, 2)
            bounds = sorted(
                (float(bound), value)
                for (name, which, bound), value in grown.items()
                if name == "lored_request_seconds_bucket" and which == method and bound != "+Inf"
            )
            within = next((bound for bound, below in bounds if below >= count * 0.95), None)
            if within is not None:
                row["p95_ms"] = within * 1000
    return sorted(methods.values(), key=lambda row: -row["per_second"])


def frame(before: Metrics, now: Metrics, status: Answer, elapsed: float) -> Answer:
    """One frame: rates, queues, indexing, memory, degraded modes."""
    methods = rates(before, now, elapsed)
    roots = status.get("roots") or []
    found: Answer = {
        "seconds": round(elapsed, 2),
        "calls_per_second": round(sum(row["per_second"] for row in methods), 2),
        "methods": methods,
        "lag_ms": max((root.get("lag_ms") or 0 for root in roots), default=0),
        "pending_files": sum(root.get("pending") or 0 for root in roots),
    }
    for key in ("version", "pid", "realm", "started_at", "clients", "subscriptions", "queues",
                "index", "memory", "degraded"):  # fmt: skip
        if key in status:
            found[key] = status[key]
    found["stores"] = [
        {key: store[key] for key in ("name", "bytes", "wal_bytes", "queue") if key in store}
        for store in status.get("stores", ())
    ]
    return found


def show(screen: Screen, one: Answer) -> None:
    """A frame as text."""
    head = [f"lored {one.get('version', '?')}", f"pid {one.get('pid', '?')}"]
    head += [f"realm {one['realm']}"] if one.get("realm") else []
    head += [f"started {ago(one['started_at'])}"] if one.get("started_at") else []
    head.append(f"{one.get('clients', 0)} clients")
    screen.say(screen.paint("  ".join(head), "bold"))
    memory = one.get("memory") or {}
    used = ", ".join(f"{key.removesuffix('_bytes')} {size(n)}" for key, n in memory.items())
    lanes = [
        f"{name} {lane['running']}+{lane['waiting']}"
        for name, lane in (one.get("queues") or {}).items()
        if lane.get("running") or lane.get("waiting")
    ]
    stores = [
        f"{store['name']} {sum(store['queue'].values())}"
        for store in one["stores"]
        if sum((store.get("queue") or {}).values())
    ]
    index = index_line(one["index"]) if isinstance(one.get("index"), dict) else ""
    rows = (
        ("calls", f"{one['calls_per_second']:.1f} a second"),
        ("queues", ", ".join(lanes) + " running+waiting" if lanes else "empty"),
        ("stores", ", ".join(stores) + " waiting or running" if stores else "idle"),
        ("index", f"{index}, lag {seconds(one['lag_ms'] / 1000)}"),
        ("memory", used),
    )
    for label, value in rows:
        screen.say(f"  {screen.paint(f'{label:8}', 'dim')}{one_line(value)}")
    if one["methods"]:
        head_line = f"  {'method':24}{'a second':>10}{'mean ms':>10}{'p95 <= ms':>11}{'failed':>8}"
        screen.say("", screen.paint(head_line, "dim"))
    for row in one["methods"][:METHODS_SHOWN]:
        mean, p95 = row.get("mean_ms"), row.get("p95_ms")
        screen.say(
            f"  {one_line(row['method']):24}{row['per_second']:10.1f}"
            f"{'' if mean is None else f'{mean:.2f}':>10}"
            f"{'' if p95 is None else f'{p95:g}':>11}{row['failed'] or '':>8}"
        )
    show_degraded(screen, one.get("degraded", []))


def top(inv: Invocation) -> int:
    """Frames until Ctrl-C, or one with ``--once``."""
    interval = inv.options.interval if inv.options.interval is not None else INTERVAL_SECONDS
    if not 0.1 <= interval <= 3600:
        raise Usage("--interval: 0.1 to 3600 seconds")
    screen = inv.screen
    looked, before = time.monotonic(), read(str(inv.call("metrics").get("text", "")))
    with _place(screen, once=inv.options.once) as draw:
        while True:
            time.sleep(interval)
            status, now = inv.call("status"), read(str(inv.call("metrics").get("text", "")))
            at = time.monotonic()
            draw(frame(before, now, status, at - looked))
            if inv.options.once:
                return 0
            looked, before = at, now


@contextmanager
def _place(screen: Screen, *, once: bool) -> Iterator[Callable[[Answer], None]]:
    """Where frames go."""
    if screen.json:
        yield lambda one: _flushed(screen, lambda: screen.document("lore.top/1", one))
        return
    if once or not screen.terminal:
        yield lambda one: _flushed(screen, lambda: show(screen, one))
        return
    try:
        from rich.live import Live
        from rich.text import Text
    except ImportError:
        yield lambda one: _flushed(screen, lambda: _redraw(screen, one))
        return
    with Live(screen=True, auto_refresh=False) as live:
        yield lambda one: live.update(Text.from_ansi(_captured(screen, one)), refresh=True)


def _flushed(screen: Screen, draw: Callable[[], Any]) -> None:
    draw()
    screen.out.flush()


def _redraw(screen: Screen, one: Answer) -> None:
    screen.say("\x1b[H\x1b[J" + _captured(screen, one))


def _captured(screen: Screen, one: Answer) -> str:
    """The text of a frame."""
    from io import StringIO

    out, screen.out = screen.out, StringIO()
    try:
        show(screen, one)
        return screen.out.getvalue()
    finally:
        screen.out = out


VERBS = (
    Verb(
        "top",
        top,
        (
            Arg("--interval", "-i", kind="number", metavar="SECONDS", help="default 2"),
            Arg("--once", kind="flag", help="one frame, then end"),
        ),
        examples=("lore top", "lore top --once --json | jq .data.methods"),
    ),
)
