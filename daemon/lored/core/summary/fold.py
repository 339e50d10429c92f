"""Folding records into the state, one by one: what was said, and what is known of the session.

The rule of everything here: a record changes the state by what it says and what the state
already holds, never by what came in the same call; so any split of the records gives the
same state. Cost is that of the record at hand, whatever the session's length.
"""

import re
from collections.abc import Iterable
from operator import attrgetter
from typing import Any, Final

from lored.core.summary import statements
from lored.core.summary.deeds import settle_open, take_action
from lored.core.summary.requests import read_request, redirection
from lored.core.summary.state import (
    DECISIONS,
    FIRST_REDIRECTIONS,
    GOAL_CHARS,
    KEPT_FACTS,
    LAST_REDIRECTIONS,
    NEXT_STEPS,
    REQUEST_CHARS,
    SAID_CHARS,
    SEEN_REQUESTS,
    TARGET_CHARS,
    cut,
    fingerprint,
    flat,
    push,
    see_at,
    work_at,
)
from lored.core.transcripts.records import (
    Action,
    Compaction,
    Message,
    Record,
    Rollback,
    SessionPatch,
)

State = dict[str, Any]
_KNOWN: Final = ("title", "prompt_title", "model", "cwd", "branch", "cost_usd", "is_subagent")
_KNOWN_OF: Final = attrgetter(*_KNOWN)
_OWN_ORDER: Final = re.compile(
    r"/(?!clear|exit|quit|model|log(?:in|out)|help|config|mcp|cost)[\w:-]+"
)
"""A stored prompt that a person called by its name (`/init`): all that is known of the request."""
_NOTHING: Final = _KNOWN_OF(SessionPatch())


def fold(state: State, records: Iterable[Record]) -> None:
    """Take ``records`` into ``state`` (mutated). Texts should be redacted before: they are kept."""
    for record in records:
        state["seq"] += 1
        if isinstance(record, Message):
            _message(state, record)
        elif isinstance(record, Action):
            take_action(state, record)
        elif isinstance(record, SessionPatch):
            _patch(state, record)
        elif isinstance(record, Compaction):
            _compaction(state, record)
        elif isinstance(record, Rollback):
            _rollback(state, record)


# -- what was said ------------------------------------------------------------------------


def _message(state: State, message: Message) -> None:
    if message.rolled_back:
        return
    if message.role == "user":
        work_at(state, message.at)
        _user(state, message)
    elif message.role == "assistant":
        work_at(state, message.at)
        text = message.text.strip()
        if text:
            state["counts"]["messages"] += 1
            state["said"] = {"key": message.key, "turn": state["turn"], "text": _ends(text)}
            state["tail"] = "assistant"
    elif message.role == "summary" and state["recap"] is None:
        state["recap"] = flat(message.text, GOAL_CHARS)
    elif message.role == "context" and state["turn"] == 0 and state["goal"] is None:
        _task(state, message)
        if state["weak_goal"] is None and _OWN_ORDER.fullmatch(message.text):
            state["weak_goal"] = message.text


def _task(state: State, message: Message) -> None:
    """A subagent is asked by its parent agent: that prompt is its goal, though no person's."""
    words = read_request(message.text) if state["session"].get("is_subagent") else None
    if words is not None and len(words) > 20:
        state["goal"] = {"key": fingerprint(message.key), "turn": 0, "text": cut(words, GOAL_CHARS)}


def _user(state: State, message: Message) -> None:
    mark = fingerprint(message.key)
    words = read_request(message.text)
    if mark in state["seen"]:
        _replace_request(state, mark, words)
        return
    _close_turn(state)
    settle_open(state)
    push(state["seen"], mark, SEEN_REQUESTS)
    state["turn"] += 1
    state["counts"]["messages"] += 1
    state["counts"]["user"] += 1
    state["tail"] = "user"
    if words is None:
        if state["weak_goal"] is None and message.text.strip():
            state["weak_goal"] = flat(message.text, REQUEST_CHARS)
        return
    if state["goal"] is None:
        state["goal"] = {"key": mark, "turn": state["turn"], "text": cut(words, GOAL_CHARS)}
        return
    entry = [mark, state["turn"], redirection(words, REQUEST_CHARS)]
    kept = state["redirections"]
    if any(entry[2] == old[2] for old in kept) or (len(entry[2]) < 8 and entry[2].isascii()):
        return
    kept.append(entry)
    if len(kept) > FIRST_REDIRECTIONS + LAST_REDIRECTIONS:
        del kept[FIRST_REDIRECTIONS]


def _replace_request(state: State, mark: str, words: str | None) -> None:
    """The same message again, with newer words."""
    if words is None:
        return
    goal = state["goal"]
    if goal is not None and goal["key"] == mark:
        goal["text"] = cut(words, GOAL_CHARS)
    for entry in state["redirections"]:
        if entry[0] == mark:
            entry[2] = redirection(words, REQUEST_CHARS)


def _close_turn(state: State) -> None:
    """The assistant's last text of a turn is its closing statement: keep what it states."""
    said = state["said"]
    if said is None:
        return
    for text in statements.read_decisions(said["text"]):
        if all(text != kept[1] for kept in state["decisions"]):
            push(state["decisions"], [said["turn"], text], DECISIONS)
    steps = statements.read_next_steps(said["text"])
    if steps:
        state["next_steps"] = [[said["turn"], step] for step in steps[:NEXT_STEPS]]
    elif state["next_steps"] and said["turn"] > state["next_steps"][0][0] + 2:
        state["next_steps"] = []  # the work went on: old plans are no plans
    state["said"] = None


def _compaction(state: State, record: Compaction) -> None:
    see_at(state, record.at)
    recap = statements.read_recap(record.summary) if len(record.summary) < 64_000 else {}
    facts = record.kept_facts or recap.get("facts", [])
    for fact in facts:
        text = flat(fact, REQUEST_CHARS)
        if text and text not in state["kept_facts"]:
            push(state["kept_facts"], text, KEPT_FACTS)
    steps = record.next_steps or recap.get("next", [])
    if steps:
        state["next_steps"] = [
            [state["turn"], flat(step, REQUEST_CHARS)] for step in steps[:NEXT_STEPS]
        ]
    request = recap.get("request")
    state["recap"] = request[0] if request else flat(record.summary, GOAL_CHARS)


def _rollback(state: State, record: Rollback) -> None:
    """Turns that the person took back: their requests and statements no longer count. What was
    undone in another file is told as rolled back there."""
    if record.part is not None:
        return
    last = state["turn"] - record.turns
    if record.from_key is not None:
        mark = fingerprint(record.from_key)
        turns = [entry[1] for entry in state["redirections"] if entry[0] == mark]
        goal = state["goal"]
        if goal is not None and goal["key"] == mark:
            turns.append(goal["turn"])
        if not turns:
            return
        last = min(turns) - 1
    last = max(last, 0)
    if state["goal"] is not None and state["goal"]["turn"] > last:
        state["goal"] = None
    state["redirections"] = [e for e in state["redirections"] if e[1] <= last]
    state["decisions"] = [e for e in state["decisions"] if e[0] <= last]
    state["next_steps"] = [e for e in state["next_steps"] if e[0] <= last]
    if state["said"] is not None and state["said"]["turn"] > last:
        state["said"] = None
    state["turn"] = last
    state["tail"] = "assistant"


# -- what is known about the session --------------------------------------------------------


def _patch(state: State, patch: SessionPatch) -> None:
    known = state["session"]
    see_at(state, patch.started_at)
    see_at(state, patch.ended_at)
    values = _KNOWN_OF(patch)
    if values != _NOTHING:
        for name, value in zip(_KNOWN, values, strict=True):
            if value is not None:
                known[name] = value[:TARGET_CHARS] if isinstance(value, str) else value
    if patch.tokens:
        known["tokens"] = dict(patch.tokens)
    if patch.extra:
        goal = patch.extra.get("goal")
        if isinstance(goal, str) and goal.strip():
            known["goal"] = cut(goal.strip(), GOAL_CHARS)
    if patch.status is not None:
        known["status"] = patch.status
        known["status_at"] = patch.ended_at or state["last_at"]


def _ends(text: str) -> str:
    if len(text) <= SAID_CHARS:
        return text
    return f"{text[: SAID_CHARS // 2]}\n\n{text[-SAID_CHARS // 2 :]}"
