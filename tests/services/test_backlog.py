"""The order in which waiting files are read."""

from lored.core.reconcile import Seen, Step
from lored.services.indexing.backlog import Backlog, Item, keep_sessions_together


def waiting(name: str, mtime_ns: int) -> Item:
    step = Step("new", f"/t/{name}", Seen(1, 1, 10, mtime_ns), None)
    return Item(step, ("agent", "/t"), False, 0)


def order(items: list[Item]) -> list[str]:
    backlog = Backlog()
    for item in items:
        backlog.add(item)
    taken = []
    while (item := backlog.pop()) is not None:
        taken.append(item.step.path.removeprefix("/t/"))
    return taken


def test_newest_first_but_one_session_as_it_happened() -> None:
    items = [waiting("b1", 1), waiting("other", 2), waiting("b2", 3)]
    keep_sessions_together((item, "s" if "b" in item.step.path else None) for item in items)
    assert order(items) == ["b1", "b2", "other"]


def test_pieces_of_one_age_go_by_their_names() -> None:
    """As after a restore, where every file has the time of the restore."""
    items = [waiting(name, 5) for name in ("prt_03", "prt_01", "prt_02")]
    keep_sessions_together((item, "s") for item in items)
    assert order(items) == ["prt_01", "prt_02", "prt_03"]
