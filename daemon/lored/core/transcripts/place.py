"""One kind of root of an agent."""

from dataclasses import dataclass
from typing import Final

FILE: Final = "@file"
"""As the path appended to a variable: its value is the file itself, the root its folder."""


@dataclass(frozen=True, slots=True)
class Place:
    """One kind of root of an agent.

    `default`: below the home directory. `variables`: (name, path appended to its value), the
    first that is set wins. `transcripts`: regular expression -> parser name (see
    `lored.core.transcripts`). `sidecars`: files that say something about a session.
    """

    agent: str
    default: str
    patterns: tuple[str, ...]
    transcripts: tuple[tuple[str, str], ...]
    sidecars: str | None = None
    variables: tuple[tuple[str, str], ...] = ()
