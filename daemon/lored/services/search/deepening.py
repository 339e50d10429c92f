"""Deep recall: the best hits read again word by word by the model (`core/maxsim.py`).

It costs 65 ms for short messages and up to 800 for long ones (research/retrieval 3.6).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from lored.core import maxsim
from lored.core.passages import STRETCH_CHARS
from lored.services.search.embedding import Embedding
from lored.store.search.messages import MessageHit

DEADLINE_MS: Final = 3_500
"""Within the 5 s of the method."""


async def rerank(
    embedding: Embedding, question: str, hits: Sequence[MessageHit], top: int
) -> tuple[list[MessageHit], str | None]:
    """``hits`` with the first ``top`` in their new order, and why that was not done (else
    None). ``question``: without names, as it was embedded."""
    head, rest = list(hits[:top]), list(hits[top:])
    if len(head) < 2:
        return [*head, *rest], None
    texts = [stretch(hit) for hit in head]
    found = await embedding.token_vectors([question, *texts], DEADLINE_MS)
    if found is None:
        return [*head, *rest], "deep mode: the model did not answer in time; order without it"
    scores = [hit.score for hit in head]
    order, close = maxsim.reorder(scores, found[0], found[1:])
    # Scores stay descending and of their size: the old ones, dealt out in the new order.
    again = [
        replace(head[i], score=score, parts={**head[i].parts, "deep": round(close[i], 4)})
        for i, score in zip(order, sorted(scores, reverse=True), strict=True)
    ]
    return [*again, *rest], None


def stretch(hit: MessageHit) -> str:
    """The part of a hit's text that was measured."""
    start = hit.fit.start
    found = hit.text[start : start + STRETCH_CHARS]
    return f"{hit.deed}\n{found}" if hit.deed and not start else found
