"""The coding-history set is sound: its form always, its gold where the sessions are there."""

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from bench.quality import history, places
from bench.quality.memories import Question
from bench.quality.scoring import reciprocal, score, share


def items() -> list[dict[str, Any]]:
    text = (places.SET / "questions.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_ids_and_questions_are_unique_and_kinds_known() -> None:
    found = items()
    assert [item["id"] for item in found] == [f"h{n:03}" for n in range(1, len(found) + 1)]
    assert len({item["question"] for item in found}) == len(found)
    assert {item["kind"] for item in found} == set(history.KINDS)
    for item in found:
        assert item["question"].strip() and item["answer"].strip(), item["id"]


def test_there_are_enough_of_each_kind_and_some_without_an_answer() -> None:
    counts = Counter(item["kind"] for item in items())
    assert counts["unanswerable"] >= 20
    assert counts.total() - counts["unanswerable"] >= 150
    assert min(counts.values()) >= 20


def test_halves_alternate_within_each_kind() -> None:
    seen: Counter[str] = Counter()
    for item in items():
        assert item["half"] == history.HALVES[seen[item["kind"]] % 2], item["id"]
        seen[item["kind"]] += 1


def test_only_what_has_an_answer_has_gold_and_all_of_it_is_once() -> None:
    for item in items():
        answerable = item["kind"] != "unanswerable"
        assert bool(item["records"]) == bool(item["sessions"]) == answerable, item["id"]
        for name in ("records", "sessions"):
            assert len(item[name]) == len(set(item[name])), item["id"]


def test_every_gold_session_is_listed_with_a_licence_that_permits_questions() -> None:
    with (places.SET / "sessions.tsv").open(encoding="utf-8", newline="") as file:
        listed = {row["session"]: row for row in csv.DictReader(file, delimiter="\t")}
    assert {name for item in items() for name in item["sessions"]} == set(listed)
    for row in listed.values():
        assert row["licence"].split(" ")[0] in ("MIT", "Apache-2.0"), row["session"]


@pytest.mark.timeout(300)
def test_every_gold_record_is_in_a_gold_session(tmp_path: Path) -> None:
    transcripts = places.transcripts()
    if not transcripts.is_dir():
        pytest.skip(places.missing(transcripts))
    read = history.memory(history.index(transcripts, tmp_path), [])
    session_of = read.session_of
    spoken = {turn.key: turn.text.strip() for session in read.sessions for turn in session.turns}
    for item in items():
        for key in item["records"]:
            assert session_of[key] in item["sessions"], (item["id"], key)
            assert spoken[key], (item["id"], key)


def test_one_gold_message_answers_where_each_answers_by_itself() -> None:
    asked = Question("?", "file", ["b", "c"], ["s"], any_of=True)
    found = score(asked, ["a", "b"], ["t", "s"])
    assert (found.turn_10, found.rank, found.session_5) == (1.0, 0.5, 1.0)
    assert share(["a", "b"], ["b", "c"], 10, any_of=False) == 0.5
    assert share(["a"] * 10 + ["b"], ["b"], 10, any_of=True) == 0.0
    assert reciprocal(["a"], ["b"]) == 0.0


def test_without_gold_messages_sessions_are_scored_by_their_first_hit() -> None:
    asked = Question("?", "all", sessions=["s", "u"])
    found = score(asked, ["1", "2", "3"], ["t", "t", "s"])
    assert (found.session_5, found.turn_10, found.rank) == (0.5, 0.5, 0.5)
