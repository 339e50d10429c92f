"""How one session reads in full: head, summary part by part, actions, facts.

Takes the wire's map as it is; a part that is absent is not shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from lore.cli import views
from lore.cli.render import Screen, one_line, wrap
from lore.cli.times import seconds, stamp

Map = dict[str, Any]

SHOWN_ACTIONS = 20
"""Actions listed in text, the newest; `--json` has them all."""

SHOWN_ENTRIES = 12
"""Entries of one part of the summary listed in text."""

_HEAD = ("title", "cwd", "worktree", "branch", "model", "parent", "forked_from")


def show(screen: Screen, session: Map) -> None:
    """The whole session."""
    summary = session.get("summary") or {}
    screen.say(screen.paint(str(session.get("id", "")), "cyan", "bold"))
    screen.say(views.session_head(session))
    for name in _HEAD:
        if session.get(name):
            screen.say(f"{name.replace('_', ' ')}: {one_line(str(session[name]))}")
    if session.get("cost_usd"):
        screen.say(f"cost: {session['cost_usd']:.4f} USD")
    if summary.get("active_s"):
        screen.say(f"active: {seconds(float(summary['active_s']))}")
    if summary.get("line") or summary.get("key_actions"):
        screen.say("")
    for name in ("line", "key_actions"):
        if summary.get(name):
            screen.say(*wrap(str(summary[name]), screen.columns, ""))
    if summary.get("goal"):
        _part(screen, "goal", [summary["goal"]], str)
    for name, form in _PARTS:
        value = summary.get(name)
        entries = value if isinstance(value, list) else [value] if value else []
        _part(screen, name.replace("_", " "), entries, form)
    _actions(screen, session.get("actions") or [])
    if session.get("facts"):
        screen.say("", screen.paint("facts stated in it", "bold"))
        for fact in session["facts"]:
            views.show_brief(screen, fact)
            _against(screen, fact)
    if session.get("statements"):
        screen.say("", screen.paint("asked to remember, but no fact says it so", "bold"))
        for said in session["statements"]:
            screen.say(*wrap(f"  - {one_line(str(said['text']))}", screen.columns, "    "))
            _against(screen, said)
    lineage = session.get("lineage") or {}
    for name in ("subagents", "forks"):
        if lineage.get(name):
            screen.say("", screen.paint(name, "bold"))
            screen.say(*(f"  {one_line(_plain_or_text(one))}" for one in lineage[name]))
    hint = f"lore session {session.get('id')} --messages 0-20 shows messages"
    screen.say("", screen.paint(hint, "dim"))


def _against(screen: Screen, said: Map) -> None:
    """Facts that stand against a statement, and the one that replaced it."""
    after = said.get("successor")
    if after:
        screen.say(f"      replaced by {after['id']}: {one_line(str(after['text']))}")
    for one in said.get("collisions") or []:
        fact = one["fact"]
        screen.say(f"      may contradict {fact['id']}: {one_line(str(fact['text']))}")


def _part(screen: Screen, title: str, entries: list[Any], form: Callable[[Any], str]) -> None:
    if not entries:
        return
    screen.say("", screen.paint(title, "bold"))
    for entry in entries[:SHOWN_ENTRIES]:
        text = form(entry) if isinstance(entry, dict) else str(entry)
        lines = wrap(one_line(text), screen.columns, "    ") or ["    "]
        screen.say("  - " + lines[0].strip(), *lines[1:])
    if len(entries) > SHOWN_ENTRIES:
        screen.say(screen.paint(f"  … and {len(entries) - SHOWN_ENTRIES} more", "dim"))


def _join(head: Any, notes: Iterable[str]) -> str:
    inner = ", ".join(note for note in notes if note)
    return f"{head} ({inner})" if inner else str(head)


def _times(count: Any, word: str) -> str:
    return f"{count} {word}" if isinstance(count, int) and count > 1 else ""


def _file(entry: Map) -> str:
    change = entry.get("change")
    lines = [f"+{entry['added']}" if entry.get("added") else ""]
    lines.append(f"-{entry['removed']}" if entry.get("removed") else "")
    notes = ("" if change in (None, "update") else str(change), " ".join(filter(None, lines)))
    return _join(
        entry.get("name") or entry.get("path"), (*notes, _times(entry.get("edits"), "edits"))
    )


def _command(entry: Map) -> str:
    failures = entry.get("failures")
    return _join(
        entry.get("command"),
        (
            str(entry.get("status") or ""),
            _times(entry.get("runs"), "runs"),
            f"{failures} failed" if failures and entry.get("runs", 1) > 1 else "",
            f"{entry['added']} tests added" if entry.get("added") else "",
        ),
    )


def _error(entry: Map) -> str:
    how = entry.get("how") or "later"
    fate = f"overcome: {how}" if entry.get("overcome") else "not overcome"
    where = f"{entry['where']}: " if entry.get("where") else ""
    return _join(f"{where}{entry.get('message', '')}", (_times(entry.get("count"), "times"), fate))


def _plain(entry: Map) -> str:
    """Any other map: its texts, then its figures with their names."""
    texts = [value for value in entry.values() if isinstance(value, str)]
    figures = [
        f"{k} {v}" for k, v in entry.items() if isinstance(v, int) and v not in (True, False)
    ]
    return ", ".join(texts + figures)


def _plain_or_text(entry: Any) -> str:
    return _plain(entry) if isinstance(entry, dict) else str(entry)


_PARTS: tuple[tuple[str, Callable[[Any], str]], ...] = (
    ("redirections", _plain),
    ("decisions", _plain),
    ("findings", _plain),
    ("errors", _error),
    ("next_steps", _plain),
    ("files", _file),
    ("commands", _command),
    ("tests", _command),
    ("commits", _plain),
)


def _actions(screen: Screen, actions: list[Map]) -> None:
    if not actions:
        return
    count = len(actions)
    left_out = f", the last {SHOWN_ACTIONS}" if count > SHOWN_ACTIONS else ""
    screen.say("", screen.paint(f"actions ({count}{left_out})", "bold"))
    rows = [
        (
            stamp(action.get("started_at") or action.get("at")),
            str(action.get("kind", "")),
            "" if action.get("status") == "ok" else str(action.get("status") or ""),
            str(action.get("target") or action.get("command") or action.get("tool") or ""),
        )
        for action in actions[-SHOWN_ACTIONS:]
    ]
    screen.table(rows, shrink=3)
