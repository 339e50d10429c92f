"""The rules that both clients keep: how long to wait, when to repeat, how many events to hold.

When may a call be sent twice?

- A connection found dead before sending, a write that failed (the daemon then never saw the
  whole message) and the answer `shutting_down` mean that nothing was done: connect again and
  send once more, whatever the method.
- A connection that dies while the answer is awaited leaves open whether the call was done:
  only an idempotent method, or a call with an `idempotency_key`, is sent once more; for any
  other the caller is told so.
- The answer `busy` with `retry_after_ms` means that nothing was begun: the call, whatever its
  method, is sent again after that pause, stretched at random so that those refused together do
  not come back together, and longer each time, as long as the caller's deadline allows.
"""

from collections import deque

from lore.errors import Busy, Unavailable
from lore.wire.limits import DEADLINES
from lore.wire.messages import Notification

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

EVENTS_WAITING = 4096
"""Events kept for a caller that does not read them; beyond it all go and an `events.lost`
stands in their place. The daemon itself holds back 256 for a subscription."""

MARGIN_SECONDS = 1.0
"""What the client waits beyond the daemon's own deadline of a method."""

QUICK_SECONDS = DEADLINES["quick"] + MARGIN_SECONDS


STARTING_SECONDS = 60.0
"""What a call may take longer while the daemon, as it said in hello, still opens its stores (a
migration, a damaged store that is restored); only then does the deadline of a method begin."""

RETRY_GROWTH = 1.5
"""By what the pause before each further try grows: the daemon's own estimate leads."""


class Lost(Exception):
    """The connection died; `unseen`: before the daemon can have had the whole message."""

    def __init__(self, *, unseen: bool) -> None:
        self.unseen = unseen

    def as_unavailable(self, method: str) -> Unavailable:
        """What the caller of `method` is told when the call is not repeated."""
        doubt = "" if self.unseen else "; it may have been done: look before repeating it"
        return Unavailable(f"the daemon hung up during {method}{doubt}")


class EventQueue(deque["dict[str, Any]"]):
    """Events waiting for their reader, at most `EVENTS_WAITING`."""

    __slots__ = ()

    def take_in(self, message: Notification) -> None:
        """Add an `event`, or another notification with its name as the topic."""
        event: dict[str, Any] = dict(message.params)
        if message.method != "event":
            event["topic"] = message.method
        if len(self) >= EVENTS_WAITING:
            count = len(self)
            self.clear()
            self.append({"topic": "events.lost", "count": count})
        self.append(event)

    def mark_renewed(self, revision: object) -> None:
        """Say that a new subscription began and what came between is unknown."""
        event: dict[str, Any] = {"topic": "events.lost"}
        if revision is not None:
            event["revision"] = revision
        self.append(event)


def hello_words(name: str, workspace: "str | None", session_id: "str | None") -> "dict[str, Any]":
    """The caller's own part of hello."""
    words = {"client": name, "workspace": workspace, "session_id": session_id}
    return {key: value for key, value in words.items() if value is not None}


def may_repeat(method: str, params: "dict[str, Any]") -> bool:
    """Whether a call that may already have been done may be sent again."""
    from lore.wire.methods import is_idempotent

    return "idempotency_key" in params or is_idempotent(method)


def seconds_of(method: str) -> float:
    """How long an answer to `method` may take: the daemon's deadline and the margin."""
    from lore.wire.methods import BY_NAME

    known = BY_NAME.get(method)
    return DEADLINES[known.deadline if known else "long"] + MARGIN_SECONDS


def pause_after(refusal: Busy, tries: int) -> "float | None":
    """Seconds to wait before try number `tries` + 1 (the first has number 1) of a call that was
    refused as busy; None where the daemon does not say that it may come again."""
    import random

    after = refusal.data.get("retry_after_ms")
    if type(after) is not int or after < 0:
        return None
    return after / 1000 * RETRY_GROWTH ** (tries - 1) * random.uniform(1.0, 1.5)  # noqa: S311 - no secret
