"""Signals, and the promise that a stop ends within its time whatever hangs.

Python runs a signal handler only between two byte codes of the main thread, and the event
loop hears of it later still; a handler that blocks the loop would make SIGTERM wait for ever.
The C part of the interpreter, though, writes each signal's number to the wakeup descriptor at
once. So that descriptor is a pipe of our own, read by a thread: it passes the signal on to the
loop, and from the first stop signal on it counts down and ends the process by force. A second
SIGTERM or SIGINT ends it at once.

Only a main thread that keeps the interpreter lock inside C for the whole time escapes this;
the supervisor's SIGKILL (TimeoutStopSec) is the last resort there.
"""

import asyncio
import contextlib
import os
import select
import signal
import threading
import time
from collections.abc import Callable
from typing import Final

FORCE_SECONDS: Final = 4.6
"""From the stop to the forced end: the contract is 5 s, and killing the children takes a bit."""

_STOP: Final = frozenset({signal.SIGTERM, signal.SIGINT})
HANDLED: Final = _STOP | {signal.SIGHUP}
"""All signals with a meaning here."""

_ARM: Final = 0
"""Byte of our own in the pipe: a stop that no signal asked for (drain call, idle exit)."""


class Signals:
    """The signal thread of one daemon. `install` must run on the main thread, in the loop."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        stop: Callable[[str], None],
        reload: Callable[[], None],
        force: Callable[[str], None],
    ) -> None:
        """``stop`` (with a reason) and ``reload`` are called on the loop; ``force`` (with a
        reason) is called on the thread and must end the process."""
        self._loop, self._stop, self._reload, self._force = loop, stop, reload, force
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)  # the interpreter requires it

    def install(self) -> None:
        """Begin to listen, also to what came while the signals were blocked."""
        for number in HANDLED:
            signal.signal(number, _ignore)
            signal.siginterrupt(number, False)
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        threading.Thread(target=self._watch, name="signals", daemon=True).start()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDLED)

    def arm(self) -> None:
        """Start the countdown of a stop that no signal asked for."""
        os.write(self._write, bytes([_ARM]))

    def _watch(self) -> None:
        deadline: float | None = None
        signalled = False
        while True:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            ready, _, _ = select.select([self._read], [], [], left)
            if not ready:
                self._force(f"not stopped within {FORCE_SECONDS:g} s")
                return
            for byte in os.read(self._read, 64):
                if byte == signal.SIGHUP:
                    self._tell(self._reload)
                    continue
                if byte not in _STOP and byte != _ARM:
                    continue
                deadline = deadline or time.monotonic() + FORCE_SECONDS
                if byte == _ARM:
                    continue
                name = signal.Signals(byte).name
                if signalled:
                    self._force(f"{name} again")
                    return
                signalled = True
                self._tell(self._stop, name)

    def _tell(self, what: Callable[..., None], *args: str) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended: nobody is left to tell
            self._loop.call_soon_threadsafe(what, *args)


def _ignore(number: int, frame: object) -> None:
    """A Python handler must exist, else the interpreter does not write to the pipe."""
