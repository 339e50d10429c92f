"""Messages by words and meaning: candidates of index and vectors, put in order.

1. The filters become the set of allowed messages (`Columns.mask`), before anything is sought.
2. Candidates: the best by the text index, and the nearest by vectors, among the allowed.
3. The texts of the most promising are read and measured (`core/passages.py`), and all
   signals together give the order (`core/ranking.py`).

Runs on a reader's connection, in its thread. A failing engine raises; it never looks like an
empty answer.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lored.core.asked_time import AskedTime
from lored.core.outputs import deed_line
from lored.core.passages import Fit, measure
from lored.core.quantized import Float32
from lored.core.ranking import (
    FULL_LENGTH_CHARS,
    STATIC_SEGMENT,
    Floats,
    Likeness,
    Signals,
    dense_of,
    of_best,
    rank,
    soft_covers,
)
from lored.core.relevance import answers, evidence
from lored.core.stored_text import decode
from lored.core.tokens import Query
from lored.store.driver import Connection
from lored.store.search.columns import ALL_ROLES, Columns, Mask
from lored.store.search.matching import MESSAGES, Plan, plan
from lored.store.search.postings import Postings, Rows, lengths, postings
from lored.store.search.stemming import stem

WORD_CANDIDATES: Final = 150
"""Best rows of the text index."""

SIGN_CANDIDATES: Final = 300
"""Rows of a scan of sign bits whose cosine is taken exactly, of the best model; 3 us each."""

NEAR_CANDIDATES: Final = 100
"""Nearest rows that become candidates."""

FULL_SHARE: Final = 0.98
"""A model that has this share of the vectors of a weaker one makes the weaker one's scan
needless."""

READ: Final = 60
"""Texts read and measured, the best by index and vectors: 80 us each."""

READ_BATCH: Final = 500

TOOL: Final = 2
ROLLED_BACK: Final = 1
"""`messages.role` of tool output, and the flag of an undone turn."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Which messages may be found. ``sessions``: row ids, None = all; instants in
    microseconds, ``since`` <= at < ``until``."""

    sessions: frozenset[int] | None = None
    roles: frozenset[int] = ALL_ROLES
    since: int | None = None
    until: int | None = None
    deeds: frozenset[int] = frozenset()
    """Messages that did what the filters ask for: they rank higher."""

    @property
    def is_open(self) -> bool:
        """Whether everything may be found."""
        return (
            self.sessions is None
            and self.since is None
            and self.until is None
            and ALL_ROLES.issubset(self.roles)
        )


@dataclass(frozen=True, slots=True)
class MessageHit:
    """A message found."""

    id: int
    session: int
    position: int
    role: int
    at: int | None
    text: str
    record_key: str | None
    score: float
    fit: Fit
    deed: str
    """What a tool's output is the output of, read before ``text``; empty when unknown."""
    parts: dict[str, float]
    soft: float
    cosine: float | None
    """With the first model that has a vector for it."""
    model: str | None
    """The segment of that."""
    evidence: float
    """`relevance.evidence`: above 0 it is about the question."""


@dataclass(frozen=True, slots=True)
class Found:
    """The answer of `search`: hits, best first, and what of the query was not asked."""

    hits: list[MessageHit]
    left_out: tuple[str, ...]
    covered: dict[str, float]
    """Per model with a query vector: the share of the read candidates that it knows."""


def search(
    conn: Connection,
    columns: Columns,
    query: Query,
    asked: Mapping[str, Float32],
    like: Likeness | None,
    scope: Scope,
    limit: int,
    when: AskedTime | None = None,
) -> Found:
    """The best ``limit`` messages of ``scope`` for ``query``, best first.

    ``asked``: the query's vector per segment, best model first. ``when``: the time that the
    query names.
    """
    columns.refresh(conn)
    allowed = (
        None
        if scope.is_open
        else columns.mask(scope.sessions, scope.roles, scope.since, scope.until)
    )
    if allowed is not None and not allowed.any():
        return Found([], (), {})
    wanted = plan(conn, MESSAGES, query)
    found = postings(conn, MESSAGES, wanted, None if allowed is None else _only(allowed))
    scores = found.best(WORD_CANDIDATES, lambda rows: lengths(conn, MESSAGES, rows))
    dense = _near(conn, columns, asked, allowed, scores)
    rows = _promising(list(scores), scores, dense)
    read = _read(conn, rows)
    rows = [row for row in rows if row in read]
    if not rows:
        return Found([], wanted.left_out, {})
    return _ranked(conn, wanted, found, rows, read, dense, like, scope, limit, when)


def _near(
    conn: Connection,
    columns: Columns,
    asked: Mapping[str, Float32],
    allowed: Mask | None,
    scores: dict[int, float],
) -> dict[str, dict[int, float]]:
    """Cosines per model of all candidates; the nearest become candidates (of score 0).

    A weaker model is only asked about what the better ones have no vector of, and scanned only
    while they lack more than a little of what it has.
    """
    dense: dict[str, dict[int, float]] = {}
    known: set[int] = set()
    most = 0
    for name, vector in asked.items():
        cosines: dict[int, float] = {}
        rows = columns.rows(name)
        if rows * FULL_SHARE > most:
            found = columns.nearest(conn, name, vector, SIGN_CANDIDATES, allowed)
            best = sorted(found, key=lambda row: -found[row])[:NEAR_CANDIDATES]
            cosines = {row: found[row] for row in best if row not in known}
            for row in cosines:
                scores.setdefault(row, 0.0)
        else:
            columns.release(name)
        most = max(most, rows)
        missing = [row for row in scores if row not in known and row not in cosines]
        cosines |= columns.cosines(conn, name, vector, missing)
        known |= cosines.keys()
        dense[name] = cosines
    return dense


def _only(allowed: Mask) -> "Callable[[Rows], Rows]":
    def keep(rows: Rows) -> Rows:
        rows = rows[rows < len(allowed)]
        kept: Rows = rows[allowed[rows]]
        return kept

    return keep


def _promising(
    rows: list[int], scores: dict[int, float], dense: dict[str, dict[int, float]]
) -> list[int]:
    """The rows worth reading: best by index and vectors together."""
    if len(rows) <= READ:
        return rows
    index = of_best(np.array([scores[row] for row in rows]))
    near = dense_of(_columns_of(dense, rows), len(rows))
    order = np.argsort(-(0.6 * index + 0.4 * near), kind="stable")[:READ]
    return [rows[i] for i in order]


def _columns_of(dense: dict[str, dict[int, float]], rows: Sequence[int]) -> dict[str, Floats]:
    return {
        name: np.array([cosines.get(row, np.nan) for row in rows])
        for name, cosines in dense.items()
    }


def _read(conn: Connection, ids: Sequence[int]) -> dict[int, Any]:
    """Rows of messages by id."""
    found: dict[int, Any] = {}
    for start in range(0, len(ids), READ_BATCH):
        part = ids[start : start + READ_BATCH]
        marks = ",".join("?" * len(part))
        for row in conn.execute(
            "SELECT id, session, position, role, at, text, record_key, flags FROM messages"
            f" WHERE id IN ({marks})",
            part,
        ):
            found[row[0]] = (*row[:5], decode(row[5]), *row[6:])
    return found


def deeds_before(conn: Connection, outputs: Sequence[int]) -> dict[int, str]:
    """By row id what each of some tools' outputs is the output of (`core.outputs.deed_line`),
    where it is known."""
    found: dict[int, str] = {}
    for start in range(0, len(outputs), READ_BATCH):
        part = outputs[start : start + READ_BATCH]
        marks = ",".join("?" * len(part))
        for output, command, target in conn.execute(
            f"SELECT output, command, target FROM actions WHERE output IN ({marks})", part
        ):
            if line := deed_line(command, target):
                found[output] = line
    return found


def _ranked(
    conn: Connection,
    wanted: Plan,
    found: Postings,
    rows: list[int],
    read: dict[int, Any],
    dense: dict[str, dict[int, float]],
    like: Likeness | None,
    scope: Scope,
    limit: int,
    when: AskedTime | None,
) -> Found:
    texts = [read[row][5] for row in rows]
    deeds = deeds_before(conn, [row for row in rows if read[row][3] == TOOL])
    fits = measure(wanted.asked, texts, stem, [deeds.get(row, "") for row in rows])
    soft = soft_covers(wanted.asked, fits, like)
    cosines = _columns_of(dense, rows)
    subagents = _subagents(conn, {read[row][1] for row in rows})
    ranked = rank(
        Signals(
            index=found.exact(
                rows, [fit.counts for fit in fits], lengths(conn, MESSAGES, np.array(rows))
            ),
            fits=fits,
            soft=soft,
            dense=cosines,
            sessions=np.array([read[row][1] for row in rows], dtype=np.int64),
            positions=np.array([read[row][2] for row in rows], dtype=np.int64),
            lengths=np.array([len(text) for text in texts], dtype=np.float64),
            asks=_flags(
                len(text) < FULL_LENGTH_CHARS and text.rstrip().endswith(("?", "？"))
                for text in texts
            ),
            flags={
                "tool": _flags(read[row][3] == TOOL for row in rows),
                "undone": _flags(bool(read[row][7] & ROLLED_BACK) for row in rows),
                "subagent": _flags(read[row][1] in subagents for row in rows),
                "deed": _flags(row in scope.deeds for row in rows),
                "when": _flags(when.fit(read[row][4]) if when else 0.0 for row in rows),
            },
        )
    )
    order = sorted(range(len(rows)), key=lambda i: (-ranked.scores[i], -rows[i]))
    hits: list[MessageHit] = []
    for i in order:
        if len(hits) == limit:
            break
        number, session, position, role, at, text, record_key, _ = read[rows[i]]
        model = next((name for name, c in cosines.items() if not np.isnan(c[i])), None)
        cosine = None if model is None else float(cosines[model][i])
        by_model = model not in (None, STATIC_SEGMENT)
        speaks = evidence(
            float(soft[i]), fits[i].near, wanted.asked.information, cosine, by_model=by_model
        )
        if not answers(speaks, known=found.known, by_model=by_model):
            continue
        hits.append(
            MessageHit(
                number,
                session,
                position,
                role,
                at,
                text,
                record_key,
                float(ranked.scores[i]),
                fits[i],
                deeds.get(rows[i], ""),
                ranked.explain(i),
                float(soft[i]),
                cosine,
                model,
                speaks,
            )
        )
    covered = {name: float((~np.isnan(column)).mean()) for name, column in cosines.items()}
    return Found(hits, wanted.left_out, covered)


def _subagents(conn: Connection, sessions: Iterable[int]) -> frozenset[int]:
    """Those of ``sessions`` that are of subagents: they rank lower."""
    listed = "[" + ",".join(map(str, sessions)) + "]"
    return frozenset(
        row[0]
        for row in conn.execute(
            "SELECT id FROM sessions WHERE is_subagent = 1"
            " AND id IN (SELECT value FROM json_each(?))",
            (listed,),
        )
    )


def _flags(values: Iterable[float]) -> "NDArray[np.float64]":
    return np.fromiter(values, dtype=np.float64)
