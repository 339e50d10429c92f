"""Which of several sessions is the older one."""

from hypothesis import given
from hypothesis import strategies as st

from lored.core.lineage import Kin, by_age, origin_of


def names(family: list[Kin]) -> list[str]:
    return [one.native_id for one in by_age(family)]


def test_the_first_to_go_its_own_way_is_the_origin() -> None:
    assert names([Kin("fork", 20), Kin("origin", 10)]) == ["origin", "fork"]
    assert names([Kin("b", 10), Kin("a", 10)]) == ["a", "b"]
    assert names([Kin("unknown", None), Kin("z", 99)]) == ["z", "unknown"]


def test_a_declared_origin_goes_before_everything() -> None:
    family = [Kin("fork", 1, "origin"), Kin("origin", 50)]
    assert names(family) == ["origin", "fork"]
    assert origin_of(family[0], {"origin": 3}, by_age(family)) == "origin"


def test_a_circle_of_declarations_ends() -> None:
    assert sorted(names([Kin("a", 1, "b"), Kin("b", 2, "a"), Kin("c", 3, "c")])) == ["a", "b", "c"]


def test_the_origin_shares_most() -> None:
    family = [Kin("a", 1), Kin("b", 2), Kin("c", 3)]
    ages = by_age(family)
    assert origin_of(family[2], {"a": 2, "b": 5}, ages) == "b"
    assert origin_of(family[2], {"a": 5, "b": 5}, ages) == "a"
    assert origin_of(family[0], {"b": 5}, ages) is None
    assert origin_of(family[1], {}, ages) is None


kin = st.builds(
    Kin,
    st.sampled_from("abcdef"),
    st.none() | st.integers(0, 9),
    st.none() | st.sampled_from("abcdefg"),
)


@given(st.lists(kin, max_size=8), st.randoms())
def test_the_order_does_not_depend_on_the_order(family: list[Kin], random: object) -> None:
    unique = list({one.native_id: one for one in family}.values())
    shuffled = unique[:]
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert by_age(unique) == by_age(shuffled)
