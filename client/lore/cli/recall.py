"""`recall`: facts and past sessions in one answer."""

from __future__ import annotations

from typing import Any

from lore.cli import emptiness, views
from lore.cli.arguments import (
    AGENT,
    AS_OF,
    EXPLAIN,
    KNOWN_AT,
    LIMIT,
    SINCE,
    UNTIL,
    Arg,
    Usage,
    Verb,
)
from lore.cli.invocation import Answer, Invocation, joined
from lore.cli.render import Screen, counted, one_line


def recall(inv: Invocation) -> int:
    """Search facts, sessions or both."""
    o = inv.options
    query = joined(o.query)
    parts = [name for name in ("facts", "sessions") if getattr(o, name)]
    if o.command or o.file or o.agent or o.commit or o.failed:
        parts = parts or ["sessions"]  # facts touch no files and run no commands
    elif not query:
        raise Usage("say what to look for, or what was done: --file, --command, --commit, --failed")
    answer = inv.call(
        "recall",
        query=query or None,
        parts=parts,
        as_of=o.as_of,
        known_at=o.known_at,
        since=o.since,
        until=o.until,
        agent=o.agent,
        file=o.file,
        command=o.command,
        commit=o.commit,
        failed=o.failed or None,
        limit=o.limit,
        deep=o.deep,
        explain=o.explain,
    )
    found = bool(answer.get("facts") or answer.get("sessions"))
    for reason in () if inv.screen.json else answer.get("degraded", ()):
        inv.screen.note(inv.screen.paint(f"note: {one_line(str(reason))}", "yellow"))

    def text(screen: Screen) -> None:
        show_hits(screen, answer, full=o.full)
        passage = next((hit for hit in answer.get("sessions", ()) if hit.get("excerpts")), None)
        if passage:
            name = views.short_id(str(passage["session"]["id"]))
            at = passage["excerpts"][0].get("position", 0)
            hint = f"lore session {name} --messages {at}- reads on from #{at}"
            screen.note(screen.paint(hint, "dim"))

    return inv.show(
        answer,
        text,
        found=found,
        empty="" if found or inv.screen.json else _nothing(inv, query, parts),
    )


NARROWING = ("as_of", "known_at", "since", "until", "agent", "file", "command", "commit", "failed")
"""Options that leave results out; an empty answer names those that were given."""


def _nothing(inv: Invocation, query: str, parts: list[str]) -> str:
    """Why an answer is empty: the options that narrowed it, and what other workspaces hold."""
    o = inv.options
    words = f" for {query!r}" if query else ""
    said = f"nothing found{words}{emptiness.narrowed(inv, NARROWING)}"
    if o.as_of or o.known_at:
        return f"{said}; what holds now may have come later"
    if o.__dict__["global"] or parts == ["facts"]:
        return said

    def count(kept: dict[str, Any]) -> int:
        asked: dict[str, Any] = {
            "query": query or None,
            "parts": ["sessions"],
            "everywhere": True,
            "limit": 20,
        }
        return len(inv.call("recall", **asked, **kept).get("sessions", ()))

    return emptiness.elsewhere(inv, said, NARROWING, count)


EXCERPTS_SHOWN = 3
"""Of one session; the best come first, and `--full` shows all."""


def show_hits(screen: Screen, answer: Answer, *, full: bool = False) -> None:
    """Facts first, then sessions with their best passages."""
    facts, sessions = answer.get("facts", []), answer.get("sessions", [])
    if facts:
        screen.say(screen.paint("facts", "bold"))
        doubles = views.qualified(facts)
        for fact in facts:
            views.show_fact(screen, fact, doubles)
            views.show_scores(screen, fact)
    for conflict in answer.get("conflicts", ()):
        views.show_conflict(screen, conflict)
    if sessions:
        screen.say(*([""] if facts else []), screen.paint("sessions", "bold"))
    clashing = views.clashing(hit["session"] for hit in sessions)
    for index, hit in enumerate(sessions):
        if index:
            screen.say("")
        views.show_session(screen, hit["session"], clashing)
        views.show_scores(screen, hit)
        for deed in hit.get("deeds", ()):
            views.show_deed(screen, deed)
        excerpts = hit.get("excerpts", [])
        shown = excerpts if full else excerpts[:EXCERPTS_SHOWN]
        for excerpt in shown:
            views.show_excerpt(screen, excerpt, full=full)
        if len(excerpts) > len(shown):
            left = counted(len(excerpts) - len(shown), "more passage")
            screen.say(screen.paint(f"    … {left}; --full shows them", "dim"))


VERBS = (
    Verb(
        "recall",
        recall,
        (
            Arg("QUERY", kind="many", help="words; no search syntax to know"),
            Arg("--facts", kind="flag", help="only facts"),
            Arg("--sessions", kind="flag", help="only past sessions"),
            AS_OF,
            KNOWN_AT,
            SINCE,
            UNTIL,
            AGENT,
            Arg("--file", metavar="PATH", help="sessions that touched this path", complete="file"),
            Arg("--command", metavar="WORDS", help="where such a command ran"),
            Arg("--commit", metavar="SHA", help="sessions that made this commit"),
            Arg("--failed", kind="flag", help="only actions that failed"),
            LIMIT,
            Arg("--full", kind="flag", help="all passages whole, with what was said around them"),
            EXPLAIN,
            Arg("--deep", kind="flag", help="rerank the best hits: slower, a little better"),
        ),
        scopes=("global", "everywhere"),
        examples=(
            "lore recall cache ttl",
            "lore recall --sessions --since '2 weeks ago' permissions",
            "lore recall --command cargo --everywhere test failure",
            "lore recall --failed --command 'npm test'",
        ),
    ),
)
