"""Late interaction: a text compared with a question token by token. Pure.

Each token of the question takes its best cosine with any token of the text; their mean is
the closeness. The same model's token vectors serve, so nothing more is loaded.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lored.core.quantized import Float32

WEIGHT: Final = 0.4
"""Of the closeness (0..1 among the hits) beside the score's (research/retrieval 3.6)."""


def closeness(asked: Float32, document: Float32) -> float:
    """The mean over the question's tokens (float32[q, d], unit) of the best cosine with any
    token of the text (float32[t, d], unit); 0 for an empty text."""
    if not len(document) or not len(asked):
        return 0.0
    return float((asked @ document.T).max(axis=1).mean())


def reorder(
    scores: Sequence[float], asked: Float32, documents: Sequence[Float32], weight: float = WEIGHT
) -> tuple[list[int], list[float]]:
    """(places in their new order, closeness by place) of hits with ``scores``."""
    close = np.array([closeness(asked, document) for document in documents])
    mixed = (1 - weight) * _spread(np.array(scores)) + weight * _spread(close)
    order: list[int] = np.argsort(-mixed, kind="stable").tolist()
    return order, close.tolist()


def _spread(values: "NDArray[np.float64]") -> "NDArray[np.float64]":
    low, high = values.min(), values.max()
    found: NDArray[np.float64] = (values - low) / max(high - low, 1e-9)
    return found
