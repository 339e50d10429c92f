"""Recursive's `facts.jsonl`: lines in, records out, and back without disturbing a byte.

The record (keys in this order, compact JSON, UTF-8 unescaped) is that of Recursive's
`src/tools/facts.rs`: id, text, tags, source, created_at, last_accessed, access_count,
superseded_by. Keys of ours follow, and only those that say something; keys of others are
kept. A line that is not a usable record is `malformed`: kept verbatim, reported, and hides
nothing else. Upstream drops keys that it does not know at each save, so a missing key of
ours means "unknown", never "deleted".
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

SEED_KEYS: Final = (
    "id",
    "text",
    "tags",
    "source",
    "created_at",
    "last_accessed",
    "access_count",
    "superseded_by",
)
OUR_KEYS: Final = (
    "uid",
    "entities",
    "kind",
    "asserted_by",
    "source_ref",
    "valid_from",
    "valid_to",
    "session_id",
    "message_id",
    "note",
)
FORGOTTEN: Final = "__forgotten__"
EVICTED: Final = "__evicted__"

COUNTERS: Final = frozenset({"last_accessed", "access_count"})
"""Fields that a mere read changes: never a reason to rewrite a line."""

LINE_BYTES: Final = 4 << 20
"""A longer line is malformed: facts are kilobytes."""

_ID: Final = re.compile(r"[Ff](\d{1,9})")

_HEAD: Final = re.compile(rb'\n\{"id":"([Ff][0-9]{1,9})",')
"""The beginning of a line as `render` makes it."""


class Line(NamedTuple):
    """One physical line: its text without the newline, the record in it or why there is none."""

    raw: str
    record: dict[str, Any] | None
    problem: str | None


def parse(data: bytes) -> list[Line]:
    """The non-blank lines of a file. Never raises; a UTF-8 BOM and CR are dropped."""
    lines = []
    for number, piece in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        piece = piece.removesuffix(b"\r")
        if not piece.strip():
            continue
        raw = piece.decode("utf-8", "surrogateescape")
        record, problem = _record(piece, raw)
        lines.append(Line(raw, record, problem and f"line {number}: {problem}"))
    return lines


def _record(piece: bytes, raw: str) -> tuple[dict[str, Any] | None, str | None]:
    if len(piece) > LINE_BYTES:
        return None, f"longer than {LINE_BYTES} bytes"
    try:
        found = json.loads(piece.decode("utf-8"))
    except UnicodeDecodeError:
        return None, "not UTF-8"
    except (ValueError, RecursionError):
        return None, "not JSON"
    if not isinstance(found, dict):
        return None, "not an object"
    fact_id, text = found.get("id"), found.get("text")
    if not isinstance(fact_id, str) or not _ID.fullmatch(fact_id):
        return None, "no id of the form F<number>"
    if not isinstance(text, str) or not text.strip():
        return None, f"{fact_id} has no text"
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return None, f"{fact_id} holds half a character (lone surrogate)"
    return normalise(found), None


def normalise(found: Mapping[str, Any]) -> dict[str, Any]:
    """Give missing seed fields their defaults and repair wrong types; other keys stay."""
    record = dict(found)
    tags = record.get("tags")
    record["tags"] = [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else []
    if not isinstance(record.get("source"), str):
        record["source"] = None
    if not isinstance(record.get("created_at"), str):
        record["created_at"] = ""
    if not isinstance(record.get("last_accessed"), str):
        record["last_accessed"] = record["created_at"]
    count = record.get("access_count")
    record["access_count"] = (
        count if isinstance(count, int) and not isinstance(count, bool) and count >= 0 else 0
    )
    if not isinstance(record.get("superseded_by"), str):
        record["superseded_by"] = None
    return record


def number(fact_id: str) -> int:
    """The numeric part of `F<n>` (`F007` is 7)."""
    match = _ID.fullmatch(fact_id)
    if match is None:
        raise ValueError(f"{fact_id!r} is not a fact id")
    return int(match[1])


def render(record: Mapping[str, Any]) -> str:
    """The line of a record: seed keys in order, then ours that say something, then others."""
    ordered: dict[str, Any] = {key: record.get(key) for key in SEED_KEYS}
    for key in OUR_KEYS:
        if record.get(key) not in (None, [], ""):
            ordered[key] = record[key]
    for key, value in record.items():
        if key not in ordered and key not in OUR_KEYS:
            ordered[key] = value
    return json.dumps(ordered, ensure_ascii=False, separators=(",", ":"))


def same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two records say the same, counters and keys unknown to one side apart."""
    return not changed_fields(one, other)


def changed_fields(old: Mapping[str, Any], new: Mapping[str, Any]) -> set[str]:
    """Fields in which ``new`` says something else than ``old``; a missing key says nothing."""
    keys = (set(SEED_KEYS) | set(OUR_KEYS)) - COUNTERS
    return {key for key in keys if key in new and _plain(old.get(key)) != _plain(new[key])}


def _plain(value: Any) -> Any:
    return None if value in ([], "") else value


def merge(
    base: Mapping[str, Any], file: Mapping[str, Any], store: Mapping[str, Any]
) -> dict[str, Any]:
    """Three-way merge of one fact: what both sides know after both changed it.

    A field that one side changed takes that side's value. Changed on both: tags and entities
    are joined, a closed state (superseded, forgotten, valid_to) wins over an open one, else
    the store's value stands. Counters take the larger.
    """
    by_file = changed_fields(base, file)
    by_store = changed_fields(base, store)
    merged = {**file, **store}
    for key in by_file - by_store:
        merged[key] = file[key]
    for key in by_file & by_store:
        if key in ("tags", "entities"):
            kept = list(store.get(key) or [])
            merged[key] = kept + [one for one in file.get(key) or [] if one not in kept]
        elif key in ("superseded_by", "valid_to") and store.get(key) is None:
            merged[key] = file[key]
    merged["access_count"] = max(int(file.get("access_count") or 0), int(store["access_count"]))
    merged["last_accessed"] = max(str(file.get("last_accessed") or ""), store["last_accessed"])
    return merged


def is_same_fact(file: Mapping[str, Any], store: Mapping[str, Any]) -> bool:
    """Whether two records with one id are one fact. A uid decides; else an equal text or an
    equal creation time (upstream never edits a text in place, so another text *and* another
    time under one id is another fact, born on another git branch)."""
    if file.get("uid") and store.get("uid"):
        return bool(file["uid"] == store["uid"])
    return bool(file["text"] == store["text"] or file["created_at"] == store["created_at"])


class Change(NamedTuple):
    """What a fact's line has to say now: the record last agreed on (None: the fact has no line
    yet) and the one of the store."""

    base: Mapping[str, Any] | None
    said: Mapping[str, Any]


def patch(data: bytes, changes: Iterable[Change]) -> bytes | None:
    """The file ``data`` with the lines of some facts made anew and new ones at its end: what
    composing it from all facts would give, at the cost of the change. None when the lines are
    not where and as our own writing leaves them; then the whole has to be composed."""
    if data and not data.endswith(b"\n"):
        return None
    changes = list(changes)
    places = _places(data, {change.base["id"] for change in changes if change.base is not None})
    if places is None:
        return None
    cuts: list[tuple[int, int, str]] = []
    added: list[str] = []
    for base, said in changes:
        if base is None:
            added.append(render(said))
            continue
        start = places[base["id"]]
        end = data.index(b"\n", start)
        piece = data[start:end]
        record, _ = _record(piece, piece.decode("utf-8", "surrogateescape"))
        if record is None or piece.endswith(b"\r") or changed_fields(base, record):
            return None
        if not same(base, said):
            cuts.append((start, end, render({**record, **said})))
    pieces, at = [], 0
    for start, end, line in sorted(cuts):
        pieces += [data[at:start], line.encode("utf-8")]
        at = end
    return b"".join(pieces) + data[at:] + join(added)


def _places(data: bytes, wanted: set[str]) -> dict[str, int] | None:
    """Where the line of each id begins, in one pass however many are wanted; None unless each
    has exactly one line."""
    places: dict[str, int] = {}
    if not wanted:
        return places
    first = _HEAD.match(b"\n" + data[:32])
    if first is not None and first[1].decode() in wanted:
        places[first[1].decode()] = 0
    for head in _HEAD.finditer(data):
        fact_id = head[1].decode()
        if fact_id in wanted:
            if fact_id in places:
                return None
            places[fact_id] = head.start() + 1
    return places if len(places) == len(wanted) else None


def join(lines: Iterable[str]) -> bytes:
    """The file of these lines, each ended by a newline."""
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
