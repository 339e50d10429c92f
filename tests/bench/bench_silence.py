"""When memory keeps silent: what hooks would inject on prompts that it knows nothing about.

    python -m tests.bench --only silence

Four negative controls: the questions of one LoCoMo conversation to the memory of the next, as
they are and with the names of those who speak there (an unknown name alone would tell them
apart), the same to the coding history, and the unanswerable questions of the coding-history set to
its own memory. A false injection is any hit above the line (`core/relevance.py`) among the
first ten. What silence costs is measured on questions to their own memory: the share that gets
anything, and the R@10 lost by dropping what is below the line. The line was fitted on LoCoMo
and DevMemBench, so the coding history is the held-out side.
"""

import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.contract import Row, line, not_run
from bench.quality import datasets, history, ours, places
from bench.quality.memories import Question
from bench.quality.scoring import share

SHOWN = 10
"""Hits that an injection may have."""
EVERY = 5
"""LoCoMo questions that are asked of the coding history: each fifth."""


def false(store: ours.Search, questions: Sequence[Question]) -> list[float]:
    """Per question 1 when anything would be injected, else 0."""
    return [
        float(any(hit.evidence > 0 for hit in store.ask(question.text, SHOWN)))
        for question in questions
    ]


def exchanged(question: Question, names: Sequence[str], others: Sequence[str]) -> Question:
    """``question`` about other people: that a name is unknown must not give it away."""
    text = question.text
    for name, other in zip(names, others, strict=True):
        text = re.sub(rf"\b{re.escape(name)}\b", other, text)
    return replace(question, text=text)


def kept(store: ours.Search, questions: Sequence[Question]) -> list[tuple[float, float, float]]:
    """Per question: whether it gets anything, R@10 of all hits, R@10 of those above the line."""
    found = []
    for question in questions:
        hits = store.ask(question.text, SHOWN)
        above = [store.turn_of[hit.id] for hit in hits if hit.evidence > 0]
        every = [store.turn_of[hit.id] for hit in hits]
        found.append(
            (
                float(bool(above)),
                share(every, question.turns, SHOWN, any_of=question.any_of),
                share(above, question.turns, SHOWN, any_of=question.any_of),
            )
        )
    return found


def percent(values: Sequence[float]) -> float:
    """The mean, in percent."""
    return 100 * sum(values) / len(values)


def lines(
    where: str, wrong: dict[str, list[float]], right: Sequence[tuple[float, float, float]]
) -> list[Row]:
    """Rows of one memory."""
    rows = [
        Row(f"{where}, {what}: false injections", percent(found), "%", note=f"n={len(found)}")
        for what, found in wrong.items()
    ]
    answered, every, above = (percent([one[i] for one in right]) for i in range(3))
    note = f"n={len(right)}, R@10 {every:.1f} without the line, {above:.1f} with it"
    what = f"{where}, own questions: "
    rows.append(Row(f"{what}get anything", answered, "%", better="high", note=note))
    rows.append(Row(f"{what}R@10 lost", every - above, "%"))
    return rows


def locomo(path: Path, models: ours.Models, *, model: bool, most: int) -> list[Row]:
    """LoCoMo against its neighbour."""
    memories = list(datasets.locomo(path))
    wrong: dict[str, list[float]] = {"of another": [], "of another, names exchanged": []}
    right: list[tuple[float, float, float]] = []
    for place, memory in enumerate(memories[:2] if most < 100 else memories):
        with tempfile.TemporaryDirectory(prefix="lore-bench-") as name:
            store = ours.Written(memory, Path(name), models, model=model)
            other = memories[(place + 1) % len(memories)]
            foreign = other.questions[:most]
            alike = [exchanged(question, other.people, memory.people) for question in foreign]
            for asked, found in zip((foreign, alike), wrong.values(), strict=True):
                found += false(store, asked)
            right += kept(store, memory.questions[:most])
            store.close()
    return lines("silence, LoCoMo", wrong, right)


def coding(
    transcripts: Path, foreign: list[Question], models: ours.Models, *, model: bool, most: int
) -> list[Row]:
    """The coding history."""
    asked = history.questions()
    with tempfile.TemporaryDirectory(prefix="lore-bench-") as name:
        path = history.index(transcripts, Path(name))
        memory = history.memory(path, asked)
        known = memory.session_of
        own = [question for question in asked if known.keys() >= set(question.turns)]
        store = ours.Indexed(memory, path, models, model=model)
        wrong = {"unanswerable": false(store, [q for q in own if not q.turns][:most])}
        if foreign:
            wrong["LoCoMo's"] = false(store, foreign[::EVERY][:most])
        right = kept(store, [question for question in own if question.turns][:most])
        store.close()
    return lines("silence, history", wrong, right)


def rows(size: str) -> list[Row]:
    """For the table."""
    smoke = size == "smoke"
    most = 3 if smoke else 1_000_000
    models = ours.Models(None)
    found: list[Row] = []
    talks = places.retrieval() / "locomo10.json"
    transcripts = places.SAMPLES if smoke else places.transcripts()
    foreign: list[Question] = []
    if talks.is_file():
        foreign = [question for memory in datasets.locomo(talks) for question in memory.questions]
        found += locomo(talks, models, model=not smoke, most=most)
    else:
        found.append(not_run("silence, LoCoMo", places.missing(talks)))
    if transcripts.is_dir():
        found += coding(transcripts, foreign, models, model=not smoke, most=most)
    else:
        found.append(not_run("silence, history", places.missing(transcripts)))
    return found


if __name__ == "__main__":
    for row in rows(sys.argv[1] if len(sys.argv) > 1 else "default"):
        print(line(row, 58))
