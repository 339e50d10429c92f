"""The form that all data sets are brought to: memories of sessions, and questions with gold."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Turn:
    """One message: key within its memory, who speaks (`user`, `assistant`, `tool`, `summary` or
    `context`), instant in microseconds or None."""

    key: str
    role: str
    text: str
    at: int | None = None


@dataclass(slots=True)
class Session:
    """One conversation in order."""

    key: str
    turns: list[Turn]


@dataclass(slots=True)
class Question:
    """What is asked and which turns and sessions hold the answer (none: unanswerable).

    ``any_of``: each gold turn answers by itself; else all of them are wanted. ``half``: `tune`
    or `report` where the set itself says so.
    """

    text: str
    category: str
    turns: list[str] = field(default_factory=list)
    sessions: list[str] = field(default_factory=list)
    any_of: bool = False
    half: str = ""


@dataclass(slots=True)
class Memory:
    """What one user has said and done, and what is asked about it."""

    name: str
    sessions: list[Session]
    questions: list[Question]
    people: tuple[str, ...] = ()
    """Names of those who speak, where the data knows them."""
    projects: tuple[str, ...] = ()

    @property
    def session_of(self) -> dict[str, str]:
        """Session by turn key."""
        return {turn.key: session.key for session in self.sessions for turn in session.turns}
