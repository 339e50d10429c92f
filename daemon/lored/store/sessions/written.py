"""Where a batch comes from, and what writing it did: what `writes.apply` takes and gives."""

from dataclasses import dataclass, field
from typing import NamedTuple


class FileRef(NamedTuple):
    """The file a batch comes from; ``seen_at``: its time of change, microseconds UTC."""

    path: str
    agent: str
    root: str
    seen_at: int


@dataclass(slots=True)
class Written:
    """What a batch did: touched sessions by row id (True: new), and counts."""

    sessions: dict[int, bool] = field(default_factory=dict)
    messages: int = 0
    actions: int = 0
    links: int = 0
    again: list[str] = field(default_factory=list)
    """Files that are to be read again from their start."""
