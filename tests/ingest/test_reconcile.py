"""The plan of reading: pure, case by case, and laws over any listing."""

from hypothesis import given
from hypothesis import strategies as st

from lored.core.reconcile import (
    BACKOFF_SECONDS,
    SETTLE_SECONDS,
    Cursor,
    Seen,
    reconcile,
    retry_at,
    trusted_mtime,
)

NOW = 1_800_000_000_000_000
OLD_NS = (NOW - 3_600_000_000) * 1_000


def cursor(path: str = "/r/a", **fields: object) -> Cursor:
    base: dict[str, object] = {
        "id": 1,
        "path": path,
        "agent": "x",
        "root": "/r",
        "device": 1,
        "inode": 10,
        "size": 100,
        "mtime_ns": OLD_NS,
        "offset": 100,
        "parser_version": 1,
    }
    return Cursor(**{**base, **fields})  # type: ignore[arg-type]


def seen(**fields: int) -> Seen:
    base = {"device": 1, "inode": 10, "size": 100, "mtime_ns": OLD_NS}
    return Seen(**{**base, **fields})


def change(one: Cursor, found: Seen, **more: object) -> str | None:
    plan = reconcile({one.path: found}, {one.path: one}, now=NOW, complete=True, **more)  # type: ignore[arg-type]
    assert not plan.gone
    return plan.steps[0].change if plan.steps else None


def test_each_difference_has_its_name() -> None:
    assert change(cursor(), seen()) is None
    assert change(cursor(), seen(size=120)) == "grown"
    assert change(cursor(), seen(size=80)) == "shrunk"
    assert change(cursor(), seen(inode=11)) == "replaced"
    assert change(cursor(), seen(device=2)) == "replaced"
    assert change(cursor(), seen(mtime_ns=OLD_NS + 5)) == "touched"
    assert change(cursor(mtime_ns=None), seen()) == "verify"
    assert change(cursor(), seen(), outdated=lambda one: True) == "reparse"


def test_an_unfinished_line_is_taken_when_it_is_old() -> None:
    fresh = (NOW - SETTLE_SECONDS * 1_000_000 // 2) * 1_000
    assert change(cursor(pending=True), seen()) == "settle"
    assert change(cursor(pending=True, mtime_ns=fresh), seen(mtime_ns=fresh)) is None


def test_a_failed_file_waits_even_when_it_grows() -> None:
    later = cursor(failures=2, retry_at=NOW + 1)
    plan = reconcile({"/r/a": seen(size=500)}, {"/r/a": later}, now=NOW, complete=True)
    assert (plan.steps, plan.waiting) == ([], 1)
    assert change(cursor(failures=2, retry_at=NOW), seen()) == "retry"
    assert change(later, seen(), outdated=lambda one: True) == "reparse"


def test_waits_grow_and_never_end() -> None:
    waits = [retry_at(n, 0) // 1_000_000 for n in range(1, 20)]
    assert waits[0] == 0 and waits == sorted(waits)
    assert waits[-1] == BACKOFF_SECONDS[-1]


def test_a_rename_is_no_loss() -> None:
    plan = reconcile({"/r/b": seen()}, {"/r/a": cursor()}, now=NOW, complete=True)
    assert [(s.change, s.path, s.cursor and s.cursor.path) for s in plan.steps] == [
        ("renamed", "/r/b", "/r/a")
    ]
    assert not plan.gone


def test_an_inode_used_again_by_a_shorter_file_is_another_file() -> None:
    plan = reconcile({"/r/b": seen(size=10)}, {"/r/a": cursor()}, now=NOW, complete=True)
    assert [step.change for step in plan.steps] == ["new"]
    assert [gone.path for gone in plan.gone] == ["/r/a"]


def test_compressed_forms() -> None:
    packed = seen(inode=99, size=20)
    plan = reconcile({"/r/a.zst": packed}, {"/r/a": cursor()}, now=NOW, complete=True)
    assert [(s.change, s.path) for s in plan.steps] == [("compressed", "/r/a.zst")]
    both = {"/r/a": seen(), "/r/a.zst": packed}
    plan = reconcile(both, {"/r/a": cursor()}, now=NOW, complete=True)
    assert (plan.steps, plan.shadowed) == ([], 1)
    plan = reconcile(
        {"/r/a": seen(inode=7)}, {"/r/a.gz": cursor("/r/a.gz")}, now=NOW, complete=True
    )
    assert [(s.change, s.path) for s in plan.steps] == [("compressed", "/r/a")]


def test_only_a_complete_listing_says_what_is_gone() -> None:
    assert not reconcile({}, {"/r/a": cursor()}, now=NOW, complete=False).gone
    assert reconcile({}, {"/r/a": cursor()}, now=NOW, complete=True).gone
    back = reconcile({"/r/a": seen()}, {"/r/a": cursor(gone=True)}, now=NOW, complete=True)
    assert [c.path for c in back.back] == ["/r/a"] and not back.steps


def test_sidecars_are_read_with_their_transcripts() -> None:
    listing = {"/r/a": seen(), "/r/a.meta": seen(inode=20)}
    owners = {"/r/a.meta": ["/r/a"]}
    plan = reconcile(listing, {"/r/a": cursor()}, now=NOW, complete=True, sidecars=owners)
    assert [(s.change, s.path) for s in plan.steps] == [("sidecar", "/r/a")]
    known = {"/r/a": cursor(), "/r/a.meta": cursor("/r/a.meta", id=2, inode=20)}
    assert not reconcile(listing, known, now=NOW, complete=True, sidecars=owners).steps


def test_what_is_blocked_is_left_alone() -> None:
    blocked = cursor(blocked=True)
    assert change(blocked, seen(size=500)) is None
    moved = reconcile({"/r/b": seen()}, {"/r/a": blocked}, now=NOW, complete=True)
    assert [step.change for step in moved.steps] == ["new"]  # the worker asks who it is


def test_a_time_that_may_repeat_is_not_trusted() -> None:
    assert trusted_mtime(OLD_NS, NOW) == OLD_NS
    assert trusted_mtime(NOW * 1_000 - 1, NOW) is None
    assert trusted_mtime(NOW * 1_000 + 10**12, NOW) is None


files = st.dictionaries(
    st.sampled_from([f"/r/{name}{end}" for name in "abcd" for end in ("", ".zst", ".gz")]),
    st.builds(
        Seen,
        st.just(1),
        st.integers(1, 6),
        st.integers(0, 200),
        st.integers(0, OLD_NS + 10),
    ),
)
cursors = st.dictionaries(
    st.sampled_from([f"/r/{name}{end}" for name in "abcd" for end in ("", ".zst", ".gz")]),
    st.tuples(st.integers(1, 6), st.integers(0, 200), st.booleans(), st.booleans()),
)


@given(files, cursors, st.booleans())
def test_laws(
    listing: dict[str, Seen], known: dict[str, tuple[int, int, bool, bool]], whole: bool
) -> None:
    stored = {
        path: cursor(path, id=index, inode=inode, size=size, offset=size, gone=gone, blocked=shut)
        for index, (path, (inode, size, gone, shut)) in enumerate(known.items())
    }
    plan = reconcile(listing, stored, now=NOW, complete=whole)
    paths = [step.path for step in plan.steps]
    assert len(paths) == len(set(paths)) and set(paths) <= set(listing)
    times = [step.seen.mtime_ns for step in plan.steps]
    assert times == sorted(times, reverse=True)
    taken = [step.cursor.path for step in plan.steps if step.cursor is not None]
    assert len(taken) == len(set(taken))
    gone = {c.path for c in plan.gone}
    assert not gone & set(listing) and not gone & set(taken)
    for path in listing:  # nothing is forgotten: read, unchanged, shadowed, or left alone
        if path not in stored and path not in paths:
            assert path.removesuffix(".zst").removesuffix(".gz") in listing
