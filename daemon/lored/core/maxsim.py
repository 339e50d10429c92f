"""Late interaction: a text compared with a question token by token. Pure.

Each token of the question takes its best cosine with any token of the text; their mean is
the closeness. The same model's token vectors serve, so nothing more is loaded.
"""

from collections.abc import Sequence
from typing import Final

from lored.core.quantized import Float32

WEIGHT: Final = 3.0
"""Of the closeness, added to the score of `core.ranking`. Of 1, 2, 3 and 5, and of shares of .15,
.25 and .4 beside the score spread over 0..1, it gave the most R@10 at no loss of MRR, on both
tune halves (LoCoMo 74.8/57.1 -> 77.2/57.9 of every second question, coding history 84.0/58.8 ->
86.6/62.6)."""


def closeness(asked: Float32, document: Float32) -> float:
    """The mean over the question's tokens (float32[q, d], unit) of the best cosine with any
    token of the text (float32[t, d], unit), at least 0; 0 for an empty text."""
    if not len(document) or not len(asked):
        return 0.0
    return max(0.0, float((asked @ document.T).max(axis=1).mean()))


def parts(asked: Float32, documents: Sequence[Float32]) -> list[float]:
    """What each document's closeness adds to its score."""
    return [WEIGHT * closeness(asked, document) for document in documents]
