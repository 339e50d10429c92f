"""Words of texts and queries: what the text index is given and what it is asked.

FTS5's `unicode61` keeps letters and digits and splits at everything else. That leaves three
gaps, closed here by writing *more words* into the indexed form, never by a tokenizer of our
own, so that any SQLite can read the index:

1. Text without spaces (Chinese, Japanese, Korean) is one endless word. Each run becomes its
   overlapping pairs of characters, written as words; runs are set off from Latin letters
   next to them (`用Redis做` -> `用 Redis 做`). A lone character is asked for as the beginning
   of a pair, so the last one of each run is appended on its own.
2. `camelCase` is one word: its parts are appended. `foo_bar`, `POL-358`, `src/a.rs` are
   split by the tokenizer already; as a whole they are found as the phrase of their parts.
3. `c++`, `c#`, `.net` lose what makes them names: a word of letters is added for them.

A query is never passed on as written: its words are taken out here and each one is quoted
by `quote`, so no input can be an error of the query language, and none can be an operator.

Pure. Every function takes any text, lone surrogates and NULs included, and never raises.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final

from lored.core.clock import DAY, Micros, from_micros, parse_instant
from lored.core.stopwords import STOPWORDS

SHORT_MESSAGE_CHARS: Final = 400
"""Only messages shorter than this take words of the one before: on long ones that context
halved recall (research: BEAM R@10 56 -> 33)."""

CONTEXT_CHARS: Final = 300
"""How much of the end of the previous message a short one takes."""

QUERY_CHARS: Final = 4_000
"""What is read of a query; a pasted log would cost time and find nothing better."""

QUERY_WORDS: Final = 32
"""Content words of one query: cost grows with each, and later ones add nothing."""

CHAIN_WORDS: Final = 12
"""Words of a piece without spaces that are also asked for as one phrase (a path, a version)."""

CAMEL_PARTS: Final = 4_000
"""Parts of camelCase words appended to one text, a bound against generated code."""

_CJK: Final = (
    "\u3005-\u3007\u3040-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
    "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af"
)
_CJK_RUN: Final = re.compile(f"[{_CJK}]+")
_HAS_CJK: Final = re.compile(f"[{_CJK}]")
_WORD: Final = re.compile(r"[^\W_]+")
_PIECE: Final = re.compile(r"\S+")
_CAMEL: Final = re.compile(r"(?=[A-Za-z0-9]{0,60}[a-z0-9][A-Z])[A-Za-z0-9]{3,64}")
_HUMP: Final = re.compile(rb"[a-z0-9][A-Z]")
HUMP_AT: Final = 60
"""Characters of a word before its first hump, at most; random text has longer runs."""
CAMEL_CHARS: Final = 64
_TO_RUNS: Final = bytes(c if c < 128 and chr(c).isalnum() else 32 for c in range(256))
_CAMEL_PART: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_SIGN_NAME: Final = re.compile(r"(?<![\w+#.])(?:([cgCG])\+\+|([cfjCFJ])#|\.([nN][eE][tT])\b)")
_SIGN_NAMES: Final = ("c++", "g++", "c#", "f#", "j#", ".net")
_APOSTROPHE: Final = re.compile(r"['\u2019](s|t|d|m|ll|re|ve)\b", re.IGNORECASE)
_UNUSABLE: Final = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Word:
    """One thing to look for: the text, quoted as a whole by `quote`; with ``prefix`` also as
    the beginning of an indexed word (a lone CJK character begins its pairs)."""

    text: str
    prefix: bool = False


@dataclass(frozen=True, slots=True)
class Query:
    """What a query asks for: content words, and neighbours of two or more as phrases."""

    words: tuple[Word, ...]
    phrases: tuple[Word, ...]
    text: str
    """The query, clean (no NUL, no surrogates, bounded)."""


def clean(text: str) -> str:
    """``text`` that SQLite and UTF-8 take: NULs and lone surrogates become spaces."""
    if text.isascii():
        return text.replace("\0", " ") if "\0" in text else text
    return _UNUSABLE.sub(" ", text)


def index_form(text: str) -> str:
    """The words that the index is given for ``text``; see the module's rules 1 to 3."""
    text = clean(text)
    extra: list[str] = []
    if not text.isascii():
        text = _compatible(text)
        if _HAS_CJK.search(text):
            extra += dict.fromkeys(run[-1] for run in _CJK_RUN.findall(text) if len(run) > 1)
            text = _CJK_RUN.sub(_spread, text)
    extra += _extra_words(text)
    return f"{text}\n{' '.join(extra)}" if extra else text


def context_form(at: Micros | str | None, previous_text: str | None, text: str) -> str:
    """The words of the `ctx` column: the day, and for a short ``text`` the end of the message
    before it. ``at`` is microseconds UTC or ISO text; unusable or absent means no day."""
    parts = []
    micros = at if isinstance(at, int) else parse_instant(at)
    if micros is not None:
        parts.append(_day_words(micros // DAY))
    if previous_text and len(text) < SHORT_MESSAGE_CHARS:
        parts.append(index_form(previous_text[-CONTEXT_CHARS:]))
    return " ".join(parts)


@lru_cache(1024)
def _day_words(days: int) -> str:
    """The date that is so many days after the epoch, as a person would write it."""
    return from_micros(days * DAY).strftime("%-d %B %Y %A")


def parse_query(text: str) -> Query:
    """The content words and phrases of ``text``. Without any content word all words count."""
    text = clean(text[:QUERY_CHARS])
    if not text.isascii():
        text = _compatible(text)
    chains = [list(_chain(piece)) for piece in _PIECE.findall(_APOSTROPHE.sub(" ", text))]
    whole = [word for chain in chains for word in chain]
    flat = [part for word in whole for part in (word, *map(Word, _parts(word.text)))]
    content = [word for word in flat if word.text.lower() not in STOPWORDS]
    words = _distinct(content or flat)[:QUERY_WORDS]
    return Query(tuple(words), tuple(_phrases(chains, words)), text)


def quote(word: Word) -> str:
    """``word`` as a string of FTS5's query language, whatever it contains."""
    text = '"' + clean(word.text).replace('"', " ") + '"'
    return text + "*" if word.prefix else text


def any_of(words: Iterable[Word]) -> str:
    """An FTS5 expression that any of ``words`` satisfies; empty for none (ask nothing then)."""
    return " OR ".join(quote(word) for word in words)


def _compatible(text: str) -> str:
    """``text`` in form NFKC, which most text has: that is quickly seen."""
    if unicodedata.is_normalized("NFKC", text):
        return text
    return unicodedata.normalize("NFKC", text)


def _spread(match: "re.Match[str]") -> str:
    run = match[0]
    return " " + " ".join(run[i : i + 2] for i in range(max(1, len(run) - 1))) + " "


def _extra_words(text: str) -> Iterator[str]:
    """Parts of camelCase words and spelt-out names with signs, each word's parts once."""
    seen: set[str] = set()
    budget = CAMEL_PARTS
    for word in _camel_words(text):
        if word in seen:
            continue
        seen.add(word)
        parts = _CAMEL_PART.findall(word)
        if len(parts) < 2:
            continue
        budget -= len(parts)
        if budget < 0:
            break
        yield from parts
    lower = text.lower()
    if any(name in lower for name in _SIGN_NAMES):
        yield from dict.fromkeys(_spell(match) for match in _SIGN_NAME.finditer(text))


def _camel_words(text: str) -> Iterator[str]:
    """The camelCase words of ``text``, found by their humps: words without are most. Looked for in
    one byte a character, where everything but ASCII letters and digits is a space."""
    runs = text.encode("latin-1", "replace").translate(_TO_RUNS)
    end = 0
    for hump in _HUMP.finditer(runs):
        at = hump.start()
        if at < end:
            continue  # of the word before
        first = max(end, at - HUMP_AT - 1, 0)
        start = max(first, runs.rfind(b" ", first, at) + 1)
        end = runs.find(b" ", at)
        if end < 0:
            end = len(runs)
        if at - start <= HUMP_AT and end - start > 2:
            yield text[start : min(end, start + CAMEL_CHARS)]


def _spell(match: "re.Match[str]") -> str:
    if match[1]:
        return match[1].lower() + "plusplus"
    return match[2].lower() + "sharp" if match[2] else "dotnet"


def _chain(piece: str) -> Iterator[Word]:
    """The words of one piece between spaces, in order: `src/perms.rs` -> src, perms, rs."""
    spelt = _SIGN_NAME.search(piece)
    if spelt:
        yield Word(_spell(spelt))
        piece = piece[: spelt.start()] + " " + piece[spelt.end() :]
    for match in _WORD.finditer(piece):
        yield from _split(match[0])


def _split(word: str) -> Iterator[Word]:
    """A word without separators: CJK runs as pairs, the rest whole."""
    start = 0
    for run in _CJK_RUN.finditer(word):
        if run.start() > start:
            yield Word(word[start : run.start()])
        characters = run[0]
        if len(characters) == 1:
            yield Word(characters, prefix=True)
        else:
            for i in range(len(characters) - 1):
                yield Word(characters[i : i + 2])
        start = run.end()
    if start < len(word):
        yield Word(word[start:])


def _parts(word: str) -> list[str]:
    """The parts of a camelCase word; empty for any other word."""
    parts = _CAMEL_PART.findall(word) if _CAMEL.fullmatch(word) else []
    return parts if len(parts) > 1 else []


def _distinct(words: Iterable[Word]) -> list[Word]:
    return list({word.text.lower(): word for word in words}.values())


def _phrases(chains: list[list[Word]], words: list[Word]) -> Iterator[Word]:
    """Pairs of neighbouring content words, and every piece of several words as a whole."""
    wanted = {word.text.lower() for word in words}
    content = [w for chain in chains for w in chain if w.text.lower() in wanted]
    found: dict[str, None] = {}
    for left, right in pairwise(content):
        if left.text.lower() != right.text.lower():
            found[f"{left.text} {right.text}".lower()] = None
    for chain in chains:
        if 2 < len(chain) <= CHAIN_WORDS:
            found[" ".join(word.text for word in chain).lower()] = None
        for word in chain:
            if parts := _parts(word.text):
                found[" ".join(parts).lower()] = None
    for text in list(found)[: 2 * QUERY_WORDS]:
        yield Word(text)
