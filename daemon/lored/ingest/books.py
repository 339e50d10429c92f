"""What is known and collected of one session while a file is read: its book in a harvest."""

from dataclasses import dataclass, field
from typing import Any, Final

from lored.core.session_fields import instant
from lored.core.transcripts.records import Message, Record

ECHO_SECONDS: Final = 86_400
"""A prompt history is trusted to be the only trace of a session after this; before, its
transcript may just not be written or read yet."""


@dataclass(slots=True)
class Known:
    """What the daemon knows of a session: fold state, fields for rendering, the end of its
    last spoken message; ``barred``: forgotten or excluded, nothing of it is wanted; ``stored``:
    messages of it are there."""

    fold: dict[str, Any]
    fields: dict[str, Any]
    previous: str = ""
    barred: bool = False
    stored: bool = False


@dataclass(slots=True)
class Book:
    """A session of the file: what was known, its records since the last cut, its patch."""

    known: Known
    records: list[Record] = field(default_factory=list)
    patch: dict[str, Any] = field(default_factory=dict)
    last: bytes | None = None
    """Key of the latest message."""

    def spend(self, totals: dict[str, int]) -> dict[str, int]:
        """What was spent since the totals before; smaller ones than before count from nothing."""
        old = self.patch.get("tokens") or self.known.fields.get("tokens") or {}
        if any(totals.get(name, 0) < count for name, count in old.items()):
            old = {}
        more = {name: count - old.get(name, 0) for name, count in totals.items()}
        return {name: count for name, count in more.items() if count}


def is_echo(record: Message, known: Known, now: int) -> bool:
    """Whether a message repeats in another file what a transcript holds, or soon will. Such
    files (prompt histories) are only wanted for sessions whose transcript is gone."""
    if not record.extra.get("side_channel"):
        return False
    at = instant(record.at)
    return known.stored or at is None or now - at < ECHO_SECONDS * 1_000_000
