"""Quality of search against its bars: LoCoMo turns and DevMemBench sessions.

    python -m tests.bench --only quality

The data is not part of this repository (README.md here says where to get it); it is looked for
in the folder that `LORE_SHARED_DATA` names, or beside the repository. R@k is the mean share of
the gold found among the first k, MRR the mean of one by the rank of the first gold. The
harness with categories, splits and other tools is `tests/bench/quality`.
"""

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.contract import Row, line, not_run
from bench.quality import datasets, ours
from bench.quality.memories import Memory

ROOT = Path(__file__).parents[2]
DEPTH = 60
"""Hits that are looked at: ten sessions have more than one hit each."""


def folder() -> Path:
    """Where the data would be."""
    return Path(os.environ.get("LORE_SHARED_DATA") or ROOT.parent / "shared" / "data") / "retrieval"


def score(found: list[str], gold: list[str], k: int = 10) -> tuple[float, float]:
    """(share of ``gold`` among the first ``k``, one by the rank of the first)."""
    ranks = [place for place, key in enumerate(found, 1) if key in gold]
    share = sum(rank <= k for rank in ranks) / len(gold)
    return share, 1 / ranks[0] if ranks else 0.0


def measure(
    memories: Iterator[Memory], *, model: bool, by: str, most: int
) -> tuple[float, float, int]:
    """R@10 and MRR in percent over at most ``most`` questions a memory, and how many they are;
    ``by`` is `turns` or `sessions`."""
    models = ours.Models(None)
    scores: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory(prefix="lore-bench-") as name:
        for memory in memories:
            store = ours.Store(memory, Path(name), models, model=model)
            for question in memory.questions[:most]:
                hits = store.ask(question.text, DEPTH)
                if by == "turns":
                    keys = [store.turn_of[hit.id] for hit in hits]
                else:
                    keys = [store.session_of[hit.session] for hit in hits]
                scores.append(score(list(dict.fromkeys(keys)), getattr(question, by)))
            store.close()
    recall, rank = (sum(one[i] for one in scores) / len(scores) * 100 for i in (0, 1))
    return recall, rank, len(scores)


def rows(size: str) -> list[Row]:
    """For the table."""
    most = 3 if size == "smoke" else 1_000_000
    models = (False,) if size == "smoke" else (True, False)
    found: list[Row] = []
    talks, coding = folder() / "locomo10.json", folder() / "devmembench"
    missing = "not in {}; see tests/bench/README.md"
    if talks.is_file():
        for model in models:
            memories = datasets.locomo(talks)
            if size == "smoke":
                memories = iter([next(memories)])
            recall, rank, count = measure(memories, model=model, by="turns", most=most)
            how = "default" if model else "without a model"
            what = f"LoCoMo turns, {how}"
            note = f"{count} questions"
            found.append(Row(f"{what}, R@10", recall, "%", 76.0 if model else 71.0, "high", note))
            found.append(Row(f"{what}, MRR", rank, "%", 55.0 if model else None, "high"))
    else:
        found.append(not_run("LoCoMo turns", missing.format(talks)))
    if coding.is_dir():
        memories = datasets.devmembench(coding)
        recall, rank, count = measure(memories, model=models[0], by="sessions", most=most)
        note = f"{count} questions"
        found.append(Row("DevMemBench sessions, R@10", recall, "%", 96.0, "high", note))
        found.append(Row("DevMemBench sessions, MRR", rank, "%", 90.0, "high"))
    else:
        found.append(not_run("DevMemBench sessions", missing.format(coding)))
    return found


if __name__ == "__main__":
    for row in rows(sys.argv[1] if len(sys.argv) > 1 else "default"):
        print(line(row, 58))
