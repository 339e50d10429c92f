"""`ping`: a sign of life within three times the cost of an empty Python.

Without argparse, json, the client class or hello: one connection, one request. Never starts a
daemon, since a started one would prove nothing.
"""

import sys
import time

from lore import launch, paths
from lore.errors import Internal, LoreError, Unavailable
from lore.wire import fault
from lore.wire.codec import Codec, encode_request
from lore.wire.messages import FramingError, Response

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
    where = paths.resolve()
    started = time.monotonic()
    deadline = started + seconds
    stream = launch.find(where, deadline)
    if stream is None:
        raise Unavailable(f"no memory daemon listens at {where.socket}; run: lore up")
    try:
        stream.send(encode_request(1, "ping", {}), deadline)
        codec = Codec("client")
        while True:
            data = stream.receive(deadline)
            if not data:
                raise Unavailable("the daemon hung up; see: lore status")
            for message in codec.feed(data):
                if isinstance(message, Response) and message.id == 1:
                    if message.error is not None:
                        raise fault.from_wire(message.error)
                    answer = dict(message.result) if isinstance(message.result, dict) else {}
                    answer["ms"] = round((time.monotonic() - started) * 1000, 2)
                    answer["socket"] = where.socket
                    return answer
    except FramingError as error:
        raise Internal(f"the daemon broke the protocol: {error.reason}") from None
    except OSError:
        raise Unavailable(f"the daemon does not answer within {seconds:g} s") from None
    finally:
        stream.close()


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
