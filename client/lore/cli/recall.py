"""`recall`: facts and past sessions in one answer."""

from __future__ import annotations

from lore.cli import views
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
from lore.cli.render import Screen, one_line


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
    for reason in answer.get("degraded", ()):
        inv.screen.note(inv.screen.paint(f"note: {one_line(str(reason))}", "yellow"))
    wider = "" if o.everywhere else "; --everywhere looks in all workspaces"
    sought = repr(query) if query else "what these options ask"
    return inv.show(
        answer,
        lambda screen: show_hits(screen, answer),
        found=found,
        empty=f"nothing found for {sought}{wider}",
    )


def show_hits(screen: Screen, answer: Answer) -> None:
    """Facts first, then sessions with their excerpts."""
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
    for index, hit in enumerate(sessions):
        if index:
            screen.say("")
        views.show_session(screen, hit.get("session", hit))
        views.show_scores(screen, hit)
        for deed in hit.get("deeds", ()):
            views.show_deed(screen, deed)
        for excerpt in hit.get("excerpts", ()):
            views.show_excerpt(screen, excerpt)


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
