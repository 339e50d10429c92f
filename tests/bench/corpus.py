"""Transcripts of any size, grown from the real samples: real shapes, sessions of their own.

Each copy of a sample gets new session, record, message and call ids (else its records would be
those of the first copy, stored once), times of its own, and other words in places, so that the
vocabulary grows as real ones do. Sizes and forms of lines stay those of the samples.
"""

import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

from support.transcripts import SAMPLES, SHARED

HOMES = ("claude", "codex", "recursive")
_UUID = re.compile(rb"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_ID = re.compile(rb"\b(toolu|call|msg|req|fc|rs)_[0-9A-Za-z]{8,}")
_DATE = re.compile(rb"\b(20\d\d)-(\d\d)-(\d\d)(?=T)")
_WORD = re.compile(rb"(?<= )[a-z]{6,12}(?= )")
_DAY_NS = 86_400 * 1_000_000_000
SHARE_OF_WORDS = 16
"""One in so many different words is another one in each copy."""


@dataclass(slots=True)
class Grown:
    """What was written: the home directory, bytes, files, the newest file."""

    home: Path
    bytes: int = 0
    files: int = 0
    newest: Path | None = None


def samples(*, shared: bool = True) -> list[tuple[str, bytes]]:
    """(place below a home directory, content) of the transcripts to grow from, in order."""
    folders = [SAMPLES / name for name in HOMES]
    if shared and SHARED is not None:
        folders = [SHARED / name for name in HOMES]
    found = []
    for folder in folders:
        for path in sorted(folder.rglob("*.jsonl")):
            place = str(path.relative_to(folder))
            kept = path.name not in ("journal.jsonl", "session_index.jsonl", "history.jsonl")
            if kept and not place.startswith("growth"):
                found.append((place, path.read_bytes()))
    assert found, "no samples"
    return found


def _digest(data: bytes, copy: int) -> str:
    return hashlib.blake2b(data + copy.to_bytes(4, "big"), digest_size=16).hexdigest()


class Rewriter:
    """Turns a sample into its ``copy``-th sibling; `grown` for content, `place` for paths."""

    def __init__(self, copy: int) -> None:
        self._copy = copy
        self._words: dict[bytes, bytes] = {}

    def _uuid(self, found: re.Match[bytes]) -> bytes:
        old, new = found[0], _digest(found[0], self._copy)
        # The first group of a version 7 id is its time: kept, as names of files follow it.
        made = f"{new[:4]}-{new[4:7]}-{new[7:10]}-{new[10:22]}".encode()
        return old[:9] + made[:4] + b"-" + old[14:15] + made[5:8] + b"-a" + made[9:12] + made[12:]

    def _id(self, found: re.Match[bytes]) -> bytes:
        return found[1] + b"_" + _digest(found[0], self._copy).encode()

    def _date(self, found: re.Match[bytes]) -> bytes:
        try:
            day = date(int(found[1]), int(found[2]), int(found[3]))
        except ValueError:
            return found[0]
        return (day - timedelta(days=self._copy % 300)).isoformat().encode()

    def _word(self, found: re.Match[bytes]) -> bytes:
        word = found[0]
        known = self._words.get(word)
        if known is None:
            digest = _digest(word, self._copy)
            other = int(digest[:4], 16) % SHARE_OF_WORDS == 0
            tail = digest[4:8].translate(str.maketrans("0123456789", "ghijklmnop"))
            known = self._words[word] = word[:4] + tail.encode() if other else word
        return known

    def grown(self, data: bytes) -> bytes:
        """The sibling's content."""
        data = _UUID.sub(self._uuid, data)
        data = _ID.sub(self._id, data)
        data = _DATE.sub(self._date, data)
        return _WORD.sub(self._word, data)

    def place(self, place: str) -> str:
        """The sibling's path below a home directory."""
        parts = _UUID.sub(self._uuid, place.encode()).decode().split("/")
        if parts[0] == ".claude":
            parts[2] += f"-c{self._copy}"
        elif parts[0] == ".recursive":
            parts[-2] += f"-c{self._copy}"
        return "/".join(parts)


def siblings(size: int, *, shared: bool = True) -> Iterator[tuple[str, bytes]]:
    """(place, content) of transcripts until ``size`` bytes are reached."""
    originals = samples(shared=shared)
    made = copy = 0
    while made < size:
        rewriter = Rewriter(copy)
        for place, data in originals:
            if made >= size:
                return
            grown = rewriter.grown(data)
            made += len(grown)
            yield rewriter.place(place), grown
        copy += 1


def grow(home: Path, size: int, *, now_ns: int, shared: bool = True) -> Grown:
    """Write ``size`` bytes of transcripts below ``home``, the last written the newest; the
    others are spread over the half year before ``now_ns`` (nanoseconds since 1970)."""
    found = Grown(home)
    for place, data in siblings(size, shared=shared):
        path = home / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        age = 180 * _DAY_NS * max(size - found.bytes, 0) // size
        os.utime(path, ns=(now_ns - 3_600 * 10**9 - age,) * 2)
        found.bytes += len(data)
        found.files += 1
        found.newest = path
    return found
