"""Looking for the words of a forgotten text in files, byte by byte.

A text can survive in pieces: a long one spans pages, a freed page keeps parts. So a number of
short stretches of it are looked for, spread over its length, in each form in which we write
text: as it is, escaped as JSON, and as the words given to the text index. Compressed and
encrypted forms cannot be seen; we keep none of facts.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from lored.core.tokens import index_form

STRETCH_BYTES: Final = 24
"""One stretch: long enough to be no accident, short enough to find parts."""

STRETCHES: Final = 32
"""Stretches of one form; more cost time and find nothing smaller that matters."""

BLOCK_BYTES: Final = 8 << 20


class Scan(NamedTuple):
    """What was looked through, and where something was found (path -> stretches)."""

    files: int
    read_bytes: int
    found: dict[str, list[bytes]]


def stretches(text: str) -> list[bytes]:
    """What to look for to find any sizeable part of ``text``."""
    forms = {
        text,
        index_form(text).split("\n")[0] if "\n" not in text else text,
        json.dumps(text, ensure_ascii=False)[1:-1],
        json.dumps(text)[1:-1],
    }
    found: dict[bytes, None] = {}
    for form in sorted(forms):
        data = form.encode("utf-8", "surrogatepass")
        if len(data) <= STRETCH_BYTES:
            found[data] = None
            continue
        count = min(STRETCHES, len(data) // STRETCH_BYTES)
        last = len(data) - STRETCH_BYTES
        for index in range(count):
            start = round(index * last / max(1, count - 1))
            found[data[start : start + STRETCH_BYTES]] = None
    return list(found)


def files_under(folders: Iterable[str]) -> Iterator[str]:
    """Regular files in ``folders``, no links followed."""
    for folder in folders:
        for where, _, names in os.walk(folder):
            for name in names:
                path = os.path.join(where, name)
                if os.path.isfile(path) and not os.path.islink(path):
                    yield path


def weigh(paths: Iterable[str]) -> int:
    """Bytes of these files together."""
    total = 0
    for path in paths:
        try:
            total += os.stat(path).st_size
        except OSError:
            continue
    return total


def scan(
    paths: Iterable[str], wanted: list[bytes], advance: Callable[[int], None] | None = None
) -> Scan:
    """Read every file whole and say which hold any of ``wanted``. Files that vanish or cannot
    be read meanwhile (another's lock) are left out of the count. ``advance`` hears of the bytes
    read."""
    seen, total = 0, 0
    found: dict[str, list[bytes]] = {}
    overlap = max((len(one) for one in wanted), default=1) - 1
    for path in paths:
        hits: dict[bytes, None] = {}
        try:
            with open(path, "rb") as file:
                tail = b""
                while block := file.read(BLOCK_BYTES):
                    total += len(block)
                    if advance is not None:
                        advance(len(block))
                    data = tail + block
                    hits |= dict.fromkeys(one for one in wanted if one in data)
                    tail = data[-overlap:] if overlap else b""
        except OSError:
            continue
        seen += 1
        if hits:
            found[path] = list(hits)
    return Scan(seen, total, found)
