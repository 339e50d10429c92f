"""A progress bar on standard error: rich's on a terminal where it is installed, else one line
that rewrites itself; silent in a pipe. Owns no call: it is fed the daemon's progress maps.
"""

from __future__ import annotations

import os
import sys
from time import monotonic
from types import TracebackType
from typing import Any, Self

from lore.cli.times import seconds, size

REDRAW_SECONDS = 0.1
"""Between two drawings of the plain line: a terminal over ssh must keep up."""


class Progress:
    """Shows `{files_done, files_total, bytes_done, bytes_total, rate_bytes?, eta_s?}`; a
    context manager."""

    def __init__(self, label: str, *, quiet: bool = False) -> None:
        self.label = label
        self._bar: Any = None
        self._task: Any = None
        self._drawn = 0.0
        self._started = monotonic()
        self._first: int | None = None
        self._visible = not quiet and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"

    def __enter__(self) -> Self:
        if self._visible:
            try:
                self._open_rich()
            except ImportError:
                self._bar = None
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
        elif self._visible and self._drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def _open_rich(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            TextColumn("{task.fields[figures]}"),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task(self.label, total=None, figures="")
        self._bar.start()

    def show(self, state: dict[str, Any]) -> None:
        """Draw one state; unknown totals are shown as such."""
        done, total = int(state.get("bytes_done") or 0), int(state.get("bytes_total") or 0)
        if self._first is None:
            self._first = done
        if not self._visible:
            return
        figures = self._figures(state, done, total) + self._left(state, done, total)
        if self._bar is not None:
            self._bar.update(self._task, completed=done, total=total or None, figures=figures)
            return
        now = monotonic()
        if now - self._drawn < REDRAW_SECONDS and done < total:
            return
        self._drawn = now
        share = min(done / total, 1.0) if total else 0.0
        filled = round(share * 24)
        bar = "#" * filled + "." * (24 - filled)
        line = f"{self.label} [{bar}] {share:4.0%} {figures}"
        sys.stderr.write(f"\r\x1b[K{line}")
        sys.stderr.flush()

    def _rate(self, done: int) -> float:
        passed = monotonic() - self._started
        return (done - (self._first or 0)) / passed if passed > 0 else 0.0

    def _left(self, state: dict[str, Any], done: int, total: int) -> str:
        """Time left: the daemon's own estimate, else from the rate seen here."""
        rate = self._rate(done)
        left = state.get("eta_s") or ((total - done) / rate if rate > 0 else 0)
        return f", {seconds(left)} left" if left and total > done else ""

    def _figures(self, state: dict[str, Any], done: int, total: int) -> str:
        files, of = int(state.get("files_done") or 0), int(state.get("files_total") or 0)
        amount = f"{size(done)} of {size(total)}" if total else size(done)
        rate = state.get("rate_bytes") or self._rate(done)
        return f"{files} of {of} files, {amount}, {size(rate)}/s"
