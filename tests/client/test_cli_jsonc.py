"""Editing JSON with comments: nothing but our entry changes, and taking it out undoes it."""

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lore.errors import Invalid
from lore.install import jsonc

OURS: dict[str, Any] = {"command": "lore", "args": ["mcp"]}
_GAPS = st.sampled_from(
    ["", " ", "\n", "\n  ", "\n    ", " // note, }\n", "/* { */", "\n\t", "\r\n  "]
)
_SCALARS = st.sampled_from(["1", "-2.5e3", "true", "null", '"a b"', '"//no"', '"\\u00e9,}"'])
_KEYS = list("abcd")
PATHS = [("lore",), ("new", "lore"), ("a", "lore"), ("b", "x", "lore")]


@st.composite
def values(draw: st.DrawFn, depth: int = 0) -> str:
    kind = draw(st.integers(0, 3 if depth < 3 else 0))
    if kind <= 1:
        return draw(_SCALARS)
    count = draw(st.integers(0, 3))
    text = "{" if kind == 2 else "["
    for index in range(count):
        text += draw(_GAPS)
        if kind == 2:
            text += json.dumps(_KEYS[index]) + draw(_GAPS) + ":" + draw(_GAPS)
        text += draw(values(depth + 1)) + draw(_GAPS)
        if index < count - 1 or draw(st.booleans()):
            text += ","
    return text + draw(_GAPS) + ("}" if kind == 2 else "]")


@st.composite
def wild(draw: st.DrawFn) -> str:
    """Objects in any layout that a person could leave behind."""
    text = draw(_GAPS) + "{"
    count = draw(st.integers(0, 3))
    for index in range(count):
        text += draw(_GAPS) + json.dumps(_KEYS[index]) + ":" + draw(_GAPS) + draw(values(1))
        text += draw(_GAPS)
        if index < count - 1 or draw(st.booleans()):
            text += ","
    return text + draw(_GAPS) + "}" + draw(_GAPS)


_LEAVES = st.one_of(st.integers(), st.booleans(), st.none(), st.text(max_size=5))
_TREES = st.dictionaries(
    st.sampled_from(_KEYS),
    st.recursive(
        _LEAVES,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.dictionaries(st.sampled_from(list("xyz")), inner, max_size=3),
        ),
        max_leaves=12,
    ),
    max_size=4,
)


@st.composite
def written(draw: st.DrawFn) -> str:
    """Objects as programs and editors write them: indented, perhaps with comments."""
    indent = draw(st.sampled_from([2, 4, "\t", None]))
    text = json.dumps(draw(_TREES), indent=indent, ensure_ascii=False)
    if indent is not None and draw(st.booleans()):
        text = text.replace(",\n", ", // note\n").replace("{\n", "{ // open\n")
    if indent is not None and text.endswith("\n}") and draw(st.booleans()):
        text = text[:-2] + ",\n}"
    text += draw(st.sampled_from(["", "\n"]))
    return text.replace("\n", "\r\n") if draw(st.booleans()) else text


def comments(text: str) -> list[str]:
    without_strings = re.sub(r'"(?:[^"\\]|\\.)*"', '""', text)
    return re.findall(r"//[^\n\r]*|/\*.*?\*/", without_strings, re.DOTALL)


def deepest_present(text: str, path: tuple[str, ...]) -> tuple[str, ...]:
    """The first step of ``path`` that the file lacks: what `insert` will make."""
    for length in range(1, len(path) + 1):
        if jsonc.find(text, path[:length]) is None:
            return path[:length]
    raise AssertionError("all there")


@settings(max_examples=300, deadline=None)
@given(wild(), st.sampled_from(PATHS))
def test_inserting_changes_one_value_and_no_comment(text: str, path: tuple[str, ...]) -> None:
    before = jsonc.parse(text).value
    try:
        after = jsonc.insert(text, path, OURS)
    except Invalid as error:
        assert "not an object" in error.message
        return
    expected, made = json.loads(json.dumps(before)), deepest_present(text, path)
    node = expected
    for key in path[:-1]:
        node = node.setdefault(key, {})
    node[path[-1]] = OURS
    assert jsonc.parse(after).value == expected
    assert comments(after) == comments(text)
    back = jsonc.remove(after, made)
    assert jsonc.parse(back).value == before
    assert comments(back) == comments(text)


@settings(max_examples=300, deadline=None)
@given(written(), st.sampled_from(PATHS))
def test_removing_gives_the_bytes_back(text: str, path: tuple[str, ...]) -> None:
    try:
        after = jsonc.insert(text, path, OURS)
    except Invalid:
        return
    assert jsonc.remove(after, deepest_present(text, path)) == text


@settings(max_examples=300, deadline=None)
@given(written(), st.sampled_from([("a",), ("b", "x")]))
def test_items_come_and_go(text: str, path: tuple[str, ...]) -> None:
    if not isinstance(jsonc.value_at(text, path), list):
        return
    after = jsonc.append(text, path, OURS)
    items = jsonc.value_at(after, path)
    assert items[-1] == OURS
    assert jsonc.remove(after, (*path, len(items) - 1)) == text


@settings(max_examples=200, deadline=None)
@given(wild())
def test_a_replaced_value_leaves_the_rest(text: str) -> None:
    if jsonc.find(text, ("a",)) is None:
        return
    after = jsonc.replace(text, ("a",), OURS)
    assert jsonc.parse(after).value == {**jsonc.parse(text).value, "a": OURS}


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet='{}[]",:/* \n\\a1tfn', max_size=40))
def test_nonsense_is_refused_with_its_place_or_understood(text: str) -> None:
    try:
        found = jsonc.parse(text)
    except Invalid as error:
        assert re.match(r"line \d+, column \d+: ", error.message)
    else:
        json.dumps(found.value)


@given(_TREES)
def test_agrees_with_json(tree: Any) -> None:
    assert jsonc.parse(json.dumps(tree)).value == tree


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": 1', "line 1"),
        ('{"a": "x', "string"),
        ('{"a": 1} x', "more text"),
        ("{'a': 1}", "key"),
        ('{\n  "a": 1 /* open', "comment"),
        ("[" * 300, "nested"),
    ],
)
def test_broken_files_are_named(text: str, said: str) -> None:
    with pytest.raises(Invalid, match=said):
        jsonc.parse(text)


def test_empty_files_and_byte_order_marks() -> None:
    for text in ("", "\n", "// only a comment\n", "\ufeff", "\ufeff{}\n"):
        after = jsonc.insert(text, ("a",), 1)
        assert jsonc.parse(after).value == {"a": 1}
        assert after.startswith("\ufeff") == text.startswith("\ufeff")
    with pytest.raises(Invalid, match="no JSON object"):
        jsonc.insert("[1]", ("a",), 1)


def test_of_doubled_keys_the_last_counts() -> None:
    text = '{"a": {"x": 1}, "a": {}}'
    assert jsonc.value_at(jsonc.insert(text, ("a", "lore"), 1), ("a",)) == {"lore": 1}
