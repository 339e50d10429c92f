"""Damaged files: what stands before and after the damage survives, and the damage is counted."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from lored.core.transcripts import PARSERS
from lored.core.transcripts.records import Record
from support.transcripts import SAMPLES, SHARED, damage, messages, read_lines

PARSER: Any = PARSERS["claude-code"]
FILE = SAMPLES / "claude/.claude/projects/-path-to-Demo/1af7fc5e-8455-4414-9ccd-011d40f70b2a.jsonl"
LINES = FILE.read_bytes().rstrip(b"\n").split(b"\n")
AT = len(LINES) // 2
"""The line that is damaged."""

Edit = Callable[[list[bytes]], list[bytes]]


def keys(data: bytes) -> set[str]:
    return {message.key for message in messages(read_lines(PARSER, str(FILE), data))}


WHOLE = keys(b"\n".join(LINES))
SPARED = keys(b"\n".join(LINES[:AT] + LINES[AT + 1 :]))
"""What the other lines say."""


def at_line(change: Callable[[bytes], bytes]) -> Edit:
    return lambda lines: [*lines[:AT], change(lines[AT]), *lines[AT + 1 :]]


def put(line: bytes) -> Edit:
    return lambda lines: [*lines[:AT], line, *lines[AT:]]


def value(**fields: Any) -> bytes:
    return json.dumps({**json.loads(LINES[AT]), **fields}).encode()


CASES: dict[str, tuple[Edit, list[str], bool]] = {
    # name: (the damage, its reasons, whether nothing is lost)
    "torn tail": (lambda lines: [*lines[:-1], lines[-1][:-40]], ["torn"], False),
    "torn inside a character": (
        lambda lines: [*lines, '{"type":"user","x":"é'.encode()[:-1]],
        ["utf8", "torn"],
        True,
    ),
    "carriage returns": (lambda lines: [line + b"\r" for line in lines], [], True),
    "byte order mark": (lambda lines: [b"\xef\xbb\xbf" + lines[0], *lines[1:]], [], True),
    "bytes that are no text": (
        at_line(lambda line: line.replace(b'"type"', b'"x":"\xff\xfe","type"', 1)),
        ["utf8"],
        True,
    ),
    "NULs before a line": (at_line(lambda line: b"\0" * 4096 + line), ["nul"], True),
    "a line of NULs": (put(b"\0" * 4096), ["nul"], True),
    "glued": (
        lambda lines: [*lines[:AT], lines[AT] + lines[AT + 1], *lines[AT + 2 :]],
        ["glued"],
        True,
    ),
    "spliced": (
        lambda lines: [*lines[:AT], lines[AT][:300] + lines[AT + 1], *lines[AT + 2 :]],
        ["spliced"],
        False,
    ),
    "blank lines": (
        lambda lines: [part for line in lines for part in (line, b"", b"  ")],
        [],
        True,
    ),
    "lone surrogates": (put(rb'{"type":"mode","x":"\ud83d","y":"\udc00"}'), [], True),
    "not a number": (put(b'{"type":"mode","x":NaN,"y":-Infinity}'), [], True),
    "deep": (put(b'{"type":"mode","x":' + b"[" * 3000 + b"]" * 3000 + b"}"), ["too_deep"], True),
    "not an object": (put(b'["x",1]'), ["not_object"], True),
    "null content": (at_line(lambda line: value(message=None)), [], False),
    "content of a strange kind": (at_line(lambda line: value(message={"content": 7})), [], False),
    "a megabyte": (
        put(json.dumps({"type": "mode", "x": "word " * 300_000}).encode()),
        [],
        True,
    ),
    "times of every kind": (at_line(lambda line: value(timestamp=1779962400)), [], True),
    "no time": (at_line(lambda line: value(timestamp=None)), [], True),
    "ids of a strange kind": (at_line(lambda line: value(sessionId=7, parentUuid=[])), [], True),
    "prose": (put(b"Segmentation fault (core dumped)"), ["json"], True),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_whole_survives(name: str) -> None:
    edit, reasons, everything = CASES[name]
    data = b"\n".join(edit(list(LINES)))
    records = read_lines(PARSER, str(FILE), data)
    assert damage(records) == reasons
    found = keys(data)
    assert SPARED - found == set() or name in ("torn tail", "spliced")
    assert len(WHOLE - found) <= 1
    if everything:
        assert found >= WHOLE
    packed = read_lines(PARSER, str(FILE), data, packed=True)
    assert packed == records


def test_the_middle_line_says_something() -> None:
    """Or the cases above prove nothing."""
    assert WHOLE - SPARED


@pytest.mark.skipif(SHARED is None, reason="the larger collection is not here")
def test_files_damaged_by_others() -> None:
    assert SHARED is not None
    base = next(SHARED.rglob("7bfa825d-a369-4307-9649-be8fd41c9afa.jsonl"))
    whole: dict[str, str] = {}
    for message in messages(read_lines(PARSER, str(base), base.read_bytes())):
        whole[message.key] = message.text
    lost: dict[str, tuple[int, list[str]]] = {}
    files = sorted((SHARED / "edge").glob("claude-*.jsonl"))
    assert files
    for path in files:
        records: list[Record] = read_lines(PARSER, str(path), path.read_bytes())
        found = {message.key: message.text for message in messages(records)}
        lost[path.stem] = (len(whole.keys() - found.keys()), damage(records))
        for message in messages(records):
            message.text.encode("utf-8")
    assert lost == {
        "claude-blank": (0, []),
        "claude-bom": (0, []),
        "claude-crlf": (0, []),
        "claude-dupts": (0, []),
        "claude-glued": (0, ["glued"]),
        "claude-hugeline": (0, []),
        "claude-invalid-utf8": (0, []),
        "claude-nan": (0, ["unknown_type:x", "too_deep"]),
        "claude-nul": (0, ["nul"]),
        "claude-nullcontent": (0, ["not_object", "not_object", "not_object"]),
        "claude-splice": (0, ["spliced"]),
        "claude-surrogate": (0, []),
        "claude-torn-tail": (0, ["torn"]),
        "claude-torn-utf8": (0, ["utf8", "torn"]),
    }
