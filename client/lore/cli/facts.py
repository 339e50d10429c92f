"""`remember`, `facts`, `fact`, `update`, `undo`, `history`: facts one by one."""

from __future__ import annotations

from typing import Any

from lore.cli import views
from lore.cli.arguments import AS_OF, ENTITY, KNOWN_AT, LIMIT, SINCE, TAG, UNTIL, Arg, Verb
from lore.cli.invocation import LISTED, Invocation, joined
from lore.cli.render import Screen, one_line
from lore.cli.times import stamp
from lore.wire.methods import KINDS

ID = Arg("ID", help="F3, global:F3, workspace:F3 or the uid")
PROVENANCE = (
    TAG,
    ENTITY,
    Arg("--kind", "-k", choices=KINDS, help="what sort of statement"),
    Arg("--by", metavar="WHO", help="who states it"),
    Arg("--ref", metavar="URL", help="where it comes from: URL, file:PATH, commit:SHA"),
    Arg("--source", help="what produced it: user, agent, tool"),
    Arg("--session", metavar="ID", help="the session that states it"),
    Arg("--valid-from", metavar="DATE", help="when it became true; default now"),
    Arg("--valid-to", metavar="DATE", help="when it stopped being true"),
)


def _provenance(options: Any) -> dict[str, Any]:
    return {
        "tags": options.tag,
        "entities": options.entity,
        "kind": options.kind,
        "asserted_by": options.by,
        "source_ref": options.ref,
        "source": options.source,
        "session_id": options.session,
        "valid_from": options.valid_from,
        "valid_to": options.valid_to,
    }


def remember(inv: Invocation) -> int:
    """State a fact and say what it touches."""
    answer = inv.call("remember_fact", text=joined(inv.options.text), **_provenance(inv.options))

    def text(screen: Screen) -> None:
        fact = answer.get("fact", {})
        done = "remembered" if answer.get("created", True) else "already known"
        cluster = answer.get("cluster") or {}
        group = f", cluster {cluster['id']} {_title(cluster)}" if cluster.get("id") else ""
        name = screen.paint(views.fact_name(fact), "cyan", "bold")
        screen.say(f"{name} {done} ({fact.get('scope', '?')}{group})")
        for warning in answer.get("warnings", ()):
            screen.note(screen.paint(f"warning: {one_line(str(warning))}", "yellow"))
        if answer.get("collisions"):
            views.show_collisions(screen, answer["collisions"], answer.get("collision_count"))
        _related(screen, answer.get("related", ()))

    return inv.show(answer, text)


def _title(cluster: dict[str, Any]) -> str:
    return f"({one_line(str(cluster['title']))})" if cluster.get("title") else ""


def _related(screen: Screen, related: Any) -> None:
    if not related:
        return
    screen.say(screen.paint("related:", "dim"))
    for item in related[:5]:
        views.show_brief(screen, item.get("fact", item))


def facts(inv: Invocation) -> int:
    """List facts."""
    o = inv.options
    answer = inv.call(
        "facts",
        tags=o.tag,
        entities=o.entity,
        kind=o.kind,
        since=o.since,
        until=o.until,
        as_of=o.as_of,
        known_at=o.known_at,
        include_superseded=o.all,
        after=o.after,
        limit=o.limit,
    )
    found = answer.get("facts", [])

    def text(screen: Screen) -> None:
        doubles = views.qualified(found)
        for fact in found:
            views.show_fact(screen, fact, doubles)
        _more(inv, screen, answer, len(found))

    narrowed = any((o.tag, o.entity, o.kind, o.since, o.until, o.as_of, o.known_at))
    none = "no fact fits these options" if narrowed else "no facts here; lore remember states one"
    return inv.show(answer, text, found=bool(found), empty=none)


def _more(inv: Invocation, screen: Screen, answer: dict[str, Any], shown: int) -> None:
    if answer.get("next"):
        total = f" of {answer['total']}" if answer.get("total") else ""
        screen.note(
            screen.paint(f"{shown}{total} shown; {inv.again(after=answer['next'])} goes on", "dim")
        )


def fact(inv: Invocation) -> int:
    """One fact in full."""
    answer = inv.call("fact", id=inv.options.id)

    def text(screen: Screen) -> None:
        views.show_fact(screen, answer.get("fact", {}), full=True)
        if len(answer.get("history", ())) > 1:
            screen.say("", screen.paint("history, oldest first:", "bold"))
            for item in answer["history"]:
                _step(screen, item)
        for conflict in answer.get("conflicts", ()):
            screen.say("")
            views.show_conflict(screen, conflict)
        if answer.get("session"):
            screen.say("", screen.paint("stated in:", "bold"))
            views.show_session(screen, answer["session"])

    return inv.show(answer, text)


def _step(screen: Screen, item: dict[str, Any]) -> None:
    known = item.get("fact", item)
    window = f"{stamp(known.get('valid_from'))} to {stamp(known.get('valid_to')) or 'now'}"
    screen.say(screen.paint(f"  {window}", "dim"))
    views.show_brief(screen, known)


def update(inv: Invocation) -> int:
    """Replace the text of a fact."""
    answer = inv.call(
        "update_fact",
        id=inv.options.id,
        text=joined(inv.options.text),
        **_provenance(inv.options),
    )

    def text(screen: Screen) -> None:
        old, new = answer.get("old", {}), answer.get("new", {})
        screen.say(f"{views.fact_name(new)} replaces {views.fact_name(old)}")
        views.show_fact(screen, new)
        if answer.get("collisions"):
            views.show_collisions(screen, answer["collisions"], answer.get("collision_count"))

    return inv.show(answer, text)


def undo(inv: Invocation) -> int:
    """Take back a change."""
    answer = inv.call("undo", id=inv.options.id)
    undone = answer.get("undone", [])

    def text(screen: Screen) -> None:
        for entry in undone:
            screen.say(f"taken back: {_entry(entry)}")

    return inv.show(answer, text, found=bool(undone), empty="nothing to take back")


def history(inv: Invocation) -> int:
    """The chain of a fact, then its change log; without an id the whole change log."""
    o = inv.options
    if o.id is None:
        limit = o.limit or LISTED
        answer = inv.call("log", since=o.since, limit=limit)
        entries = answer.get("entries", [])

        def log(screen: Screen) -> None:
            screen.say(*(_entry(entry) for entry in entries))
            inv.tell_cut(len(entries), limit)

        none = "nothing has been changed " + ("since then" if o.since else "here yet")
        return inv.show(answer, log, found=bool(entries), empty=none)
    answer = inv.call("fact_history", id=o.id)

    def text(screen: Screen) -> None:
        for item in answer.get("history", ()):
            _step(screen, item)
        for entry in answer.get("log", ()):
            screen.say(screen.paint("  " + _entry(entry), "dim"))

    return inv.show(answer, text)


def _entry(entry: Any) -> str:
    if not isinstance(entry, dict):
        return one_line(str(entry))
    parts = [str(entry.get("id", "")), stamp(entry.get("at")), str(entry.get("op", ""))]
    parts += [str(entry[key]) for key in ("subject", "fact", "note", "reason") if entry.get(key)]
    if entry.get("by"):
        parts.append(f"by {entry['by']}")
    return one_line("  ".join(part for part in parts if part))


VERBS = (
    Verb(
        "remember",
        remember,
        (
            Arg("TEXT", kind="words", help="the statement, kept as it is; - reads stdin"),
            *PROVENANCE,
        ),
        scopes=("global",),
        examples=(
            "lore remember 'Cache TTL is 300s' -e tool:redis -t cache",
            "lore remember --global --kind preference 'Answer in British English'",
            "git log -1 --format=%s | lore remember - --ref commit:$(git rev-parse HEAD)",
        ),
    ),
    Verb(
        "facts",
        facts,
        (
            TAG,
            ENTITY,
            Arg("--kind", "-k", choices=KINDS, help="only statements of this sort"),
            SINCE,
            UNTIL,
            AS_OF,
            KNOWN_AT,
            Arg("--all", "-a", kind="flag", help="also replaced and forgotten ones"),
            Arg("--after", metavar="NEXT", help="go on after an earlier answer"),
            LIMIT,
        ),
        scopes=("global",),
        examples=("lore facts -t cache", "lore facts --as-of 2026-05-28", "lore facts --since 3d"),
    ),
    Verb("fact", fact, (ID,), scopes=("global",), examples=("lore fact F3", "lore fact global:F1")),
    Verb(
        "update",
        update,
        (ID, Arg("TEXT", kind="words", help="the new statement; - reads stdin"), *PROVENANCE),
        scopes=("global",),
        examples=("lore update F3 'Cache TTL is 600s'",),
    ),
    Verb(
        "undo",
        undo,
        (Arg("ID", kind="maybe", help="log entry or batch; default: the last change"),),
        scopes=("global",),
        examples=("lore undo",),
    ),
    Verb(
        "history",
        history,
        (
            Arg("ID", kind="maybe", help="a fact; without it the whole change log"),
            SINCE,
            LIMIT,
        ),
        scopes=("global",),
        examples=("lore history F3", "lore history --since yesterday"),
    ),
)
