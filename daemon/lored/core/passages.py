"""How well a text fits a query, read from the text itself.

The index finds candidates by single words; what their texts say decides the order. Of each
text, or of the best stretch of a long one, these are measured, each from 0 to 1:

- `cover`: the share of the query's weight whose words stand in it (same stem);
- `near`: how closely words that are neighbours in the query stand together;
- `soft`: per query word the best likeness of any word of the text, so that `job` finds
  `career`; given from outside, since it needs vectors.

A word weighs by its rarity in the store (`weigh`). Pure.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from lored.core.tokens import Query, index_form

Stem = Callable[[Sequence[str]], list[str]]
"""The index's own stemmer: one stem per word (lower case)."""

STRETCH_CHARS: Final = 1_600
"""A longer text is judged by its best stretch of this length: about 250 words."""

STEP_CHARS: Final = 800
"""Stretches begin this far apart."""

READ_CHARS: Final = 64_000
"""What is read of a text: messages are no longer (`transcripts.records.MESSAGE_CHARS`)."""

NEAR_WORDS: Final = 5
"""Neighbours further apart than this count as apart."""

_WORD: Final = re.compile(r"[^\W_]+")
_ASCII_WORDS: Final = "".join(c.lower() if c.isalnum() else " " for c in map(chr, range(128)))
"""Makes of an ASCII text its words, lower case, with spaces between: a third of the time that
the expression takes."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A query made ready: per distinct stem its word as written (lower case), and its share
    of the query's weight (they sum to 1)."""

    stems: tuple[str, ...]
    words: tuple[str, ...]
    weights: tuple[float, ...]
    information: float
    """What the words weigh together, 1 = one word that stands in a single row."""


@dataclass(frozen=True, slots=True)
class Fit:
    """What was measured of one text."""

    cover: float
    near: float
    matched: tuple[str, ...]
    """Words of the text (and of what was read before it) that match, as written (lower case)."""
    start: int
    """Where in the text the measured stretch begins."""
    words: tuple[str, ...]
    """Distinct words of the stretch, lower case."""
    counts: dict[str, int]
    """How often each stem of the query stands in it."""
    length: int
    """Words of the stretch."""


def weigh(query: Query, stem: Stem, frequency: Callable[[str], int], rows: int) -> Asked:
    """``query`` with weights: ``frequency`` tells in how many of ``rows`` rows a stem stands."""
    words = [word.text.lower() for word in query.words]
    chosen: dict[str, str] = {}
    for word, one in zip(words, stem(words), strict=True):
        chosen.setdefault(one, word)
    rarity = []
    for one in chosen:
        count = min(frequency(one), rows)
        rarity.append(math.log(1 + (rows - count + 0.5) / (count + 0.5)))
    total = sum(rarity) or 1.0
    weights = tuple(one / total for one in rarity)
    return Asked(tuple(chosen), tuple(chosen.values()), weights, total / math.log(rows + 2))


def measure(
    asked: Asked, texts: Sequence[str], stem: Stem, heads: Sequence[str] | None = None
) -> list[Fit]:
    """The fit of each of ``texts`` (as stored, not their index form). ``heads``: the line that
    stands before each, empty for none; it counts where the stretch begins with the text."""
    if heads is None:
        heads = [""] * len(texts)
    read = [_read(asked, text, head) for text, head in zip(texts, heads, strict=True)]
    distinct = set[str]().union(*(words for _, words in read))
    weights = dict(zip(asked.stems, asked.weights, strict=True))
    alike = begin_alike(distinct, asked.stems)
    matching = {word: one for word, one in zip(alike, stem(alike), strict=True) if one in weights}
    return [_fit(asked, weights, matching, start, words) for start, words in read]


def begin_alike(words: Iterable[str], stems: Iterable[str]) -> list[str]:
    """Those of ``words`` (lower case) that may have one of ``stems`` by how they begin: nearly
    all others are seen to have none, without being stemmed.

    Porter keeps the first letter, and the second but for a `y` that becomes `i` (`eyed`, `ei`);
    only a stem of one letter may have lost it (`ies`, `i`). Letters with accents lose those.
    """
    two, one = set[str](), set[str]()
    for stem in stems:
        if len(stem) == 1:
            one.add(stem)
        else:
            two.add(stem[:2])
            two.update((stem[0] + "y",) if stem[1] == "i" else ())
    return [w for w in words if w[:2] in two or w[0] in one or not w.isascii()]


def _read(asked: Asked, text: str, head: str) -> tuple[int, list[str]]:
    """Where the stretch of a text begins that is measured, and its words, lower case."""
    start = 0
    if len(text) > STRETCH_CHARS:
        start = best_stretch(asked, text[:READ_CHARS])
        text = text[start : start + STRETCH_CHARS]
    if head and not start:
        text = f"{head}\n{text}"
    form = index_form(text)
    if form.isascii():
        return start, form.translate(_ASCII_WORDS).split()
    return start, _WORD.findall(form.lower())


def _fit(
    asked: Asked,
    weights: Mapping[str, float],
    matching: Mapping[str, str],
    start: int,
    words: list[str],
) -> Fit:
    """``weights``: by stem; ``matching``: the stem of each word that has one of these."""
    distinct = dict.fromkeys(words)
    matched = [word for word in distinct if word in matching]
    places: dict[str, list[int]] = {}
    there = sorted((place, matching[word]) for word in matched for place in _all(words, word))
    for place, one in there:
        places.setdefault(one, []).append(place)
    return Fit(
        cover=sum(weights[one] for one in places),
        near=_nearness(asked, places) if len(places) > 1 else 0.0,
        matched=tuple(matched),
        start=start,
        words=tuple(distinct),
        counts={one: len(found) for one, found in places.items()},
        length=len(words),
    )


def _all(words: list[str], word: str) -> Iterator[int]:
    """The places of ``word``; most words of a text are never looked at one by one."""
    place = -1
    for _ in range(words.count(word)):
        place = words.index(word, place + 1)
        yield place


def best_stretch(asked: Asked, text: str) -> int:
    """Where the stretch of ``text`` begins that holds most of the query's weight; the earliest
    of equals."""
    lower = text.lower()
    if len(lower) != len(text):  # a few letters change length: their places would be off
        lower = text
    # The first letters stand for the stem: exact enough to choose a stretch, and quick.
    sought = [
        (beginning, share)
        for word, share in zip(asked.words, asked.weights, strict=True)
        if (beginning := word[: max(3, len(word) - 3)]) in lower
    ]
    best, found = 0.0, 0
    for start in range(0, max(1, len(text) - STEP_CHARS) if sought else 0, STEP_CHARS):
        piece = lower[start : start + STRETCH_CHARS]
        weight = sum(share for beginning, share in sought if beginning in piece)
        if weight > best + 1e-9:
            best, found = weight, start
    return found


def _nearness(asked: Asked, places: dict[str, list[int]]) -> float:
    """Per pair of neighbours of the query, 1 when adjacent in the text, 1/d at distance d."""
    total = reached = 0.0
    for i in range(len(asked.stems) - 1):
        weight = asked.weights[i] + asked.weights[i + 1]
        total += weight
        left, right = places.get(asked.stems[i]), places.get(asked.stems[i + 1])
        if left and right:
            distance = _distance(left, right)
            if distance <= NEAR_WORDS:
                reached += weight / distance
    return reached / total if total else 0.0


def _distance(left: list[int], right: list[int]) -> int:
    """The smallest gap between two ascending lists of places."""
    i = j = 0
    best = 1 << 30
    while i < len(left) and j < len(right):
        gap = left[i] - right[j]
        best = min(best, abs(gap))
        if gap < 0:
            i += 1
        else:
            j += 1
    return max(best, 1)
