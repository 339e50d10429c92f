"""Structured results in the size that a model should pay for: ids and brief text in lists, the
whole of one thing when that was asked. Some clients show the model this form instead of the
text, so it must not be the larger one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lore.mcp.text import SHOWN_ACTIONS, brief

Map = dict[str, Any]

_FACT = (
    "id",
    "scope",
    "text",
    "kind",
    "tags",
    "entities",
    "source",
    "asserted_by",
    "source_ref",
    "created_at",
    "valid_from",
    "valid_to",
    "superseded_by",
    "conflicts",
    "unverified",
)
_SESSION = ("id", "agent", "started_at", "ended_at", "status", "cwd", "branch")
_MESSAGE = ("position", "role", "at", "deed", "text")
_ACTION = ("kind", "target", "command", "status", "exit_code")
_SUMMARY = ("line", "key_actions")
_DIGEST = (*_SUMMARY, "goal", "decisions", "errors", "next_steps", "commits", "tests")


def _pick(item: Map, keys: Iterable[str]) -> Map:
    return {key: item[key] for key in keys if item.get(key) not in (None, "", [], {})}


def fact(item: Map, *, whole: bool = False) -> Map:
    """A fact; brief text unless ``whole``."""
    kept = _pick(item, _FACT)
    return kept if whole or "text" not in kept else {**kept, "text": brief(kept["text"])}


def session(item: Map) -> Map:
    """A session with its two summary lines."""
    return {**_pick(item, _SESSION), **_pick(item.get("summary") or {}, _SUMMARY)}


def conflict(item: Map) -> Map:
    """A conflict with both facts in brief."""
    kept = _pick(item, ("id", "scope", "status", "severity", "note"))
    for side in ("fact_a", "fact_b"):
        if isinstance(item.get(side), dict):
            kept[side] = fact(item[side])
    return kept


def hits(answer: Map) -> Map:
    """Facts, conflicts and sessions with excerpts, all brief."""
    kept: Map = {}
    if "facts" in answer:
        kept["facts"] = [fact(item) for item in answer["facts"]]
    if answer.get("conflicts"):
        kept["conflicts"] = [conflict(item) for item in answer["conflicts"]]
    if "sessions" in answer:
        kept["sessions"] = [_hit(item) for item in answer["sessions"]]
    return {**kept, **_pick(answer, ("next", "total", "degraded"))}


def _deed(action: Map) -> Map:
    kept = _pick(action, (*_ACTION, "position"))
    return {**kept, "command": brief(kept["command"])} if "command" in kept else kept


def _hit(item: Map) -> Map:
    if "session" not in item:
        return session(item)
    excerpts = [
        {**_pick(excerpt, _MESSAGE), "text": brief(excerpt.get("text"))}
        for excerpt in item.get("excerpts", ())[:2]
    ]
    deeds = [_deed(deed) for deed in item.get("deeds", ())]
    found = {**session(item["session"]), "excerpts": excerpts}
    return {**found, "deeds": deeds} if deeds else found


def stated(answer: Map) -> Map:
    """What became of a statement: the fact, and collisions with their commands."""
    kept: Map = {**_pick(answer, ("warnings", "collision_count")), "created": answer.get("created")}
    kept["fact"] = fact(answer.get("fact") or answer.get("new") or {}, whole=True)
    kept["collisions"] = [
        {"fact": fact(item.get("fact", {})), **_pick(item, ("why", "commands"))}
        for item in answer.get("collisions", ())
    ]
    return {key: value for key, value in kept.items() if value is not None}


def whole_fact(answer: Map) -> Map:
    """One fact in full with its history in brief."""
    kept: Map = {"fact": fact(answer.get("fact", {}), whole=True)}
    steps = [step.get("fact", step) for step in answer.get("history", ())]
    if len(steps) > 1:
        kept["history"] = [fact(step) for step in steps]
    if answer.get("conflicts"):
        kept["conflicts"] = [conflict(item) for item in answer["conflicts"]]
    if answer.get("session"):
        kept["session"] = session(answer["session"])
    return kept


def whole_session(answer: Map) -> Map:
    """One session: digest, newest actions, facts."""
    found = answer.get("session", answer)
    kept: Map = session(found) | _pick(found.get("summary") or {}, _DIGEST)
    kept["actions"] = [
        _pick(item, _ACTION) for item in (found.get("actions") or [])[-SHOWN_ACTIONS:]
    ]
    if found.get("facts"):
        kept["facts"] = [fact(item) for item in found["facts"]]
    return {"session": kept}


def messages(answer: Map) -> Map:
    """A span of messages in full."""
    found = [_pick(item, _MESSAGE) for item in answer.get("messages", ())]
    return {"messages": found, **_pick(answer, ("next",))}
