"""sd_notify: what the daemon tells its supervisor, in one datagram each.

Protocol: sd_notify(3). Without `NOTIFY_SOCKET` everything here does nothing. Knows nothing
of health; `beat` is called by whoever has proved it.
"""

import contextlib
import os
import socket
import time
from collections.abc import Mapping


class Notifier:
    """The line to the supervisor that ``env`` names; the variables are taken out of it, so
    that no child speaks in our name."""

    def __init__(self, env: "Mapping[str, str] | None" = None) -> None:
        found = os.environ if env is None else env
        self._address = found.get("NOTIFY_SOCKET", "")
        self.watchdog_seconds: float | None = None
        """Time within which a `beat` is wanted; None without a watchdog."""
        pid = found.get("WATCHDOG_PID")
        with contextlib.suppress(ValueError):
            interval = int(found.get("WATCHDOG_USEC", "0")) / 1e6
            if interval > 0 and self._address and (not pid or int(pid) == os.getpid()):
                self.watchdog_seconds = interval
        for name in ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"):
            if env is None:
                os.environ.pop(name, None)

    def _send(self, text: str) -> None:
        if not self._address:
            return
        address = self._address
        if address.startswith("@"):
            address = "\0" + address[1:]
        with (
            contextlib.suppress(OSError),  # a supervisor that is gone needs no news
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line,
        ):
            line.settimeout(0.5)
            line.connect(address)
            line.send(text.encode())

    def ready(self, status: str) -> None:
        """Serving; also ends a reload."""
        self._send(f"READY=1\nSTATUS={status}\nMAINPID={os.getpid()}")

    def status(self, status: str) -> None:
        """One line for `systemctl status`."""
        self._send(f"STATUS={status}")

    def reloading(self) -> None:
        """Settings are being read again; `ready` must follow."""
        now_us = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        self._send(f"RELOADING=1\nMONOTONIC_USEC={now_us}\nSTATUS=reading settings")

    def stopping(self, reason: str) -> None:
        """The drain has begun."""
        self._send(f"STOPPING=1\nSTATUS=stopping: {reason}")

    def beat(self) -> None:
        """The watchdog's sign of life."""
        self._send("WATCHDOG=1")
