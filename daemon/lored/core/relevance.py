"""When nothing that was found is about the question: the line below which memory keeps silent.

Ranking says which hit is best, never whether it is any good: scores are relative. Whether a
hit belongs in front of a user who did not ask for it is a judgement of its own, a logistic
regression over signals that mean the same in every store. It was fitted on LoCoMo and
DevMemBench: questions to their own memory (gold hits) against the same questions to the
memories of others, and against prompts about nothing in particular ("run the tests",
"looks good"), a third of the questions wrapped in polite filler.

At `LEAST`, with the model: 5 % of foreign questions and 4 % of general prompts get anything,
80 % of own questions do. By the static table alone (no model yet): 4 %, 15 % and 60 %.
`tests/bench/quality` measures it anew. Pure.
"""

from typing import Final

LEAST: Final = 2.2
LEAST_STATIC: Final = 1.0
"""Logits from which a hit is relevant."""

LEAST_UNKNOWN: Final = -3.0
LEAST_UNKNOWN_STATIC: Final = -2.0
"""Evidence from which a hit answers a question none of whose words stands in the store, so that
nonsense finds nothing. Of 256 questions of invented words to LoCoMo none had a hit above (one
by the static table); of gold hits 95 % are (88 %)."""

INFORMATION_MOST: Final = 3.0
"""More matched words than this are no better evidence."""

# constant, soft, soft x information, cosine, near
_MODEL: Final = (-6.617, 3.143, 0.335, 16.027, 7.689)
_STATIC: Final = (-4.082, 2.673, -0.139, 5.047, 19.452)


def evidence(
    soft: float, near: float, information: float, cosine: float | None, *, by_model: bool
) -> float:
    """How much speaks for a hit, 0 = the line.

    ``soft``, ``near``: signals of `core.passages`; ``information``: of the query
    (`passages.Asked`); ``cosine``: with the query by the model (``by_model``) or by the
    static table, None = no vector.
    """
    weights, least = (_MODEL, LEAST) if by_model else (_STATIC, LEAST_STATIC)
    values = (1.0, soft, min(soft * information, INFORMATION_MOST), cosine or 0.0, near)
    return sum(w * v for w, v in zip(weights, values, strict=True)) - least


def answers(evidence: float, *, known: bool, by_model: bool) -> bool:
    """Whether a hit may answer one who asked for it. ``known``: a word of the question stands in
    the store; else meaning alone must carry the hit, and something is always nearest."""
    return known or evidence >= (LEAST_UNKNOWN if by_model else LEAST_UNKNOWN_STATIC)
