"""Become a child that cannot outlive the daemon: `python -m lored.tied PARENT_PID MODULE ...`.

Ties the process to its parent, then runs MODULE as `-m` would. The tie comes before everything
else that a child loads: a daemon killed while its child still imports numpy would otherwise
leave it behind for as long as that takes (seconds on a loaded machine).
"""

import os
import runpy
import signal
import sys
from typing import Final

PR_SET_PDEATHSIG: Final = 1
"""linux/prctl.h: the signal that the kernel sends when the parent ends."""


def command(module: str, *arguments: str) -> list[str]:
    """The command line that runs one of our modules as a tied child of this process."""
    start = [sys.executable, "-P", "-m", "lored.tied", str(os.getpid())]
    return [*start, module, *arguments]


def tie(parent: int) -> None:
    """Die with ``parent``, whatever kills it, or at once when it is gone already. Where the
    system cannot do that, the end of our input does, at the next frame."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's Ctrl-C is for the daemon
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit(0)


def main() -> None:
    """Tie, then be the module."""
    tie(int(sys.argv[1]))
    module = sys.argv[2]
    del sys.argv[1:3]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
