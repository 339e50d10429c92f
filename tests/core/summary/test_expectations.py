"""Summaries of real sessions against what a reader found in them (`data/summaries`).

The expectations were written by reading the transcripts, not from the summaries. Sessions of
the larger collection are skipped where it is not at hand.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from support.replay import Replay, find

EXPECTED = json.loads(
    (Path(__file__).parents[2] / "data" / "summaries" / "expectations.json").read_text("utf-8")
)


def _name(case: dict[str, Any]) -> str:
    return f"{case['agent']}-{case['file'].rsplit('/', 2)[-1][-26:]}"


@pytest.mark.parametrize("case", EXPECTED, ids=_name)
def test_summary_says_what_a_reader_found(case: dict[str, Any]) -> None:
    path = find(case["file"])
    if path is None:
        pytest.skip("needs the larger collection of transcripts")
    found = Replay().take(case["agent"], path).summaries()
    session = case.get("session") or next(iter(found))
    summary = found[session]
    told = json.dumps(summary, ensure_ascii=False, indent=1)[:6_000]
    assert summary["status"] == case["status"], told
    assert case.get("goal", "") in " ".join((summary.get("goal") or "").split()), told
    assert case.get("line", "") in summary["line"], summary["line"]
    asked = "\n".join(summary["redirections"])
    for words in case.get("asked", ()):
        assert words in asked, asked
    for words in case.get("not_asked", ()):
        assert words not in asked, asked
    _check_deeds(case, summary, told)
    for part, name in (
        ("decision", "decisions"),
        ("finding", "findings"),
        ("next_step", "next_steps"),
    ):
        if part in case:
            assert any(case[part] in text for text in summary[name]), summary[name]


def _check_deeds(case: dict[str, Any], summary: dict[str, Any], told: str) -> None:
    edits = {file["name"]: file["edits"] for file in summary["files"]}
    for name, count in case.get("files", {}).items():
        assert edits.get(name) == count, edits
    if case.get("files") == {}:
        assert not edits
    if "edits" in case:
        assert sum(edits.values()) == case["edits"], edits
    if "deleted" in case:
        assert sum(file["change"] == "delete" for file in summary["files"]) == case["deleted"]
    for wanted in case.get("commands", ()):
        assert any(
            command["command"].startswith(wanted["command"])
            and command["status"] == wanted["status"]
            for command in summary["commands"]
        ), summary["commands"]
    for name, value in case.get("tests", {}).items():
        assert summary["tests"][name] == value, summary["tests"]
    if "commits" in case:
        assert [(commit["id"] or "")[:7] for commit in summary["commits"]] == [
            commit[:7] for commit in case["commits"]
        ]
    if "commit_count" in case:
        assert len(summary["commits"]) == case["commit_count"], summary["commits"]
    if "errors" in case:
        for wanted in case["errors"]:
            assert any(
                wanted["where"] in error["where"] and error["overcome"] == wanted["overcome"]
                for error in summary["errors"]
            ), summary["errors"]
        if not case["errors"]:
            assert summary["errors"] == [], told


def test_enough_sessions_are_checked_without_the_larger_collection() -> None:
    assert sum(find(case["file"]) is not None for case in EXPECTED) >= 15
