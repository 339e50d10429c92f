"""Builds shim.c, the machine with faults, once per run of the tests."""

import atexit
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest


@functools.cache
def library() -> str:
    """Path of the built library; skips the test where there is no compiler or no Linux."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("needs Linux and a C compiler")
    folder = tempfile.mkdtemp(prefix="lr", dir="/tmp")
    atexit.register(shutil.rmtree, folder, True)
    target = f"{folder}/shim.so"
    source = Path(__file__).with_name("shim.c")
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-o", target, str(source), "-ldl"], check=True
    )
    return target


def faulty(root: Path, **switches: Path) -> dict[str, str]:
    """Environment of a process with faults: ``shadow``, ``clock``, ``no_sync`` (see shim.c);
    syncs count below ``root``."""
    env = {"LD_PRELOAD": library(), "SHIM_ROOT": os.path.realpath(root)}
    return env | {f"SHIM_{name.upper()}": str(path) for name, path in switches.items()}
