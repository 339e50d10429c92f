"""Collisions: facts that speak about the same thing at the same time. Never resolved here.

A stored fact collides with another when both are active, neither is the other, their windows
overlap, and either both stand in one cluster and share an entity, or their comparison sets
are equal (in whatever cluster). Order: largest similarity of the sets first, then most
similar words, then newest. Each comes with the commands that would settle it, in the
language of `apply`.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from lored.core import clusters
from lored.core.facts import State
from lored.core.validity import Window

WORDS_CHARS: Final = 2_000
"""Of a text, what is compared word by word to order collisions."""

_WORD: Final = re.compile(r"\w+")


class Side(NamedTuple):
    """One fact as far as collisions go: number, state, window, cluster and comparison set
    (entity ids)."""

    number: int
    state: State
    window: Window
    cluster: int
    members: frozenset[int]


class Reason(NamedTuple):
    """Why two facts collide: similarity of their sets, and the shared members."""

    similarity: float
    shared: frozenset[int]
    same_set: bool


def compare(one: Side, two: Side) -> Reason | None:
    """The reason why two facts collide, or None. Symmetric."""
    if one.number == two.number or not one.members or not two.members:
        return None
    if one.state is not State.ACTIVE or two.state is not State.ACTIVE:
        return None
    shared = one.members & two.members
    same = one.members == two.members
    if not shared or not (same or one.cluster == two.cluster):
        return None
    if not one.window.overlaps(two.window):
        return None
    value = clusters.jaccard(len(shared), len(one.members), len(two.members))
    return Reason(value, shared, same)


def words(text: str) -> frozenset[str]:
    """The folded words by which texts are put in order."""
    return frozenset(_WORD.findall(text[:WORDS_CHARS].casefold()))


def order(found: Iterable[tuple[int, Reason, str]], text: str) -> list[tuple[int, Reason]]:
    """(number, reason) of (number, reason, text), most similar to ``text`` first."""
    mine = words(text)
    ranked = [
        (-reason.similarity, -clusters.similarity(mine, words(other)), -number, reason)
        for number, reason, other in found
    ]
    ranked.sort(key=lambda row: row[:3])
    return [(-row[2], row[3]) for row in ranked]


def why(reason: Reason, shared: Sequence[str], *, same_cluster: bool) -> str:
    """One phrase for people: `same entities: tool:redis`."""
    names = ", ".join(shared)
    if reason.same_set:
        return f"same entities: {names}" + ("" if same_cluster else " (another cluster)")
    return f"shared entities: {names}"


def commands(old: str, new: str) -> list[str]:
    """The ready lines for `apply`: replace the stored fact by the new one, or flag both."""
    return [
        f"supersede old={old} new={new}",
        f"conflict fact_a={old} fact_b={new} severity=medium",
    ]
