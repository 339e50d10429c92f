"""Deep recall: the best hits read again word by word by the model (`core/maxsim.py`).

A short message is read after the end of what was said before it, as its vector was made: alone
it says too little, and deep mode was no better than the default (LoCoMo R@10 77.8 of 78.0).
It costs 65 ms for short messages and up to 800 for long ones (research/retrieval 3.6).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from lored.core import maxsim
from lored.core.passages import STRETCH_CHARS
from lored.core.tokens import SHORT_MESSAGE_CHARS
from lored.services.search.embedding import Embedding
from lored.services.search.vectoring import said_before
from lored.store.database import Database
from lored.store.driver import Connection
from lored.store.search.messages import MessageHit

DEADLINE_MS: Final = 3_500
"""Within the 5 s of the method."""


async def rerank(
    embedding: Embedding, database: Database, question: str, hits: Sequence[MessageHit], top: int
) -> tuple[list[MessageHit], str | None]:
    """``hits`` with the first ``top`` in their new order, and why that was not done (else
    None). ``database``: of the hits; ``question``: without names, as it was embedded."""
    head, rest = list(hits[:top]), list(hits[top:])
    if len(head) < 2:
        return [*head, *rest], None
    texts = await database.read(lambda c: passages(c, head))
    found = await embedding.token_vectors([question, *texts], DEADLINE_MS)
    if found is None:
        return [*head, *rest], "deep mode: the model did not answer in time; order without it"
    return [*reordered(head, maxsim.parts(found[0], found[1:])), *rest], None


def reordered(hits: Sequence[MessageHit], close: Sequence[float]) -> list[MessageHit]:
    """``hits`` by their score and what ``close`` adds to it."""
    again = [
        replace(hit, score=hit.score + part, parts={**hit.parts, "deep": round(part, 4)})
        for hit, part in zip(hits, close, strict=True)
    ]
    return sorted(again, key=lambda hit: -hit.score)


def passages(conn: Connection, hits: Sequence[MessageHit]) -> list[str]:
    """What is read of each hit."""
    texts = []
    for hit in hits:
        text = stretch(hit)
        if len(text) < SHORT_MESSAGE_CHARS:
            text = f"{said_before(conn, hit.session, hit.position)} {text}"
        texts.append(text)
    return texts


def stretch(hit: MessageHit) -> str:
    """The part of a hit's text that was measured."""
    start = hit.fit.start
    found = hit.text[start : start + STRETCH_CHARS]
    return f"{hit.deed}\n{found}" if hit.deed and not start else found
