"""Redaction: recall and false positives on the labelled set, false positives on real transcripts,
and speed on clean text.

    python tests/bench/bench_redact.py

The labelled set (`tests/data/redact`) was made by the authors of the rules, so its recall says
that the rules do what they claim, not that they know every secret there is. The real
transcripts were sanitised by their publishers: whatever is found there is a false positive or
was overlooked by them; each is printed to be judged.
"""

import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lored.core.redact import redact, scan

ROOT = Path(__file__).parents[1]
LABELLED = ROOT / "data" / "redact" / "labelled.jsonl"
REAL = (ROOT.parent.parent / "shared" / "data" / "transcripts", ROOT / "data" / "transcripts")
SPEED_BAR = 40.0
"""MB/s on clean text; text is under half of a transcript's bytes, and the bar for a whole
transcript is 30 MB/s a core."""


def texts(folder: Path) -> Iterator[str]:
    """Every string of 20 characters or more in the messages of all transcripts below ``folder``."""
    for path in sorted(folder.rglob("*.jsonl")):
        for line in path.read_bytes().split(b"\n"):
            try:
                yield from _strings(json.loads(line))
            except (ValueError, RecursionError):
                continue


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if 20 <= len(value) < 64_000:
            yield value
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            if name not in ("data", "signature", "encrypted_content"):
                yield from _strings(item)


def main() -> int:
    cases = [json.loads(line) for line in LABELLED.read_text("utf-8").splitlines()]
    caught, missed, false = 0, Counter[str](), 0
    for case in cases:
        clean, _ = redact(case["text"])
        if case["secrets"]:
            bad = any(secret in clean for secret in case["secrets"])
            missed[case["kind"]] += bad
            caught += not bad
        else:
            false += clean != case["text"]
    secrets = sum(1 for case in cases if case["secrets"])
    print(
        f"labelled set: recall {caught}/{secrets}, false positives {false}/{len(cases) - secrets}"
    )
    for kind, count in (+missed).items():
        print(f"  missed {kind}: {count}")

    folder = next((folder for folder in REAL if folder.is_dir()), None)
    if folder is None:
        print("no transcripts at hand: speed not measured")
        return 0
    real = list(texts(folder))
    size = sum(map(len, real))
    found: Counter[str] = Counter()
    for text in real:
        for item in scan(text):
            found[item.rule] += 1
            if found[item.rule] <= 10:
                print(
                    f"  in real text: {item.rule}: {text[max(0, item.start - 30) : item.start]!r}"
                )
    best = min(_timed(real) for _ in range(3))
    speed = size / 1e6 / best
    verdict = "ok" if speed >= SPEED_BAR else "below the bar"
    print(f"real text: {len(real)} texts, {size / 1e6:.1f} MB, findings {dict(found)}")
    print(f"speed: {speed:.0f} MB/s (bar {SPEED_BAR:.0f}): {verdict}")
    return 0 if speed >= SPEED_BAR else 1


def _timed(items: list[str]) -> float:
    start = time.process_time()
    for text in items:
        redact(text)
    return time.process_time() - start


if __name__ == "__main__":
    sys.exit(main())
