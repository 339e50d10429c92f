"""What transcripts say about a session itself: patches as maps, and how they are joined. Pure.

One rule for the worker (which renders summaries) and for the store (which keeps the row): the
last one wins, except the smallest `started_at` and the largest `ended_at`; maps are joined by
key. A title from the transcript goes before one made from the first prompt.
"""

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


def changes(patch: SessionPatch) -> dict[str, Any]:
    """What a patch says, instants in microseconds."""
    found: dict[str, Any] = {
        name: value for name in _PLAIN if (value := getattr(patch, name)) not in (None, "")
    }
    if patch.is_subagent is not None:
        found["is_subagent"] = patch.is_subagent
    for name in ("started_at", "ended_at"):
        instant = parse_instant(getattr(patch, name))
        if instant is not None:
            found[name] = instant
    if patch.tokens:
        found["tokens"] = dict(patch.tokens)
    if patch.extra:
        found["extra"] = dict(patch.extra)
    return found


def merge(into: dict[str, Any], patch: dict[str, Any]) -> None:
    """Add what ``patch`` (from `changes`) says to ``into``: the last one wins, except the
    smallest `started_at` and the largest `ended_at`; maps are joined by key."""
    for name, value in patch.items():
        old = into.get(name)
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
