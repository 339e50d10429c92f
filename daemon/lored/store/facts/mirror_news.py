"""Which facts changed since facts.jsonl was last in step, told by the change log."""

from typing import Final, NamedTuple

from lored.core.facts import State
from lored.core.jsonl import Change
from lored.store.driver import Connection
from lored.store.facts import log, mirror
from lored.store.facts import rows as facts

MOST: Final = 500
"""With more changes the file is composed as a whole; a bound of the statements below as well."""

_PLAIN: Final = (
    "remember", "repeat", "supersede", "forget", "evict", "verify", "processed", "conflict",
    "dismiss",
)  # fmt: skip
"""Operations whose entries name every fact that they change, and that leave each its line."""


class News(NamedTuple):
    """``mark``: the newest entry looked at. ``changes``: facts by internal id, in the order in
    which new ones come in the file."""

    mark: int
    changes: dict[int, Change]


def mark(conn: Connection) -> int:
    """The number of the newest entry of the log; 0 when it is empty."""
    return int(conn.execute("SELECT coalesce(max(id), 0) FROM change_log").fetchone()[0])


def news(conn: Connection, since: int) -> News | None:
    """What the entries after ``since`` (a mark) changed; None when they cannot tell all of it."""
    newest = mark(conn)
    marks = facts.marks(_PLAIN)
    if conn.execute(
        f"SELECT 1 FROM change_log WHERE id > ? AND op NOT IN ({marks}) LIMIT 1", (since, *_PLAIN)
    ).fetchone():
        return None
    changed = [
        row[0]
        for row in conn.execute(
            "SELECT DISTINCT subject FROM change_subjects WHERE kind = ? AND entry > ? LIMIT ?",
            (log.FACT, since, MOST + 1),
        )
    ]
    found = facts.by_ids(conn, changed)
    if len(changed) > MOST or len(found) < len(changed):
        return None
    successors = {fact.successor for fact in found.values() if fact.successor is not None}
    numbers = facts.numbers_of(conn, sorted(successors)) if successors else {}
    before = mirror.agreed(conn, changed)
    changes: dict[int, Change] = {}
    for fact in sorted(found.values(), key=lambda one: (one.position, one.number)):
        base = before.get(fact.id)
        if fact.state is State.ERASED or (base is not None and not base[1]):
            return None  # a line that goes, or that somebody took out
        changes[fact.id] = Change(base and base[0], mirror.record(fact, numbers))
    return News(newest, changes)


def settled(told: News, lines: int) -> tuple[list[mirror.Unsettled], int]:
    """After the changes were written to a file that had ``lines`` lines of facts: what
    `mirror.settle` has to keep, and how many lines there are now."""
    kept = []
    for fact_id, (base, said) in told.changes.items():
        if base is None:
            kept.append(mirror.Unsettled(fact_id, said, lines))
            lines += 1
        elif base != said:
            kept.append(mirror.Unsettled(fact_id, said, None))
    return kept, lines
