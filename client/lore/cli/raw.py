"""`call` and `watch`: the wire as it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lore.cli.arguments import Arg, Usage, Verb
from lore.cli.invocation import Invocation, standard_input
from lore.cli.progress import progress_line
from lore.cli.render import Screen, one_line
from lore.cli.times import local
from lore.wire.methods import BY_NAME, METHODS

TOPICS = ("facts", "sessions", "conflicts", "progress", "status")
CONNECTION_ONLY = ("hello", "cancel", "subscribe", "unsubscribe")
"""They speak of the connection, which ends with this command."""


def call(inv: Invocation) -> int:
    """Call any method; the answer is JSON in either form."""
    from json import JSONDecodeError, dumps, loads

    o = inv.options
    if o.method is None:
        inv.screen.table([(m.name, m.doc) for m in METHODS], shrink=1)
        return 0
    if o.method in CONNECTION_ONLY:
        raise Usage(f"{o.method} concerns one connection; `lore watch` shows events")
    text = standard_input() if o.params == "-" else o.params or "{}"
    try:
        params = loads(text)
    except RecursionError:
        raise Usage("parameters are not JSON that anyone takes: nested too deeply") from None
    except JSONDecodeError as error:
        raise Usage(f"parameters are not JSON: {error}") from None
    if not isinstance(params, dict):
        raise Usage('parameters must be a JSON object, e.g. \'{"query": "cache"}\'')
    name = BY_NAME[o.method].name if o.method in BY_NAME else o.method
    answer = inv.backend.call(name, params, timeout=o.timeout)
    if inv.screen.json:
        inv.screen.document("lore.call/1", answer)
    else:
        # dumps escapes control characters itself
        inv.screen.say(dumps(answer, ensure_ascii=False, indent=2))
    return 0


def watch(inv: Invocation) -> int:
    """Print events until interrupted, or until ``--count`` of them came."""
    topics = inv.options.topic or list(TOPICS)
    for topic in topics:
        if topic not in TOPICS:
            raise Usage(f"unknown topic {topic!r}; topics are {', '.join(TOPICS)}")
    left = inv.options.count
    for event in _events(inv, topics):
        if inv.screen.json:
            inv.screen.document("lore.watch/1", event)
        else:
            _show(inv.screen, event)
        inv.screen.out.flush()
        if left is not None:
            left -= 1
            if left <= 0:
                break
    return 0


def _events(inv: Invocation, topics: list[str]) -> Iterator[dict[str, Any]]:
    from lore.client import Client

    backend = inv.backend
    if not isinstance(backend, Client):
        raise Usage("events need the daemon; --direct only reads")
    workspace = None if inv.options.everywhere else inv.workspace
    return backend.events(topics, workspace=workspace, timeout=inv.options.timeout)


def _show(screen: Screen, event: dict[str, Any]) -> None:
    from datetime import datetime

    at = local(str(event.get("at", ""))) or datetime.now().astimezone()
    topic = str(event.get("topic", ""))
    parts = [screen.paint(at.strftime("%H:%M:%S"), "dim"), screen.paint(f"{topic:9}", "cyan")]
    parts.append(one_line(_summary(event)))
    screen.say("  ".join(part for part in parts if part))


def _summary(event: dict[str, Any]) -> str:
    action = str(event.get("action", ""))
    fact, conflict, session = (event.get(name) for name in ("fact", "conflict", "session"))
    if isinstance(fact, dict):
        return f"{action} {fact.get('id')} {fact.get('text', '')}"
    if isinstance(conflict, dict):
        return f"{action} {conflict.get('id')} ({conflict.get('severity', '')})"
    if isinstance(session, dict):
        line = (session.get("summary") or {}).get("line") or session.get("title") or ""
        return f"{action} {session.get('agent')} {session.get('id')} {line}"
    if event.get("topic") == "progress":
        return progress_line(event)
    if "degraded" in event:
        names = ", ".join(str(one.get("name")) for one in event["degraded"])
        return f"degraded: {names}" if names else "nothing is degraded"
    skipped = ("topic", "subscription", "seq", "action", "at")
    return " ".join([action, *(f"{k}={v}" for k, v in event.items() if k not in skipped)]).strip()


VERBS = (
    Verb(
        "call",
        call,
        (
            Arg("METHOD", kind="maybe", help="without it: the list of methods", complete="method"),
            Arg("PARAMS", kind="maybe", metavar="JSON", help="a JSON object; - reads stdin"),
        ),
        examples=("lore call status", 'lore call recall_fact \'{"query": "cache"}\''),
    ),
    Verb(
        "watch",
        watch,
        (
            Arg("TOPIC", kind="many", help=", ".join(TOPICS) + "; default: all"),
            Arg("--count", kind="int", metavar="N", help="end after so many events"),
        ),
        scopes=("everywhere",),
        examples=("lore watch", "lore watch facts conflicts --json"),
    ),
)
