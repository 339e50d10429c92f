"""`up`: from nothing to a memory that knows the past sessions of every agent here.

Starts the daemon, lets it look at the agents' folders, shows progress, says what it found and
proves it with a recall of the user's own data. Running it again is quick and harmless.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from lore.cli.arguments import Arg, Usage, Verb
from lore.cli.indexing import index_sentence, wait_for_index
from lore.cli.invocation import Answer, Invocation
from lore.cli.recall import show_hits
from lore.cli.render import Screen, counted, one_line
from lore.cli.times import ago, day
from lore.cli.views import told
from lore.errors import LoreError

STEM = 5
"""Words that begin alike (`merge`, `merging`) count once."""

FIRST_ANSWER_SECONDS = 60.0
"""For the first answer of a daemon that was just installed: its code may not be compiled yet."""

EXAMPLE_WORDS = 4
"""Words of the example query: as many as a person would type."""

_ORDINARY = """
about after again also before being could does done from have into just like make more need only
over please same should some than that their them then there these this those using want were
what when where which will with would your session implemented completed failed interrupted
active fixed added edited answered worked updated removed created reviewed made used ported moved
here file files code changes latest directly longer needed recorded request https progress
"""
"""Words that say nothing about what a session was about."""


def up(inv: Invocation) -> int:
    """Start, index, show."""
    if inv.options.direct:
        raise Usage("up starts the daemon; leave --direct away")
    status = inv.call("status", within=FIRST_ANSWER_SECONDS)
    if not inv.screen.json:
        inv.screen.say(
            f"lored {status.get('version', '?')} runs (pid {status.get('pid', '?')}, "
            f"socket {status.get('socket', inv.paths.socket)})"
        )
    indexed: Answer = {}
    if not inv.options.no_index:
        accepted = inv.call("index")
        if not inv.options.no_wait:
            indexed = wait_for_index(inv, accepted)
    found = agents(inv)
    try:
        example = _example(inv)
    except LoreError as error:  # a proof that fails must not hide what was found
        example = None
        inv.screen.note(f"no example: {one_line(error.message)}")
    data = {"status": status, "indexed": indexed, "agents": found, "example": example}
    return inv.show(data, lambda screen: _report(screen, data))


def agents(inv: Invocation) -> list[dict[str, Any]]:
    """What is known per agent: `{agent, sessions, messages?, since?, newest?, warnings}`."""
    merged: dict[str, dict[str, Any]] = {}
    for root in inv.call("sources").get("roots", []):
        if not root.get("enabled", True):
            continue
        known = merged.setdefault(
            str(root.get("agent")), {"sessions": 0, "messages": 0, "warnings": []}
        )
        for key in ("sessions", "messages"):
            known[key] += int(root.get(key) or 0)
        known["since"] = _pick(min, known.get("since"), root.get("oldest_at"))
        known["newest"] = _pick(max, known.get("newest"), root.get("newest_at"))
        known["warnings"] += list(root.get("warnings") or ())
    return [{"agent": name, **known} for name, known in merged.items()]


def _pick(choose: Any, *instants: str | None) -> str | None:
    known = [instant for instant in instants if instant]
    return choose(known) if known else None


def _example(inv: Invocation) -> dict[str, Any] | None:
    """A recall that the newest telling session should answer; None without sessions."""
    sessions = inv.call("sessions", everywhere=True, limit=20).get("sessions", [])
    # Sessions that did something tell more than greetings; among them the newest.
    sessions.sort(key=lambda session: not (session.get("summary") or {}).get("key_actions"))
    for session in sessions:
        words = telling_words([told(session), session.get("title")])
        if len(words) >= 2:
            query = " ".join(words[:EXAMPLE_WORDS])
            answer = inv.call("recall", query=query, everywhere=True, limit=1)
            if answer.get("sessions") or answer.get("facts"):
                return {"query": query, "answer": answer}
    return None


def telling_words(texts: Iterable[str | None]) -> list[str]:
    """Words that tell what a session was about, in order, each once."""
    ordinary = set(_ORDINARY.split())
    found: dict[str, str] = {}
    for text in texts:
        for word in re.findall(r"[^\W\d_][\w./-]*[\w]", text or ""):
            if len(word) > 3 and word.lower() not in ordinary:
                found.setdefault(word.lower()[:STEM], word)
    return list(found.values())


def _report(screen: Screen, data: dict[str, Any]) -> None:
    if data["indexed"]:
        screen.say(index_sentence(data["indexed"]))
    found = [item for item in data["agents"] if item["sessions"]]
    if found:
        screen.say("", screen.paint("what the memory knows now", "bold"))
        screen.table(
            [
                (
                    item["agent"],
                    counted(item["sessions"], "session"),
                    counted(item["messages"], "message") if item["messages"] else "",
                    f"since {day(item['since'])}" if item.get("since") else "",
                    f"newest {ago(item['newest'])}" if item.get("newest") else "",
                )
                for item in found
            ]
        )
    else:
        screen.say("no agent has left sessions here yet; the daemon watches for them")
    for item in data["agents"]:
        for warning in item["warnings"]:
            screen.say(screen.paint(f"{item['agent']}: {one_line(str(warning))}", "yellow"))
    if data["example"]:
        query = data["example"]["query"]
        screen.say("", screen.paint(f"for example: lore recall --everywhere {query}", "bold"))
        show_hits(screen, _first_excerpt(data["example"]["answer"]))
    screen.say("", screen.paint("next", "bold"))
    screen.table(
        [
            ("lore install", "connect the agents on this machine"),
            ("lore remember 'the API limit is 100'", "state a fact in this workspace"),
            ("lore recall WORDS", "find facts and past sessions"),
            ("lore status", "what the daemon does and lacks"),
        ]
    )


def _first_excerpt(answer: Answer) -> Answer:
    """An example needs one hit of one session, not a page."""
    sessions = [
        {**hit, "excerpts": hit.get("excerpts", [])[:1]} for hit in answer.get("sessions", [])[:1]
    ]
    return {**answer, "sessions": sessions, "facts": answer.get("facts", [])[:1]}


VERBS = (
    Verb(
        "up",
        up,
        (
            Arg("--no-index", kind="flag", help="only start the daemon"),
            Arg("--no-wait", kind="flag", help="let the index fill in the background"),
        ),
        examples=("lore up", "lore up --no-wait --json"),
    ),
)
