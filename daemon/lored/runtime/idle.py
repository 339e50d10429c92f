"""The idle exit of a socket-activated daemon: it ends when nobody needs it and comes back
with the next connection. A daemon that nobody would start again never exits by itself.
"""

import asyncio
import time
from collections.abc import Callable


class Idle:
    """Watches for `seconds` without clients and without work."""

    def __init__(
        self,
        *,
        seconds: Callable[[], float],
        is_busy: Callable[[], bool],
        leave: Callable[[], None],
    ) -> None:
        """``seconds``: the limit, asked anew each time (settings may change); ``is_busy``:
        whether clients are connected or work is pending; ``leave``: called once, to end."""
        self._seconds, self._is_busy, self._leave = seconds, is_busy, leave
        self._since = time.monotonic()

    def touch(self) -> None:
        """Something happened just now."""
        self._since = time.monotonic()

    async def watch(self) -> None:
        """Run until it is time to leave."""
        while True:
            if self._is_busy():
                self.touch()
            left = self._since + self._seconds() - time.monotonic()
            if left <= 0:
                self._leave()
                return
            # A busy spell shorter than this period still counts: the last client calls `touch`.
            await asyncio.sleep(min(left, 60.0))
