"""One physical line of a transcript -> the objects in it, and what was damaged.

Owns the bytes-to-objects step for every JSONL format. Never raises and never takes more
than a small multiple of the line. The fast path is one `orjson.loads`; whatever it refuses
(damage, NaN, lone surrogates, depth) goes through the slow path below:

1. Strip BOM, carriage return, NUL runs (whole KiB of NULs stand in files after a crash).
2. Decode UTF-8 with replacement.
3. Read objects one after the other: a writer killed in the middle leaves two records on one
   line, either complete (`}{`, *glued*) or the first cut short (*spliced*); the next record
   is found again at the next `{"` from which a plausible object reaches the end of the line.
4. What is left is `torn` (the text just ends) or `json` (it is wrong in the middle).

A line longer than `RECORD_BYTES` is never parsed: a scan of its first bytes finds the id,
type and time, which are handed on as an object without content. A reader may therefore hand
over only the first `RECORD_BYTES + 1` bytes of such a line.
"""

import json
import re
from collections.abc import Callable
from typing import Any, Final

import orjson

from lored.core.transcripts.records import RECORD_BYTES, Damage, Record

Object = dict[str, Any]

RESYNC_TRIES: Final = 64
"""Candidates tried for the start of the next record in a spliced line; each costs at most the
distance to the next syntax error."""
RESYNC_CHARS: Final = 64 << 20
"""Characters read again in all these tries: fewer tries for a longer line."""
SCAN_BYTES: Final = 8_192
"""Prefix searched for id, type and time of a line that is too long or too deep: every format
writes them before, or within a few KB of, the content."""
DOCUMENT_BYTES: Final = 128 << 20
"""A longer document is not read: formats that rewrite a whole file per message stay far below."""
DEPTH: Final = 200
"""Deepest nesting that is kept: real records stay below 40, and what walks them recurses."""
INT_DIGITS: Final = 20
"""Integers beyond 64 bits become floats, as on the fast path: MessagePack holds no more."""

_MARKS: Final = frozenset({"timestamp", "uuid", "sessionId", "payload", "role", "created_at"})
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z_./$-]{0,59}|[A-Za-z][\w./$-]{0,30}")
_SCANNED: Final = re.compile(
    r'"(type|subtype|uuid|id|parentUuid|sessionId|timestamp|role|cwd|gitBranch|version|isSidechain'
    r'|agentId|ordinal)"\s*:\s*("(?:[^"\\]|\\.){0,400}"|true|false|null|-?\d{1,18})'
)


def decode_line(
    line: bytes, offset: int, marks: frozenset[str] = _MARKS
) -> tuple[list[Object], list[Damage]]:
    """Objects of one line, in order, and its damage.

    Args:
        line: the line without its newline.
        offset: byte position of the line in its file, for `Damage`.
        marks: keys of which a record found behind a cut must have at least one, so that an
            inner object of the torn record is not taken for a record.
    """
    if len(line) <= RECORD_BYTES:
        try:
            value = orjson.loads(line)
        except ValueError:
            return _recover(line, offset, marks)
        if type(value) is dict:
            return [value], []
        return [], [Damage("not_object", offset, len(line))]
    return _scan(line), [Damage("too_long", offset, len(line))]


def decode_document(data: bytes) -> tuple[Any, list[Damage]]:
    """A whole file that is one JSON value: (value, damage); value None when it is unusable.

    Half-written files give `torn`: their writer replaces them soon.
    """
    if len(data) > DOCUMENT_BYTES:
        return None, [Damage("too_long", 0, len(data))]
    try:
        return orjson.loads(data), []
    except ValueError:
        pass
    text = data.removeprefix(b"\xef\xbb\xbf").replace(b"\0", b"").decode("utf-8", "replace").strip()
    if not text:
        return None, [Damage("torn", 0, len(data))]
    try:
        value, end = _DECODER.raw_decode(text)
        value = clean_value(value)
    except RecursionError:
        return None, [Damage("too_deep", 0, len(data))]
    except ValueError as error:
        return None, [Damage(_reason(text, 0, error), 0, len(data))]
    return value, [Damage("utf8" if end == len(text) else "json", 0, len(data), end != len(text))]


def kind_of(item: dict[str, Any], name: str = "type") -> str | None:
    """What kind of record it says it is: a text, or None for everything else."""
    kind = item.get(name)
    return kind if isinstance(kind, str) else None


def attempt(out: list[Record], offset: int, step: Callable[..., None], *values: Any) -> None:
    """Takes one record apart; a shape that its parser did not expect costs only that record."""
    try:
        step(*values)
    except (TypeError, ValueError, LookupError, AttributeError, RecursionError, OverflowError):
        out.append(Damage("shape", offset))


def unknown_type(name: Any, offset: int, group: str = "") -> Damage:
    """Damage that counts a record of a kind that is not known. Nothing of it is quoted but a
    plain name: what looks like data becomes `other`, so that reasons stay few."""
    plain = isinstance(name, str) and _NAME.fullmatch(name) is not None
    return Damage(f"unknown_type:{group}{name if plain else 'other'}", offset, lost=False)


def _recover(line: bytes, offset: int, marks: frozenset[str]) -> tuple[list[Object], list[Damage]]:
    size = len(line)
    damage: list[Damage] = []
    body = line.removeprefix(b"\xef\xbb\xbf")
    if b"\0" in body:
        body = body.replace(b"\0", b"")
        if not body.strip():
            return [], [Damage("nul", offset, size)]
        damage.append(Damage("nul", offset, size, lost=False))
    if not body.strip():
        return [], damage
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        text = body.decode("utf-8", "replace")
        damage.append(Damage("utf8", offset, size, lost=False))
    objects: list[Object] = []
    _read_objects(text.strip(), offset, size, marks, objects, damage)
    return objects, damage


def _read_objects(
    text: str,
    offset: int,
    size: int,
    marks: frozenset[str],
    objects: list[Object],
    damage: list[Damage],
) -> None:
    position = 0
    while position < len(text):
        try:
            value, end = _DECODER.raw_decode(text, position)
            value = clean_value(value)
        except RecursionError:
            objects.extend(_scan(text[position:].encode("utf-8", "replace")))
            damage.append(Damage("too_deep", offset, size))
            return
        except ValueError as error:
            after = _resync(text, position, getattr(error, "pos", position), marks)
            if after is None:
                damage.append(Damage(_reason(text, position, error), offset, size))
                return
            damage.append(Damage("spliced", offset, size))
            position = after
            continue
        if isinstance(value, dict):
            objects.append(value)
        elif position == 0 and end == len(text):
            damage.append(Damage("not_object", offset, size))
        else:  # the end of a record whose beginning is missing
            after = _resync(text, position, end, marks)
            damage.append(Damage("json" if after is None else "spliced", offset, size))
            if after is None:
                return
            position = after
            continue
        position = end
        while position < len(text) and text[position] in " \t\r\n":
            position += 1
        if position < len(text) and (not damage or damage[-1].reason not in ("glued", "spliced")):
            damage.append(Damage("glued", offset, size, lost=False))


def _reason(text: str, start: int, error: ValueError) -> str:
    """`torn` when the text ends inside a record that was right so far, else `json`."""
    if not text.startswith(("{", "["), start):
        return "json"
    message = getattr(error, "msg", "")
    at = getattr(error, "pos", start)
    return "torn" if "Unterminated string" in message or at >= len(text) - 1 else "json"


def _resync(text: str, start: int, failed: int, marks: frozenset[str]) -> int | None:
    """Where the next record starts, or None. The parser stops at or just behind the cut, so the
    nearest `{"` before and behind it come first."""
    near = [text.rfind('{"', start + 1, failed + 2), text.find('{"', max(failed, start + 1))]
    tries = [at for at in near if at > start]
    most = max(len(near), min(RESYNC_TRIES, RESYNC_CHARS // (len(text) + 1)))
    at = start
    while len(tries) < most:
        at = text.find('{"', at + 1)
        if at < 0:
            break
        tries.append(at)
    for at in tries:
        try:
            value, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            continue
        rest = text[end : end + 64].lstrip()
        if (not rest or rest.startswith("{")) and isinstance(value, dict) and marks & value.keys():
            return at
    return None


def _scan(line: bytes) -> list[Object]:
    """An object of the fields that can be read from the start of an unusable line."""
    head = line[:SCAN_BYTES].decode("utf-8", "replace")
    found: Object = {}
    for name, raw in _SCANNED.findall(head):
        if name not in found:
            try:
                found[name] = clean_value(json.loads(raw))
            except ValueError:
                continue
    return [found] if "type" in found or "role" in found else []


def clean_text(text: str) -> str:
    """`text` without lone surrogates: split pairs are joined, the rest become U+FFFD."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def clean_value(value: Any, depth: int = 0) -> Any:
    """A parsed value with every string clean UTF-8. RecursionError beyond `DEPTH` levels."""
    if isinstance(value, str):
        return clean_text(value)
    if depth > DEPTH:
        raise RecursionError
    if isinstance(value, dict):
        return {clean_text(key): clean_value(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [clean_value(item, depth + 1) for item in value]
    return value


def _constant(_name: str) -> None:
    """NaN, Infinity, -Infinity: not JSON, and no number that anyone can use."""


def _integer(digits: str) -> int | float:
    value = int(digits) if len(digits) <= INT_DIGITS else 1 << 65
    return value if -(1 << 63) <= value < 1 << 64 else float(digits)


_DECODER: Final = json.JSONDecoder(parse_constant=_constant, parse_int=_integer, strict=False)
