"""The rows of a text index that have the words of a query, and their BM25 score.

FTS5's own `bm25()` looks up the length of every row that has any of the words: 1 to 2 us a
row. Reading only which rows have a word costs .15 us, so that is what is asked of the index:
one list of rows a word. The score (k1 1.2, b .75) is computed from these lists in numpy, in
three steps, each exact about more:

1. all rows: the sum of the idf of their words, as if each stood once in a row of mean length;
2. the best of those: with the length of the row (`lengths`);
3. those whose texts were read: with the number of times that a word stands there (`exact`).

A word that stands in the context column alone counts less; neighbouring words are looked up
as phrases too and count .6 (research/retrieval 3.2).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lored.core.ranking import Floats
from lored.core.tokens import Word, quote
from lored.store.driver import Connection
from lored.store.search import known_rows
from lored.store.search.matching import Index, Plan
from lored.store.search.stemming import stem

Rows = known_rows.Ids
Ids = NDArray[np.int64]

K1: Final = 1.2
B: Final = 0.75
"""BM25's constants, those of FTS5 (measured with them)."""

CONTEXT_WEIGHT: Final = 0.7
"""A word that stands in the context column alone. Of .35, .5 and .7 the best on LoCoMo
conversations 0-4, and on the others."""

PHRASE_WEIGHT: Final = 0.6
"""Weight of phrases beside single words (research/retrieval 3.2, tricks)."""

_known = known_rows.KnownRows()

SPAN_ROWS: Final = 1 << 15
"""Rows added up at a time, 256 KB."""

LENGTHS_MOST: Final = 200
"""Rows whose length is looked up to choose candidates; 3 us each. With 500 nothing more was
found."""


@dataclass(slots=True)
class Postings:
    """The rows that have each word and phrase, ascending, with the word's idf."""

    known: bool = False
    """Whether any word stands anywhere in the store, allowed or not."""

    words: list[tuple[str, float, Rows]] = field(default_factory=list)
    """(stem, idf, rows)."""
    phrases: list[tuple[float, Rows]] = field(default_factory=list)

    def best(self, limit: int, lengths: Callable[[Ids], Floats] | None = None) -> dict[int, float]:
        """The ``limit`` best rows as if each word stood once in a row, with their scores; of
        equal ones the newest.

        ``lengths``: words of rows in units of the mean length; None = all alike.
        """
        lists = [(idf, rows) for _, idf, rows in self.words]
        lists += [(PHRASE_WEIGHT * idf, rows) for idf, rows in self.phrases]
        lists = [(idf, rows) for idf, rows in lists if len(rows)]
        if not lists:
            return {}
        most = max(limit, LENGTHS_MOST if lengths is not None else 0)
        found, scores = sums(lists, most)
        if lengths is not None:
            found, scores = _first(found, scores, max(LENGTHS_MOST, limit))
            scores = scores * (K1 + 1) / (1 + _norm(lengths(found)))
        found, scores = _first(found, scores, limit)
        return dict(zip(found.tolist(), scores.tolist(), strict=True))

    def exact(
        self, rows: Sequence[int], counts: Sequence[Mapping[str, int]], lengths: Floats
    ) -> Floats:
        """BM25 of ``rows`` with the true ``counts`` of stems in their texts; ``lengths`` in
        units of the mean. A word without a count that has the row stands in its context."""
        wanted = np.array(rows, dtype=np.int64)
        norm = _norm(lengths)
        total = np.zeros(len(wanted))
        for one, idf, has in self.words:
            found = np.array([float(c.get(one, 0)) for c in counts])
            found = np.where((found == 0) & _among(wanted, has), CONTEXT_WEIGHT, found)
            total += idf * found * (K1 + 1) / (found + norm)
        for idf, has in self.phrases:
            total += PHRASE_WEIGHT * idf * _among(wanted, has) * (K1 + 1) / (1 + norm)
        return total


def postings(
    conn: Connection, index: Index, plan: Plan, allowed: Callable[[Rows], Rows] | None = None
) -> Postings:
    """Look up the words and phrases of ``plan``; ``allowed`` keeps the rows that may be found."""
    found = Postings()
    state = known_rows.state(conn)

    def look_up(word: Word, above: int) -> Rows:
        expression = quote(word)
        read = partial(_rows, conn, index, expression)
        return _known.get(state, expression, above, plan.rows, read)

    for word, oldest in plan.words:
        rows = look_up(word, oldest)
        share = 1 - oldest / max(plan.rows, 1)
        idf = _idf(plan.rows, int(len(rows) / max(share, 1e-6)))
        kept = rows if allowed is None else allowed(rows)
        found.known |= len(rows) > 0
        found.words.append((stem([word.text.lower()])[0], idf, kept))
    for word in plan.phrases:
        rows = look_up(word, 0)
        idf = _idf(plan.rows, len(rows))
        found.phrases.append((idf, rows if allowed is None else allowed(rows)))
    return found


def lengths(conn: Connection, index: Index, rows: Ids) -> Floats:
    """Words of each row, text and context, in units of the mean; 1 where it is not indexed."""
    row = conn.execute(f"SELECT block FROM {index.table}_data WHERE id = 1").fetchone()
    counted, *totals = _varints(row[0]).tolist() if row and row[0] else [0]
    mean = sum(totals) / counted if counted else 0.0
    result = np.ones(len(rows))
    if not mean:
        return result
    listed = "[" + ",".join(map(str, rows.tolist())) + "]"
    found = conn.execute(
        f"SELECT id, sz FROM {index.table}_docsize WHERE id IN (SELECT value FROM json_each(?))",
        (listed,),
    ).fetchall()
    if found:
        sizes = _varints(b"".join(size for _, size in found)).reshape(len(found), -1).sum(axis=1)
        place = {row: i for i, row in enumerate(rows.tolist())}
        result[[place[number] for number, _ in found]] = sizes / mean
    return result


def _rows(conn: Connection, index: Index, expression: str, oldest: int) -> Rows:
    """Ascending rowids above ``oldest`` that match; handed over as one text, which is cheaper
    than rows and leaves Python's lock alone."""
    text = conn.execute(
        f"SELECT group_concat(rowid) FROM {index.table} WHERE {index.table} MATCH ? AND rowid > ?",
        (expression, oldest),
    ).fetchone()[0]
    return np.fromstring(text or "", dtype=np.int32, sep=",")


def _idf(rows: int, count: int) -> float:
    """BM25's, never below a little: a word of every second row says next to nothing."""
    return max(math.log((rows - count + 0.5) / (count + 0.5)) if count < rows else 0.0, 1e-6)


def _norm(lengths: Floats) -> Floats:
    return K1 * (1 - B + B * lengths)


def _first(rows: Ids, scores: Floats, limit: int) -> tuple[Ids, Floats]:
    """The ``limit`` best of ``rows`` with their scores, best first, of equals the newest."""
    if len(rows) > limit:
        kept = np.flatnonzero(scores >= np.partition(scores, -limit)[-limit])
        rows, scores = rows[kept], scores[kept]
    order = np.lexsort((-rows, -scores))[:limit]
    return rows[order], scores[order]


def sums(lists: Sequence[tuple[float, Rows]], most: int) -> tuple[Ids, Floats]:
    """Rows with the sum of the weights of the lists that have them, ascending; at least those
    that are among the ``most`` best, the newest of equals.

    Span by span from the newest, so that what is added up stays in the processor's cache; of
    a span only what may still be among the best is kept.
    """
    top = max(int(rows[-1]) for _, rows in lists)
    # Of the type of the rows: searching in another one copies all of them.
    starts = np.arange(0, top + SPAN_ROWS + 1, SPAN_ROWS, dtype=np.int32)
    bounds = [np.searchsorted(rows, starts).tolist() for _, rows in lists]
    table = np.empty(SPAN_ROWS)
    found, scores = list[Ids](), list[Floats]()
    least, kept = 0.0, np.empty(0)
    for span in range(len(starts) - 2, -1, -1):
        start = span * SPAN_ROWS
        table[:] = 0.0
        for (weight, rows), bound in zip(lists, bounds, strict=True):
            table[rows[bound[span] : bound[span + 1]] - start] += weight
        places = np.flatnonzero(table > least)
        if not len(places):
            continue
        values = table[places]
        if len(places) > most:
            enough = values >= np.partition(values, -most)[-most]
            places, values = places[enough], values[enough]
        found.append(places + start)
        scores.append(values)
        kept = np.concatenate((kept, values))
        if len(kept) >= most:
            kept = np.partition(kept, -most)[-most:]
            least = kept[0]  # one that is only as good is older, and so comes after
    ids, total = np.concatenate(found), np.concatenate(scores)
    order = np.argsort(ids)
    return ids[order], total[order]


def _among(wanted: Ids, rows: Rows) -> "NDArray[np.bool_]":
    """Which of ``wanted`` stand in the ascending ``rows``."""
    if not len(rows):
        return np.zeros(len(wanted), dtype=bool)
    place = np.minimum(np.searchsorted(rows, wanted.astype(rows.dtype)), len(rows) - 1)
    found: NDArray[np.bool_] = rows[place] == wanted
    return found


def _varints(data: bytes) -> Ids:
    """SQLite's variable-length integers (of up to 8 bytes), one after the other."""
    octets = np.frombuffer(data, dtype=np.uint8)
    ends = np.flatnonzero(octets < 0x80)
    starts = np.concatenate(([0], ends[:-1] + 1))
    after = np.repeat(ends, ends - starts + 1) - np.arange(len(octets))
    return np.add.reduceat((octets & 0x7F).astype(np.int64) << 7 * after, starts)
