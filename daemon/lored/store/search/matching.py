"""Which rows of a text index have the words of a query, and how well by the index alone.

Score = bm25(1, .5) over `(text, ctx)` of the stems, plus .6 of the same for neighbouring
words as phrases (research/retrieval 3.2); larger is better. FTS5 visits every row that has
any of the words, twice, so the cost of a query is the number of such rows: `choose` keeps
the rarest words within a budget. A word of every tenth message separates little and costs
most; its share of the order comes back when the texts themselves are read
(`core/passages.py`).
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from lored.core.passages import Asked, weigh
from lored.core.tokens import Query, Word, any_of
from lored.store.driver import Connection, sqlite

PHRASE_WEIGHT: Final = 0.6
"""Weight of phrases beside single words (research/retrieval 3.2, tricks)."""

KEPT_WORDS: Final = 2
"""Words kept however common they are: the rarest ones."""

MEAN_WORDS: Final = 40
"""Words of a message, roughly: turns a share of messages into a share of words."""

CACHED_STEMS: Final = 50_000
"""Stems remembered, about 6 MB; then all are dropped."""

CACHED_FREQUENCIES: Final = 20_000

STALE_SHARE: Final = 0.05
"""A frequency counted when the index was smaller by this share is counted again: counting a
common word reads all its rows."""


@dataclass(frozen=True, slots=True)
class Index:
    """The tables of one text index."""

    table: str
    budget: int
    """Rows that one query may touch by single words, and by phrases."""


FACTS: Final = Index("fact_stems", 8_000)
"""3 ms of FTS5 on one core: recall of facts has 5 ms (design/trust.md)."""

MESSAGES: Final = Index("message_stems", 40_000)
"""20 ms of FTS5 on one core: recall of episodes has 30 ms (design/trust.md)."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A query made ready for one index."""

    asked: Asked
    words: tuple[Word, ...]
    phrases: tuple[Word, ...]
    left_out: tuple[str, ...]
    """Words that are too common in this store to be searched by."""


class Stemmer(threading.local):
    """FTS5's own porter, reached through a table in memory, and what it said; one a thread."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._connection = sqlite.connect(":memory:", isolation_level=None)
        self._connection.execute(
            "CREATE VIRTUAL TABLE stems USING fts5("
            'word, tokenize="porter unicode61 remove_diacritics 2")'
        )
        self._connection.execute("CREATE VIRTUAL TABLE terms USING fts5vocab(stems, instance)")

    def __call__(self, words: Sequence[str]) -> list[str]:
        """The stem of each word (letters and digits, lower case)."""
        known = self._known
        new = [word for word in dict.fromkeys(words) if word not in known]
        if new:
            if len(known) + len(new) > CACHED_STEMS:
                known.clear()
                new = list(dict.fromkeys(words))
            self._learn(new)
        return [known[word] for word in words]

    def _learn(self, words: list[str]) -> None:
        run = self._connection.execute
        run("INSERT INTO stems(rowid, word) VALUES(1, ?)", (" ".join(words),))
        found = [row[0] for row in run("SELECT term FROM terms ORDER BY offset")]
        run("DELETE FROM stems")
        if len(found) == len(words):
            self._known.update(zip(words, found, strict=True))
            return
        # A word that FTS5 splits (a letter unknown to its Unicode tables) shifts the rest.
        for word in words:
            run("INSERT INTO stems(rowid, word) VALUES(1, ?)", (word,))
            row = run("SELECT term FROM terms ORDER BY offset LIMIT 1").fetchone()
            run("DELETE FROM stems")
            self._known[word] = row[0] if row else word


stem = Stemmer()


class _Frequencies:
    """In how many rows a stem stands, by store and index, counted when the store had a size."""

    def __init__(self) -> None:
        self._counts: OrderedDict[tuple[str, str, str], tuple[int, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, conn: Connection, store: str, index: Index, term: str, rows: int) -> int:
        key = (store, index.table, term)
        with self._lock:
            known = self._counts.get(key)
        if known is not None and abs(rows - known[1]) <= STALE_SHARE * known[1]:
            return known[0] * rows // max(known[1], 1)
        row = conn.execute(f"SELECT doc FROM {index.table}_df WHERE term = ?", (term,)).fetchone()
        count = int(row[0]) if row else 0
        with self._lock:
            self._counts[key] = (count, rows)
            if len(self._counts) > CACHED_FREQUENCIES:
                self._counts.popitem(last=False)
        return count


_frequencies = _Frequencies()


def size(conn: Connection, index: Index) -> int:
    """About how many rows the index has (the largest rowid: rows are seldom removed)."""
    row = conn.execute(f"SELECT id FROM {index.table}_docsize ORDER BY id DESC LIMIT 1").fetchone()
    return int(row[0]) if row else 0


def plan(conn: Connection, index: Index, query: Query) -> Plan:
    """Weigh the words of ``query`` by this store and choose those to search by."""
    rows = size(conn, index)
    store = conn.execute("SELECT value FROM meta WHERE key = 'uuid'").fetchone()[0]

    def count(term: str) -> int:
        return _frequencies.get(conn, store, index, term, rows)

    asked = weigh(query, stem, count, rows)
    ordered = sorted(
        ((_cost(word, count), place, word) for place, word in enumerate(query.words)),
        key=lambda item: item[:2],
    )
    kept: list[Word] = []
    left_out: list[str] = []
    total = 0
    for cost, _, word in ordered:
        if len(kept) < KEPT_WORDS or total + cost <= index.budget:
            kept.append(word)
            total += cost
        else:
            left_out.append(word.text)
    phrases: list[Word] = []
    total = 0
    for word in query.phrases:
        # A phrase visits the rows of its words; the index skips along the rarer one.
        total += min((count(term) for term in stem(word.text.lower().split())), default=0)
        if total > index.budget:
            break
        phrases.append(word)
    return Plan(asked, tuple(kept), tuple(phrases), tuple(left_out))


def frequency_share(conn: Connection, index: Index) -> Callable[[str], float]:
    """A function that tells which part of all words of the store a word is, about."""
    rows = max(size(conn, index), 1)
    store = conn.execute("SELECT value FROM meta WHERE key = 'uuid'").fetchone()[0]

    def share(word: str) -> float:
        stems = stem([word])
        return _frequencies.get(conn, store, index, stems[0], rows) / rows / MEAN_WORDS

    return share


def _cost(word: Word, count: Callable[[str], int]) -> int:
    return count(stem([word.text.lower()])[0])


def match(
    conn: Connection,
    index: Index,
    plan: Plan,
    limit: int,
    where: str = "",
    values: Sequence[object] = (),
) -> dict[int, float]:
    """The ``limit`` best rows with their scores. ``where``: more SQL on `rowid`, beginning
    with AND; rows that it refuses are not scored."""
    scores: dict[int, float] = {}
    for words, weight in ((plan.words, 1.0), (plan.phrases, PHRASE_WEIGHT)):
        if words:
            for row, score in conn.execute(
                f"SELECT rowid, -bm25({index.table}, 1.0, 0.5) AS score FROM {index.table}"
                f" WHERE {index.table} MATCH ? {where} ORDER BY score DESC LIMIT ?",
                (any_of(words), *values, limit),
            ):
                scores[row] = scores.get(row, 0.0) + weight * score
    return scores
