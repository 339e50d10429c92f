"""The bar of long operations: on a terminal, without rich, in a pipe, and after Ctrl-C."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lore.cli import progress
from support.cli import LORE, SECONDS, Lore
from support.daemon import RunningDaemon, environment

OPERATION: dict[str, Any] = {
    "operation": "redact",
    "own": True,
    "client": "lore",
    "step": "looking for secrets",
    "unit": "rows",
    "done": 12_000,
    "total": 50_000,
    "rate": 3_400.0,
    "eta_s": 11.2,
}
INDEX = {
    "state": "indexing",
    "files_done": 3,
    "files_total": 10,
    "bytes_done": 1_500_000,
    "bytes_total": 6_000_000,
    "rate_bytes": 900_000,
    "eta_s": 5.0,
}


def test_figures_say_how_far_how_fast_and_how_long() -> None:
    assert progress.figures(OPERATION) == "12,000 of 50,000 rows, 3,400/s, 11 s left"
    assert progress.figures(INDEX) == "3 of 10 files, 1.5 MB of 6.0 MB, 900.0 kB/s, 5.0 s left"
    unknown = {"operation": "import", "unit": "files", "done": 2}
    assert progress.figures(unknown) == "2 files"
    assert progress.progress_line(OPERATION) == (
        "redact: looking for secrets, 24%, 12,000 of 50,000 rows, 3,400/s, 11 s left (for lore)"
    )
    ended = {**OPERATION, "outcome": "stopped", "seconds": 3.0}
    assert progress.progress_line(ended).endswith("stopped, after 3.0 s (for lore)")


def test_a_pipe_gets_whole_lines_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with progress.Progress("redact") as bar:
        bar.hear(OPERATION)
    assert capsys.readouterr().err == ""  # too early
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    with progress.Progress("redact") as bar:
        bar.hear({**OPERATION, "own": None})  # another client's
        bar.hear(OPERATION)
    told = capsys.readouterr().err
    assert told == ("redact: looking for secrets: 24%, 12,000 of 50,000 rows, 3,400/s, 11 s left\n")
    with progress.Progress("redact", quiet=True) as bar:
        bar.hear(OPERATION)
    assert capsys.readouterr().err == ""


NO_RICH = """
import sys
sys.modules["rich.console"] = None
from lore.cli import progress
progress.PATIENCE_SECONDS = 0.0
with progress.Progress("redact") as bar:
    bar.show({"operation": "redact", "unit": "rows", "done": 5, "total": 20})
"""


def on_terminal(command: list[str], home: Path, interrupt_at: bytes = b"") -> tuple[int, str]:
    """Run on a terminal of 60 columns; Ctrl-C when ``interrupt_at`` is seen."""
    ours, theirs = pty.openpty()
    env = environment(home, {"TERM": "xterm", "COLUMNS": "60"})
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=env, start_new_session=True
    )
    os.close(theirs)
    shown, sent = b"", not interrupt_at
    while True:
        try:
            piece = os.read(ours, 65_536)
        except OSError:
            break
        if not piece:
            break
        shown += piece
        if not sent and interrupt_at in shown:
            process.send_signal(2)
            sent = True
    os.close(ours)
    return process.wait(SECONDS), shown.decode("utf-8", "replace")


def test_without_rich_one_line_is_drawn_over_and_taken_away(home: Path) -> None:
    code, shown = on_terminal([sys.executable, "-P", "-c", NO_RICH], home)
    assert code == 0
    drawn = shown.split("\r\x1b[K")
    assert drawn[1].startswith("redact [######..................]  25% 5 of 20 rows")
    assert len(drawn[1]) < 60 and drawn[2] == ""


def test_ctrl_c_says_what_is_left_and_how_to_go_on(daemon: RunningDaemon, home: Path) -> None:
    file = home / "many.jsonl"
    facts = ({"id": f"F{n}", "text": f"service {n} listens on {n}"} for n in range(1, 8_001))
    file.write_text("".join(json.dumps(fact) + "\n" for fact in facts))
    command = [*LORE, "import", str(file), "--global"]
    code, shown = on_terminal(command, home, b"taking in")
    assert code == 130 and "Traceback" not in shown
    assert "lore: stopped; nothing was taken in (or all, at the very end)" in shown
    lore = Lore(home)
    done = lore("import", str(file), "--global", "--json")
    # A machine so fast that it was at the end is told by the second run.
    assert done.err == "" and (done.data["created"], done.data["already_there"]) in (
        (8_000, 0),
        (0, 8_000),
    )
    assert lore.json("facts", "--global")["total"] == 8_000
