"""The int8 vectors of one segment in memory, by id: exact among few, by their signs among many.

Pure numpy; knows no store. Up to `EXACT_ROWS` every row is scored. Beyond, the sign bits are
scanned first and what they keep is scored from the int8 rows; that loses under 2 % of the true
best ten (`core.quantized`). Putting and asking may happen in different threads: an answer holds
what was complete when it began, or a little more.
"""

from collections.abc import Sequence
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from lored.core.quantized import Float32, SignMatrix, sign_bits, sign_words

EXACT_ROWS: Final = 1_000
"""Rows that are simply all scored: .1 ms."""

FIRST_ROWS: Final = 256
"""Room at the beginning; it doubles."""

Int8 = NDArray[np.int8]
Numbers = NDArray[np.int64]
Places = NDArray[np.intp]


class VectorTable:
    """Vectors of ``dimension`` components by id (0 to 2^31); ``centre`` is that of the signs."""

    def __init__(self, dimension: int, centre: Float32 | None) -> None:
        self.dimension = dimension
        self._centre = centre
        self._signs = SignMatrix(sign_words(dimension))
        self._ids = np.empty(FIRST_ROWS, dtype=np.int64)
        self._vectors = np.empty((FIRST_ROWS, dimension), dtype=np.int8)
        self._place = np.full(FIRST_ROWS, -1, dtype=np.int64)
        self._rows = 0

    @property
    def nbytes(self) -> int:
        """Bytes that the vectors take."""
        return self._rows * self.dimension

    def put(self, ids: Numbers, vectors: Int8) -> None:
        """Add vectors (int8[n, dimension]); an id again replaces its vector. One caller at a
        time."""
        rows, count = self._rows, len(ids)
        self._signs.append(
            np.arange(rows, rows + count, dtype=np.int32),
            sign_bits(vectors.astype(np.float32), self._centre),
        )
        self._ids = _grown(self._ids, rows + count)
        self._vectors = _grown(self._vectors, rows + count)
        places = _grown(self._place, int(ids.max(initial=0)) + 1)
        places[len(self._place) :] = -1
        self._place = places
        self._ids[rows : rows + count] = ids
        self._vectors[rows : rows + count] = vectors
        self._place[ids] = np.arange(rows, rows + count)
        self._rows = rows + count

    def cosines(self, vector: Float32, ids: Sequence[int]) -> dict[int, float]:
        """The cosine of ``vector`` (float32[dimension], unit) with each of the ids that has a
        vector."""
        place = self._place
        wanted = np.array([one for one in ids if 0 <= one < len(place)], dtype=np.int64)
        places = place[wanted]
        known = places >= 0
        scores = self._scores(vector, places[known])
        return dict(zip(wanted[known].tolist(), scores.tolist(), strict=True))

    def nearest(self, vector: Float32, k: int, rescored: int) -> list[tuple[int, float]]:
        """(id, cosine) of the ``k`` nearest to ``vector``, best first; of many rows about
        ``rescored`` are scored (1 us each), fewer miss more of the best."""
        rows, ids, place = self._rows, self._ids, self._place
        if rows <= EXACT_ROWS:
            places: Places = np.arange(rows)
        else:
            query = sign_bits(vector[None, :], self._centre)[0]
            places = self._signs.nearest(query, max(rescored, k)).astype(np.intp)
            places = places[places < rows]
        places = places[place[ids[places]] == places]  # without what was replaced since
        scores, found = self._scores(vector, places), ids[places]
        best = np.lexsort((found, -scores))[:k]
        return list(zip(found[best].tolist(), scores[best].tolist(), strict=True))

    def _scores(self, vector: Float32, places: Places) -> Float32:
        table = self._vectors[places].astype(np.float32)
        norms = np.sqrt(np.einsum("ij,ij->i", table, table))
        scores: Float32 = (table @ vector) / np.maximum(norms, np.float32(1e-9))
        return scores


_Array = TypeVar("_Array", Numbers, Int8)


def _grown(array: _Array, rows: int) -> _Array:
    """``array`` with room for ``rows`` rows; room that nobody has written takes no memory."""
    if rows <= len(array):
        return array
    larger = np.empty((max(rows, 2 * len(array)), *array.shape[1:]), dtype=array.dtype)
    larger[: len(array)] = array
    return larger
