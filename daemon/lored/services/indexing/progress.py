"""How far the index is: counters, rate, time left, and progress events. Owns no work."""

import time
from typing import Any

from lored.core.clock import to_wire
from lored.services.events import Events
from lored.services.operations import EVENT_SECONDS
from lored.services.pace import Pace


class Progress:
    """Counts of the work since the backlog was last empty, and since the start."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._said_at = 0.0
        self._pace = Pace()
        self.began_at: int | None = None
        self.files_done = 0
        self.bytes_done = 0
        self.files_left = 0
        self.bytes_left = 0
        self.current = ""
        self.messages = 0
        self.bytes_read = 0
        """All bytes read from transcripts since the start, verification included."""
        self.redactions: dict[str, int] = {}
        self.latency_ms: float | None = None
        """From the file's time of change to being searchable, of the last change."""

    def begin(self, now: int) -> None:
        """The backlog was empty and is not any more."""
        self.began_at = now
        self.files_done = self.bytes_done = 0
        self._pace.clear()

    def advance(self, size: int) -> None:
        """``size`` bytes of transcript are stored."""
        self.bytes_done += size
        self._pace.note(self.bytes_done)

    def redacted(self, counts: dict[str, int]) -> None:
        """Secrets were left out."""
        for rule, count in counts.items():
            self.redactions[rule] = self.redactions.get(rule, 0) + count

    def describe(self, state: str) -> dict[str, Any]:
        """The progress map of `index_status` and of events."""
        total = self.bytes_done + self.bytes_left
        found: dict[str, Any] = {
            "state": state,
            "files_done": self.files_done,
            "files_total": self.files_done + self.files_left,
            "bytes_done": self.bytes_done,
            "bytes_total": total,
            "messages": self.messages,
            "bytes_read": self.bytes_read,
        }
        if self.began_at is not None:
            found["began_at"] = to_wire(self.began_at)
        if self.current:
            found["current"] = self.current
        if self.files_left and self._pace.rate > 0:
            found["rate_bytes"] = round(self._pace.rate)
            found["eta_s"] = round(self.bytes_left / self._pace.rate, 1)
        if self.latency_ms is not None:
            found["latency_ms"] = round(self.latency_ms, 1)
        if self.redactions:
            found["redactions"] = dict(self.redactions)
        return found

    def publish(self, state: str, *, force: bool = False) -> None:
        """Tell subscribers, not more often than they can use."""
        now = time.monotonic()
        if force or now - self._said_at >= EVENT_SECONDS:
            self._said_at = now
            self._events.publish("progress", self.describe(state))
