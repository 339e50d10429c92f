"""One physical line: every kind of damage, and what survives it."""

import json
import time

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lored.core.transcripts import lines
from lored.core.transcripts.lines import decode_document, decode_line

A = {"type": "user", "uuid": "u-1", "timestamp": "2026-05-28T10:00:00Z", "message": {"t": "é"}}
B = {"type": "assistant", "uuid": "u-2", "message": {"content": [{"type": "text", "text": "b"}]}}
LINE_A, LINE_B = (json.dumps(value, ensure_ascii=False).encode() for value in (A, B))


def found(line: bytes) -> tuple[list[object], list[tuple[str, bool]]]:
    objects, damage = decode_line(line, 7)
    assert all(item.offset == 7 and item.length == len(line) for item in damage)
    return list(objects), [(item.reason, item.lost) for item in damage]


@pytest.mark.parametrize(
    ("line", "objects", "damage"),
    [
        (LINE_A, [A], []),
        (LINE_A + b"\r", [A], []),
        (b"  " + LINE_A + b"  ", [A], []),
        (b"\xef\xbb\xbf" + LINE_A, [A], []),
        (b"\0" * 4096 + LINE_A, [A], [("nul", False)]),
        (b"\0" * 4096, [], [("nul", True)]),
        (b"   ", [], []),
        (LINE_A + LINE_B, [A, B], [("glued", False)]),
        (LINE_A + b" " + LINE_B + LINE_A, [A, B, A], [("glued", False)]),
        (LINE_A[:70] + LINE_B, [B], [("spliced", True)]),
        (LINE_A[:9] + LINE_B, [B], [("spliced", True)]),
        (LINE_A[:70] + LINE_B + LINE_A, [B, A], [("spliced", True)]),
        (LINE_A[:70], [], [("torn", True)]),
        (LINE_A[:30], [], [("torn", True)]),
        (LINE_A[1:], [], [("json", True)]),
        (b"not json at all", [], [("json", True)]),
        (b"[1,2]", [], [("not_object", True)]),
        (b'"text"', [], [("not_object", True)]),
        (b"null", [], [("not_object", True)]),
        (b'{"x":NaN,"y":[Infinity,-Infinity]}', [{"x": None, "y": [None, None]}], []),
        (b'{"x":' + b"9" * 30 + b"}", [{"x": 1e30}], []),
        (b'{"x":"a\tb"}', [{"x": "a\tb"}], []),
    ],
    ids=lambda value: repr(value)[:40] if isinstance(value, bytes) else "",
)
def test_damage(line: bytes, objects: list[object], damage: list[tuple[str, bool]]) -> None:
    assert found(line) == (objects, damage)


def test_a_torn_record_s_inner_object_is_not_a_record() -> None:
    torn = b'{"type":"user","message":{"role_":"x","content":[{"type":"text","text":"hi"}'
    assert found(torn) == ([], [("torn", True)])


def test_bytes_that_are_no_utf8() -> None:
    objects, damage = found(LINE_A.replace("é".encode(), b"\xff\xfe"))
    assert damage == [("utf8", False)]
    assert objects == [{**A, "message": {"t": "\ufffd\ufffd"}}]


def test_lone_surrogates_are_joined_or_replaced() -> None:
    line = rb'{"type":"x","a":"\ud83d","b":"\ud83d\ude00","c":["\udc00z"],"\ud800":1}'
    (value,), damage = decode_line(line, 0)
    assert not damage
    assert value == {"type": "x", "a": "\ufffd", "b": "😀", "c": ["\ufffdz"], "\ufffd": 1}
    json.dumps(value, ensure_ascii=False).encode()
    text = b'{"type":"x","a":"' + "\ud83d".encode("utf-8", "surrogatepass") + b'"}'
    assert decode_line(text, 0)[0][0]["a"].encode()


@pytest.mark.parametrize("depth", [300, 1500, 3000, 200_000])
def test_too_deep(depth: int) -> None:
    line = b'{"type":"user","uuid":"u-9","x":' + b"[" * depth + b"]" * depth + b"}"
    objects, damage = found(line)
    # What one parser refuses, a more patient one accepts: both are right, none may fail.
    if damage:
        assert damage == [("too_deep", True)]
        assert objects == [{"type": "user", "uuid": "u-9"}]
    else:
        assert depth < 1024 and objects[0]["uuid"] == "u-9"  # type: ignore[index]


def test_a_line_beyond_the_bound_gives_what_its_beginning_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lines, "RECORD_BYTES", 10_000)
    line = (
        b'{"type":"user","uuid":"u-3","sessionId":"s","timestamp":"2026-05-28T10:00:00Z",'
        b'"isSidechain":false,"message":{"content":"' + b"x" * 20_000 + b'"}}'
    )
    objects, damage = found(line)
    assert damage == [("too_long", True)]
    assert objects == [
        {
            "type": "user",
            "uuid": "u-3",
            "sessionId": "s",
            "timestamp": "2026-05-28T10:00:00Z",
            "isSidechain": False,
        }
    ]
    assert found(line[:10_001])[0] == objects


def test_documents() -> None:
    assert decode_document(b'{"a":1}') == ({"a": 1}, [])
    value, damage = decode_document(b'\xef\xbb\xbf{"a":NaN}')
    assert value == {"a": None} and not [item for item in damage if item.lost]
    for half in (b"", b'{"a":', b'[{"a":1},'):
        value, damage = decode_document(half)
        assert value is None and damage[0].reason == "torn"
    assert decode_document(b"{] and more")[1][0].reason == "json"
    assert decode_document(b"[" * 5000)[0] is None


@pytest.mark.parametrize(
    "line",
    [
        b'{"a":[' + b'{"b":1},' * 250_000,
        b'{"a":"' + b'{\\"b' * 500_000,
        b'{"' * 1_000_000,
        b'{"a":{"b":' * 200_000,
        b"}{" * 1_000_000,
        b'{"type":"user","x":' + b"9" * 2_000_000 + b"}",
        b'{"type":"user","x":"' + b"\xff" * 2_000_000 + b'"}',
        b'{"type":"user","x":"' + rb"\ud83d" * 300_000 + b'"}',
    ],
    ids=lambda line: repr(line[:12]),
)
def test_hostile_lines_end_soon(line: bytes) -> None:
    start = time.process_time()
    objects, damage = decode_line(line, 0)
    assert time.process_time() - start < 5
    assert objects or damage


records = st.fixed_dictionaries(
    {"type": st.sampled_from(["user", "assistant", "system"]), "uuid": st.uuids().map(str)},
    optional={"message": st.recursive(st.text() | st.integers(-(2**60), 2**60) | st.none(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=8)},
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.lists(records, min_size=2, max_size=4), st.integers(0, 400), st.randoms())
def test_a_cut_anywhere_loses_one_record(
    values: list[dict[str, object]], cut: int, _: object
) -> None:
    """A record cut short with whole ones behind it on the same line: only it is lost."""
    parts = [orjson.dumps(value) for value in values]
    first = parts[0][: cut % len(parts[0])]
    objects, damage = decode_line(first + b"".join(parts[1:]), 0)
    got = [value for value in objects if value in values[1:]]
    # A cut that leaves valid JSON so far (`"x":` before the next record) hides that record.
    assert len(got) >= len(values) - 2
    assert got == values[len(values) - len(got) :]
    assert damage or not first


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=400), st.integers(0, 200), st.sampled_from([LINE_A, LINE_B]))
def test_any_bytes_give_an_answer(noise: bytes, at: int, line: bytes) -> None:
    for mixed in (noise, line[:at] + noise + line[at:], line[:at] + noise):
        objects, damage = decode_line(mixed, 0)
        assert (
            objects
            or damage
            or not mixed.replace(b"\0", b"").strip(
                b" \t\r\n\xef\xbb\xbf\x0b\x0c\x1c\x1d\x1e\x1f\x85\xa0"
            )
        )
        for value in objects:
            orjson.dumps(value)
