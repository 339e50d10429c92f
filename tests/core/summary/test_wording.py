"""How requests and findings are worded: kinds of sentences met in real sessions."""

import pytest

from lored.core.summary.commands import LOOKED_AT, read_steps
from lored.core.summary.phrases import is_chore, is_order, phrase
from lored.core.summary.requests import headline
from lored.core.summary.statements import read_decisions


@pytest.mark.parametrize(
    ("line", "done"),
    [
        ("find out why the build fails and fix it", "Found out why the build fails and fixed it"),
        ("rename it, then update the docs", "Renamed it, then updated the docs"),
        # Nouns that look like orders, and verbs that depend on what goes before, stay.
        ("update the build and test scripts", "Updated the build and test scripts"),
        ("fix it so that all can read and edit the page", "Fixed it so that all can read and edit the page"),  # noqa: E501
        ("go back to main", "Went back to main"),
        ("I'm working on the parser", "Worked on the parser"),
        ("the tests fail on CI", "Worked on: the tests fail on CI"),
        ("/init", "Ran /init"),
    ],
)  # fmt: skip
def test_what_was_done_is_told_in_the_past_tense(line: str, done: str) -> None:
    assert phrase(line, done=True) == done


def test_an_order_names_its_object() -> None:
    assert is_order("implement the retry of the client")
    assert not is_order("fix it now please")


@pytest.mark.parametrize(
    ("line", "chore"),
    [
        ("check out main", True),
        ("read the README", True),
        ("check out/review the parser", False),
        ("commit messages should name their room and say why they changed what they did", False),
    ],
)
def test_what_comes_before_work_is_told_apart(line: str, chore: bool) -> None:
    assert is_chore(line) is chore


def test_field_marks_of_programs_are_no_words() -> None:
    assert headline("[[ ## user_query ## ]]\nAdd a retry to the client\n[[ ## x ## ]]") == (
        "Add a retry to the client"
    )


@pytest.mark.parametrize(
    "sentence",
    [
        "If the cause was the cache, we would see it at once.",
        "I could not run the tests because npm is missing.",
        "This is not fixed by the new release.",
        "The estimate is high because of the many files.",
    ],
)
def test_suppositions_and_excuses_are_no_decisions(sentence: str) -> None:
    assert read_decisions(sentence) == []


@pytest.mark.parametrize(
    "sentence",
    ["The root cause was a stale cache.", "I moved the lock because two writers raced."],
)
def test_findings_and_deeds_with_their_reason_are(sentence: str) -> None:
    assert read_decisions(sentence) == [sentence]


@pytest.mark.parametrize(
    ("command", "steps"),
    [
        ("npx -p typescript tsc --noEmit", ["lint:tsc"]),
        ("out=$(npm test 2>&1)", ["test:npm test"]),
        ("pytest \\\n  -q tests", ["test:pytest tests"]),
        (f'git commit -m "{"a" * LOOKED_AT} && npm test"', ["commit:git commit"]),
    ],
)
def test_programs_behind_other_words(command: str, steps: list[str]) -> None:
    assert [step.signature for step in read_steps(command)] == steps


def test_a_module_that_was_run_is_named_as_it_was_called() -> None:
    assert [step.label for step in read_steps("python -m lored.main run")] == [
        "python -m lored.main run"
    ]
