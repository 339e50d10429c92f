"""A hurried question (a hook's) never waits for a model that is not there yet."""

from pathlib import Path

import pytest

from lored.services.search.embedding import STATIC, Embedding, hurried
from support.memory import open_memory

HURRY_MS = 60_000
"""Long enough for any start: an answer without the model's vector was not waited for."""


async def test_the_first_hurried_question_is_answered_without_the_model(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    async with open_memory(tmp_path, embed=True) as memory:
        embedding: Embedding = memory.app.get("embedding")
        assert embedding.warm is not None
        asked = await embedding.query("which cache do we use", deadline_ms=HURRY_MS)
        assert set(asked.found) == {STATIC}
        assert asked.degraded is not None
        # It was started all the same, and serves the next one.
        await embedding.warm.start()
        with hurried(HURRY_MS):
            again = await embedding.query("which cache do we use")
        assert embedding.segment in again.found
        assert again.degraded is None
