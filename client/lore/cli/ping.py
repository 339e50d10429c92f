"""`ping`: a sign of life within three times the cost of an empty Python.

Without argparse, json, the client class or hello: one connection, one request. Never starts a
daemon, since a started one would prove nothing.
"""

import sys
import time

from lore import realms
from lore.cli import quick
from lore.errors import LoreError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lore.cli.arguments import Verb
    from lore.cli.invocation import Invocation

TIMEOUT_SECONDS = 2.0
"""Longest wait without --timeout: the daemon's own deadline of a quick method."""


def run_quickly(words: "list[str]") -> "int | None":
    """`lore ping` as it is usually written; None when the words need the whole parser."""
    if words:
        return None
    try:
        answer = ask(TIMEOUT_SECONDS)
    except LoreError as error:
        sys.stderr.write(f"lore: {error.message}\n")
        return 5 if error.code == "internal" else 4
    sys.stdout.write(_sentence(answer) + "\n")
    return 0


def ask(seconds: float) -> "dict[str, Any]":
    """The daemon's answer to ping, with `ms` from connecting to the answer and `socket`.

    Raises `Unavailable` when nobody listens or answers within ``seconds``.
    """
    where = realms.here()
    started = time.monotonic()
    answer = quick.ask(where, [("ping", {})], started + seconds)
    answer["ms"] = round((time.monotonic() - started) * 1000, 2)
    answer["socket"] = where.socket
    return answer


def _sentence(answer: "dict[str, Any]") -> str:
    return f"lored {answer.get('version', '?')} answers in {answer['ms']:.1f} ms"


def ping(inv: "Invocation") -> int:
    """The same with global flags."""
    answer = ask(inv.options.timeout or TIMEOUT_SECONDS)
    return inv.show(answer, lambda screen: screen.say(_sentence(answer)))


def __getattr__(name: str) -> "tuple[Verb, ...]":
    """`VERBS`, built on demand: the quick road must not load argparse."""
    if name != "VERBS":
        raise AttributeError(name)
    from lore.cli.arguments import Verb

    return (Verb("ping", ping, examples=("lore ping && echo alive",)),)
