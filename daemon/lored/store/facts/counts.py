"""Numbers about a facts store, for statistics and the list of what is undecided."""

from lored.store.driver import Connection
from lored.store.facts import conflicts, rows
from lored.store.facts.rows import Fact


def pending(conn: Connection) -> int:
    """Facts that came with collisions nobody has settled."""
    row = conn.execute("SELECT count(*) FROM facts WHERE pending = 1").fetchone()
    return int(row[0])


def pending_facts(conn: Connection, limit: int) -> list[Fact]:
    """The newest of them."""
    return rows.select(conn, "pending = 1 ORDER BY id DESC LIMIT ?", (limit,))


def held(conn: Connection) -> tuple[int, int]:
    """How many facts hold, and when the last one was recorded (microseconds; 0: never)."""
    count, last = conn.execute("SELECT sum(state = 0), max(created_at) FROM facts").fetchone()
    return int(count or 0), int(last or 0)


def counts(conn: Connection) -> dict[str, int]:
    """Facts by state and kind, clusters, entities, open conflicts."""
    states = rows.count(conn)
    kinds: dict[str, int] = dict(
        conn.execute("SELECT kind, count(*) FROM facts WHERE state = 0 GROUP BY kind").fetchall()
    )
    clusters, entities = conn.execute(
        "SELECT (SELECT count(DISTINCT cluster) FROM facts WHERE state = 0),"
        " (SELECT count(*) FROM entities WHERE key NOT LIKE 'tag:%')"
    ).fetchone()
    return {
        "facts": states["active"],
        "superseded": states["superseded"],
        "forgotten": states["forgotten"] + states["erased"],
        "evicted": states["evicted"],
        "pending": pending(conn),
        "clusters": clusters,
        "entities": entities,
        "open_conflicts": conflicts.count(conn),
        **{f"kind_{kind}": number for kind, number in sorted(kinds.items())},
    }
