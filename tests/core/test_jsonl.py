"""facts.jsonl of Recursive: parse, render, merge."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lored.core import jsonl

DATA = Path(__file__).parent.parent / "data" / "recursive"
SHARED = Path(__file__).parents[3] / "shared" / "data" / "recursive"
REAL = sorted([*DATA.glob("facts-*.jsonl"), *SHARED.glob("facts-*.jsonl")])
"""Ours, and the real ones where the data folder stands beside the repository."""


@pytest.mark.parametrize("path", REAL, ids=lambda path: "/".join(path.parts[-3:]))
def test_real_lines_render_to_the_same_bytes(path: Path) -> None:
    for line in jsonl.parse(path.read_bytes()):
        if line.record is not None and set(jsonl.SEED_KEYS) <= set(json.loads(line.raw)):
            assert jsonl.render(line.record) == line.raw


def test_hand_written_line_gets_defaults_and_hides_nothing() -> None:
    lines = jsonl.parse((DATA / "facts-malformed.jsonl").read_bytes())
    records = [line.record for line in lines]
    assert all(record is not None for record in records)
    second = records[1]
    assert second is not None and second["access_count"] == 0
    assert second["last_accessed"] == second["created_at"]


@pytest.mark.parametrize(
    ("piece", "reason"),
    [
        (b'{"id":"F1","text":"torn', "not JSON"),
        (b"[1]", "not an object"),
        (b'{"id":"X1","text":"a"}', "no id"),
        (b'{"id":"F2","text":"  "}', "no text"),
        (b'{"id":"F2"}', "no text"),
        (b'{"id":"F2","text":"\xff"}', "not UTF-8"),
        (b'{"id":"F2","text":"\\ud83d"}', "surrogate"),
        (b"[" * 200_000 + b"]" * 200_000, "not JSON"),
    ],
)
def test_unusable_lines_are_kept_and_reported(piece: bytes, reason: str) -> None:
    good = b'{"id":"F9","text":"kept","created_at":"2026-05-28T06:53:27Z"}'
    bad, kept = jsonl.parse(piece + b"\n" + good + b"\n")
    assert bad.record is None and bad.problem is not None
    assert bad.problem.startswith("line 1: ") and reason in bad.problem
    assert kept.record is not None and kept.record["text"] == "kept"
    assert jsonl.join([bad.raw]) == piece + b"\n"


def test_ours_follow_the_seed_keys_and_foreign_keys_stay() -> None:
    record = jsonl.normalise(
        {"id": "F1", "text": "日本", "created_at": "t", "zzz": 1, "entities": ["tool:redis"]}
    )
    assert jsonl.render(record) == (
        '{"id":"F1","text":"日本","tags":[],"source":null,"created_at":"t","last_accessed":"t",'
        '"access_count":0,"superseded_by":null,"entities":["tool:redis"],"zzz":1}'
    )


def base(**changes: Any) -> dict[str, Any]:
    return {
        **jsonl.normalise({"id": "F1", "text": "a", "created_at": "2026-01-01T00:00:00Z"}),
        **changes,
    }


def test_a_key_that_the_other_program_dropped_is_not_deleted() -> None:
    stored = base(entities=["tool:redis"], uid="u")
    saved_by_upstream = base(access_count=4)
    assert jsonl.same(stored, saved_by_upstream)
    merged = jsonl.merge(stored, saved_by_upstream, stored)
    assert merged["entities"] == ["tool:redis"] and merged["access_count"] == 4


def test_both_sides_changed() -> None:
    old = base(tags=["x"])
    merged = jsonl.merge(
        old, base(tags=["x", "file"], superseded_by="F2"), base(tags=["x", "store"], text="b")
    )
    assert merged["tags"] == ["x", "store", "file"]
    assert merged["text"] == "b" and merged["superseded_by"] == "F2"


def test_one_id_two_branches_is_two_facts() -> None:
    one = jsonl.parse((DATA / "facts-id-collision-branch-a.jsonl").read_bytes())[0].record
    two = jsonl.parse((DATA / "facts-id-collision-branch-b.jsonl").read_bytes())[0].record
    assert one is not None and two is not None and one["id"] == two["id"]
    assert not jsonl.is_same_fact(one, two)
    assert jsonl.is_same_fact(one, {**one, "tags": ["other"]})


fields = st.fixed_dictionaries(
    {
        "text": st.sampled_from(["a", "b", "c"]),
        "tags": st.lists(st.sampled_from("xyz"), unique=True),
        "superseded_by": st.sampled_from([None, "F2", jsonl.FORGOTTEN]),
        "access_count": st.integers(0, 9),
    }
)


@given(fields, fields)
def test_a_side_that_changed_nothing_never_decides(
    old: dict[str, Any], new: dict[str, Any]
) -> None:
    ancestor, changed = base(**old), base(**new)
    assert jsonl.same(jsonl.merge(ancestor, changed, ancestor), changed)
    assert jsonl.same(jsonl.merge(ancestor, ancestor, changed), changed)
    assert jsonl.same(jsonl.merge(ancestor, changed, changed), changed)


@given(st.binary(max_size=300))
def test_any_bytes_parse_and_survive(data: bytes) -> None:
    lines = jsonl.parse(data)
    again = jsonl.parse(jsonl.join(line.raw for line in lines))
    assert [line.raw for line in again if line.raw] == [line.raw for line in lines]
