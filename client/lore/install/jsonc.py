"""Small edits of JSON with comments that leave every other byte alone. Pure.

Configuration files of agents and editors belong to their users: comments, order, indentation,
line ends and trailing commas stay. So text is never rendered anew: it is parsed into nodes
with their places, and an edit inserts or cuts a few characters. `remove` of what `insert`
added gives the old text back, byte for byte.

Understood: JSON, `//` and `/* */` comments, trailing commas, a byte order mark, an empty file
(an empty object). Everything else raises `Invalid` with line and column, since a file that we
do not understand must not be changed.
"""

from __future__ import annotations

import json
import re
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

from lore.errors import Invalid

DEPTH = 200
"""Deepest nesting followed; agents' files have less than ten levels."""

_SPACE = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_SAME_LINE = re.compile(r"(?:[ \t]+|/\*[^\n]*?\*/)*(?://[^\r\n]*)?")
_SCALAR = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?|true|false|null")

Path = tuple[str | int, ...]
"""Keys of objects and indexes of arrays, from the root down."""


class Node:
    """A value with its place: text[start:end]. `members` for objects (key, key's start, node),
    `items` for arrays, else neither. `comma` tells where a trailing comma ends, or None."""

    __slots__ = ("comma", "end", "items", "members", "start", "value")

    def __init__(self, start: int) -> None:
        self.start, self.end = start, start
        self.members: list[tuple[str, int, Node]] | None = None
        self.items: list[Node] | None = None
        self.comma: int | None = None
        self.value: Any = None

    def member(self, key: str) -> Node | None:
        """The value of a key; of doubled keys the last counts, as in every parser."""
        for name, _, node in reversed(self.members or []):
            if name == key:
                return node
        return None


def parse(text: str) -> Node:
    """The root node. Raises `Invalid` naming line and column."""
    at = _skip(text, 1 if text.startswith("\ufeff") else 0)
    if at == len(text):
        node = Node(at)
        node.members, node.value = [], {}
        return node
    node = _value(text, at, 0)
    rest = _skip(text, node.end)
    if rest != len(text):
        raise _broken(text, rest, "more text after the end")
    return node


def find(text: str, path: Path) -> Node | None:
    """The node at a path; None when there is none."""
    node: Node | None = parse(text)
    for step in path:
        if node is None:
            return None
        if isinstance(step, str):
            node = node.member(step)
        else:
            node = node.items[step] if node.items and step < len(node.items) else None
    return node


def value_at(text: str, path: Path) -> Any:
    """The plain value at a path; None when there is none."""
    node = find(text, path)
    return node.value if node is not None else None


def replace(text: str, path: Path, value: Any) -> str:
    """Put another value in the place of the one at ``path``, which must exist."""
    node = find(text, path)
    if node is None:
        raise Invalid(f"{_spell(path)} is not there")
    if "\n" in text:
        indent = _line_indent(text, node.start)
        rendered = _render(value, indent, _indent_unit(text), _newline(text))
    else:
        rendered = json.dumps(value, ensure_ascii=False)
    return text[: node.start] + rendered + text[node.end :]


def insert(text: str, path: tuple[str, ...], value: Any) -> str:
    """Add the member at ``path``, making the objects above it; the member must not exist."""
    root = parse(text)
    if root.members is None:
        raise Invalid("the file holds no JSON object at its top")
    node, depth = root, 0
    for depth, key in enumerate(path):
        found = node.member(key)
        if found is None:
            break
        if depth == len(path) - 1:
            raise Invalid(f"{_spell(path)} is there already")
        if found.members is None:
            raise Invalid(f"{_spell(path[: depth + 1])} is not an object")
        node = found
    for key in reversed(path[depth + 1 :]):
        value = {key: value}
    if root.start == root.end:  # an empty file, or one with only comments
        end = _newline(text)
        gap = end if text and not text.endswith("\n") and text != "\ufeff" else ""
        return text + gap + _render({path[depth]: value}, "", "  ", end) + end
    return _add(text, node, depth, json.dumps(path[depth], ensure_ascii=False) + ": ", value)


def append(text: str, path: tuple[str, ...], value: Any) -> str:
    """Add an item to the array at ``path``; the array is made when it is missing."""
    node = find(text, path)
    if node is None:
        return insert(text, path, [value])
    if node.items is None:
        raise Invalid(f"{_spell(path)} is not an array")
    return _add(text, node, len(path), "", value)


def remove(text: str, path: Path) -> str:
    """Cut the member or item at ``path`` out; text without it is returned as it is."""
    node, last = find(text, path[:-1]), path[-1]
    if node is None:
        return text
    if isinstance(last, int):
        if node.items is None or not 0 <= last < len(node.items):
            return text
        return _cut(text, node, last, node.items[last].start, node.items[last].end)
    for index, (name, start, found) in enumerate(node.members or []):
        if name == last and found is node.member(name):
            return _cut(text, node, index, start, found.end)
    return text


def _spell(path: Path) -> str:
    return ".".join(map(str, path))


def _children(node: Node) -> list[tuple[int, int]]:
    """Start and end of each member (with its key) or item."""
    if node.members is not None:
        return [(start, child.end) for _, start, child in node.members]
    return [(child.start, child.end) for child in node.items or []]


def _add(text: str, node: Node, depth: int, key: str, value: Any) -> str:
    """Put `key` and the rendered value behind the last child of a container."""
    children = _children(node)
    end = _newline(text)
    if not children:
        unit = _indent_unit(text)
        inner = _line_indent(text, node.start) + unit
        body = _SPACE.match(text, node.start + 1)
        assert body is not None
        if "\n" in text[node.start + 1 : body.end()]:  # `{` newline, perhaps comments, `}`
            at = _last_line_end(text, node.start + 1, body.end())
            return text[:at] + end + inner + key + _render(value, inner, unit, end) + text[at:]
        added = end + inner + key + _render(value, inner, unit, end) + end
        closing = body.end()
        return text[:closing] + added + _line_indent(text, node.start) + text[closing:]
    first, last = children[0][0], children[-1][1]
    comma = node.comma
    line = text.rfind("\n", 0, first) + 1
    if line <= node.start:  # all on one line
        rendered = json.dumps(value, ensure_ascii=False)
        if comma is not None:
            return text[:comma] + " " + key + rendered + "," + text[comma:]
        return text[:last] + ", " + key + rendered + text[last:]
    inner = _line_indent(text, first)
    rendered = key + _render(value, inner, _indent_unit(text), end)
    match = _SAME_LINE.match(text, comma if comma is not None else last)
    assert match is not None
    at = match.end()
    if text[at : at + 1] not in ("\r", "\n"):
        at = comma if comma is not None else last
    if comma is not None:
        return text[:at] + end + inner + rendered + "," + text[at:]
    return text[:last] + "," + text[last:at] + end + inner + rendered + text[at:]


def _cut(text: str, node: Node, index: int, start: int, stop: int) -> str:
    """Take one child out: its line, its comma, or the comma before it when it was the last."""
    children = _children(node)
    is_last = index == len(children) - 1
    comma = node.comma if is_last else _comma_after(text, stop)
    stop = comma if comma is not None else stop
    line = text.rfind("\n", 0, start) + 1
    own_line = line > node.start and not text[line:start].strip()
    if own_line:
        begin = line - 1
        if begin > 0 and text[begin - 1] == "\r":
            begin -= 1
    else:
        begin = start
        while begin > node.start + 1 and text[begin - 1] in " \t":
            begin -= 1
    if len(children) == 1 and own_line:
        # The only child: what `_add` wrote into `{}` goes with the line break behind it.
        space = _SPACE.match(text, node.start + 1)
        if space is not None and space.end() == start:
            tail = _SPACE.match(text, stop)
            if tail is not None and tail.end() == node.end - 1 and begin == node.start + 1:
                return text[:begin] + text[tail.end() :]
    if is_last and comma is None and index > 0:
        before = _comma_after(text, children[index - 1][1])
        if before is not None:
            return text[: before - 1] + text[before:begin] + text[stop:]
    if not own_line and index == 0 and not is_last:
        while text[stop : stop + 1] in (" ", "\t"):
            stop += 1
        begin = start
    return text[:begin] + text[stop:]


def _comma_after(text: str, at: int) -> int | None:
    """Where the comma behind a child ends; None when there is none."""
    at = _skip(text, at)
    return at + 1 if text[at : at + 1] == "," else None


def _last_line_end(text: str, start: int, stop: int) -> int:
    """The end of the last line with something on it inside an empty container."""
    at = start
    for match in re.finditer(r"//[^\r\n]*|/\*.*?\*/", text[start:stop], re.DOTALL):
        at = start + match.end()
    return at


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _line_indent(text: str, at: int) -> str:
    line = text.rfind("\n", 0, at) + 1
    match = re.compile(r"[ \t]*").match(text, line)
    return match[0] if match else ""


def _indent_unit(text: str) -> str:
    """One step of indentation as the file has it: of the first indented line."""
    match = re.search(r"\n([ \t]+)\"", text)
    return match[1] if match else "  "


def _render(value: Any, indent: str, unit: str, end: str) -> str:
    text = json.dumps(value, ensure_ascii=False, indent=unit)
    return text.replace("\n", end + indent)


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    at = match.end() if match else at
    if text.startswith("/*", at):
        raise _broken(text, at, "a comment that does not end")
    return at


def _value(text: str, at: int, depth: int) -> Node:
    if depth > DEPTH:
        raise _broken(text, at, f"nested deeper than {DEPTH} levels")
    node = Node(at)
    opening = text[at : at + 1]
    if opening == "{":
        _object(text, node, depth)
    elif opening == "[":
        _array(text, node, depth)
    elif opening == '"':
        node.value, node.end = _string(text, at)
    else:
        match = _SCALAR.match(text, at)
        if match is None:
            raise _broken(text, at, "no JSON value")
        node.value, node.end = json.loads(match[0]), match.end()
    return node


def _string(text: str, at: int) -> tuple[str, int]:
    try:
        found: tuple[str, int] = scanstring(text, at + 1, True)
    except ValueError as error:
        raise _broken(
            text, at, f"a string that does not end or has a bad escape ({error})"
        ) from None
    return found


def _object(text: str, node: Node, depth: int) -> None:
    node.members, node.value = [], {}
    at = _skip(text, node.start + 1)
    while text[at : at + 1] != "}":
        if text[at : at + 1] != '"':
            raise _broken(text, at, 'expected a "key" or }')
        key, after = _string(text, at)
        colon = _skip(text, after)
        if text[colon : colon + 1] != ":":
            raise _broken(text, colon, "expected a colon")
        child = _value(text, _skip(text, colon + 1), depth + 1)
        node.members.append((key, at, child))
        node.value[key] = child.value
        at = _next(text, node, child.end, "}")
    node.end = at + 1


def _array(text: str, node: Node, depth: int) -> None:
    node.items, node.value = [], []
    at = _skip(text, node.start + 1)
    while text[at : at + 1] != "]":
        child = _value(text, at, depth + 1)
        node.items.append(child)
        node.value.append(child.value)
        at = _next(text, node, child.end, "]")
    node.end = at + 1


def _next(text: str, node: Node, at: int, closing: str) -> int:
    """Over the comma to the next child, or to the closing bracket."""
    at = _skip(text, at)
    if text[at : at + 1] == ",":
        comma = at + 1
        at = _skip(text, comma)
        if text[at : at + 1] == closing:
            node.comma = comma
        return at
    if text[at : at + 1] != closing:
        raise _broken(text, at, f"expected , or {closing}")
    return at


def _broken(text: str, at: int, what: str) -> Invalid:
    line = text.count("\n", 0, at) + 1
    column = at - text.rfind("\n", 0, at)
    return Invalid(f"line {line}, column {column}: {what}")
