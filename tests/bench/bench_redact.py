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

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.contract import Row
from lored.core.redact import redact, scan
from support.replay import SAMPLES, SHARED, read

ROOT = Path(__file__).parents[1]
LABELLED = ROOT / "data" / "redact" / "labelled.jsonl"
SPEED_BAR = 80.0
"""MB of transcript a second, counting what the indexer has redacted of it (texts, commands,
targets, excerpts): under two fifths of the time that the bar of 30 MB/s for everything leaves."""
FORMATS = (
    ("claude-code", "claude/.claude/projects/**/*.jsonl"),
    ("codex", "codex/.codex/sessions/**/*.jsonl"),
    ("recursive", "recursive/.recursive/**/transcript.jsonl"),
)
FIELDS = ("text", "command", "target", "output_excerpt", "summary")


def texts(agent: str, path: Path) -> Iterator[str]:
    """What the indexer would redact of one file."""
    for _, record in read(agent, path):
        for name in FIELDS:
            value = getattr(record, name, None)
            if isinstance(value, str):
                yield value


def labelled() -> tuple[int, int, int, int, Counter[str]]:
    """Of the labelled set: secrets caught, secrets, false positives, clean texts, kinds missed."""
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
    return caught, secrets, false, len(cases) - secrets, +missed


def real_texts() -> tuple[int, list[str]]:
    """Bytes of the real transcripts, and what of them is redacted."""
    folder = SHARED if SHARED.is_dir() else SAMPLES
    files = [(agent, path) for agent, glob in FORMATS for path in sorted(folder.glob(glob))]
    files = [(agent, path) for agent, path in files if path.name != "journal.jsonl"]
    transcript = sum(path.stat().st_size for _, path in files)
    return transcript, [text for agent, path in files for text in texts(agent, path)]


def rows(size: str) -> list[Row]:
    """For the table."""
    caught, secrets, false, clean, _ = labelled()
    transcript, real = real_texts()
    best = min(_timed(real) for _ in range(1 if size == "smoke" else 3))
    found = Counter(item.rule for text in real for item in scan(text))
    return [
        Row("redaction: secrets found of the labelled set", caught / secrets * 100, "%",
            note=f"{caught} of {secrets}; the set was made by the authors of the rules"),
        Row("redaction: clean texts changed", false / clean * 100, "%",
            note=f"{false} of {clean}; {sum(found.values())} findings in {len(real)} real texts"),
        Row("redaction, per core, of transcript", transcript / 1e6 / best, "MB/s", SPEED_BAR,
            "high", f"{sum(map(len, real)) / 1e6 / best:.0f} MB/s of text"),
    ]  # fmt: skip


def main() -> int:
    """Print everything that is found; 1 when the bar is missed."""
    caught, secrets, false, clean, missed = labelled()
    print(f"labelled set: recall {caught}/{secrets}, false positives {false}/{clean}")
    for kind, count in missed.items():
        print(f"  missed {kind}: {count}")
    transcript, real = real_texts()
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
    speed = transcript / 1e6 / best
    verdict = "ok" if speed >= SPEED_BAR else "MISSED"
    print(f"real text: {len(real)} texts, {size / 1e6:.1f} MB, findings {dict(found)}")
    print(f"redact: {size / 1e6 / best:.0f} MB/s of text, ", end="")
    print(f"{speed:.0f} MB/s of transcript (bar >= {SPEED_BAR:.0f}): {verdict}")
    return 0 if speed >= SPEED_BAR else 1


def _timed(items: list[str]) -> float:
    start = time.process_time()
    for text in items:
        redact(text)
    return time.process_time() - start


if __name__ == "__main__":
    sys.exit(main())
