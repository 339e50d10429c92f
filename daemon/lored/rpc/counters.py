"""What was asked and how it went: counts and times a method, for `metrics` and `status`."""

from typing import Final

BUCKETS: Final = (0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0)
"""Upper bounds in seconds; the bars of the resource contract lie on them."""


class Counters:
    """Counts since the start of the daemon."""

    def __init__(self) -> None:
        self.requests: dict[tuple[str, str], int] = {}
        """(method, outcome) -> count; the outcome is `ok` or a wire code."""
        self.at_once: dict[str, int] = {}
        """Method -> count of those not measured, see `count_at_once`."""
        self.seconds: dict[str, float] = {}
        """Method -> sum of seconds from arrival to answer."""
        self.buckets: dict[str, list[int]] = {}
        """Method -> counts by `BUCKETS`, the last one beyond all of them."""
        self.connections = 0
        self.refused = 0
        """Connections refused: foreign uid or too many."""
        self.broken = 0
        """Connections closed for bytes that are no messages."""
        self.overrun = 0
        """Connections aborted because their client did not read."""
        self.events_lost = 0

    def count_at_once(self, method: str) -> None:
        """One request answered by a plain function, in microseconds: ping and the like."""
        self.at_once[method] = self.at_once.get(method, 0) + 1

    def answered(self) -> dict[tuple[str, str], int]:
        """All answered requests: (method, outcome) -> count."""
        found = dict(self.requests)
        for method, count in self.at_once.items():
            found[method, "ok"] = found.get((method, "ok"), 0) + count
        return found

    def count(self, method: str, outcome: str, seconds: float) -> None:
        """One answered request."""
        key = (method, outcome)
        self.requests[key] = self.requests.get(key, 0) + 1
        self.seconds[method] = self.seconds.get(method, 0.0) + seconds
        row = self.buckets.get(method)
        if row is None:
            row = self.buckets[method] = [0] * (len(BUCKETS) + 1)
        for index, bound in enumerate(BUCKETS):
            if seconds <= bound:
                row[index] += 1
                return
        row[-1] += 1
