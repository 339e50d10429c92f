"""How fast something counts up, lately, and how long the rest will take."""

import time
from collections import deque
from typing import Final

RATE_SECONDS: Final = 10.0
"""The rate is that of the last seconds: the beginning of a long work says little about its end."""


class Pace:
    """Samples of a count that grows."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, int]] = deque()

    def clear(self) -> None:
        """The count begins anew."""
        self._samples.clear()

    def note(self, done: int) -> None:
        """The count is ``done`` now."""
        now = time.monotonic()
        self._samples.append((now, done))
        while self._samples and now - self._samples[0][0] > RATE_SECONDS:
            self._samples.popleft()

    @property
    def rate(self) -> float:
        """Counts a second; 0.0 before two samples."""
        if len(self._samples) < 2:
            return 0.0
        (begin, low), (end, high) = self._samples[0], self._samples[-1]
        return (high - low) / (end - begin) if end > begin else 0.0
