"""LoCoMo: turns of ten long conversations, in two halves; ours in three modes, beside others.

    python -m tests.bench --only locomo

Ranking was tuned on conversations 0 to 4 only (`tune`); 5 to 9 (`report`) were never looked at
for it. Bars are for all, as `design/search.md` has them. Peers are asked about one
conversation of the report half, as filling them takes minutes.
"""

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.contract import Row, line, not_run
from bench.quality import datasets, ours, peers, places, plain
from bench.quality.memories import Memory
from bench.quality.scoring import DEPTH, Score, mean, score, told

TUNED = 5
"""Conversations before this one are the tune half."""
SHOWN = 5
"""The conversation that peers are asked about."""
MODES = {
    "default": ({"model": True}, 76.0, 55.0),
    "without a model": ({"model": False}, 71.0, None),
    "deep": ({"model": True, "deep": True}, 78.0, None),
}
"""Mode -> how the store is asked, bars of R@10 and MRR."""


def asked(memory: Memory, tool: "ours.Search | plain.Fts | plain.Grep") -> list[Score]:
    """The scores of every question of ``memory``."""
    return [score(q, *tool.find(q.text, DEPTH)) for q in memory.questions]


def halves(scores: list[list[Score]]) -> dict[str, list[Score]]:
    """Scores by half, and all."""
    found = {
        "tune": [s for part in scores[:TUNED] for s in part],
        "report": [s for part in scores[TUNED:] for s in part],
        "all": [s for part in scores for s in part],
    }
    return {name: part for name, part in found.items() if part}


def lines(what: str, scores: list[list[Score]], bars: tuple[float, float | None]) -> list[Row]:
    """Rows of one tool."""
    rows = []
    for half, part in halves(scores).items():
        recall, rank = bars if half == "all" else (None, None)
        figure = mean(part, lambda s: s.turn_10)
        rows.append(Row(f"LoCoMo {half}, {what}: R@10", figure, "%", recall, "high", told(part)))
        figure = mean(part, lambda s: s.rank)
        rows.append(Row(f"LoCoMo {half}, {what}: MRR", figure, "%", rank, "high"))
    return rows


def others(memory: Memory, models: ours.Models) -> list[Row]:
    """Peers about one conversation, and ours about the same."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="lore-bench-") as name:
        own = ours.Written(memory, Path(name), models, model=True)
        results = {"ours": asked(memory, own)}
        own.close()
    notes: dict[str, str] = {}
    for peer in peers.PEERS:
        if peer.python is None:
            notes[peer.name] = peer.reason
            continue
        try:
            texts = [question.text for question in memory.questions]
            answers = peers.ask(peer, memory, texts, DEPTH, models)
        except (RuntimeError, OSError) as error:
            notes[peer.name] = str(error)[:200]
            continue
        pairs = zip(memory.questions, answers, strict=True)
        results[peer.name] = [score(question, *answer) for question, answer in pairs]
    what = f"LoCoMo conversation {SHOWN}"
    for tool, scores in results.items():
        note = f"MRR {mean(scores, lambda s: s.rank):.1f}, {told(scores)}"
        figure = mean(scores, lambda s: s.turn_10)
        rows.append(Row(f"{what}, {tool}: R@10", figure, "%", better="high", note=note))
    return rows + [not_run(f"{what}, {tool}: R@10", note) for tool, note in notes.items()]


def rows(size: str) -> list[Row]:
    """For the table."""
    path = places.retrieval() / "locomo10.json"
    if not path.is_file():
        return [not_run("LoCoMo", places.missing(path))]
    memories = list(datasets.locomo(path))
    modes = dict(MODES)
    if size == "smoke":
        memories = memories[:1]
        memories[0].questions = memories[0].questions[:3]
        modes = {"without a model": MODES["without a model"]}
    models = ours.Models(None)
    found: list[Row] = []
    for mode, (how, *bars) in modes.items():
        scores = []
        for memory in memories:
            with tempfile.TemporaryDirectory(prefix="lore-bench-") as name:
                store = ours.Written(memory, Path(name), models, **how)
                scores.append(asked(memory, store))
                store.close()
        found += lines(mode, scores, (bars[0], bars[1]))
    for what, tool in (("plain FTS5", plain.Fts), ("grep", plain.Grep)):
        scores = [asked(memory, tool(memory)) for memory in memories]
        found += lines(what, scores, (None, None))
    if size != "smoke":
        found += others(memories[SHOWN], models)
    return found


if __name__ == "__main__":
    for row in rows(sys.argv[1] if len(sys.argv) > 1 else "default"):
        print(line(row, 58))
