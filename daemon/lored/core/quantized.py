"""Arithmetic of stored vectors: int8 rows, their cosines, sign bits, and the scan over them.

Pure numpy; knows no store. The scan is exact in its distance (Hamming) and approximate as a
measure of cosine: 1,000 rows kept of a million hold .98 of the true best ten, and those are
then scored exactly from their int8 rows (research/retrieval 4.2 and 4.3).
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

Float32 = NDArray[np.float32]
Bits = NDArray[np.uint64]
Ids = NDArray[np.int32]

SIGN_DIMENSIONS: Final = 256
"""Components whose signs are kept. On MiniLM's 384 the first 256 lose .6 % of the true best ten
at 1,000 rows kept, and save a third of the memory."""

CHUNK_ROWS: Final = 1 << 16
"""Rows of one piece of the matrix: growing never copies, and a piece's distances stay in the
processor's cache."""

_FAR: Final = np.uint16(0xFFFF)


def quantize(vectors: Float32) -> list[bytes]:
    """float32[n, d] as n int8 rows of d bytes, each with a scale of its own (its largest
    component becomes 127). Cosines of the integers are within .003 of the true ones."""
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    scaled = np.rint(vectors * (127.0 / np.maximum(largest, 1e-9))).astype(np.int8)
    return [row.tobytes() for row in scaled]


def normalise(vectors: Float32) -> Float32:
    """Rows of unit length; rows of zeros stay."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    result: Float32 = (vectors / np.maximum(norms, 1e-9)).astype(np.float32)
    return result


def cosines(blobs: bytes, vector: Float32) -> Float32:
    """Cosines of ``vector`` (float32[d], unit) with int8[d] rows laid end to end."""
    table = np.frombuffer(blobs, dtype=np.int8).reshape(-1, len(vector)).astype(np.float32)
    norms = np.sqrt(np.einsum("ij,ij->i", table, table))
    scores: Float32 = (table @ vector) / np.maximum(norms, np.float32(1e-9))
    return scores


def sign_words(dimension: int) -> int:
    """64-bit words of the sign bits of a vector."""
    return (min(dimension, SIGN_DIMENSIONS) + 63) // 64


def sign_bits(vectors: Float32, centre: Float32 | None) -> Bits:
    """Signs of the first `SIGN_DIMENSIONS` of float32[n, d] (after ``centre`` is taken from the
    unit vectors) as uint64[n, sign_words(d)], the last word filled up with zeros."""
    if centre is not None:
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors = vectors / np.maximum(norms, 1e-9) - centre
    bits = np.packbits(vectors[:, :SIGN_DIMENSIONS] > 0, axis=1, bitorder="little")
    missing = -bits.shape[1] % 8
    if missing:
        bits = np.pad(bits, ((0, 0), (0, missing)))
    return np.ascontiguousarray(bits).view("<u8")


class SignMatrix:
    """Sign bits of many rows with their ids, column by column; grows in place.

    Appending and scanning may happen in different threads: a scan sees the rows that were
    complete when it began.
    """

    def __init__(self, words: int) -> None:
        self.words = words
        self.rows = 0
        self._chunks: list[tuple[Ids, Bits]] = []

    def append(self, ids: Ids, bits: Bits) -> None:
        """Add rows: ids below 2^31 and uint64[n, words]. One caller at a time."""
        done = 0
        while done < len(ids):
            place = self.rows % CHUNK_ROWS
            if place == 0 and self.rows == len(self._chunks) * CHUNK_ROWS:
                self._chunks.append(
                    (
                        np.empty(CHUNK_ROWS, dtype=np.int32),
                        np.empty((self.words, CHUNK_ROWS), dtype=np.uint64),
                    )
                )
            count = min(CHUNK_ROWS - place, len(ids) - done)
            chunk_ids, chunk_bits = self._chunks[-1]
            chunk_ids[place : place + count] = ids[done : done + count]
            chunk_bits[:, place : place + count] = bits[done : done + count].T
            self.rows += count
            done += count

    def nearest(self, query: Bits, cut: int, allowed: "NDArray[np.bool_] | None" = None) -> Ids:
        """Ids of the ``cut`` rows nearest to ``query`` (uint64[words]), with all that tie with
        the last of them; ``allowed`` (by id) leaves rows out. Unordered, may repeat an id."""
        rows, chunks = self.rows, self._chunks
        distances, owners = [], []
        for start in range(0, rows, CHUNK_ROWS):
            ids, bits = chunks[start // CHUNK_ROWS]
            count = min(CHUNK_ROWS, rows - start)
            distance = np.zeros(count, dtype=np.uint16)
            for word in range(self.words):
                distance += np.bitwise_count(bits[word, :count] ^ query[word])
            if allowed is not None:
                distance[~allowed[np.minimum(ids[:count], len(allowed) - 1)]] = _FAR
            distances.append(distance)
            owners.append(ids[:count])
        if not distances:
            return np.empty(0, dtype=np.int32)
        limit = _limit(distances, cut, 64 * self.words)
        found = [own[dist <= limit] for own, dist in zip(owners, distances, strict=True)]
        return np.concatenate(found)


def _limit(distances: "list[NDArray[np.uint16]]", cut: int, largest: int) -> int:
    """The distance within which at least ``cut`` rows lie, or all that are allowed."""
    found = np.concatenate(distances) if len(distances) > 1 else distances[0]
    place = min(cut, len(found)) - 1
    return min(int(np.partition(found, place)[place]), largest)
