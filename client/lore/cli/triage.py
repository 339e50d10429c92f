"""`apply`, `snapshot`, `conflicts`, `clusters`, `entities`: facts in groups."""

from __future__ import annotations

import sys
from typing import Any

from lore.cli import views
from lore.cli.arguments import AS_OF, KNOWN_AT, LIMIT, Arg, Usage, Verb
from lore.cli.invocation import DONE, LISTED, REFUSED, Invocation, decoded, standard_input
from lore.cli.render import Screen, clean, counted, one_line

DEFAULT_SCOPES = ("workspace", "conflicts", "recent:10")
"""Views of `lore snapshot` without words."""


def apply(inv: Invocation) -> int:
    """Run triage operations from words, a file or standard input."""
    answer = inv.call("apply", ops=_operations(inv.options.ops), dry_run=inv.options.dry_run)

    def text(screen: Screen) -> None:
        for result in answer.get("results", ()):
            screen.say(_result(result))
            fact = result.get("fact")
            if isinstance(fact, dict):
                views.show_brief(screen, fact)
            if result.get("collisions"):
                views.show_collisions(screen, result["collisions"], result.get("collision_count"))
        if inv.options.dry_run:
            screen.say(screen.paint("dry run: nothing was changed", "dim"))
        elif answer.get("batch"):
            screen.say(screen.paint(f"lore undo {answer['batch']} takes it all back", "dim"))

    return inv.show(answer, text)


def _operations(words: list[str]) -> str:
    """Operations as text: a file's when the one word is a file, else the words themselves."""
    if len(words) > 1 or (words and ("=" in words[0] or words[0].lstrip().startswith(("[", "{")))):
        # Without quotes (`apply supersede old=F3 new=F12`) the words are one operation.
        quoted = any(" " in word for word in words)
        return ("\n" if quoted else " ").join(words)
    if words and words[0] != "-":
        try:
            with open(words[0], "rb") as file:
                return decoded(file.read(), words[0])
        except OSError as error:
            name = words[0] or "''"
            raise Usage(f"{name}: {error.strerror}; give a file, `-` or operations") from None
    if not words and sys.stdin.isatty():
        raise Usage("give operations, a file or `-`, e.g. lore apply 'supersede old=F3 new=F12'")
    return standard_input()


SENTENCES = {
    "remember": "{id} remembered in {cluster}",
    "supersede": "{new} replaces {old}",
    "conflict": "{id} opened between {fact_a} and {fact_b}, {severity} severity",
    "resolve": "{id} resolved: {winner} holds",
    "dismiss": "{id} dismissed",
    "forget": "{id} is forgotten",
    "restore": "{id} is back",
    "verify": "{id} still holds",
    "merge": "{from} is now {into} ({facts_moved} facts moved)",
    "alias": "{from} is another name of {into}",
}
"""What an operation did, by its name, from the fields of its result; others show the fields."""


def _result(result: dict[str, Any]) -> str:
    op = str(result.get("op", "done"))
    if op in SENTENCES:
        return one_line(SENTENCES[op].format_map(result))
    fields = (
        f"{key}={value}"
        for key, value in result.items()
        if key not in ("op", "index", "line") and isinstance(value, str | int)
    )
    return one_line(" ".join([op, *fields]))


def snapshot(inv: Invocation) -> int:
    """Several views at once; the daemon writes the text."""
    o = inv.options
    answer = inv.call(
        "snapshot",
        scopes=o.scope or list(DEFAULT_SCOPES),
        as_of=o.as_of,
        known_at=o.known_at,
        format="json" if inv.screen.json else "text",
    )
    seen = [view for key, view in answer.items() if key not in ("timestamp", "scopes", "text")]
    inv.show(answer, lambda screen: screen.say(clean(str(answer.get("text", ""))).rstrip()))
    refused = all(isinstance(view, dict) and "error" in view for view in seen)
    return REFUSED if refused else DONE


NO_CONFLICTS = "no conflicts; `lore snapshot pending` lists statements that nobody has settled"


def conflicts(inv: Invocation) -> int:
    """List conflicts; open ones unless asked otherwise."""
    o = inv.options
    limit = o.limit or LISTED
    answer = inv.call("conflicts", status="all" if o.all else o.status, limit=limit)
    found = answer.get("conflicts", [])

    def text(screen: Screen) -> None:
        for conflict in found:
            views.show_conflict(screen, conflict)
        inv.tell_cut(len(found), limit)

    return inv.show(answer, text, found=bool(found), empty=NO_CONFLICTS)


def clusters(inv: Invocation) -> int:
    """List clusters, or show one with its facts."""
    limit = inv.options.limit or LISTED
    answer = inv.call("clusters", id=inv.options.id, limit=limit)
    found = answer.get("clusters", [])

    def text(screen: Screen) -> None:
        for cluster in found:
            facts = cluster.get("facts", [])
            count = counted(int(cluster.get("active_count", len(facts))), "fact")
            name = screen.paint(str(cluster.get("id", "?")), "cyan", "bold")
            screen.say(f"{name}  {one_line(str(cluster.get('title', '')))}  ({count})")
            for fact in facts if inv.options.id else facts[:3]:
                if isinstance(fact, dict):
                    views.show_brief(screen, fact)
        inv.tell_cut(len(found), limit)

    return inv.show(answer, text, found=bool(found), empty="no clusters here yet")


def entities(inv: Invocation) -> int:
    """List, suggest, join or alias entities."""
    o = inv.options
    limit = o.limit or LISTED
    answer = inv.call("entities", text=o.suggest, merge=o.merge, alias=o.alias, limit=limit)
    found = answer.get("suggestions") or answer.get("entities") or []

    def text(screen: Screen) -> None:
        rows = []
        for item in found:
            known = item if isinstance(item, dict) else {"entity": item}
            name = known.get("entity") or known.get("name") or known.get("id") or ""
            count = known.get("fact_count", known.get("count", known.get("facts", "")))
            rows.append((str(name), str(count), ", ".join(known.get("aliases") or ())))
        screen.table(rows, head=("entity", "facts", "also"), shrink=2)
        inv.tell_cut(len(found), limit)

    return inv.show(answer, text, found=bool(found), empty="no entities here yet")


VERBS = (
    Verb(
        "apply",
        apply,
        (
            Arg(
                "OPS",
                kind="many",
                help="a file, - for stdin, or operations, each in quotes",
                complete="file",
            ),
            Arg("--dry-run", kind="flag", help="check and report, change nothing"),
        ),
        scopes=("global",),
        examples=(
            "lore apply 'supersede old=F3 new=F12'",
            "lore apply 'conflict fact_a=F3 fact_b=F5 severity=high'",
            "lore apply triage.txt --dry-run",
        ),
    ),
    Verb(
        "snapshot",
        snapshot,
        (
            Arg(
                "SCOPE",
                kind="many",
                help="entity:tool:redis, cluster:C4, conflicts, recent:10, stats, pending, "
                "workspace, query:words",
            ),
            AS_OF,
            KNOWN_AT,
        ),
        examples=("lore snapshot entity:tool:redis conflicts", "lore snapshot recent:10 stats"),
    ),
    Verb(
        "conflicts",
        conflicts,
        (
            Arg("--status", choices=("open", "resolved", "dismissed", "all"), help="default: open"),
            Arg("--all", "-a", kind="flag", help="whatever their state"),
            LIMIT,
        ),
        scopes=("global",),
        examples=("lore conflicts", "lore apply 'resolve id=conflict:7 winner=F3'"),
    ),
    Verb(
        "clusters",
        clusters,
        (Arg("ID", kind="maybe", help="one cluster, e.g. C4"), LIMIT),
        scopes=("global",),
        examples=("lore clusters", "lore clusters C4"),
    ),
    Verb(
        "entities",
        entities,
        (
            Arg("--suggest", metavar="TEXT", help="known entities that fit this text"),
            Arg("--merge", kind="pair", metavar="FROM INTO", help="join two entities"),
            Arg("--alias", kind="pair", metavar="ALIAS ENTITY", help="another name of an entity"),
            LIMIT,
        ),
        scopes=("global",),
        examples=("lore entities", "lore entities --alias tool:redis-server tool:redis"),
    ),
)
