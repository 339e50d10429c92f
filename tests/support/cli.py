"""The command `lore` as a real process, with the private environment of a test."""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.daemon import environment

LORE = [sys.executable, "-P", "-m", "lore.cli.main"]
SECONDS = 60.0
"""For one command on a loaded machine; none takes more than a second on a quiet one."""


@dataclass
class Done:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """The answer's `data` of `--json`."""
        return json.loads(self.out)["data"]

    @property
    def error(self) -> dict[str, Any]:
        """The error of `--json`."""
        document = json.loads(self.err.strip().splitlines()[-1])
        assert document["schema"] == "lore.error/1"
        found: dict[str, Any] = document["error"]
        return found


class Lore:
    """Runs commands over one home."""

    def __init__(self, home: Path, cwd: Path | None = None) -> None:
        self.home, self.cwd = home, cwd or home / "user"
        self.cwd.mkdir(parents=True, exist_ok=True)

    def __call__(
        self,
        *words: str,
        code: int | None = 0,
        stdin: str = "",
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> Done:
        """Run `lore WORDS...`; ``code`` is the exit code that must come (None: any)."""
        done = subprocess.run(
            [*LORE, *words],
            input=stdin.encode("utf-8", "surrogateescape"),
            capture_output=True,
            env=environment(self.home, env),
            cwd=cwd or self.cwd,
            timeout=SECONDS,
            check=False,
        )
        result = Done(
            done.returncode,
            done.stdout.decode("utf-8", "surrogateescape"),
            done.stderr.decode("utf-8", "surrogateescape"),
        )
        if code is not None:
            assert result.code == code, f"lore {' '.join(words)}: {result}"
        return result

    def json(self, *words: str, code: int | None = 0, **more: Any) -> Any:
        """Run with `--json`; the data of the answer, whose schema must be the verb's."""
        done = self("--json", *words, code=code, **more)
        document = json.loads(done.out)
        assert document["schema"] == f"lore.{words[0]}/1"
        return document["data"]

    def on_terminal(self, *words: str, env: Mapping[str, str] | None = None) -> tuple[int, str]:
        """Run with a terminal as input, output and error; the exit code and what it showed."""
        ours, theirs = pty.openpty()
        full = environment(self.home, {"TERM": "xterm-256color", "COLUMNS": "100", **(env or {})})
        process = subprocess.Popen(
            [*LORE, *words], stdin=theirs, stdout=theirs, stderr=theirs, env=full, cwd=self.cwd
        )
        os.close(theirs)
        shown = bytearray()
        while True:
            try:
                piece = os.read(ours, 65_536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            shown += piece
        os.close(ours)
        return process.wait(SECONDS), shown.decode("utf-8", "replace")
