"""The language of `apply`, read: text (one operation a line) or a list of maps -> operations.

    remember e=tool:redis as=new "Cache TTL is 600s"
    supersede old=F3 new=$new

Text form: blank lines and lines that begin with `#` are skipped. Words are separated by
blanks and quoted as in a shell: '...' is literal, "..." knows \\" \\\\ \\n \\t, elsewhere a
backslash takes the next character as it is. The first word is the operation. A word that has
an unquoted `name=` at its start is an argument; any other is the text, and there is one text
at most. So a quoted text may hold `=`, `#` and commas. Text that begins with `[` or `{` is
JSON: one map or a list of maps, the list form.

`as=name` binds the id that an operation gives; `$name` uses it later, in ids only.

Everything wrong is collected, each error with its line (text form) or index and operation;
nothing runs when there is one. Pure.
"""

import difflib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from lored.core.triage_ops import (
    ARGUMENTS,
    BY_NAME,
    IDS,
    LISTS,
    REMIND_ONLY,
    SPELLINGS,
    Operation,
)

OPERATIONS_MAX: Final = 1_000
"""One batch: it holds the only writer of its store for its whole length."""

_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_ESCAPES: Final = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "$": "$", "`": "`"}


@dataclass(slots=True)
class Op:
    """One operation: canonical name and arguments; ``bind`` is the name of `as=`, ``line`` from
    1 in the text form."""

    name: str
    args: dict[str, Any] = field(default_factory=dict)
    bind: str | None = None
    index: int = 0
    line: int | None = None


@dataclass(slots=True)
class Problem:
    """Why a batch cannot run: index and line of the operation, its name, the reason."""

    message: str
    index: int | None = None
    line: int | None = None
    op: str | None = None

    def __str__(self) -> str:
        where = f"line {self.line}" if self.line is not None else f"op {(self.index or 0) + 1}"
        if self.index is None and self.line is None:
            return self.message
        return f"{where}{f' ({self.op})' if self.op else ''}: {self.message}"


def parse(source: str | Sequence[Any]) -> tuple[list[Op], list[Problem]]:
    """Operations of ``source`` and everything that is wrong with it; no check across ops."""
    if isinstance(source, str):
        if source.lstrip()[:1] in ("[", "{"):
            try:
                loaded = json.loads(source)
            except (ValueError, RecursionError) as error:
                return [], [Problem(f"JSON parse error: {error}")]
            return _from_list(loaded if isinstance(loaded, list) else [loaded])
        return _from_lines(source)
    return _from_list(source)


def check(ops: Iterable[Op]) -> list[Problem]:
    """What is wrong across operations: names bound twice or used before they are bound."""
    problems: list[Problem] = []
    bound: set[str] = set()
    for op in ops:
        for argument in sorted(op.args):
            values = op.args[argument]
            for value in values if isinstance(values, list) else [values]:
                if not isinstance(value, str) or not value.startswith("$"):
                    continue
                name = value[1:]
                if argument in IDS and name not in bound:
                    problems.append(_problem(op, f"{value} is used before declaration"))
                elif argument in ("entities", "tags", "add", "remove") and name in bound:
                    problems.append(_problem(op, f"{value} names an id; {argument} are labels"))
        if op.bind is not None:
            if op.bind in bound:
                problems.append(_problem(op, f"duplicate ref: as={op.bind} is bound already"))
            bound.add(op.bind)
    return problems


def read(source: str | Sequence[Any]) -> tuple[list[Op], list[Problem]]:
    """`parse`, then `check` when every operation could be read."""
    ops, problems = parse(source)
    if len(ops) > OPERATIONS_MAX:
        problems.append(Problem(f"{len(ops)} operations, one batch may have {OPERATIONS_MAX}"))
    return ops, problems or check(ops)


def _problem(op: Op, message: str) -> Problem:
    return Problem(message, op.index, op.line, op.name)


def _unexpected(name: str, word: str) -> str:
    """Why a second text stands in a line: an unquoted text, or another way to name an id."""
    if word in ("->", "=", "=>") or name.startswith("$"):
        return f"unexpected {word!r}: `as=NAME` names the id of an operation, $NAME uses it"
    return f"unexpected {word!r}: put the whole text in quotes"


# -- list form -----------------------------------------------------------------------------


def _from_list(items: Sequence[Any]) -> tuple[list[Op], list[Problem]]:
    ops: list[Op] = []
    problems: list[Problem] = []
    for index, item in enumerate(items):
        if not isinstance(item, dict):
            problems.append(Problem(f"expected a map, got {type(item).__name__}", index))
            continue
        name = item.get("op")
        if not isinstance(name, str) or not name.strip():
            problems.append(Problem("Missing 'op': the name of the operation", index))
            continue
        given = [(str(key), value) for key, value in item.items() if key != "op"]
        _finish(name, given, None, index, None, ops, problems)
    return ops, problems


# -- text form -----------------------------------------------------------------------------


def _from_lines(source: str) -> tuple[list[Op], list[Problem]]:
    ops: list[Op] = []
    problems: list[Problem] = []
    index = 0
    for number, raw in enumerate(source.split("\n"), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        try:
            words = split(line)
        except ValueError as error:
            problems.append(Problem(f"Parse error: {error}", index, number))
            index += 1
            continue
        given: list[tuple[str, Any]] = []
        texts: list[str] = []
        for key, value in words[1:]:
            if key is None:
                texts.append(value)
            else:
                given.append((key, value))
        name = words[0][1] if words[0][0] is None else f"{words[0][0]}={words[0][1]}"
        if len(texts) > 1:
            problems.append(Problem(_unexpected(name, texts[1]), index, number, name))
        else:
            _finish(name, given, texts[0] if texts else None, index, number, ops, problems)
        index += 1
    return ops, problems


def split(line: str) -> list[tuple[str | None, str]]:
    """Words of one line as (argument name or None, value); see the module for quoting.

    Raises ValueError for an unfinished quote or a lone backslash at the end.
    """
    words: list[tuple[str | None, str]] = []
    at, end = 0, len(line)
    while at < end:
        if line[at].isspace():
            at += 1
            continue
        key = None
        match = _KEY.match(line, at)
        if match and match.end() < end and line[match.end()] == "=":
            key, at = match[0].lower(), match.end() + 1
        value, at = _value(line, at)
        words.append((key, value))
    return words


def _value(line: str, at: int) -> tuple[str, int]:
    """The word that begins at ``at`` without its quotes, and where it ends."""
    out: list[str] = []
    quote = ""
    while at < len(line):
        char = line[at]
        if quote:
            if char == quote:
                quote = ""
            elif char == "\\" and quote == '"' and at + 1 < len(line):
                at += 1
                out.append(_ESCAPES.get(line[at], "\\" + line[at]))
            else:
                out.append(char)
        elif char.isspace():
            break
        elif char in "\"'":
            quote = char
        elif char == "\\":
            at += 1
            if at == len(line):
                raise ValueError("a backslash ends the line")
            out.append(line[at])
        else:
            out.append(char)
        at += 1
    if quote:
        raise ValueError(f"no closing {quote}")
    return "".join(out), at


# -- both forms ----------------------------------------------------------------------------


def _finish(
    name: str,
    given: list[tuple[str, Any]],
    text: str | None,
    index: int,
    line: int | None,
    ops: list[Op],
    problems: list[Problem],
) -> None:
    """Make one operation of its parts, or the first problem with it."""
    op = Op(name.strip().lower(), index=index, line=line)
    op.name = SPELLINGS.get(op.name, op.name)
    operation = BY_NAME.get(op.name)
    if operation is None:
        problems.append(_problem(op, _unknown(op.name)))
        return
    message = _fill(op, operation, given, text)
    if message is not None:
        problems.append(_problem(op, message))
    else:
        ops.append(op)


def _unknown(name: str) -> str:
    if name in REMIND_ONLY:
        return f"Unknown operation {name!r}: this memory has facts, tags and entities only"
    near = difflib.get_close_matches(name, [*BY_NAME, *SPELLINGS], 1)
    hint = f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(BY_NAME)}"
    return f"Unknown operation {name!r}{hint}"


def _fill(
    op: Op, operation: Operation, given: list[tuple[str, Any]], text: str | None
) -> str | None:
    if text is not None:
        if operation.text is None:
            return f"takes no text, got {text!r}"
        given = [*given, (operation.text, text)]
    known = (*operation.required, *operation.optional)
    for raw, value in given:
        key = raw.lower()
        if key == "as":
            if not operation.gives:
                return f"gives no id, so as={value} has nothing to bind"
            if not isinstance(value, str) or not _NAME.fullmatch(value):
                return f"as={value!r}: use a name of letters, digits, '_' and '-'"
            op.bind = value
            continue
        key = _canonical(key, known)
        if key not in known:
            near = difflib.get_close_matches(key, known, 1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(known)}"
            return f"unknown argument {raw!r}{hint}"
        if value is None:
            continue
        if key in op.args:
            return f"{key!r} is given twice"
        try:
            op.args[key] = _typed(key, value)
        except ValueError as error:
            return str(error)
    missing = [name for name in operation.required if name not in op.args]
    if missing:
        return f"requires {' and '.join(repr(name) for name in missing)}"
    if op.name in ("tag", "entity") and not ("add" in op.args or "remove" in op.args):
        return "requires 'add' or 'remove'"
    return None


def _canonical(key: str, known: Sequence[str]) -> str:
    """The full name of an argument; a name that the operation has itself is never an alias."""
    return key if key in known else ARGUMENTS.get(key, key)


def _typed(key: str, value: Any) -> Any:
    if key in LISTS:
        if isinstance(value, str):
            return [part for raw in value.split(",") if (part := raw.strip())]
        if isinstance(value, list) and all(isinstance(part, str) for part in value):
            return [part for raw in value if (part := raw.strip())]
        raise ValueError(f"{key!r} must be a list of texts or one text with commas")
    if isinstance(value, int) and not isinstance(value, bool) and key in IDS:
        return str(value)
    if not isinstance(value, str):
        raise ValueError(f"{key!r} must be text, got {type(value).__name__}")
    if not value.strip():
        raise ValueError(f"{key!r} is empty")
    return value
