"""Our own coding-history set, on ours in three modes and on the tools of others.

    python -m tests.bench --only history

The questions are asked of everything that the agents of one user left behind
(`quality/history.py`). `report` is the half to compare tools by; `tune` is there to look at.
The smoke size asks some of the questions that the samples in `tests/data` answer.
"""

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.contract import Row, line, not_run
from bench.quality import history, ours, peers, places, plain
from bench.quality.memories import Memory, Question
from bench.quality.scoring import DEPTH, mean, score, told

MODES = {
    "ours": {"model": True},
    "ours without a model": {"model": False},
    "ours deep": {"model": True, "deep": True},
}


def lines(tool: str, questions: Sequence[Question], found: peers.Found) -> list[Row]:
    """Rows of one tool, by half: R@10 of messages, the rest as a note."""
    rows = []
    for half in history.HALVES[::-1]:
        scores = [
            score(question, *answer)
            for question, answer in zip(questions, found, strict=True)
            if question.half == half
        ]
        note = f"MRR {mean(scores, lambda s: s.rank):.1f}, {told(scores)}"
        figure = mean(scores, lambda s: s.turn_10)
        rows.append(Row(f"history {half}, {tool}: R@10", figure, "%", better="high", note=note))
    return rows


def own(memory: Memory, store: Path, models: ours.Models, names: Sequence[str]) -> list[Row]:
    """Rows of ours."""
    rows = []
    for name in names:
        tool = ours.Indexed(memory, store, models, **MODES[name])
        found = [tool.find(question.text, DEPTH) for question in memory.questions]
        tool.close()
        rows += lines(name, memory.questions, found)
    return rows


def others(memory: Memory, models: ours.Models) -> list[Row]:
    """Rows of the peers, and why one was not run."""
    rows = []
    texts = [question.text for question in memory.questions]
    for peer in peers.PEERS:
        what = f"history report, {peer.name}: R@10"
        if peer.python is None:
            rows.append(not_run(what, peer.reason))
            continue
        try:
            rows += lines(
                peer.name, memory.questions, peers.ask(peer, memory, texts, DEPTH, models)
            )
        except (RuntimeError, OSError) as error:
            rows.append(not_run(what, str(error)[:200]))
    return rows


def rows(size: str) -> list[Row]:
    """For the table."""
    smoke = size == "smoke"
    transcripts = places.SAMPLES if smoke else places.transcripts()
    if not transcripts.is_dir():
        return [not_run("history", places.missing(transcripts))]
    questions = [question for question in history.questions() if question.turns]
    names = ["ours without a model"] if smoke else list(MODES)
    models = ours.Models(None)
    with tempfile.TemporaryDirectory(prefix="lore-bench-") as name:
        store = history.index(transcripts, Path(name))
        if smoke:
            there = history.memory(store, []).session_of
            questions = [q for q in questions if there.keys() >= set(q.turns)][:8]
        memory = history.memory(store, questions)
        # without the model first: its vectors are added to the same file
        found = own(memory, store, models, sorted(names, key=lambda n: MODES[n]["model"]))
    for what, tool in (("plain FTS5", plain.Fts(memory)), ("grep", plain.Grep(memory))):
        answers = [tool.find(question.text, DEPTH) for question in questions]
        found += lines(what, questions, answers)
    return found if smoke else found + others(memory, models)


if __name__ == "__main__":
    for row in rows(sys.argv[1] if len(sys.argv) > 1 else "default"):
        print(line(row, 58))
