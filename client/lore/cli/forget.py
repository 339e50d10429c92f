"""`forget`: one fact, or sessions with all that was derived from them."""

from __future__ import annotations

import os
from typing import Any

from lore.cli import views
from lore.cli.arguments import Arg, Usage, Verb
from lore.cli.invocation import Answer, Invocation
from lore.cli.render import Screen, one_line
from lore.cli.times import size

KINDS = ("session", "workspace", "query")
"""First words that mean sessions."""

ENDED = "what was begun the daemon does to its end; lore status shows it while it runs"
"""Said after Ctrl-C."""

SHOWN = 10
"""Sessions and transcripts that are named; the rest is counted."""


def forget(inv: Invocation) -> int:
    """Forget a fact (to be taken back), or sessions for good."""
    what, *rest = inv.options.what
    if what in KINDS:
        return _sessions(inv, what, rest)
    if rest:
        raise Usage(f"one fact at a time, or {', '.join(KINDS)} first, e.g. forget session {what}")
    return _fact(inv, what)


def _fact(inv: Invocation, fact_id: str) -> int:
    o = inv.options
    params = {"id": fact_id, "hard": o.hard, "undo": o.undo, "reason": o.reason}
    if o.hard:
        answer = inv.call_long("forget_fact", "forget", ENDED, **params)
    else:
        answer = inv.call("forget_fact", **params)

    def text(screen: Screen) -> None:
        name = views.fact_name(answer.get("fact", {"id": fact_id}))
        if o.undo:
            screen.say(f"{name} is back")
        elif o.hard:
            screen.say(f"{name} is removed for good")
            _proof(screen, answer)
        else:
            screen.say(f"{name} is forgotten; lore forget --undo {name} takes that back")

    return inv.show(answer, text)


def _sessions(inv: Invocation, what: str, rest: list[str]) -> int:
    o = inv.options
    if o.undo:
        raise Usage("what is removed for good cannot be taken back")
    wanted = _wanted(inv, what, rest)
    plan = inv.call("forget_session", **wanted, facts=o.facts, dry_run=True)
    count = len(plan.get("sessions", ()))
    if o.dry_run or not count:
        return inv.show(
            plan, lambda screen: _told(screen, plan), found=bool(count), empty="no session fits"
        )
    if what != "session":
        if not inv.screen.json:
            _told(inv.screen, plan)
        inv.confirm(f"Forget {count} session{'s' * (count != 1)} for good?", o.yes)
    answer = inv.call_long("forget_session", "forget", ENDED, **wanted, facts=o.facts)

    def text(screen: Screen) -> None:
        if what == "session":
            _told(screen, answer)
        screen.say(f"{count} session{'s' * (count != 1)} removed for good")
        _proof(screen, answer)

    return inv.show(answer, text)


def _wanted(inv: Invocation, what: str, rest: list[str]) -> dict[str, Any]:
    if what == "workspace":
        if len(rest) > 1:
            raise Usage("forget workspace: one path")
        return {"path": os.path.abspath(rest[0]) if rest else inv.workspace or os.getcwd()}
    if not rest:
        raise Usage(f"forget {what}: say which, e.g. " + EXAMPLES[what])
    return {"query": " ".join(rest)} if what == "query" else {"id": " ".join(rest)}


def _told(screen: Screen, answer: Answer) -> None:
    """What goes, or went: sessions, counts, the agents' own files, which are never touched."""
    for name in answer.get("sessions", ())[:SHOWN]:
        screen.say(f"  {one_line(str(name))}")
    _more(screen, len(answer.get("sessions", ())))
    counts = [
        f"{count} {name.replace('_', ' ')}"
        for name, count in (answer.get("removed") or {}).items()
        if count
    ]
    if answer.get("facts"):
        counts.append(f"facts {', '.join(answer['facts'])}")
    screen.say("with " + ", ".join(counts) if counts else "without a message")
    for other in answer.get("kept", ()):
        screen.say(
            f"  {other['messages']} messages stay with {other['session']}: {other['reason']}"
        )
    files = answer.get("transcripts", ())
    if files:
        screen.say("the agents' own files stay where they are:")
        screen.say(*(f"  {one_line(str(path))}" for path in files[:SHOWN]))
        _more(screen, len(files))


def _more(screen: Screen, count: int) -> None:
    if count > SHOWN:
        screen.say(screen.paint(f"  … and {count - SHOWN} more", "dim"))


def _proof(screen: Screen, answer: Answer) -> None:
    for key, value in (answer.get("proof") or {}).items():
        if isinstance(value, dict):
            value = ", ".join(f"{what} {count}" for what, count in value.items() if count)
        elif isinstance(value, list):
            value = ", ".join(str(one) for one in value)
        elif isinstance(value, bool):
            value = "yes" if value else "no"
        elif isinstance(value, int):
            value = size(value) if key.startswith("bytes") else f"{value:,}"
        if value:
            screen.say(screen.paint(f"  {key.replace('_', ' ')}: {one_line(str(value))}", "dim"))


EXAMPLES = {
    "session": "lore forget session 545b45d4",
    "workspace": "lore forget workspace ~/src/client-project --dry-run",
    "query": "lore forget query 'Project Nightingale'",
}

VERBS = (
    Verb(
        "forget",
        forget,
        (
            Arg(
                "WHAT",
                kind="words",
                help="F3, global:F3, workspace:F3 or a uid; or session ID, workspace [PATH], "
                "query WORDS (sessions that hold these words literally)",
            ),
            Arg("--hard", kind="flag", help="a fact: remove every byte of it for good"),
            Arg("--undo", kind="flag", help="a fact: take a forget back"),
            Arg("--reason", help="a fact: why, kept in the change log"),
            Arg("--facts", kind="flag", help="sessions: also the facts that were stated in them"),
            Arg("--dry-run", kind="flag", help="sessions: only say what would go"),
            Arg("--yes", "-y", kind="flag", help="do not ask"),
        ),
        scopes=("global",),
        examples=("lore forget F3", "lore forget F3 --hard", *EXAMPLES.values()),
    ),
)
