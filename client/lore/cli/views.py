"""How a fact, a collision, a conflict, a session and an excerpt read as text.

Takes the wire's maps as they are; whatever key is absent is simply not shown. Prints through
a `Screen`, decides nothing.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from lore.cli.render import Screen, clean, counted, cut, one_line, wrap
from lore.cli.times import ago, day, seconds, stamp

Map = dict[str, Any]

COLLISION_COLUMNS = 100
"""Width of another fact's text inside a collision or conflict; two lines tell them apart."""


def qualified(facts: Iterable[Map]) -> set[str]:
    """Ids that stand for two facts in one list, and so need their scope in front."""
    return {name for name, count in Counter(str(f.get("id")) for f in facts).items() if count > 1}


def fact_name(fact: Map, doubles: Iterable[str] = ()) -> str:
    """The id that a person can paste: `F3`, or `global:F3` where that is needed."""
    name = str(fact.get("id", "?"))
    return f"{fact.get('scope')}:{name}" if name in doubles else name


def show_fact(
    screen: Screen, fact: Map, doubles: Iterable[str] = (), *, full: bool = False
) -> None:
    """One fact: id and text, then a dim line of what is known about it."""
    name = fact_name(fact, doubles)
    active = fact.get("active", True)
    indent = " " * (max(len(name), 4) + 2)
    lines = wrap(str(fact.get("text", "")), screen.columns, indent) or [indent]
    shown = lines if full else lines[:6]
    head = screen.paint(name, "cyan", "bold") if active else screen.paint(name, "dim")
    screen.say(head + shown[0][len(name) :], *shown[1:])
    if len(lines) > len(shown):
        screen.say(screen.paint(f"{indent}… lore fact {name} shows the rest", "dim"))
    screen.say(*(screen.paint(line, "dim") for line in wrap(_about(fact), screen.columns, indent)))
    if fact.get("unverified"):
        reason = one_line(str(fact["unverified"].get("reason", "its source has changed")))
        screen.say(screen.paint(f"{indent}unverified: {reason}", "yellow"))
    if fact.get("conflicts"):
        names = ", ".join(map(str, fact["conflicts"]))
        screen.say(screen.paint(f"{indent}in conflict: {names} (lore conflicts)", "yellow"))


def _about(fact: Map) -> str:
    parts = [str(fact.get("scope", ""))]
    if fact.get("kind") and fact["kind"] != "fact":
        parts.append(str(fact["kind"]))
    if fact.get("superseded_by"):
        parts.append(f"replaced by {fact['superseded_by']}")
    elif not fact.get("active", True):
        parts.append("not valid now")
    if fact.get("entities"):
        parts.append("about " + ", ".join(fact["entities"]))
    if fact.get("tags"):
        parts.append("tags " + ", ".join(fact["tags"]))
    if fact.get("valid_from") and day(fact["valid_from"]) != day(fact.get("created_at")):
        parts.append(f"from {day(fact['valid_from'])}")
    if fact.get("valid_to"):
        parts.append(f"until {day(fact['valid_to'])}")
    if fact.get("asserted_by"):
        parts.append(f"by {fact['asserted_by']}")
    if fact.get("source_ref"):
        parts.append(str(fact["source_ref"]))
    if fact.get("created_at"):
        parts.append(f"stated {ago(fact['created_at'])}")
    return one_line(" · ".join(part for part in parts if part))


def show_scores(screen: Screen, item: Map) -> None:
    """The parts of a score, when the caller asked for them."""
    explain = item.get("explain")
    if isinstance(explain, dict):
        parts = ", ".join(f"{key} {_figure(value)}" for key, value in explain.items())
        screen.say(
            screen.paint(f"      score {_figure(item.get('score'))}: {one_line(parts)}", "dim")
        )


def _figure(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def show_collisions(screen: Screen, collisions: list[Map], count: int | None = None) -> None:
    """Facts that may contradict a new one, each with the commands that would settle it."""
    total = count or len(collisions)
    word = "fact is" if total == 1 else "facts are"
    screen.say(
        screen.paint(f"{total} {word} about the same thing; settle them or leave them:", "yellow")
    )
    for item in collisions:
        fact = item.get("fact", {})
        show_brief(screen, fact)
        if item.get("why"):
            screen.say(screen.paint(f"        {one_line(str(item['why']))}", "dim"))
        for command in item.get("commands", ()):
            screen.say(f"        {_command(command)}")
    if total > len(collisions):
        screen.say(screen.paint(f"  … and {total - len(collisions)} more", "dim"))


def _command(command: Any) -> str:
    text = one_line(str(command))
    if text.startswith("lore "):
        return text
    from shlex import quote

    return f"lore apply {quote(text)}"


def show_brief(screen: Screen, fact: Map, doubles: Iterable[str] = ()) -> None:
    """One fact on a line or two, inside another answer."""
    name = fact_name(fact, doubles)
    indent = " " * max(len(name) + 4, 8)
    lines = wrap(one_line(str(fact.get("text", ""))), COLLISION_COLUMNS, indent)[:2] or [indent]
    screen.say(f"  {screen.paint(name, 'cyan')}{lines[0][2 + len(name) :]}", *lines[1:])


def show_conflict(screen: Screen, conflict: Map) -> None:
    """One conflict with both its facts and how to end it."""
    name = str(conflict.get("id", "?"))
    status = str(conflict.get("status", "open"))
    parts = [f"{conflict.get('severity', '')} severity", status]
    if conflict.get("opened_at"):
        parts.append(f"opened {ago(conflict['opened_at'])}")
    if conflict.get("opened_by"):
        parts.append(f"by {conflict['opened_by']}")
    if conflict.get("note"):
        parts.append(one_line(str(conflict["note"])))
    if conflict.get("resolved_at"):
        parts.append(f"ended {ago(conflict['resolved_at'])}")
        for key, form in (("resolved_by", "by {}"), ("winner", "{} holds"), ("resolution", "{}")):
            if conflict.get(key):
                parts.append(one_line(form.format(conflict[key])))
    colour = "yellow" if status == "open" else "dim"
    screen.say(f"{screen.paint(name, colour, 'bold')}  {one_line(' · '.join(parts))}")
    for side in ("fact_a", "fact_b"):
        fact = conflict.get(side)
        if isinstance(fact, dict):
            show_brief(screen, fact)
            detail = _about(fact)
            screen.say(screen.paint(f"        {detail}", "dim"))
    if status == "open":
        winner = conflict.get("fact_a", {})
        chosen = winner.get("id", "F1") if isinstance(winner, dict) else winner
        screen.say(
            f"        lore apply 'resolve id={name} winner={chosen}'",
            f"        lore apply 'dismiss id={name}'",
        )


def session_head(session: Map) -> str:
    """`2026-05-28 05:41  codex  3 h 20 min  completed` and the like."""
    parts = [stamp(session.get("started_at")), str(session.get("agent", ""))]
    if session.get("status"):
        parts.append(str(session["status"]))
    if session.get("message_count"):
        parts.append(counted(int(session["message_count"]), "message"))
    if session.get("summary", {}).get("duration_s"):
        parts.append(seconds(float(session["summary"]["duration_s"])))
    return "  ".join(part for part in parts if part)


def show_session(screen: Screen, session: Map, doubles: Iterable[str] = ()) -> None:
    """One session in a list: id, when, agent; where; what was done."""
    whole = str(session.get("id", "?"))
    name = whole if short_id(whole) in doubles else short_id(whole)
    when = ago(session.get("ended_at") or session.get("started_at"))
    head = clean(session_head(session))
    screen.say(f"{screen.paint(name, 'cyan', 'bold')}  {head}  {screen.paint(when, 'dim')}")
    place = session.get("worktree") or session.get("cwd")
    if place:
        screen.say(screen.paint(f"      {homely(one_line(str(place)))}", "dim"))
    summary = session.get("summary") or {}
    for line in (told(session), summary.get("key_actions")):
        if line:
            screen.say(*wrap(one_line(str(line)), screen.columns, "      "))


_FRAME = re.compile(
    r"Session(?: \d{4}-\d\d-\d\d)?: (.*?)(?: (?:Completed|Failed|Interrupted|In progress)\.)?",
    re.DOTALL,
)


def told(session: Map) -> str:
    """What a session was about, without the day and the outcome that its head shows already."""
    line = str((session.get("summary") or {}).get("line") or session.get("title") or "")
    framed = _FRAME.fullmatch(line)
    return framed[1] if framed else line


def homely(path: str) -> str:
    """A path of this user's home directory with `~`."""
    home = os.path.expanduser("~")
    return "~" + path[len(home) :] if path == home or path.startswith(home + os.sep) else path


def short_id(session_id: str) -> str:
    """Enough of a session id to be unique on one machine, in the agent's own spelling.

    UUIDs are cut to 8 hex digits, or to 13 with the dash where they begin with a time
    (version 7: all sessions of a day share their first digits).
    """
    if len(session_id) == 36 and session_id.count("-") == 4:
        return session_id[:13] if session_id[14] == "7" else session_id[:8]
    return session_id


def show_deed(screen: Screen, deed: Map) -> None:
    """One action: what was run or touched, how it ended, when, and at which message."""
    done = str(deed.get("command") or deed.get("target") or deed.get("tool") or "")
    sign = "$" if deed.get("command") else str(deed.get("kind", ""))
    ended = str(deed.get("status") or "")
    if deed.get("exit_code"):
        ended = f"{ended}, exit {deed['exit_code']}"
    at = f"{stamp(deed.get('started_at'))} #{deed.get('position', '')}".strip()
    colour = "red" if deed.get("status") == "failed" else "green"
    room = max(20, screen.columns - len(ended) - len(at) - 12)
    screen.say(
        f"    {screen.paint(sign, 'bold')} {cut(one_line(done), room)}  "
        f"{screen.paint(ended, colour)}  {screen.paint(at, 'dim')}"
    )


def clashing(sessions: Iterable[Map]) -> set[str]:
    """Short ids that stand for two sessions of one list: a fork may share its beginning."""
    counts = Counter(short_id(str(session.get("id"))) for session in sessions)
    return {name for name, count in counts.items() if count > 1}


def show_excerpt(screen: Screen, excerpt: Map, *, full: bool = False) -> None:
    """One hit: who said it when, and the lines around the words that matched.

    ``full``: the whole text, with what was said before and after.
    """
    for message in excerpt.get("before", ()) if full else ():
        _neighbour(screen, message)
    who = f"#{excerpt.get('position', '')} {excerpt.get('role', '')} {stamp(excerpt.get('at'))}"
    screen.say(f"    {screen.paint(who.strip(), 'blue')}")
    words = [str(word) for word in excerpt.get("matched", ())]
    if excerpt.get("deed"):
        deed = cut(one_line(str(excerpt["deed"])), max(20, screen.columns - 14))
        screen.say(_marked(screen, f"      of: {deed}", words))
    lines = [
        line for line in wrap(str(excerpt.get("text", "")), screen.columns, "      ") if line
    ] or ["      "]
    shown = lines if full else _around(lines, words)
    screen.say(*(_marked(screen, line, words) for line in shown))
    show_scores(screen, excerpt)
    for message in excerpt.get("after", ()) if full else ():
        _neighbour(screen, message)


EXCERPT_LINES = 4
"""Of one hit in a list: enough to know it again."""


def _around(lines: list[str], words: list[str]) -> list[str]:
    """The `EXCERPT_LINES` of a text from the line before the first that holds a word."""
    lowered = [word.lower() for word in words]
    hit = next((i for i, line in enumerate(lines) if any(w in line.lower() for w in lowered)), 0)
    first = max(0, min(hit - 1, len(lines) - EXCERPT_LINES))
    chosen = lines[first : first + EXCERPT_LINES]
    if first:
        chosen[0] = "      … " + chosen[0].lstrip()
    if first + EXCERPT_LINES < len(lines):
        chosen[-1] += " …"
    return chosen


def _neighbour(screen: Screen, message: Map) -> None:
    text = one_line(str(message.get("text", "")))
    line = cut(f"    {message.get('role', '')}: {text}", screen.columns)
    screen.say(screen.paint(line, "dim"))


def _marked(screen: Screen, line: str, words: Iterable[str]) -> str:
    """The words that matched in bold; only where there is colour."""
    if not screen.colour or not words:
        return line
    pattern = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True) if word)
    if not pattern:
        return line
    return re.sub(pattern, lambda hit: screen.paint(hit[0], "bold"), line, flags=re.IGNORECASE)
