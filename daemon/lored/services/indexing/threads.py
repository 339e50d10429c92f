"""Threads for looks at file systems that may hang: lent out, taken back, a few kept.

Starting one for each of some thirty roots at every sweep costs more than looking at them. A
thread that hangs is simply never given back.
"""

import queue
import threading
from collections.abc import Callable
from typing import Final

KEPT: Final = 2
"""Idle threads kept; as many roots are looked at at once (`looking.AT_ONCE`)."""

Work = Callable[[], None]


class Threads:
    """Lends threads. May be used from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[queue.SimpleQueue[Work]] = []

    def start(self, work: Work, name: str) -> None:
        """Run ``work``, which must not raise, in a thread of its own for that time."""
        with self._lock:
            inbox = self._idle.pop() if self._idle else None
        if inbox is None:
            inbox = queue.SimpleQueue()
            threading.Thread(target=self._serve, args=(inbox,), name=name, daemon=True).start()
        inbox.put(work)

    def _serve(self, inbox: "queue.SimpleQueue[Work]") -> None:
        while True:
            inbox.get()()
            with self._lock:
                if len(self._idle) >= KEPT:
                    return
                self._idle.append(inbox)


THREADS: Final = Threads()
"""Those of all roots of this process."""
