"""Parsers under coverage-guided fuzzing (`guided.py`), where atheris is installed."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from core.transcripts.test_fuzz import DOCUMENTS, LINES

SECONDS = 60 if os.environ.get("LORE_FULL") == "1" else 2
NAMES = sorted({*LINES, *(name for name, _, _ in DOCUMENTS)})
WANTED = NAMES if os.environ.get("LORE_FULL") == "1" else ["claude-code", "codex", "recursive"]


@pytest.mark.skipif(
    importlib.util.find_spec("atheris") is None,
    reason="pip install atheris for coverage-guided fuzzing",
)
@pytest.mark.timeout(SECONDS + 120)
@pytest.mark.parametrize("name", WANTED)
def test_guided(name: str, tmp_path: Path) -> None:
    script = Path(__file__).with_name("guided.py")
    done = subprocess.run(
        [sys.executable, str(script), name, str(SECONDS)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=SECONDS + 100,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-2_000:]
    assert not list(tmp_path.glob("crash-*"))
