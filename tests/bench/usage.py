"""What a daemon and its children have used: processor time, peak memory, bytes from the disk.

A child that has ended is counted as it was when last looked at; look before it may end.
Resident memory holds the pages of mapped store files, which the system takes back when it
needs them; `own` leaves them out (the most that was seen at a look).
"""

import os
from dataclasses import dataclass, field

import psutil


@dataclass(slots=True)
class Usage:
    """Sums over the processes: seconds of processor time, bytes fetched from the disk, calls of
    read; peak resident bytes, and the seconds again, per kind of process (`daemon`, `worker`,
    `model`, `other`)."""

    cpu_s: float = 0.0
    disk_bytes: int = 0
    reads: int = 0
    peaks: dict[str, int] = field(default_factory=dict)
    by_process: dict[str, float] = field(default_factory=dict)
    own: dict[str, int] = field(default_factory=dict)

    def memory(self, kind: str) -> str:
        """The private part of a peak, as a note."""
        return f"{self.own.get(kind, 0) / 1e6:.0f} MB of it its own, the rest mapped files"


class Meter:
    """Looks at one daemon."""

    def __init__(self, pid: int) -> None:
        self._daemon = psutil.Process(pid)
        self._last: dict[int, tuple[str, float, int, int, int]] = {}
        self._own: dict[str, int] = {}

    def look(self) -> Usage:
        """Everything so far."""
        try:
            found = [self._daemon, *self._daemon.children(recursive=True)]
        except psutil.NoSuchProcess:
            found = []
        for process in found:
            try:
                self._last[process.pid] = self._of(process)
            except (psutil.NoSuchProcess, psutil.ZombieProcess, OSError):
                continue
        total = Usage()
        for kind, cpu, disk, reads, peak in self._last.values():
            total.cpu_s += cpu
            total.disk_bytes += disk
            total.reads += reads
            total.by_process[kind] = total.by_process.get(kind, 0.0) + cpu
            total.peaks[kind] = max(peak, total.peaks.get(kind, 0))
        total.own = dict(self._own)
        return total

    def _of(self, process: psutil.Process) -> tuple[str, float, int, int, int]:
        kind = "daemon"
        if process.pid != self._daemon.pid:
            words = " ".join(process.cmdline())
            kind = "worker" if "lored.ingest" in words else "other"
            kind = "model" if "lored.embed" in words else kind
        times = process.cpu_times()
        disk = reads = 0
        if hasattr(process, "io_counters"):
            counters = process.io_counters()
            disk, reads = counters.read_bytes, counters.read_count
        peak = _bytes(process.pid, "VmHWM:") or process.memory_info().rss
        self._own[kind] = max(self._own.get(kind, 0), _bytes(process.pid, "RssAnon:"))
        return kind, times.user + times.system, disk, reads, peak


def _bytes(pid: int, name: str) -> int:
    """A figure of proc_pid_status(5), 0 where the system does not tell."""
    if not os.path.isdir("/proc/self"):
        return 0
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        for line in file:
            if line.startswith(name):
                return int(line.split()[1]) * 1024
    return 0
