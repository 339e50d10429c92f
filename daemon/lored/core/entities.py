"""Entities: `type:name`, compared in normal form, shown as written.

The text is split at the first colon when what stands before it can be a type (a word that
begins with a letter) and what follows is not a second colon or `//`: so `std::vector`,
`12:30` and `https://host/x` are names. A name without a type is a `subject` (a URL: `url`).
Type and name are folded (NFKC, case, runs of blanks). Names that differ only in `-`, `_` and
blanks share a *bare* name, by which facts of different types find each other; they stay
different entities, as do `tool:redis` and `project:redis`.

A fact without entities is clustered by its tags, which then count as entities of type `tag`.
"""

import re
import unicodedata
from collections.abc import Iterable
from typing import Final, NamedTuple

from lore.errors import Invalid, Limit
from lored.core.facts import TAG_CHARS

DEFAULT_TYPE: Final = "subject"
TAG_TYPE: Final = "tag"
SUGGEST_WORDS: Final = 4
"""Longest known name, in words, that is looked for in a text."""

_TYPED: Final = re.compile(r"([A-Za-z][\w.-]{0,31})\s*:(?!:|//)\s*(.*)", re.DOTALL)
_BLANKS: Final = re.compile(r"[-_\s]+")
_PIECE: Final = re.compile(r"[^\s\"'`“”‘’()\[\]{}<>,;!?、。，；！？「」（）]+")
_CJK_LATIN: Final = re.compile(r"[\x21-\x7e]+")


class Entity(NamedTuple):
    """One entity: ``key`` is what is compared, ``bare`` its name across types, ``written`` what
    the caller wrote."""

    key: str
    bare: str
    written: str

    @property
    def type(self) -> str:
        """The part before the first colon of the key."""
        return self.key.split(":", 1)[0]


def _fold(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def bare_name(name: str) -> str:
    """A name as it is matched across types: folded, `-`, `_` and blanks alike."""
    return _BLANKS.sub("-", _fold(name)).strip("-") or _fold(name)


def parse(written: str) -> Entity:
    """Read an entity as written.

    Raises `Invalid` without a name, `Limit` when it is longer than `TAG_CHARS`.
    """
    text = written.strip()
    match = _TYPED.fullmatch(text)
    if match:
        kind, name = _fold(match[1]), _fold(match[2])
    else:
        kind, name = ("url" if "://" in text else DEFAULT_TYPE), _fold(text)
    if not name:
        raise Invalid(f"entity {written!r} has no name: write type:name, for example tool:redis")
    if len(name) > TAG_CHARS:
        raise Limit(f"entity {text[:20]!r}... has more than {TAG_CHARS} characters")
    return Entity(f"{kind}:{name}", bare_name(name), text)


def parse_all(written: Iterable[str]) -> list[Entity]:
    """Entities in order, the first spelling of each kept."""
    found: dict[str, Entity] = {}
    for text in written:
        entity = parse(text)
        found.setdefault(entity.key, entity)
    return list(found.values())


def of_tag(tag: str) -> Entity:
    """A tag in the place of an entity."""
    name = _fold(tag)
    return Entity(f"{TAG_TYPE}:{name}", bare_name(name), tag.strip())


def of_tags(tags: Iterable[str]) -> list[Entity]:
    """Tags in the place of entities, the first spelling of each kept."""
    found: dict[str, Entity] = {}
    for tag in tags:
        entity = of_tag(tag)
        found.setdefault(entity.key, entity)
    return list(found.values())


def comparison_set(entities: list[Entity], tags: list[Entity]) -> list[Entity]:
    """What a fact is clustered by: its entities, else its tags, else nothing."""
    return entities or tags


def possible_names(text: str) -> list[str]:
    """Bare names that ``text`` could mention, longest first, without repeats: every run of up
    to `SUGGEST_WORDS` pieces, pieces without punctuation at their ends, Latin parts of CJK."""
    pieces: list[str] = []
    for raw in _PIECE.findall(text):
        piece = raw.strip(".:…·*#")
        pieces.append(piece)
        if not piece.isascii():
            pieces += [run for run in _CJK_LATIN.findall(piece) if run != piece]
    found: dict[str, None] = {}
    for width in range(SUGGEST_WORDS, 0, -1):
        for start in range(len(pieces) - width + 1):
            name = bare_name(" ".join(pieces[start : start + width]))
            if name:
                found[name] = None
    return list(found)
