"""Events to paths: soon for one file, bounded for any number."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from lored.watch.bursts import (
    ALL_PATHS,
    AT_ONCE_SECONDS,
    CEILING_SECONDS,
    EVERY_SECONDS,
    FOLDER_PATHS,
    QUIET_SECONDS,
    Bursts,
)


def test_one_change_is_due_at_once() -> None:
    bursts = Bursts()
    bursts.add("/r/a", 100.0)
    assert bursts.next_due() == 100.0 + AT_ONCE_SECONDS
    assert bursts.take(100.0 + AT_ONCE_SECONDS) == ({"/r/a"}, False)
    assert bursts.next_due() is None


def test_a_file_written_to_all_the_time_is_due_regularly() -> None:
    bursts, looks, now = Bursts(), [], 100.0
    while now < 103.0:
        bursts.add("/r/a", now)
        paths, _ = bursts.take(now)
        if paths:
            looks.append(now)
        now += 0.005
    gaps = [b - a for a, b in pairwise(looks)]
    assert all(EVERY_SECONDS <= gap < EVERY_SECONDS + 0.02 for gap in gaps)


def test_many_in_one_folder_become_the_folder_after_the_burst() -> None:
    bursts = Bursts()
    for number in range(FOLDER_PATHS + 1):
        bursts.add(f"/r/d/{number}", 100.0)
    assert bursts.take(100.0 + AT_ONCE_SECONDS) == (set(), False)
    assert bursts.take(100.0 + QUIET_SECONDS) == ({"/r/d"}, False)


def test_a_burst_without_end_is_cut() -> None:
    bursts, now = Bursts(), 100.0
    for number in range(FOLDER_PATHS + 1):
        bursts.add(f"/r/d/{number}", now)
    while now < 100.0 + CEILING_SECONDS:
        bursts.add("/r/d/0", now)
        assert bursts.take(now) == (set(), False)
        now += 0.1
    assert bursts.take(100.0 + CEILING_SECONDS) == ({"/r/d"}, False)


def test_too_many_mean_everything() -> None:
    bursts = Bursts()
    for number in range(ALL_PATHS + 1):
        bursts.add(f"/r/{number}/a", 100.0)
    assert bursts.take(100.0 + QUIET_SECONDS) == (set(), True)
    assert bursts.next_due() is None


@given(
    st.lists(st.tuples(st.integers(0, 700), st.floats(0, 0.3), st.booleans()), max_size=900),
)
def test_nothing_is_forgotten_and_little_is_held(events: list[tuple[int, float, bool]]) -> None:
    bursts, now, waiting = Bursts(), 0.0, set()
    for number, wait, look in events:
        now += wait
        path = f"/r/{number % 7}/{number}"
        bursts.add(path, now)
        waiting.add(path)
        assert len(bursts._paths) + len(bursts._folders) <= ALL_PATHS + 1
        if look:
            due, everything = bursts.take(now)
            waiting = set() if everything else {p for p in waiting if not _covered(p, due)}
    due, everything = bursts.take(now + CEILING_SECONDS + 1)
    assert everything or all(_covered(path, due) for path in waiting)
    assert bursts.next_due() is None


def _covered(path: str, due: set[str]) -> bool:
    return path in due or path.rsplit("/", 1)[0] in due
