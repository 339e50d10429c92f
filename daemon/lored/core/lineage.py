"""Which of several sessions that hold the same messages is the older one. Pure.

A fork, a resume into a new file or a compaction copy repeats messages with their keys; most
formats do not say where they come from. What tells is when each session went its own way:
the instant of its first message that no other session holds. Where a session has none (it
was copied whole and never went on), it went its own way, if at all, at its last message,
which lies before anything new in the copy. So the session that was *born* first is the
origin; a declared origin goes before everything.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kin:
    """A session among those that share messages. ``born_at``: microseconds UTC of its first
    own message, else of its last one; ``declared``: native id of the origin that its file
    names."""

    native_id: str
    born_at: int | None
    declared: str | None = None


def by_age(family: Iterable[Kin]) -> list[Kin]:
    """The family, oldest first: declared origins before what was made from them, then by birth,
    then by id. A circle of declarations is no reason to hang."""
    kin = {one.native_id: one for one in family}

    def depth(one: Kin) -> int:
        seen = {one.native_id}
        while one.declared in kin and one.declared not in seen:
            seen.add(one.declared)
            one = kin[one.declared]
        return len(seen)

    never = 1 << 62
    return sorted(
        kin.values(),
        key=lambda one: (
            depth(one),
            never if one.born_at is None else one.born_at,
            one.native_id,
        ),
    )


def origin_of(one: Kin, shared: Mapping[str, int], ages: list[Kin]) -> str | None:
    """Native id of the session that ``one`` was made from: the declared one, else the older
    session that shares most messages with it.

    Args:
        shared: native id -> number of messages that it and ``one`` both hold.
        ages: the family from `by_age`.
    """
    if one.declared is not None:
        return one.declared
    older: list[str] = []
    for other in ages:
        if other.native_id == one.native_id:
            break
        older.append(other.native_id)
    best = max(older, key=lambda name: (shared.get(name, 0), -older.index(name)), default=None)
    return best if best is not None and shared.get(best, 0) else None
