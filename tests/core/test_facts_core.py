"""Pure rules of facts: names, normal forms, entities, windows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.errors import Invalid, Limit
from lored.core import entities, facts, ids
from lored.core.facts import State, Statement
from lored.core.validity import Moment, Window, window

KEY = b"k" * 16


@pytest.mark.parametrize(
    ("text", "number", "scope"),
    [
        ("F3", 3, None),
        ("f3", 3, None),
        ("3", 3, None),
        ("F007", 7, None),
        ("fact:F3", 3, None),
        ("ep:F3", 3, None),
        ("global:F3", 3, "global"),
        ("workspace:F3", 3, "workspace"),
        ("Global:fact:F3", 3, "global"),
        ("fact:workspace:3", 3, "workspace"),
        (" F3 ", 3, None),
    ],
)
def test_fact_ids_in_every_spelling(text: str, number: int, scope: str | None) -> None:
    ref = ids.parse(text, "fact")
    assert (ref.number, ref.scope) == (number, scope)


@pytest.mark.parametrize(
    "text",
    [
        "", "F", "G3", "F3x", "F-1", "F１", "conflict:3", "global:", "globl:F3",
        "global:workspace:F3", "F99999999999999999999",
    ],
)  # fmt: skip
def test_what_is_no_fact_id_says_what_is(text: str) -> None:
    with pytest.raises(Invalid, match="F3"):
        ids.parse(text, "fact")


def test_other_names() -> None:
    assert ids.parse("conflict:7", "conflict").number == 7
    assert ids.parse("7", "conflict").number == 7
    assert ids.parse("global:conflict:7", "conflict").scope == "global"
    assert ids.parse("concept:C4", "cluster").number == 4
    assert ids.parse("L12", "log").number == 12
    assert ids.spell("conflict", 7, "global") == "global:conflict:7"
    uid = ids.make_uid(1_700_000_000_000_000, bytes(10))
    assert ids.parse(uid, "fact").uid == uid
    assert ids.fact_number("F7") == 7
    assert ids.fact_number("__forgotten__") is None


@given(st.integers(0, 1 << 60), st.integers(0, 1 << 60), st.binary(min_size=10, max_size=10))
def test_later_uids_sort_later(one: int, two: int, random: bytes) -> None:
    first, second = sorted((one // 1000, two // 1000))
    a, b = ids.make_uid(first * 1000, random), ids.make_uid(second * 1000, random)
    assert len(a) == 32
    if second < 1 << 48 and first != second:
        assert a < b


def test_the_same_statement_written_again() -> None:
    assert facts.normal_form("  Cache\tTTL\n is 300s ") == "Cache TTL is 300s"
    assert facts.normal_form("e\u0301") == facts.normal_form("\u00e9")
    # Case, compatibility forms and numbers say something: never the same.
    for one, two in (("10MB", "10mb"), ("10²", "102"), ("limit is 100", "limit is 200")):
        assert facts.normal_form(one) != facts.normal_form(two)
        assert facts.text_hash(one, KEY) != facts.text_hash(two, KEY)
    assert facts.text_hash("a  b", KEY) == facts.text_hash("a b", KEY)
    assert facts.text_hash("a b", KEY) != facts.text_hash("a b", b"other")


def test_what_cannot_be_a_fact() -> None:
    for text in ("", "   \n", "a\0b", "half \ud83d"):
        with pytest.raises(Invalid):
            facts.check(Statement(text))
    with pytest.raises(Invalid, match="source"):
        facts.check(Statement("x", source="\ud83d"))
    with pytest.raises(Invalid, match="tags"):
        facts.check(Statement("x", tags=["\ud83d"]))
    with pytest.raises(Limit, match="65536"):
        facts.check(Statement("x" * 65_537))
    with pytest.raises(Limit, match="65536"):
        facts.check(Statement("用" * 30_000))
    with pytest.raises(Limit, match="50"):
        facts.check(Statement("x", tags=[f"t{n}" for n in range(51)]))
    with pytest.raises(Invalid, match="kind"):
        facts.check(Statement("x", kind="rumour"))
    kept = facts.check(Statement("x", tags=[" a ", "", "a", "A"]))
    assert kept.tags == ["a", "A"]


@pytest.mark.parametrize(
    ("written", "key", "bare"),
    [
        ("tool:redis", "tool:redis", "redis"),
        ("Tool: Redis ", "tool:redis", "redis"),
        ("redis", "subject:redis", "redis"),
        ("person:Alice  Smith", "person:alice smith", "alice-smith"),
        ("person:alice_smith", "person:alice_smith", "alice-smith"),
        ("url:http://a:80/b", "url:http://a:80/b", "http://a:80/b"),
        ("https://a/b", "url:https://a/b", "https://a/b"),
        ("std::vector", "subject:std::vector", "std::vector"),
        ("12:30", "subject:12:30", "12:30"),
        ("file:src/a.py", "file:src/a.py", "src/a.py"),
        ("项目:缓存", "subject:项目:缓存", "项目:缓存"),
    ],
)
def test_entities_are_split_at_the_first_colon_that_can_be_one(
    written: str, key: str, bare: str
) -> None:
    entity = entities.parse(written)
    assert (entity.key, entity.bare) == (key, bare)


@pytest.mark.parametrize("written", ["", "  ", "tool:", "tool: "])
def test_an_entity_needs_a_name(written: str) -> None:
    with pytest.raises(Invalid, match="type:name"):
        entities.parse(written)


def test_two_spellings_in_one_call_are_one_entity() -> None:
    found = entities.parse_all(["tool:x", "Tool:X", "tool: x"])
    assert [entity.written for entity in found] == ["tool:x"]


def test_without_entities_the_tags_count() -> None:
    things, tags = entities.parse_all(["tool:x"]), entities.of_tags(["a", "b"])
    assert entities.comparison_set(things, tags) == things
    assert entities.comparison_set([], tags) == tags
    assert entities.comparison_set([], []) == []


def test_names_that_a_text_could_mention() -> None:
    names = entities.possible_names(
        "Alice Smith set up Redis-Cluster (see src/a.rs), 用Redis做缓存."
    )
    for name in ("alice-smith", "redis-cluster", "src/a.rs", "redis"):
        assert name in names
    assert names == entities.possible_names(
        "Alice Smith set up Redis-Cluster (see src/a.rs), 用Redis做缓存."
    )


instants = st.integers(-100, 100)
windows = st.builds(
    lambda start, length: Window(start, None if length is None else start + length),
    instants,
    st.none() | st.integers(0, 50),
)


@given(windows, windows, instants)
def test_windows_are_half_open_and_overlap_when_an_instant_is_in_both(
    one: Window, two: Window, at: int
) -> None:
    assert one.overlaps(two) == two.overlaps(one)
    if one.contains(at) and two.contains(at):
        assert one.overlaps(two)
    if one.overlaps(two):
        start = max(one.start, two.start)
        assert one.contains(start) and two.contains(start)


@given(windows, instants)
def test_closing_leaves_no_instant_to_both(one: Window, at: int) -> None:
    closed = one.close(at)
    assert closed.start == one.start
    assert closed.end is not None and closed.end >= closed.start
    assert not closed.overlaps(Window(at, None))
    assert one.end is None or closed.end <= one.end


def test_windows_of_statements() -> None:
    assert window(None, None, 50) == Window(50, None)
    assert window(10, 20, 50) == Window(10, 20)
    for start, end in ((20, 20), (20, 10), (None, 40)):
        with pytest.raises(Invalid):
            window(start, end, 50)


def test_what_a_moment_shows() -> None:
    now, then = Moment(100), Moment(100, as_of=50)
    assert now.shows(State.ACTIVE, Window(0, None), 0)
    assert not now.shows(State.ACTIVE, Window(0, 100), 0)
    assert not now.shows(State.SUPERSEDED, Window(0, None), 0)
    assert then.shows(State.SUPERSEDED, Window(0, 60), 0)
    assert not then.shows(State.FORGOTTEN, Window(0, None), 0)
    # Recorded by a clock that was ahead: it has begun; stated to begin later: it has not.
    assert now.shows(State.ACTIVE, Window(900, None), 900)
    assert now.shows(State.ACTIVE, Window(900, 1000), 950)
    assert not now.shows(State.ACTIVE, Window(900, None), 800)
    assert not then.shows(State.ACTIVE, Window(900, None), 900)
    assert Moment(100, known_at=30).valid_at == 30
    assert Moment(100, as_of=20, known_at=30).valid_at == 20
