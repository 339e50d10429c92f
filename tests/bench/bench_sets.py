"""Public sets with gold by session: DevMemBench, and LongMemEval and CodeMemo where one has them.

python -m tests.bench --only sets
"""

import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.contract import Row, line, not_run
from bench.quality import datasets, ours, places
from bench.quality.memories import Memory
from bench.quality.scoring import DEPTH, Score, mean, score, told

Reader = Callable[[Path], Iterator[Memory]]
SETS: tuple[tuple[str, str, Reader, float | None, float | None], ...] = (
    ("DevMemBench", "devmembench", datasets.devmembench, 96.0, 90.0),
    ("LongMemEval", "longmemeval_s.json", datasets.longmemeval, None, None),
    ("CodeMemo", "codememo", datasets.codememo, None, None),
)
"""Name, file or folder in the data, reader, bars of R@10 and MRR."""


def measure(memories: Iterator[Memory], *, model: bool, most: int) -> list[Score]:
    """The scores of at most ``most`` questions a memory."""
    models = ours.Models(None)
    scores: list[Score] = []
    for memory in memories:
        with tempfile.TemporaryDirectory(prefix="lore-bench-") as name:
            store = ours.Written(memory, Path(name), models, model=model)
            for question in memory.questions[:most]:
                scores.append(score(question, *store.find(question.text, DEPTH)))
            store.close()
    return scores


def rows(size: str) -> list[Row]:
    """For the table."""
    smoke = size == "smoke"
    found: list[Row] = []
    for name, file, read, recall, rank in SETS:
        path = places.retrieval() / file
        if not path.exists():
            found.append(not_run(f"{name} sessions", places.missing(path)))
            continue
        scores = measure(read(path), model=not smoke, most=3 if smoke else 1_000_000)
        figure = mean(scores, lambda s: s.session_10)
        found.append(Row(f"{name} sessions: R@10", figure, "%", recall, "high", told(scores)))
        figure = mean(scores, lambda s: s.rank)
        found.append(Row(f"{name} sessions: MRR", figure, "%", rank, "high"))
    return found


if __name__ == "__main__":
    for row in rows(sys.argv[1] if len(sys.argv) > 1 else "default"):
        print(line(row, 58))
