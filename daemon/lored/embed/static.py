"""The static tier: a vector per token, averaged. numpy only, thousands of texts a second.

The table (29,525 x 256, float16) was distilled from MiniLM; `models/README.md` tells how. It is
mapped, not read, so it costs the pages that are used. Documents are plain averages; a query
weighs each token by a / (a + frequency) of the *store's own* tokens, so that words that stand
in almost every message do not swamp it (research/retrieval 3.3).
"""

import json
import os
import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lored.embed.base import STATIC, Float32, Model, normalise
from lored.embed.wordpiece import WordPiece

MODELS: Final = os.path.join(os.path.dirname(os.path.abspath(__file__)), "models")

TEXT_CHARS: Final = 2_000
"""What is read of a text; beyond, an average says nothing any more."""

TEXT_TOKENS: Final = 256

WEIGHT_A: Final = 1e-3
"""`a` of the query weights a / (a + frequency) (Arora et al. 2017; measured in retrieval 3.3)."""


class StaticEmbedder:
    """The shipped token table."""

    model = Model(STATIC, 256)
    batch = 256

    def __init__(self, folder: str = os.path.join(MODELS, "static-minilm-256")) -> None:
        self._words = WordPiece.load(os.path.join(folder, "tokenizer.json"))
        self._table = _map_table(os.path.join(folder, "model.safetensors"))

    def tokenize(self, text: str) -> list[int]:
        """Token ids of ``text`` as they are averaged: without unknown ones."""
        unknown = self._words.unknown
        return [i for i in self._words.tokenize(text[:TEXT_CHARS], TEXT_TOKENS) if i != unknown]

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Float32:
        """float32[n, 256], unit rows; zeros for a text without known tokens."""
        result = np.zeros((len(texts), self.model.dimension), dtype=np.float32)
        for row, text in zip(result, texts, strict=True):
            ids = self.tokenize(text)
            if ids:
                row[:] = self._table[ids].astype(np.float32).sum(axis=0)
        return normalise(result)

    def embed_query(self, text: str, share: Callable[[str], float]) -> Float32:
        """float32[256], unit: the words of ``text`` weighted by rarity.

        ``share``: what part of all words of the store a (lower-case) word is, 0 to 1.
        """
        total = np.zeros((1, self.model.dimension), dtype=np.float32)
        for word in self._words.split(text[:TEXT_CHARS])[:TEXT_TOKENS]:
            ids = [i for i in self._words.pieces(word) if i != self._words.unknown]
            if ids:
                weight = WEIGHT_A / (WEIGHT_A + share(word))
                total += weight * self._table[ids].astype(np.float32).sum(axis=0)
        vector: Float32 = normalise(total)[0]
        return vector

    def likeness(self, asked: Sequence[str], texts: Sequence[Sequence[str]]) -> Float32:
        """float32[texts, asked]: of each asked word the best cosine with any word of each text.

        Words are lower case. A word of several tokens (an identifier, a rare name) is like
        itself alone: its tokens' average means nothing.
        """
        result = np.zeros((len(texts), len(asked)), dtype=np.float32)
        targets = self._words.tokens(asked)
        columns = [place for place, token in enumerate(targets) if token >= 0]
        tokens = self._words.tokens(word for one in texts for word in one)
        if not columns or not tokens:
            return result
        flat = np.array(tokens)
        owner = np.repeat(np.arange(len(texts)), [len(one) for one in texts])
        known = flat >= 0
        flat, owner = flat[known], owner[known]
        if not len(flat):
            return result
        distinct, place = np.unique(flat, return_inverse=True)
        cosines = self._unit(distinct) @ self._unit([targets[i] for i in columns]).T
        rows, starts = np.unique(owner, return_index=True)
        best = np.maximum.reduceat(cosines[place], starts, axis=0)
        result[rows[:, None], np.array(columns)] = best
        return result

    def _unit(self, tokens: "Sequence[int] | NDArray[np.int64]") -> Float32:
        return normalise(self._table[tokens].astype(np.float32))


def _map_table(path: str) -> "NDArray[Any]":
    """The only tensor of a safetensors file, mapped read-only."""
    with open(path, "rb") as file:
        header_bytes = struct.unpack("<Q", file.read(8))[0]
        header = json.loads(file.read(header_bytes))
    entry = header["embeddings"]
    if entry["dtype"] != "F16":
        raise ValueError(f"{path}: expected a float16 table, found {entry['dtype']}")
    offset = 8 + header_bytes + entry["data_offsets"][0]
    # A plain view: the memmap class itself costs more per lookup than the lookup.
    return np.asarray(np.memmap(path, "<f2", mode="r", offset=offset, shape=tuple(entry["shape"])))
