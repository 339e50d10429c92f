"""What transcripts say about a session itself: patches as maps, and how they are joined. Pure.

One rule for the worker (which renders summaries) and for the store (which keeps the row): the
last one wins, except the smallest `started_at` and the largest `ended_at`; maps are joined by
key. A title from the transcript goes before one made from the first prompt.
"""

from functools import lru_cache
from operator import attrgetter
from typing import Any, Final

from lored.core.clock import parse_instant, to_wire
from lored.core.transcripts.records import SessionPatch

_PLAIN: Final = (
    "parent",
    "forked_from",
    "cwd",
    "branch",
    "commit",
    "model",
    "title",
    "prompt_title",
    "agent_version",
    "status",
    "cost_usd",
)


_PLAIN_OF: Final = attrgetter(*_PLAIN)
_NOTHING: Final = _PLAIN_OF(SessionPatch())


def changes(patch: SessionPatch) -> dict[str, Any]:
    """What a patch says, instants in microseconds. Most say only that time went on."""
    found: dict[str, Any] = {}
    values = _PLAIN_OF(patch)
    if values != _NOTHING:
        found = {
            name: value
            for name, value in zip(_PLAIN, values, strict=True)
            if value is not None and value != ""
        }
        if "\0" in found.get("cwd", ""):
            found["cwd"] = found["cwd"].replace("\0", "\ufffd")  # no path holds a NUL
    if patch.is_subagent is not None:
        found["is_subagent"] = patch.is_subagent
    if patch.started_at is not None and (at := instant(patch.started_at)) is not None:
        found["started_at"] = at
    if patch.ended_at is not None and (at := instant(patch.ended_at)) is not None:
        found["ended_at"] = at
    if patch.titles:
        found["titles"] = dict(patch.titles)
    if patch.tokens:
        found["tokens"] = dict(patch.tokens)
    if patch.extra:
        found["extra"] = dict(patch.extra)
    return found


@lru_cache(maxsize=64)
def instant(text: str | None) -> int | None:
    """`clock.parse_instant`; the records of one line repeat one time."""
    return parse_instant(text)


def merge(into: dict[str, Any], patch: dict[str, Any]) -> None:
    """Add what ``patch`` (from `changes`) says to ``into``: the last one wins, except the
    smallest `started_at` and the largest `ended_at`; maps are joined by key. A list of prompts
    (`side_channel`) knows where a session began; the session's own records know better."""
    beside = "side_channel" in patch.get("extra", ())
    for name, value in patch.items():
        old = into.get(name)
        if beside and name == "cwd" and old is not None:
            continue
        if name == "started_at" and old is not None:
            into[name] = min(old, value)
        elif name == "ended_at" and old is not None:
            into[name] = max(old, value)
        elif isinstance(value, dict) and isinstance(old, dict):
            into[name] = {**old, **value}
        else:
            into[name] = value


def wire_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """Session fields as `summary.render` takes them: instants as ISO text, one title."""
    found = {name: value for name, value in fields.items() if value is not None}
    for name in ("started_at", "ended_at"):
        if name in found:
            found[name] = to_wire(found[name])
    if "title" not in found and "prompt_title" in found:
        found["title"] = found["prompt_title"]
    return found
