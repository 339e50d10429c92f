"""Bad input by the hundred thousand: mutated frames and mutated transcript records.

    python -m tests.bench --only input

Frames go to the codec as the daemon reads them; every outcome must be messages or a
`FramingError`. Records go to the parser of their agent, which must give records and never
raise. Memory is that of this process before and after; the slowest single input is shown,
since a hang would be one. What the daemon answers to garbage is tested in `tests/rpc`.
"""

import random
import resource
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import psutil

from bench.contract import Row, line
from lore.wire.codec import Codec, encode_notification, encode_request, encode_response
from lore.wire.messages import FramingError
from lored.core.transcripts import parser_for
from support.transcripts import SAMPLES, content, samples_of

FRAMES = {"smoke": 2_000, "default": 200_000, "full": 1_000_000}
RECORDS = {"smoke": 500, "default": 30_000, "full": 100_000}
ATOMS = (
    b"\xc1", b"\xff", b"\x00", b"\xdd\xff\xff\xff\xff", b"\xc9\x7f\xff\xff\xff\x01",
    b"\x91" * 64, b'"', b"}", b"\\ud800", b"null", b"[]", b"1e999", b"\n", b"\xf0\x9f",
    b'{"type":', b"-",
)  # fmt: skip
GROWTH_BAR_MB = 32.0
SLOW_BAR_S = 1.0


def resident_mb() -> float:
    """Resident memory of this process."""
    return float(psutil.Process().memory_info().rss) / 1e6


def mutated(data: bytes, dice: random.Random) -> bytes:
    """``data`` with one to four places replaced, cut, doubled or overwritten."""
    changed = bytearray(data)
    for _ in range(dice.choice((1, 1, 2, 4))):
        at = dice.randrange(len(changed) + 1)
        kind = dice.randrange(5)
        if kind == 0:
            changed[at:at] = dice.choice(ATOMS)
        elif kind == 1 and changed:
            changed[at % len(changed)] ^= 1 << dice.randrange(8)
        elif kind == 2:
            del changed[at : at + dice.choice((1, 3, 40))]
        elif kind == 3:
            changed[at:at] = changed[at : at + dice.choice((1, 9, 200))]
        else:
            changed[at : at + 4] = dice.randbytes(4)
    return bytes(changed)


def frames(count: int, dice: random.Random) -> tuple[float, float, int]:
    """Slowest seconds, growth in MB, refused streams."""
    seeds = [
        encode_request(7, "remember_fact", {"text": "Cache TTL is 300s", "tags": ["a", "b"]}),
        encode_request(8, "episodic_recall", {"query": "ttl", "limit": 5, "since": "yesterday"}),
        encode_notification("event", {"topic": "facts", "n": 1.5, "deep": {"a": [1, [2, [None]]]}}),
        encode_response(9, {"facts": [{"id": "F1", "text": "x" * 300}], "ok": True}),
    ]
    slowest, refused, before = 0.0, 0, 0.0
    for number in range(count):
        stream = mutated(dice.choice(seeds), dice)
        began = time.perf_counter()
        codec = Codec("daemon")
        try:
            codec.feed(stream)
        except FramingError:
            refused += 1
        slowest = max(slowest, time.perf_counter() - began)
        if number == count // 10:
            before = resident_mb()
    return slowest, resident_mb() - before, refused


def records(count: int, dice: random.Random) -> tuple[float, float, int]:
    """Slowest seconds, growth in MB, records told."""
    lines: list[tuple[str, Any, bytes]] = []
    for sample in samples_of(SAMPLES):
        parser: Any = parser_for(sample.agent, str(sample.path))
        if hasattr(parser, "parse"):
            found = content(sample.path).split(b"\n")
            lines += [(str(sample.path), parser, one) for one in found if 1 < len(one) < 30_000]
    slowest, told, before = 0.0, 0, 0.0
    for number in range(count):
        path, parser, text = dice.choice(lines)
        text = mutated(text, dice).replace(b"\n", b" ")
        began = time.perf_counter()
        state = parser.begin(path)
        told += len(list(parser.parse(state, text, 0)))
        slowest = max(slowest, time.perf_counter() - began)
        if number == count // 10:
            before = resident_mb()
    return slowest, resident_mb() - before, told


def rows(size: str) -> list[Row]:
    """For the table. A crash fails the whole bench."""
    found = []
    for what, count, work in (
        ("frames", FRAMES[size], frames),
        ("records", RECORDS[size], records),
    ):
        dice = random.Random(count)
        began = resource.getrusage(resource.RUSAGE_SELF).ru_utime
        slowest, growth, counted = work(count, dice)
        spent = resource.getrusage(resource.RUSAGE_SELF).ru_utime - began
        rest = "streams refused" if what == "frames" else "records told"
        note = f"{counted:,} {rest}, none raised; {spent:.1f} s of processor time"
        name = f"{count:,} mutated {what}"
        found += [
            Row(f"{name}: growth", max(growth, 0.0), "MB", GROWTH_BAR_MB, note=note),
            Row(f"{name}: slowest", slowest * 1e3, "ms", SLOW_BAR_S * 1e3),
        ]
    return found


if __name__ == "__main__":
    for row in rows(sys.argv[1] if len(sys.argv) > 1 else "default"):
        print(line(row, 58))
