"""Validity: half-open windows `[start, end)` in microseconds UTC, and what a reader asks for.

Two times are kept apart. *Valid* time: when something is true in the world. *Recorded* time:
when this memory knew it. `as_of` asks for the first, `known_at` for the second.

Closing a window by a newer fact happens at the newer fact's start, not at the moment of the
call, so no instant belongs to both. A newer fact that starts before the older one leaves the
older an empty window: it was never valid. A window that ended earlier stays as it was.

Clocks are set back. A statement that was true when it was recorded has begun, whatever the
clock says later: asked about now, a window begins at the latest when its fact was recorded, and
only one that was stated to begin later waits for its day. So what was acknowledged under a
clock that was ahead is in the current answers once it has been put right.
"""

from typing import NamedTuple

from lore.errors import Invalid
from lored.core.clock import Micros, to_wire
from lored.core.facts import State


class Window(NamedTuple):
    """``[start, end)``; ``end`` None = open."""

    start: Micros
    end: Micros | None

    def contains(self, at: Micros) -> bool:
        """Whether ``at`` lies in the window."""
        return self.start <= at and (self.end is None or at < self.end)

    def overlaps(self, other: "Window") -> bool:
        """Whether any instant belongs to both; an empty window overlaps nothing."""
        if self.end is not None and self.end <= self.start:
            return False
        if other.end is not None and other.end <= other.start:
            return False
        return (other.end is None or self.start < other.end) and (
            self.end is None or other.start < self.end
        )

    def close(self, at: Micros) -> "Window":
        """This window, ended no later than ``at`` and no earlier than its own start."""
        end = max(self.start, at)
        return Window(self.start, end if self.end is None else min(self.end, end))


class Moment(NamedTuple):
    """What a read asks for: valid at ``as_of``, as believed at ``known_at``; None = now."""

    now: Micros
    as_of: Micros | None = None
    known_at: Micros | None = None

    @property
    def is_now(self) -> bool:
        """The ordinary question: what holds now."""
        return self.as_of is None and self.known_at is None

    @property
    def valid_at(self) -> Micros:
        """The instant whose truth is asked: `as_of`, else `known_at`, else now."""
        if self.as_of is not None:
            return self.as_of
        return self.now if self.known_at is None else self.known_at

    def shows(self, state: State, window: Window, recorded: Micros) -> bool:
        """Whether a fact in ``state`` with ``window`` (both as believed at `known_at`), first
        ``recorded`` then, is part of the answer. Asked about another time than now, a replaced
        fact counts for the window that it had; a forgotten, evicted or erased one never does.
        """
        if self.is_now:
            begun = window.start <= max(self.now, recorded)
            held = begun and (window.end is None or self.now < window.end)
            return held and state is State.ACTIVE
        return state in (State.ACTIVE, State.SUPERSEDED) and window.contains(self.valid_at)


def window(start: Micros | None, end: Micros | None, now: Micros) -> Window:
    """The window of a new statement; ``start`` None = now.

    Raises `Invalid` when it would end before it starts.
    """
    begin = now if start is None else start
    if start is None and end is not None and end <= now:
        raise Invalid(
            f"valid_to {to_wire(end)} is in the past: say also since when it was true (valid_from)"
        )
    if end is not None and end <= begin:
        raise Invalid(f"valid_to {to_wire(end)} is not after valid_from {to_wire(begin)}")
    return Window(begin, end)
