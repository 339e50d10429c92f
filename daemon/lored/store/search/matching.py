"""Which words of a query are looked up in a text index, and how common they are.

The cost of a query is the number of rows of its words (`store/search/postings.py`). `plan`
keeps the rarest words within a budget of rows; of the rarest two, one that is beyond it is
looked up in the newest rows only. A word left out still counts where it stands in a text
that is read (`core/passages.py`).
"""

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from lored.core.passages import Asked, weigh
from lored.core.tokens import Query, Word
from lored.store.driver import Connection
from lored.store.search.stemming import stem

KEPT_WORDS: Final = 2
"""Words looked up however common they are, in the newest rows: the rarest ones."""

MEAN_WORDS: Final = 40
"""Words of a message, roughly: turns a share of messages into a share of words."""

CACHED_FREQUENCIES: Final = 20_000

STALE_SHARE: Final = 0.05
"""A frequency counted when the index was smaller by this share is counted again: counting a
common word reads all its rows."""


@dataclass(frozen=True, slots=True)
class Index:
    """The table of one text index, and the rows that one query may read of it: at least
    ``budget``, and of a large one the part ``share``."""

    table: str
    budget: int
    share: float = 0.0


FACTS: Final = Index("fact_stems", 12_000)
"""2 ms on one core: recall of facts has 5 ms (design/trust.md)."""

MESSAGES: Final = Index("message_stems", 25_000, 0.06)
"""4 ms at 150,000 messages, 15 ms at 1,500,000: recall of episodes has 30 and 100 ms. Twice
as many found nothing more (LoCoMo among 150,000 other messages: R@10 70.9 and 70.6)."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A query made ready for one index."""

    asked: Asked
    words: tuple[tuple[Word, int], ...]
    """Words to look up, each with the oldest row to look at."""
    phrases: tuple[Word, ...]
    left_out: tuple[str, ...]
    """Words that are too common in this store to be searched by."""
    rows: int


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
    """Weigh the words of ``query`` by this store and choose those to look up."""
    rows = size(conn, index)
    store = conn.execute("SELECT value FROM meta WHERE key = 'uuid'").fetchone()[0]
    budget = max(index.budget, int(index.share * rows))

    def count(term: str) -> int:
        return _frequencies.get(conn, store, index, term, rows)

    asked = weigh(query, stem, count, rows)
    ordered = sorted(
        (
            (count(stem([word.text.lower()])[0]), place, word)
            for place, word in enumerate(query.words)
        ),
        key=lambda item: item[:2],
    )
    kept: list[tuple[Word, int]] = []
    left_out: list[str] = []
    left = budget
    for cost, _, word in ordered:
        if cost <= left:
            kept.append((word, 0))
            left -= cost
        elif len(kept) < KEPT_WORDS:
            kept.append((word, rows - rows * max(left, budget // 2) // max(cost, 1)))
            left = 0
        else:
            left_out.append(word.text)
    phrases: list[Word] = []
    left = budget
    for word in query.phrases:
        # The rows of the rarer word are visited, the index skips along those of the other.
        left -= min((count(term) for term in stem(word.text.lower().split())), default=0)
        if left < 0:
            break
        phrases.append(word)
    return Plan(asked, tuple(kept), tuple(phrases), tuple(left_out), rows)


def frequency_share(conn: Connection, index: Index) -> Callable[[str], float]:
    """A function that tells which part of all words of the store a word is, about."""
    rows = max(size(conn, index), 1)
    store = conn.execute("SELECT value FROM meta WHERE key = 'uuid'").fetchone()[0]

    def share(word: str) -> float:
        stems = stem([word])
        return _frequencies.get(conn, store, index, stems[0], rows) / rows / MEAN_WORDS

    return share
