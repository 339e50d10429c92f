"""Clusters and collisions as pure rules; the numbers are Remind's behaviours (B1 to B16)."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lored.core import clusters, collisions
from lored.core.clusters import Candidate
from lored.core.facts import State
from lored.core.validity import Window


@pytest.mark.parametrize(
    ("one", "two", "expected"),
    [
        ("abc", "abc", 1.0),  # B1
        ("ab", "cd", 0.0),  # B2
        ("abc", "bcd", 0.5),  # B3
        ("", "ab", 0.0),  # B4
        ("ab", "", 0.0),
        ("", "", 0.0),
        ("ab", "abcd", 0.5),  # B5
    ],
)
def test_jaccard(one: str, two: str, expected: float) -> None:
    assert clusters.similarity(one, two) == expected


def test_no_entities_or_no_clusters_match_nothing() -> None:  # B6, B7
    assert clusters.choose([Candidate(1, 1, 0)], 0, 0.5) is None
    assert clusters.choose([], 2, 0.5) is None


def test_the_same_single_entity_matches_fully() -> None:  # B8
    found = clusters.choose([Candidate(1, 1, 1)], 1, 0.5)
    assert found == (Candidate(1, 1, 1), 1.0)


def test_the_larger_share_wins() -> None:  # B9
    found = clusters.choose([Candidate(1, 1, 1), Candidate(2, 2, 2)], 3, 0.3)
    assert found is not None
    assert found[0].cluster == 2
    assert found[1] == pytest.approx(2 / 3)


def test_below_the_threshold_nothing_matches() -> None:  # B10
    assert clusters.choose([Candidate(1, 2, 1)], 3, 0.6) is None


def test_the_threshold_is_inclusive_for_every_fraction() -> None:
    for union in range(1, 40):
        for shared in range(1, union + 1):
            value = shared / union
            assert clusters.choose([Candidate(1, union, shared)], shared, value) is not None


def test_a_tie_goes_to_the_older_cluster_in_any_order() -> None:
    pair = [Candidate(7, 1, 1), Candidate(3, 1, 1)]
    for order in (pair, pair[::-1]):
        found = clusters.choose(order, 2, 0.5)
        assert found is not None and found[0].cluster == 3


def test_titles() -> None:  # B11, B12
    assert clusters.title(["tool:Redis"]) == "Facts about Redis"
    assert clusters.title(["tool:a", "b", "c:d", "e"]) == "Facts about a, b, d (+1)"
    assert clusters.title([]) == "Facts without entities"


sets = st.frozensets(st.integers(0, 7), min_size=1, max_size=6)


@given(sets, sets, st.sampled_from([0.0, 0.1, 0.25, 0.3, 0.5, 0.6, 2 / 3, 0.9, 1.0]))
def test_the_plan_misses_no_cluster(mine: frozenset[int], other: frozenset[int], t: float) -> None:
    """Whatever reaches the threshold is hit by the probes, whichever entities are rare."""
    shared = mine & other
    exact = Fraction(len(shared), len(mine | other))
    if not shared or exact < Fraction(t) - Fraction(1, 10**9):
        return
    low, high = clusters.sizes(len(mine), t)
    assert low <= len(other) and (high is None or len(other) <= high)
    for reverse in (False, True):
        rarity = [(n, entity) for n, entity in enumerate(sorted(mine, reverse=reverse))]
        probe = clusters.probes(rarity, len(other), t)
        assert probe is not None
        assert set(probe.entities) & other
        assert len(shared) >= probe.least_shared


def side(number: int, members: str, cluster: int = 1, **more: object) -> collisions.Side:
    given_ = {"state": State.ACTIVE, "window": Window(0, None)} | more
    return collisions.Side(
        number,
        given_["state"],  # type: ignore[arg-type]
        given_["window"],  # type: ignore[arg-type]
        cluster,
        frozenset(ord(letter) for letter in members),
    )


def test_collisions_need_a_shared_entity_in_one_cluster() -> None:  # B14, B15, B16
    assert collisions.compare(side(1, "a"), side(2, "a")) is not None
    assert collisions.compare(side(1, "a"), side(2, "b")) is None
    assert collisions.compare(side(1, "a"), side(1, "a")) is None
    assert collisions.compare(side(1, ""), side(2, "")) is None


def test_equal_sets_collide_across_clusters_others_do_not() -> None:
    assert collisions.compare(side(1, "as", 1), side(2, "as", 2)) is not None
    assert collisions.compare(side(1, "as", 1), side(2, "a", 2)) is None


def test_only_active_facts_of_overlapping_windows_collide() -> None:
    for state in State:
        found = collisions.compare(side(1, "a", state=state), side(2, "a"))
        assert (found is not None) == (state is State.ACTIVE)
    past = Window(-10, 0)
    assert collisions.compare(side(1, "a", window=past), side(2, "a")) is None
    assert collisions.compare(side(1, "a", window=Window(-10, 1)), side(2, "a")) is not None


sides = st.builds(
    side,
    st.integers(1, 5),
    st.sampled_from(["", "a", "b", "ab", "abc"]),
    st.integers(1, 2),
    state=st.sampled_from(list(State)),
    window=st.sampled_from([Window(0, None), Window(0, 5), Window(5, 9), Window(3, 3)]),
)


@given(sides, sides)
def test_collisions_are_mutual(one: collisions.Side, two: collisions.Side) -> None:
    assert (collisions.compare(one, two) is None) == (collisions.compare(two, one) is None)
    if one.members == two.members and one.members and one.number != two.number:
        both = one.state is State.ACTIVE and two.state is State.ACTIVE
        expected = both and one.window.overlaps(two.window)
        assert (collisions.compare(one, two) is not None) == expected


def test_order_is_similarity_then_words_then_newest() -> None:
    full = collisions.Reason(1.0, frozenset({1}), True)
    part = collisions.Reason(0.5, frozenset({1}), False)
    found = collisions.order(
        [(1, part, "TTL is 600s"), (2, full, "port is 1"), (3, full, "TTL is 300s"),
         (4, full, "port is 1")],
        "TTL is 600s",
    )  # fmt: skip
    assert [number for number, _ in found] == [3, 4, 2, 1]
