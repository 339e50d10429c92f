"""Files and commits that facts speak about, as they were when that was stated or verified."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from lored.store.driver import Connection
from lored.store.facts.rows import marks


class Binding(NamedTuple):
    """``target`` is `file:<absolute path>` or `commit:<repository root>`; ``hash`` the content's
    (files) or the id of HEAD (commits), None when it was too large to read."""

    target: str
    size: int | None
    mtime_ns: int | None
    hash: bytes | None


def put(conn: Connection, fact_id: int, bindings: Iterable[Binding]) -> None:
    """Replace what a fact is bound to."""
    conn.execute("DELETE FROM bindings WHERE fact = ?", (fact_id,))
    conn.executemany(
        "INSERT OR REPLACE INTO bindings(fact, target, size, mtime_ns, hash) VALUES(?, ?, ?, ?, ?)",
        [(fact_id, *binding) for binding in bindings],
    )


def of(conn: Connection, ids: Sequence[int]) -> dict[int, list[Binding]]:
    """What each of the facts is bound to; facts without bindings are left out."""
    found: dict[int, list[Binding]] = {}
    if ids:
        for fact_id, *rest in conn.execute(
            f"SELECT fact, target, size, mtime_ns, hash FROM bindings WHERE fact IN ({marks(ids)})",
            tuple(ids),
        ):
            found.setdefault(fact_id, []).append(Binding(*rest))
    return found
