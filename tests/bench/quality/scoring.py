"""What an order of hits is worth against the gold of its question. Pure.

R@k is the share of the gold among the first k, or, where any one piece of gold answers
(`Question.any_of`), 1 or 0. MRR is one by the rank of the first gold, over all hits given.
Sessions take the rank of their first hit. Means are over questions that have gold.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from .memories import Question

DEPTH = 60
"""Hits that are looked at: ten sessions have more than one hit each."""


@dataclass(frozen=True, slots=True)
class Score:
    """One question's figures, 0 to 1; ``turn_10`` and ``rank`` are those of sessions where the
    set has no gold turns."""

    category: str
    session_5: float
    session_10: float
    turn_10: float
    rank: float


def share(found: Sequence[str], gold: Sequence[str], k: int, *, any_of: bool) -> float:
    """The share of ``gold`` among the first ``k`` of ``found``."""
    there = len(set(found[:k]).intersection(gold))
    return float(there > 0) if any_of else there / len(set(gold))


def reciprocal(found: Sequence[str], gold: Sequence[str]) -> float:
    """One by the rank of the first gold, 0 when there is none."""
    return next((1 / rank for rank, key in enumerate(found, 1) if key in gold), 0.0)


def score(question: Question, turns: Sequence[str], sessions: Sequence[str]) -> Score:
    """Of the hits of one question, best first; ``sessions``: the session of each hit."""
    order = list(dict.fromkeys(sessions))
    found, gold = (turns, question.turns) if question.turns else (order, question.sessions)
    return Score(
        question.category,
        share(order, question.sessions, 5, any_of=question.any_of),
        share(order, question.sessions, 10, any_of=question.any_of),
        share(found, gold, 10, any_of=question.any_of),
        reciprocal(found, gold),
    )


def mean(scores: Iterable[Score], figure: Callable[[Score], float]) -> float:
    """In percent."""
    values = [figure(score) for score in scores]
    return 100 * sum(values) / len(values) if values else 0.0


def told(scores: Sequence[Score]) -> str:
    """All figures as a note: sessions, then R@10 by category."""
    parts = [
        f"n={len(scores)}",
        f"sessions R@5 {mean(scores, lambda s: s.session_5):.1f}",
        f"R@10 {mean(scores, lambda s: s.session_10):.1f}",
    ]
    for category in sorted({score.category for score in scores}):
        own = [score for score in scores if score.category == category]
        parts.append(f"{category} {mean(own, lambda s: s.turn_10):.1f}")
    return ", ".join(parts)
