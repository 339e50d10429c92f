"""The shipped MiniLM: all-MiniLM-L6-v2, int8 ONNX, 384 dimensions, on one thread.

Loaded in the model process only (`embed/process.py`): onnxruntime and the weights take 110 MB.
Batches stay small because larger ones are slower on a CPU and cost memory by their longest
text (research/retrieval 2.2).
"""

import os
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from lored.embed.base import MINILM, Float32, Model, normalise
from lored.embed.static import MODELS
from lored.embed.wordpiece import WordPiece

TEXT_TOKENS: Final = 256
"""With [CLS] and [SEP]: what the model was trained to read."""

TEXT_CHARS: Final = 2_400
"""256 tokens are seldom more characters; the rest need not be split into words."""

BATCH: Final = 4

_CLS: Final = 101
_SEP: Final = 102


class MiniLM:
    """An inference session. Not safe for two threads at once."""

    model = Model(MINILM, 384)
    batch = 1

    def __init__(self, folder: str = MODELS) -> None:
        import onnxruntime

        onnxruntime.set_default_logger_severity(3)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        # Arenas keep the peak of the longest batch for ever; plain allocation costs 1 %.
        options.enable_cpu_mem_arena = False
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session: Any = onnxruntime.InferenceSession(
            os.path.join(folder, "minilm-q8.onnx"), options, providers=["CPUExecutionProvider"]
        )
        self._inputs = {entry.name for entry in self._session.get_inputs()}
        self._words = WordPiece.load(os.path.join(folder, "minilm-tokenizer.json"))

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Float32:
        """float32[n, 384], unit rows: the mean over the token vectors."""
        result = np.zeros((len(texts), self.model.dimension), dtype=np.float32)
        for rows, states, mask in self._run(texts):
            weights = mask[:, :, None].astype(np.float32)
            result[rows] = (states * weights).sum(axis=1) / weights.sum(axis=1)
        return normalise(result)

    def token_vectors(self, texts: Sequence[str]) -> list[Float32]:
        """Per text float32[tokens, 384], unit rows, without [CLS] and [SEP] (for MaxSim)."""
        result: list[Float32] = [np.empty((0, self.model.dimension), dtype=np.float32)] * len(texts)
        for rows, states, mask in self._run(texts):
            for row, state, length in zip(rows, states, mask.sum(axis=1), strict=True):
                result[row] = normalise(state[1 : length - 1])
        return result

    def _run(self, texts: Sequence[str]) -> "Iterator[tuple[list[int], Any, Any]]":
        """(row numbers, hidden states, mask) by batch, texts of like length together."""
        room = TEXT_TOKENS - 2
        ids = [[_CLS, *self._words.tokenize(t[:TEXT_CHARS], room), _SEP] for t in texts]
        order = sorted(range(len(texts)), key=lambda i: len(ids[i]))
        for start in range(0, len(order), BATCH):
            rows = order[start : start + BATCH]
            width = len(ids[rows[-1]])
            tokens = np.zeros((len(rows), width), dtype=np.int64)
            mask = np.zeros((len(rows), width), dtype=np.int64)
            for place, row in enumerate(rows):
                tokens[place, : len(ids[row])] = ids[row]
                mask[place, : len(ids[row])] = 1
            feed = {"input_ids": tokens, "attention_mask": mask}
            if "token_type_ids" in self._inputs:
                feed["token_type_ids"] = np.zeros_like(tokens)
            yield rows, self._session.run(None, feed)[0], mask
