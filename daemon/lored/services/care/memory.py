"""What this process uses: resident memory, children, file descriptors.

Linux reads proc(5); elsewhere `ps` is asked, which every Unix has.
"""

import os
import resource
import subprocess
from typing import Final

_HAS_PROC: Final = os.path.isdir("/proc/self/task")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


def measure() -> dict[str, int]:
    """Bytes, as `status` shows them: `daemon_bytes`, and `children_bytes` of all together."""
    found = children()
    return {
        "daemon_bytes": _resident(os.getpid()),
        "children_bytes": sum(map(_resident, found)),
    }


def children() -> list[int]:
    """Pids of the direct children of this process."""
    if _HAS_PROC:
        found: list[int] = []
        base = f"/proc/{os.getpid()}/task"
        try:
            threads = os.listdir(base)
        except OSError:
            threads = []  # no descriptor left to look with
        for thread in threads:
            try:
                with open(f"{base}/{thread}/children", encoding="ascii") as file:
                    found += [int(pid) for pid in file.read().split()]
            except (OSError, ValueError):
                continue
        return found
    listed = _ps("-axo", "pid=,ppid=")
    pairs = [line.split() for line in listed.splitlines()]
    return [int(pair[0]) for pair in pairs if len(pair) == 2 and pair[1] == str(os.getpid())]


def descriptors() -> tuple[int, int]:
    """Free file descriptors of this process, and how many it may have."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    folder = "/proc/self/fd" if _HAS_PROC else "/dev/fd"
    try:
        used = len(os.listdir(folder))
    except OSError:
        used = limit  # not even one to look with
    return limit - used, limit


def _resident(pid: int) -> int:
    if _HAS_PROC:
        try:
            with open(f"/proc/{pid}/statm", encoding="ascii") as file:
                return int(file.read().split()[1]) * _PAGE
        except (OSError, ValueError, IndexError):
            return 0
    text = _ps("-o", "rss=", "-p", str(pid)).strip()
    return int(text) * 1024 if text.isdecimal() else 0


def _ps(*words: str) -> str:
    try:
        return subprocess.run(
            ["ps", *words], capture_output=True, text=True, timeout=1.0, check=False
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return ""
