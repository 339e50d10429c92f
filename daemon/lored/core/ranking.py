"""The order of what was found: signals of each candidate, weighed and summed.

Each signal is brought to 0..1 among the candidates of one question, then

    score = sum of weight x signal

with the weights below. They were fitted (softmax over the candidates of a question, gold
turns up) on LoCoMo conversations 0-4, rounded, and checked on 5-9 and on DevMemBench;
`tests/bench/quality` repeats that. What they say in words: words, synonyms and meaning count
about alike; a passage of some length says more than "ok, thanks"; a session that holds many
good candidates is the right one, and so is a message whose answer fits; a question asked
then is seldom the answer to a question asked now. Pure.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lored.core.passages import Asked, Fit

Floats = NDArray[np.float64]

Likeness = Callable[[Sequence[str], Sequence[Sequence[str]]], NDArray[np.float32]]
"""(query words, words of each text) -> float32[texts, query words]: the best cosine of each
query word with any word of the text, 0 where neither is known."""

STATIC_SEGMENT: Final = "static-minilm-256"
"""The segment of the static token table: always there, and weaker than any model."""

STATIC_TRUST: Final = 0.5
"""What a cosine by the static table counts beside one by a model."""

WEIGHTS: Final = {
    "index": 1.0,
    "soft": 0.75,
    "near": 0.10,
    "dense": 0.85,
    "length": 1.05,
    "session": 1.6,
    "asks": -0.42,
    "next": 0.60,
    "tool": -0.15,
    "undone": -0.30,
    "subagent": -0.20,
    "deed": 0.30,
    "when": 0.40,
}
"""The last five are no result of fitting: what a person or model said is wanted before what a
tool put out, undone turns and subagents' talk rank low (design/episodes.md), and a message
that did what is asked for, or is of the time asked about, ranks high (`when`: of .1 to .8; on the
86 questions of the LoCoMo tune half that name a date R@10 90.9 -> 93.6, MRR 62.1 -> 66.4)."""

FULL_LENGTH_CHARS: Final = 300
"""From here on a text counts as long."""

SHARE_TOP: Final = 30
"""Candidates whose sessions share out the mass."""

NEXT_GAP: Final = 3
"""Places to the next candidate of a session that counts as what follows."""

DENSE_TOP: Final = 200
"""The dense score is 0 at the place of this rank, 1 at the best."""


@dataclass(slots=True)
class Signals:
    """What is known of the candidates of one question; all arrays have their order."""

    index: Floats
    """Score of the text index, 0 where it did not match."""
    fits: Sequence[Fit]
    soft: Floats
    """`soft_cover` of each."""
    dense: dict[str, Floats] = field(default_factory=dict)
    """Per model the cosine, NaN where a candidate has no vector of it. The first model that
    has a vector counts for a candidate; scores of two models are never added."""
    sessions: "NDArray[np.int64] | None" = None
    """Session of each; None for facts, which have none."""
    positions: "NDArray[np.int64] | None" = None
    """Place of each in its session."""
    lengths: "Floats | None" = None
    """Characters of each; None = do not count."""
    asks: "Floats | None" = None
    """1 for a short candidate that ends with a question."""
    flags: dict[str, Floats] = field(default_factory=dict)
    """More signals by the name of their weight, 0 or 1."""


@dataclass(slots=True)
class Ranked:
    """Scores in the order of the candidates, and the weighted parts they are the sum of."""

    scores: Floats
    parts: dict[str, Floats]

    def explain(self, place: int) -> dict[str, float]:
        """The parts of one candidate's score."""
        found = {name: round(float(part[place]), 4) for name, part in self.parts.items()}
        return {name: value for name, value in found.items() if value}


def rank(signals: Signals, weights: dict[str, float] = WEIGHTS) -> Ranked:
    """Score the candidates."""
    values = {
        "index": of_best(signals.index),
        "soft": signals.soft,
        "near": np.array([fit.near for fit in signals.fits]),
        "dense": dense_of(signals.dense, len(signals.index)),
    }
    if signals.lengths is not None:
        full = np.log1p(FULL_LENGTH_CHARS)
        values["length"] = np.log1p(np.minimum(signals.lengths, FULL_LENGTH_CHARS)) / full
    if signals.asks is not None:
        values["asks"] = signals.asks
    if signals.sessions is not None:
        first = 0.6 * values["index"] + 0.4 * values["dense"]
        values["session"] = session_shares(first, signals.sessions)
        if signals.positions is not None:
            own = 0.5 * (values["dense"] + values["soft"])
            values["next"] = of_next(own, signals.sessions, signals.positions)
    values |= signals.flags
    parts = {name: weights[name] * value for name, value in values.items()}
    scores: Floats = np.sum(list(parts.values()), axis=0)
    return Ranked(scores, parts)


def soft_covers(asked: Asked, fits: Sequence[Fit], like: Likeness | None) -> Floats:
    """Per text the query's weight, each word counted by the likeness of its best match."""
    if like is None or not asked.stems:
        return np.array([fit.cover for fit in fits], dtype=np.float64)
    found = like(asked.words, [fit.words for fit in fits]).astype(np.float64)
    soft: Floats = np.clip(found, 0.0, 1.0) @ np.array(asked.weights)
    return np.maximum(soft, [fit.cover for fit in fits])


def session_shares(scores: Floats, sessions: "NDArray[np.int64]") -> Floats:
    """For each candidate the share that its session has of the mass of the best ones."""
    if not len(scores):
        return scores
    top = np.argsort(-scores, kind="stable")[:SHARE_TOP]
    _, owner = np.unique(sessions, return_inverse=True)
    mass = np.bincount(owner[top], weights=np.maximum(scores[top], 0), minlength=owner.max() + 1)
    total = mass.sum()
    shares: Floats = mass[owner] / total if total > 0 else np.zeros(len(scores))
    return shares


def of_next(
    values: Floats, sessions: "NDArray[np.int64]", positions: "NDArray[np.int64]"
) -> Floats:
    """For each candidate the value of the one that follows it in its session, 0 where none
    does within `NEXT_GAP`."""
    result = np.zeros(len(values))
    order = np.lexsort((positions, sessions))
    here, after = order[:-1], order[1:]
    follows = (sessions[here] == sessions[after]) & (positions[after] - positions[here] <= NEXT_GAP)
    result[here[follows]] = values[after[follows]]
    return result


def of_best(scores: Floats) -> Floats:
    """Scores as shares of the best one, 0..1."""
    best = scores.max(initial=0.0)
    return np.maximum(scores, 0) / best if best > 0 else np.zeros(len(scores))


def dense_of(models: dict[str, Floats], count: int) -> Floats:
    """0..1 per candidate from the first model that knows it, each on its own scale."""
    result = np.zeros(count)
    missing = np.ones(count, dtype=bool)
    for model, cosines in models.items():
        known = ~np.isnan(cosines)
        if not known.any():
            continue
        ordered = np.sort(cosines[known])[::-1]
        low, high = ordered[min(DENSE_TOP, len(ordered)) - 1], ordered[0]
        scaled = np.clip((cosines - low) / max(high - low, 1e-9), 0, 1)
        if len(ordered) == 1:
            scaled = np.where(known, 1.0, 0.0)
        if model == STATIC_SEGMENT:
            scaled *= STATIC_TRUST
        use = missing & known
        result[use] = scaled[use]
        missing &= ~known
    return result
