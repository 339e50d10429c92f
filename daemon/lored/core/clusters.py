"""Clusters: which one a fact joins.

similarity = |shared| / |union| of the fact's comparison set and the cluster's set, which is
the set of the cluster's first fact and never widens (else a common entity would pull
everything together). At or above the threshold the best cluster wins; among equals the
oldest, so neither the order of a call's entities nor of rows in a table decides.

**Without a scan.** A cluster with k entities can reach the threshold t with a set of n only
if t*n <= k <= n/t, and only if at least m = ceil(t/(1+t) * (n+k)) entities are shared. So of
the n entities any n-m+1 hit every such cluster at least once: it is enough to look up the
rarest ones (prefix filtering, Chaudhuri et al. 2006, Xiao et al. 2008). A busy entity is
looked up only where it alone could decide. `probes` makes that plan.

**Counting without a scan.** The members of a cluster's set have bit positions; each fact
keeps the bits that it shares (its *core*). Facts with the same core share the same entities
with the cluster, so counts per (cluster, core) answer "how many facts share an entity with
this one" from a few rows, however many facts there are.
"""

from collections.abc import Iterable, Sequence
from math import ceil, floor
from typing import Final, NamedTuple

CORE_BITS: Final = 62
"""Bits of a core: SQLite integers have 63 usable ones; a set has at most `facts.TAGS`."""

SLACK: Final = 1e-9
"""Float error allowed for in bounds; the threshold itself is inclusive."""


class Candidate(NamedTuple):
    """A cluster that shares something: its number, the size of its set, how many it shares."""

    cluster: int
    size: int
    shared: int


class Probe(NamedTuple):
    """Look up these entities among clusters whose set has ``size`` members."""

    size: int
    least_shared: int
    entities: tuple[int, ...]


def jaccard(shared: int, first: int, second: int) -> float:
    """|shared| / |union| from three counts; 0 when either set is empty."""
    if not first or not second:
        return 0.0
    return shared / (first + second - shared)


def similarity(first: Iterable[object], second: Iterable[object]) -> float:
    """Jaccard similarity of two sets; 0 when either is empty."""
    one, two = set(first), set(second)
    return jaccard(len(one & two), len(one), len(two))


def sizes(count: int, threshold: float) -> tuple[int, int | None]:
    """Smallest and largest size of a set that can reach ``threshold`` with one of ``count``
    members; None = no upper bound (threshold 0)."""
    if threshold <= 0:
        return 1, None
    return max(1, ceil(threshold * count - SLACK)), floor(count / threshold + SLACK)


def least_shared(count: int, size: int, threshold: float) -> int:
    """Members that sets of ``count`` and ``size`` must share to reach ``threshold`` (>= 1)."""
    return max(1, ceil(threshold / (1 + threshold) * (count + size) - SLACK))


def probes(rarity: Sequence[tuple[int, int]], size: int, threshold: float) -> Probe | None:
    """The look-up for clusters of one ``size``.

    ``rarity`` holds (about how many clusters have the entity, entity): whichever are taken, no
    match is missed, the rarest cost least. None when no cluster of that size can match.
    """
    needed = least_shared(len(rarity), size, threshold)
    if needed > min(len(rarity), size):
        return None
    ordered = [entity for _, entity in sorted(rarity)]
    return Probe(size, needed, tuple(ordered[: len(ordered) - needed + 1]))


def choose(
    candidates: Iterable[Candidate], count: int, threshold: float
) -> tuple[Candidate, float] | None:
    """The cluster that a set of ``count`` members joins, with its similarity; None = a new one.

    A candidate that shares nothing never matches, whatever the threshold.
    """
    best: tuple[Candidate, float] | None = None
    for candidate in sorted(candidates):
        found = jaccard(candidate.shared, count, candidate.size)
        if candidate.shared and found >= threshold - SLACK and (best is None or found > best[1]):
            best = candidate, found
    return best


def core(bits: Iterable[int]) -> int:
    """The bit mask of positions."""
    mask = 0
    for bit in bits:
        mask |= 1 << bit
    return mask


def title(names: Sequence[str], more: int = 0) -> str:
    """`Facts about X, Y, Z (+2)` from the cluster's entities as written (`more` = those beyond)."""
    shown = [name.split(":", 1)[-1].strip() or name for name in names[:3]]
    hidden = len(names) - len(shown) + more
    if not shown:
        return "Facts without entities"
    return f"Facts about {', '.join(shown)}" + (f" (+{hidden})" if hidden else "")
