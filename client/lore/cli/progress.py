"""The bar of every long operation, on standard error. Owns no call: it is fed the daemon's
progress maps (PROTOCOL.md, events).

On a terminal it is rich's bar where that is installed, else one line that rewrites itself;
elsewhere a whole line now and then, for logs. What is done quickly shows nothing.
"""

from __future__ import annotations

import os
import shutil
import sys
from time import monotonic
from types import TracebackType
from typing import Any, Self

from lore.cli.times import seconds, size

REDRAW_SECONDS = 0.1
"""Between two drawings of the plain line: a terminal over ssh must keep up."""

PATIENCE_SECONDS = 0.3
"""Before the bar appears: what ends sooner needs none, and rich takes 0.1 s to load."""

LINE_SECONDS = 5.0
"""Between two lines where the output is no terminal."""

BAR_CELLS = 24


class Progress:
    """Shows the progress of an operation or of the index; a context manager."""

    def __init__(self, label: str, *, quiet: bool = False) -> None:
        self.label = label
        self._bar: Any = None
        self._task: Any = None
        self._terminal = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._quiet = quiet
        self._pause = REDRAW_SECONDS if self._terminal else LINE_SECONDS
        self._next = monotonic() + (PATIENCE_SECONDS if self._terminal else LINE_SECONDS)
        self._drawn = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
        elif self._drawn and self._terminal:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
        self._quiet = True

    def hear(self, event: dict[str, Any]) -> None:
        """An event that came while a call is awaited: the operation that is this call is shown."""
        if event.get("own") and "operation" in event:
            self.show(event)

    def show(self, state: dict[str, Any]) -> None:
        """Draw one state, if it is time to; unknown totals are shown as such."""
        if self._quiet or monotonic() < self._next:
            return
        done, total = reached(state)
        label = ": ".join(part for part in (self.label, state.get("step")) if part)
        if not self._terminal:
            share = f"{done / total:.0%}, " if total else ""
            sys.stderr.write(f"{label}: {share}{figures(state)}\n")
            sys.stderr.flush()
        elif self._opened_rich():
            self._bar.update(
                self._task,
                description=label,
                completed=done,
                total=total or None,
                figures=figures(state),
            )
        else:
            self._draw_plain(label, done, total, figures(state))
        self._next, self._drawn = monotonic() + self._pause, True

    def _opened_rich(self) -> bool:
        """Whether rich draws the bar, which is opened when it is first needed."""
        if self._bar is not None or self._drawn:
            return self._bar is not None
        try:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn
        except ImportError:
            return False
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            TextColumn("{task.percentage:>3.0f}% {task.fields[figures]}"),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task(self.label, total=None, figures="")
        self._bar.start()
        return True

    def _draw_plain(self, label: str, done: int, total: int, told: str) -> None:
        share = min(done / total, 1.0) if total else 0.0
        filled = round(share * BAR_CELLS)
        bar = "#" * filled + "." * (BAR_CELLS - filled)
        line = f"{label} [{bar}] {share:4.0%} {told}"
        # A line that wraps could not be drawn over.
        room = shutil.get_terminal_size().columns - 1
        sys.stderr.write(f"\r\x1b[K{line[:room]}")
        sys.stderr.flush()


def reached(state: dict[str, Any]) -> tuple[int, int]:
    """How far it is, of how much (0: not known): of an operation, or bytes of the index."""
    if "operation" in state:
        return int(state.get("done") or 0), int(state.get("total") or 0)
    return int(state.get("bytes_done") or 0), int(state.get("bytes_total") or 0)


def figures(state: dict[str, Any]) -> str:
    """`12,000 of 50,000 rows, 3,400/s, 12 s left`, as far as it is known."""
    done, total = reached(state)
    if "operation" in state:
        unit, rate = str(state.get("unit") or ""), state.get("rate")
    else:
        unit, rate = "bytes", state.get("rate_bytes")
    parts = []
    if "files_total" in state:
        parts.append(f"{state.get('files_done', 0):,} of {state['files_total']:,} files")
    shown = size if unit == "bytes" else _number
    amount = f"{shown(done)} of {shown(total)}" if total else shown(done)
    parts.append(amount if unit == "bytes" else f"{amount} {unit}")
    if rate:
        parts.append(f"{shown(rate)}/s")
    if state.get("eta_s") and total > done:
        parts.append(f"{seconds(state['eta_s'])} left")
    return ", ".join(parts)


def progress_line(state: dict[str, Any]) -> str:
    """A progress map in one line, as `lore watch` and `lore status` show it."""
    if "operation" not in state:
        head = str(state.get("state", ""))
        return f"{head} {figures(state)}" if state.get("bytes_total") else head
    done, total = reached(state)
    parts = [str(state["operation"]) + (f": {state['step']}" if state.get("step") else "")]
    if state.get("outcome"):
        parts += [str(state["outcome"]), f"after {seconds(float(state.get('seconds', 0)))}"]
    elif state.get("unit"):
        parts += [f"{done / total:.0%}"] * bool(total) + [figures(state)]
    return f"{', '.join(parts)} (for {state.get('client', '?')})"


def _number(count: float) -> str:
    return f"{count:,.1f}" if count < 10 and count != int(count) else f"{count:,.0f}"
