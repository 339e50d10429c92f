"""The language of `apply`; the numbers are Remind's behaviours (B22 to B45)."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lored.core.triage_language import Op, parse, read, split


def one(source: Any) -> Op:
    ops, problems = parse(source)
    assert not problems, problems
    assert len(ops) == 1
    return ops[0]


def problem(source: Any) -> str:
    _, problems = read(source)
    assert len(problems) == 1, problems
    return str(problems[0])


def test_remember() -> None:  # B22, B23
    op = one('remember t=fact e=tool:redis as=f1 "X"')
    assert (op.name, op.bind) == ("remember", "f1")
    assert op.args == {"kind": "fact", "entities": ["tool:redis"], "content": "X"}


def test_ids_are_kept_verbatim() -> None:  # B24
    op = one("supersede old=fact:abc123 new=$f1")
    assert op.args == {"old": "fact:abc123", "new": "$f1"}


def test_trailing_text_is_the_note() -> None:  # B25
    assert one('resolve id=conflict:7 winner=F3 "measured again"').args["note"] == "measured again"
    assert one('conflict fact_a=F1 fact_b=F2 "why"').args["note"] == "why"


def test_lists() -> None:  # B26, B27
    assert one('remember e=a,b "X"').args["entities"] == ["a", "b"]
    assert one("processed ids=ep:11,ep:12").args["ids"] == ["ep:11", "ep:12"]


def test_nothing_and_comments() -> None:  # B28, B29, B36
    for source in ("", "\n  \n", "# a comment", []):
        assert read(source) == ([], [])


def test_escapes() -> None:  # B30
    assert one(r'remember "a\nb\t\"c\" \\d $e"').args["content"] == 'a\nb\t"c" \\d $e'
    assert one(r"remember 'C:\new'").args["content"] == r"C:\new"
    assert one(r"remember a\ b").args["content"] == "a b"


def test_an_open_quote_is_an_error_of_its_line() -> None:  # B31
    ops, problems = parse('remember "X')
    assert not ops
    assert problems[0].line == 1
    assert "Parse error" in problems[0].message


def test_json_forms() -> None:  # B32, B33, B35
    given_ = {"op": "remember", "content": "X", "e": "tool:a,tool:b", "type": "fact"}
    for source in (json.dumps([given_]), json.dumps(given_), [given_]):
        assert one(source).args["entities"] == ["tool:a", "tool:b"]
    ops, problems = parse("[{]")
    assert not ops
    assert "JSON parse error" in problems[0].message


def test_lines_in_order_with_their_numbers() -> None:  # B34
    ops, _ = parse('remember "a"\n\nremember "b"\r\n# c\nremember "d"\n')
    assert [(op.args["content"], op.line, op.index) for op in ops] == [
        ("a", 1, 0),
        ("b", 3, 1),
        ("d", 5, 2),
    ]


@pytest.mark.parametrize("text", ["x=5", "x <= 450", ">= 460mm", 'say "x=5"', "# 1, 2", "a,b"])
def test_quoted_text_is_never_an_argument(text: str) -> None:  # B37
    quoted = '"' + text.replace('"', '\\"') + '"'
    assert one(f"remember {quoted}").args == {"content": text}
    assert one(f'remember by="a=b" {quoted}').args == {"asserted_by": "a=b", "content": text}


def test_unquoted_words_are_refused_not_dropped() -> None:
    assert "quotes" in problem("remember TTL is 300s")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("banana x=1", "Unknown operation"),  # B38
        ("supercede old=F1 new=F2", "did you mean 'supersede'"),
        ("concept title=X", "facts, tags and entities only"),
        ([{"content": "X"}], "Missing 'op'"),  # B39
        ("remember e=a", "requires 'content'"),  # B40
        ("supersede old=F1", "requires 'new'"),  # B41
        ("resolve id=1", "requires 'winner'"),  # B42
        ("supersede old=F1 new=$no", "used before declaration"),  # B43
        ('remember as=a "x"\nremember as=a "y"', "duplicate ref"),  # B44
        ("supersede old=F1 new=F2 olld=F3", "did you mean 'old'"),
        ("supersede old=F1 old=F2 new=F3", "given twice"),
        ("supersede as=x old=F1 new=F2", "gives no id"),
        ("tag id=F1", "'add' or 'remove'"),
        ('remember as=a "x"\nremember e=$a "y"', "entities are labels"),
        ([{"op": "remember", "content": 5}], "must be text"),
        ([{"op": "remember", "content": " "}], "is empty"),
        (["remember"], "expected a map"),
        ([{"op": "remember", "content": "x", "e": [1]}], "list of texts"),
        ("supersede old=F1 new=F2 \\", "backslash"),
    ],
)
def test_each_mistake_is_one_error(source: Any, message: str) -> None:
    assert message in problem(source)


def test_errors_name_line_and_operation() -> None:
    assert problem('remember "x"\n\nsupersede old=F1') == "line 3 (supersede): requires 'new'"
    assert problem([{"op": "remember", "content": "x"}, {"op": "nope"}]).startswith("op 2 (nope): ")


def test_every_bad_line_is_reported() -> None:
    _, problems = read("bad\nremember\nremember 'x'\nworse")
    assert [one_.line for one_ in problems] == [1, 2, 4]


def test_a_bound_name_may_be_used_later() -> None:  # B45
    assert read('remember as=f1 "x"\nsupersede old=F3 new=$f1')[1] == []


def test_spellings_of_operations_and_arguments() -> None:
    assert one("delete id=F1 reason=old").args == {"id": "F1", "note": "old"}
    assert one("CONFLICT a=F1 b=F2").args == {"fact_a": "F1", "fact_b": "F2"}
    assert one([{"op": "forget", "id": 3}]).args == {"id": "3"}
    assert one("alias alias=tool:r entity=tool:redis").args["alias"] == "tool:r"


def test_too_many_operations() -> None:
    ops = [{"op": "remember", "content": str(n)} for n in range(1001)]
    assert "1000" in problem(ops)


@given(st.text())
def test_any_text_is_read_or_refused(source: str) -> None:
    ops, problems = read(source)
    assert all(op.name for op in ops)
    assert all(str(one_) for one_ in problems)


@given(
    st.lists(st.dictionaries(st.text(), st.none() | st.integers() | st.text()))
    | st.lists(st.text())
)
def test_any_list_is_read_or_refused(source: list[Any]) -> None:
    read(source)


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1))
def test_what_is_quoted_comes_back(text: str) -> None:
    quoted = '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    assert split(f"remember {quoted}")[1] == (None, text)


@pytest.mark.parametrize("line", ['remember "x" -> $n', '$n = remember "x"'])
def test_another_way_to_name_a_result_is_told_the_right_one(line: str) -> None:
    _, problems = read(line)
    assert len(problems) == 1
    assert "as=NAME" in str(problems[0])
