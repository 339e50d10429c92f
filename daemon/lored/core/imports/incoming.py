"""What any other memory becomes before it is stated here. Pure values."""

from dataclasses import dataclass, field

from lored.core.clock import Micros
from lored.core.facts import Statement


@dataclass(slots=True)
class Incoming:
    """One statement of another memory. ``key`` is its id there, ``uid`` ours (the same at every
    import, so that importing twice adds nothing), ``superseded_by`` another key or a sentinel
    of `core.jsonl`, ``number`` that of its F-number there, where it has one."""

    key: str
    uid: str
    statement: Statement
    created_at: Micros | None = None
    last_accessed: Micros | None = None
    access_count: int = 0
    superseded_by: str | None = None
    number: int | None = None


@dataclass(slots=True)
class Contradiction:
    """An open conflict of the other memory, by its keys."""

    fact_a: str
    fact_b: str
    severity: str
    note: str | None = None


@dataclass(slots=True)
class Harvest:
    """All of one import. ``problems`` are sentences about what could not be used."""

    format: str
    facts: list[Incoming] = field(default_factory=list)
    conflicts: list[Contradiction] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
