"""What a fact may be: bounds, kinds, states, and the form in which two texts are the same.

An exact duplicate is the same statement written again: same characters after Unicode
composition (NFC), with runs of blanks as one. Letter case and compatibility forms stay
apart: `10MB`/`10Mb` and `10²`/`102` are different statements. Near-duplicates are never
merged ("the limit is 100", "the limit is 200"); they are collisions.
"""

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from hashlib import blake2b
from typing import Final

from lore.errors import Invalid, Limit
from lore.wire.methods import KINDS
from lored.core.clock import Micros

TEXT_BYTES: Final = 65_536
"""One statement. Real facts have up to 1,500 characters; more is a document, not a fact."""

TAGS: Final = 50
"""Tags of one fact, and entities of one fact: a cluster's set must fit the bits of one integer
(`clusters.CORE_BITS`), and no real fact comes near."""

TAG_CHARS: Final = 200
FIELD_CHARS: Final = 2_000
"""`source`, `asserted_by`, `source_ref`, notes: labels and links."""

NOTE_KINDS: Final = ("note", "question", "meta", "outcome")
"""Episode types of Remind that state nothing which could be contradicted: kept and found like
facts, but never clustered or compared."""

DOCUMENT: Final = "markdown"
"""`source` of a fact that is a passage of a document."""

STORED_KINDS: Final = (*KINDS, *NOTE_KINDS)


class State(IntEnum):
    """Where a fact stands. Only `ACTIVE` facts are part of a current answer."""

    ACTIVE = 0
    SUPERSEDED = 1
    FORGOTTEN = 2
    EVICTED = 3
    """Dropped by Recursive's capacity rule; its own sentinel in facts.jsonl."""
    ERASED = 4
    """Forgotten hard: an empty shell that keeps the number from being used again."""


@dataclass(slots=True)
class Statement:
    """What a caller states, checked (`check`). Instants are microseconds UTC; ``valid_from``
    None means now, ``valid_to`` None means open."""

    text: str
    tags: list[str] = field(default_factory=list)
    entities: list[str] = field(default_factory=list)
    kind: str = "fact"
    source: str | None = None
    asserted_by: str | None = None
    source_ref: str | None = None
    valid_from: Micros | None = None
    valid_to: Micros | None = None
    session_id: str | None = None
    message_id: str | None = None


def check(statement: Statement) -> Statement:
    """Refuse what cannot be stored and tidy lists (blank entries and repeats removed).

    Raises `Limit` that names the bound, `Invalid` for empty or impossible values.
    """
    text = statement.text
    if not text.strip():
        raise Invalid("text is empty: state something")
    if "\0" in text:
        raise Invalid("text holds a NUL character")
    size = _size(text, "text")
    if size > TEXT_BYTES:
        raise Limit(
            f"text has {size} bytes, a fact may have {TEXT_BYTES}; "
            "state its parts one by one, or keep it in a file and refer to that by source_ref",
            {"limit": TEXT_BYTES, "bytes": size},
        )
    if statement.kind not in STORED_KINDS:
        raise Invalid(f"kind {statement.kind!r}: one of {', '.join(STORED_KINDS)}")
    statement.tags = tidy(statement.tags, "tags")
    statement.entities = tidy(statement.entities, "entities")
    for name in ("source", "asserted_by", "source_ref", "session_id", "message_id"):
        value = getattr(statement, name)
        if value is not None and len(value) > FIELD_CHARS:
            raise Limit(f"{name} has {len(value)} characters, at most {FIELD_CHARS} are kept")
        _size(value or "", name)
    return statement


def _size(text: str, name: str) -> int:
    """Bytes of a text; raises `Invalid` for half of a surrogate pair, which no file can hold."""
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        raise Invalid(f"{name} is not valid Unicode (a lone surrogate)") from None


def tidy(values: Iterable[str], name: str) -> list[str]:
    """Labels without blanks at the ends, empty ones and exact repeats; order and case kept."""
    kept = list(dict.fromkeys(stripped for value in values if (stripped := value.strip())))
    if len(kept) > TAGS:
        raise Limit(f"{len(kept)} {name}, a fact may have {TAGS}", {"limit": TAGS})
    for value in kept:
        if len(value) > TAG_CHARS:
            raise Limit(f"{name}: {value[:20]!r}... has more than {TAG_CHARS} characters")
        _size(value, name)
    return kept


def normal_form(text: str) -> str:
    """The form in which exact duplicates are equal: NFC, blanks collapsed."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def text_hash(text: str, key: bytes) -> int:
    """64 bits (signed, as SQLite stores them) of the normal form under the store's secret
    ``key``: finds duplicates, and recognises an erased text without holding it."""
    digest = blake2b(
        normal_form(text).encode("utf-8", "surrogatepass"), digest_size=8, key=key
    ).digest()
    return int.from_bytes(digest, "big", signed=True)


def union(first: Sequence[str], second: Iterable[str]) -> list[str]:
    """``first``, then what ``second`` adds: how a repeated statement merges labels."""
    return list(dict.fromkeys([*first, *second]))
