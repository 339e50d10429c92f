"""Facts by words and meaning: candidates of the index and of vectors, put in order.

Knows nothing of validity, scopes or conflicts: the caller says which facts are allowed, or
asks for more and drops what does not fit.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from lored.core.passages import measure
from lored.core.quantized import Float32
from lored.core.ranking import (
    STATIC_SEGMENT,
    WEIGHTS,
    Floats,
    Likeness,
    Signals,
    dense_of,
    of_best,
    rank,
    soft_covers,
)
from lored.core.relevance import answers, evidence
from lored.core.tokens import parse_query
from lored.store.driver import Connection
from lored.store.search import vectors
from lored.store.search.matching import FACTS, plan
from lored.store.search.postings import Rows, postings
from lored.store.search.stemming import stem

CANDIDATES: Final = 100
"""Of the index and of each model."""

SCORED: Final = 300
"""Rows of a scan of sign bits that are scored for `CANDIDATES`: .6 ms."""

READ: Final = 24
"""Candidates at least whose texts are read and measured, the best by index and vectors first:
each costs .1 ms, and recall of facts has 5 ms (design/trust.md)."""

READ_SHARE: Final = 1.5
"""Texts read per fact wanted, where that is more."""

ALLOWED_IDS: Final = 20_000
"""Allowed ids handed to SQLite as JSON: 2 ms."""

READ_BATCH: Final = 500


@dataclass(frozen=True, slots=True)
class FactHit:
    """A fact found: its row, score, the words that match, the parts of the score, signals."""

    rowid: int
    score: float
    matched: tuple[str, ...]
    parts: dict[str, float]
    """With `evidence` (`core.relevance`): above 0 it is about the question."""
    cover: float
    soft: float
    cosine: float | None
    """With the best model that has a vector for it."""


def search(
    conn: Connection,
    query: str,
    found: Mapping[str, Float32 | None],
    like: Likeness | None,
    limit: int,
    allowed: Collection[int] | None = None,
) -> list[FactHit]:
    """The best ``limit`` facts for ``query``, best first.

    ``found``: the query's vector per segment, best model first, None = not to be had.
    ``like``: `services.embedding.Embedding.likeness`. ``allowed``: only these rows.
    """
    asked = plan(conn, FACTS, parse_query(query))
    among = None if allowed is None else np.sort(np.fromiter(allowed, dtype=np.int32))
    index = postings(conn, FACTS, asked, None if among is None else lambda r: _both(r, among))
    scores = index.best(CANDIDATES, None)
    known = {name: vector for name, vector in found.items() if vector is not None}
    cosines: dict[str, dict[int, float]] = {}
    for name, vector in known.items():
        # With few allowed ones the nearest of all may be none of them: score those instead.
        if allowed is not None and len(allowed) <= ALLOWED_IDS:
            near = vectors.fact_cosines(conn, name, vector, list(allowed))
        else:
            near = dict(vectors.nearest_facts(conn, name, vector, CANDIDATES, SCORED))
        cosines[name] = near
        best = [row for row in near if allowed is None or row in allowed]
        for row in sorted(best, key=lambda row: -near[row])[:CANDIDATES]:
            scores.setdefault(row, 0.0)
    for name, vector in known.items():
        missing = [row for row in scores if row not in cosines[name]]
        cosines[name] |= vectors.fact_cosines(conn, name, vector, missing)
    rows = _promising(scores, cosines, max(READ, int(limit * READ_SHARE)))
    texts = _texts(conn, rows)
    rows = [row for row in rows if row in texts]
    if not rows:
        return []
    fits = measure(asked.asked, [texts[row] for row in rows], stem)
    soft = soft_covers(asked.asked, fits, like)
    dense = {name: _column(cosines[name], rows) for name in known}
    lengths = np.array([float(fit.length) for fit in fits])
    words = index.exact(rows, [fit.counts for fit in fits], lengths / max(lengths.mean(), 1.0))
    ranked = rank(Signals(words, fits, soft, dense))
    order = sorted(range(len(rows)), key=lambda i: (-ranked.scores[i], -rows[i]))

    def speaks(i: int) -> float:
        _, cosine = _first(dense, i)
        information = asked.asked.information
        return evidence(float(soft[i]), fits[i].near, information, cosine, by_model=by_model(i))

    def by_model(i: int) -> bool:
        return _first(dense, i)[0] not in (None, STATIC_SEGMENT)

    order = [i for i in order if answers(speaks(i), known=index.known, by_model=by_model(i))]
    return [
        FactHit(
            rows[i],
            float(ranked.scores[i]),
            fits[i].matched,
            {**ranked.explain(i), "evidence": round(speaks(i), 4)},
            fits[i].cover,
            float(soft[i]),
            _first(dense, i)[1],
        )
        for i in order[:limit]
    ]


def _both(rows: Rows, among: Rows) -> Rows:
    """The rows that stand in both ascending lists."""
    found: Rows = np.intersect1d(rows, among, assume_unique=True)
    return found


def _promising(
    scores: Mapping[int, float], cosines: Mapping[str, Mapping[int, float]], keep: int
) -> list[int]:
    """The ``keep`` best rows by the signals that need no text."""
    rows = list(scores)
    if len(rows) <= keep:
        return rows
    dense = {name: _column(one, rows) for name, one in cosines.items()}
    index = of_best(np.array([scores[row] for row in rows]))
    first = WEIGHTS["index"] * index + WEIGHTS["dense"] * dense_of(dense, len(rows))
    order = sorted(range(len(rows)), key=lambda i: (-first[i], -rows[i]))
    return [rows[i] for i in order[:keep]]


def _texts(conn: Connection, rows: list[int]) -> dict[int, str]:
    found: dict[int, str] = {}
    for start in range(0, len(rows), READ_BATCH):
        part = rows[start : start + READ_BATCH]
        marks = ",".join("?" * len(part))
        for row, text, ctx in conn.execute(
            f"SELECT id, text, ctx FROM fact_texts WHERE id IN ({marks})", part
        ):
            found[row] = f"{text} {ctx}"
    return found


def _column(cosines: Mapping[int, float], rows: list[int]) -> Floats:
    return np.array([cosines.get(row, np.nan) for row in rows])


def _first(dense: Mapping[str, Floats], place: int) -> tuple[str | None, float | None]:
    for name, column in dense.items():
        if not np.isnan(column[place]):
            return name, float(column[place])
    return None, None
