"""Tokens spent on a day, kept in a small file so that a restart opens no new budget."""

import os
import tempfile
from pathlib import Path

import orjson
import structlog

log = structlog.get_logger()


class Spending:
    """The account of one budget. `load` and `save` touch the disk: call them in a thread."""

    def __init__(self, path: str, daily: int) -> None:
        self._path = Path(path)
        self._daily = daily
        self._day = ""
        self._spent = 0

    def load(self) -> None:
        """Read the file; a missing or broken one means nothing was spent."""
        try:
            value = orjson.loads(self._path.read_bytes())
            day, spent = value["day"], value["spent"]
        except (OSError, ValueError, KeyError, TypeError):
            return
        if isinstance(day, str) and isinstance(spent, int) and spent >= 0:
            self._day, self._spent = day, spent

    def save(self) -> None:
        """Write the file anew (temp file and rename, mode 0600)."""
        body = orjson.dumps({"day": self._day, "spent": self._spent})
        try:
            with tempfile.NamedTemporaryFile(dir=self._path.parent, delete=False) as file:
                file.write(body)
            os.replace(file.name, self._path)
        except OSError as error:
            log.warning("spending not written", error=str(error), path=str(self._path))

    def today(self, day: str) -> int:
        """What was spent on ``day`` (a calendar day, `2026-05-28`)."""
        return self._spent if day == self._day else 0

    def allows(self, day: str, cost: int) -> bool:
        """Whether ``cost`` more tokens fit into the budget of ``day``."""
        return self.today(day) + cost <= self._daily

    def add(self, day: str, tokens: int) -> None:
        """Count tokens (negative: an estimate was too high)."""
        self._spent = max(self.today(day) + tokens, 0)
        self._day = day
