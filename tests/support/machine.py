"""What the machine is like now, for bars that are stated for a quiet one."""

import subprocess
import sys
import time

QUIET_SECONDS = 0.25
"""Start of Python with numpy and asyncio on a quiet machine of the reference kind."""


def slowness() -> float:
    """How much slower than a quiet machine this one starts Python now (at least 1)."""
    began = time.monotonic()
    subprocess.run([sys.executable, "-I", "-c", "import asyncio, numpy"], check=True)
    return max(1.0, (time.monotonic() - began) / QUIET_SECONDS)
