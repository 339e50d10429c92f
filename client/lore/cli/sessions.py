"""`sessions` and `session`: what the agents did."""

from __future__ import annotations

import re
from typing import Any

from lore.cli import digest, emptiness, views
from lore.cli.arguments import AGENT, LIMIT, SINCE, UNTIL, Arg, Usage, Verb
from lore.cli.invocation import Invocation
from lore.cli.render import Screen, wrap
from lore.cli.times import stamp

STATES = ("completed", "failed", "interrupted", "active")


def sessions(inv: Invocation) -> int:
    """List sessions."""
    o = inv.options
    answer = inv.call(
        "sessions",
        agent=o.agent,
        since=o.since,
        until=o.until,
        status=o.status,
        file=o.file,
        command=o.command,
        commit=o.commit,
        failed=o.failed,
        subagents=o.subagents,
        after=o.after,
        limit=o.limit,
    )
    found = answer.get("sessions", [])

    def text(screen: Screen) -> None:
        doubles = views.clashing(found)
        for session in found:
            views.show_session(screen, session, doubles)
        if answer.get("next"):
            screen.note(
                screen.paint(
                    f"{len(found)} of {answer.get('total', 'more')} shown; "
                    f"{inv.again(after=answer['next'])} goes on",
                    "dim",
                )
            )

    return inv.show(
        answer, text, found=bool(found), empty="" if found or inv.screen.json else _none(inv)
    )


NARROWING = ("agent", "since", "until", "status", "file", "command", "commit", "failed")
"""Options that leave sessions out."""


def _none(inv: Invocation) -> str:
    """Why the list is empty."""

    def count(kept: dict[str, Any]) -> int:
        return int(inv.call("sessions", everywhere=True, limit=1, **kept).get("total", 0))

    said = f"no session found{emptiness.narrowed(inv, NARROWING)}"
    return emptiness.elsewhere(inv, said, NARROWING, count)


def session(inv: Invocation) -> int:
    """One session, or a span of its messages."""
    o = inv.options
    if o.messages is not None or o.around:
        return _messages(inv)
    answer = inv.call("session", id=o.id)
    found = answer.get("session", answer)
    return inv.show(answer, lambda screen: digest.show(screen, found))


def _messages(inv: Invocation) -> int:
    o = inv.options
    first, last = _span(o.messages) if o.messages is not None else (None, None)
    params = {"id": o.id, "from": first, "to": last, "around": o.around, "limit": o.limit}
    answer = inv.call("session_messages", **params)
    found = answer.get("messages", [])

    def text(screen: Screen) -> None:
        for message in found:
            who = f"#{message.get('position')} {message.get('role')} {stamp(message.get('at'))}"
            screen.say(screen.paint(who.rstrip(), "blue"))
            screen.say(*wrap(str(message.get("text", "")), screen.columns, "  "))
        if answer.get("next") is not None:
            span = f"{answer['next']}-" + ("" if last is None else str(last))
            following = inv.again(messages=span, around=None)
            screen.note(screen.paint(f"{following} goes on", "dim"))

    return inv.show(answer, text, found=bool(found), empty="no messages in that span")


def _span(text: str) -> tuple[int, int | None]:
    """`3-9`, `3-` or `7` as first and last position; raises `Usage`."""
    match = re.fullmatch(r"(\d+)(-(\d*))?", text)
    if match is None:
        raise Usage(f"--messages {text}: write a span of positions such as 0-20, 15- or 7")
    first = int(match[1])
    if match[2] is None:
        return first, first
    return first, int(match[3]) if match[3] else None


VERBS = (
    Verb(
        "sessions",
        sessions,
        (
            AGENT,
            SINCE,
            UNTIL,
            Arg("--status", choices=STATES, help="how they ended"),
            Arg("--file", metavar="PATH", help="that touched this path", complete="file"),
            Arg("--command", metavar="WORDS", help="that ran such a command"),
            Arg("--commit", metavar="SHA", help="that made this commit"),
            Arg("--failed", kind="flag", help="with failed actions"),
            Arg("--subagents", kind="flag", help="also sessions of subagents"),
            Arg("--after", metavar="NEXT", help="go on after an earlier answer"),
            LIMIT,
        ),
        scopes=("everywhere",),
        examples=("lore sessions --since yesterday", "lore sessions --agent codex --everywhere"),
    ),
    Verb(
        "session",
        session,
        (
            Arg("ID", help="session id or a unique beginning of it"),
            Arg("--messages", "-m", metavar="A-B", help="messages at these positions, from 0"),
            Arg("--around", metavar="MESSAGE", help="messages around this message id"),
            LIMIT,
        ),
        examples=("lore session 019a3f4e", "lore session 019a3f4e --messages 0-20"),
    ),
)
