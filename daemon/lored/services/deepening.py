"""Deep recall: the best hits read again word by word by the model.

MaxSim: each token of the question takes its best cosine with any token of the text, the mean
of these is compared. The same model's token vectors serve, so nothing more is loaded; it
costs 65 ms for short messages and up to 800 for long ones (research/retrieval 3.6).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from lored.core.passages import STRETCH_CHARS
from lored.services.embedding import Embedding
from lored.store.message_search import MessageHit

WEIGHT: Final = 0.5
"""Of the MaxSim place (0..1 among the hits) beside the score's."""

DEADLINE_MS: Final = 3_500
"""Within the 5 s of the method."""


async def rerank(
    embedding: Embedding, question: str, hits: Sequence[MessageHit], top: int
) -> tuple[list[MessageHit], str | None]:
    """``hits`` with the first ``top`` in their new order, and why that was not done (else
    None)."""
    head, rest = list(hits[:top]), list(hits[top:])
    if len(head) < 2:
        return [*head, *rest], None
    texts = [hit.text[hit.fit.start : hit.fit.start + STRETCH_CHARS] for hit in head]
    found = await embedding.token_vectors([question, *texts], DEADLINE_MS)
    if found is None:
        return [*head, *rest], "deep mode: the model did not answer in time; order without it"
    asked, *documents = found
    if not len(asked):
        return [*head, *rest], None
    close = np.array([max_sim(asked, document) for document in documents])
    scores = np.array([hit.score for hit in head])
    mixed = (1 - WEIGHT) * _spread(scores) + WEIGHT * _spread(close)
    # Scores stay descending and of the same size: the old ones, dealt out in the new order.
    order = np.argsort(-mixed, kind="stable")
    dealt = sorted(scores.tolist(), reverse=True)
    again = [
        replace(head[i], score=score, parts={**head[i].parts, "deep": round(float(close[i]), 4)})
        for i, score in zip(order.tolist(), dealt, strict=True)
    ]
    return [*again, *rest], None


def max_sim(
    asked: "np.ndarray[tuple[int, int], np.dtype[np.float32]]",
    document: "np.ndarray[tuple[int, int], np.dtype[np.float32]]",
) -> float:
    """The mean over the question's tokens of the best cosine with any token of the text."""
    if not len(document):
        return 0.0
    return float((asked @ document.T).max(axis=1).mean())


def _spread(
    values: "np.ndarray[tuple[int], np.dtype[np.float64]]",
) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    low, high = values.min(), values.max()
    found: np.ndarray[tuple[int], np.dtype[np.float64]] = (values - low) / max(high - low, 1e-9)
    return found
