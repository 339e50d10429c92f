"""What waits to be read, in order: what changes now first, then newest first. Pure.

A file waits at most once; seen again, it takes the newer reason and the better place.
"""

import heapq
import itertools
from collections.abc import Iterable
from dataclasses import dataclass

from lored.core.clock import SECOND, Micros
from lored.core.reconcile import Step


@dataclass(slots=True)
class Item:
    """One file to read: the step, its root, whether it changes now, and when it was noticed
    (microseconds UTC). ``order``: files of one session stay together, oldest content first."""

    step: Step
    root: tuple[str, str]
    hot: bool
    noticed_at: int
    order: tuple[int, int] = (0, 0)
    whole: bool = False
    """Read again from the start."""
    kills: int = 0
    """How often in a row the worker was killed by somebody else while it read this."""
    left_bytes: int = 0
    """About how much is to be read; set by `Backlog.add`."""

    def changed_at(self, sweep_seconds: float) -> Micros:
        """When the file changed: its own time, unless a sweep would have noticed that long
        before (a file that was copied or moved here with the time it had)."""
        mtime = self.step.seen.mtime_ns // 1_000
        unseen = self.noticed_at - mtime
        return mtime if 0 <= unseen <= sweep_seconds * SECOND else self.noticed_at


class Backlog:
    """The waiting items."""

    def __init__(self) -> None:
        self._items: dict[str, Item] = {}
        self._heap: list[tuple[tuple[int, int, int], int, str]] = []
        self._count = itertools.count()
        self._hot = 0
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, path: str) -> bool:
        return path in self._items

    def add(self, item: Item) -> None:
        """Let a file wait, or improve the place of one that does."""
        path = item.step.path
        old = self._items.get(path)
        if old is not None:
            self._forget(old)
            item.hot |= old.hot
            item.whole |= old.whole
            item.kills = max(item.kills, old.kills)
            item.noticed_at = min(item.noticed_at, old.noticed_at)
        cursor = item.step.cursor
        done = cursor.offset if cursor is not None and not item.whole else 0
        item.left_bytes = max(0, item.step.seen.size - done)
        self._items[path] = item
        self._hot += item.hot
        self.bytes += item.left_bytes
        heapq.heappush(self._heap, (_rank(item), next(self._count), path))

    def pop(self) -> Item | None:
        """The next file to read, None when nothing waits."""
        while self._heap:
            rank, _, path = heapq.heappop(self._heap)
            item = self._items.get(path)
            if item is not None and _rank(item) == rank:
                self._forget(self._items.pop(path))
                return item
        return None

    def drop(self, paths: Iterable[str]) -> None:
        """These files need not be read any more."""
        for path in paths:
            item = self._items.pop(path, None)
            if item is not None:
                self._forget(item)

    def _forget(self, item: Item) -> None:
        self._hot -= item.hot
        self.bytes -= item.left_bytes

    def has_hot(self) -> bool:
        """Whether a file that changes now waits."""
        return self._hot > 0

    def of_root(self, root: tuple[str, str]) -> list[Item]:
        """What waits of one root."""
        return [item for item in self._items.values() if item.root == root]

    def clear(self) -> None:
        """Forget everything."""
        self._items.clear()
        self._heap.clear()
        self._hot = self.bytes = 0


def _age(item: Item) -> tuple[int, str]:
    return item.step.seen.mtime_ns, item.step.path


def _rank(item: Item) -> tuple[int, int, int]:
    newest, within = item.order if item.order != (0, 0) else (item.step.seen.mtime_ns, 0)
    return (0 if item.hot else 1, -newest, within)


def keep_sessions_together(items: Iterable[tuple[Item, str | None]]) -> None:
    """Give files of one session (second value: what they have in common) one place, that of the
    newest, oldest first within: a session's content is folded in the order in which it happened.
    Files of one age, as after a restore, go by their names, which grow with time."""
    groups: dict[str, list[Item]] = {}
    for item, session in items:
        if session is not None:
            groups.setdefault(session, []).append(item)
    for group in groups.values():
        if len(group) > 1:
            newest = max(item.step.seen.mtime_ns for item in group)
            for index, item in enumerate(sorted(group, key=_age)):
                item.order = (newest, index)
