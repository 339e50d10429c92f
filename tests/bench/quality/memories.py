"""The form that all data sets are brought to: memories of sessions, and questions with gold."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Turn:
    """One message: key within its memory, who speaks (`user` or `assistant`), instant in
    microseconds or None."""

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
    """What is asked and which turns and sessions hold the answer (none: unanswerable)."""

    text: str
    category: str
    turns: list[str] = field(default_factory=list)
    sessions: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Memory:
    """What one user has said and done, and what is asked about it."""

    name: str
    sessions: list[Session]
    questions: list[Question]
    people: tuple[str, ...] = ()
    """Names of those who speak, where the data knows them."""
    projects: tuple[str, ...] = ()
