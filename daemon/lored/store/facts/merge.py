"""Two entities are one: everything that named the first names the second from now on.

The facts keep what was written; comparison sets, the inverted index and cluster sets change.
The first entity's key stays as an alias, so later statements that use it mean the second.
The record that comes back is enough to take it apart again.
"""

from typing import Any

from lore.errors import Conflict as Refused
from lore.errors import NotFound
from lored.core.clock import Micros
from lored.core.entities import Entity, parse
from lored.store.driver import Connection
from lored.store.facts.clusters import core_in
from lored.store.facts.entities import ids_of, set_of
from lored.store.facts.rows import set_columns


def join(conn: Connection, first: str, second: str, now: Micros) -> dict[str, Any]:
    """Let the entity ``first`` (as written) be ``second``; an unknown ``first`` becomes a mere
    alias. Returns the record for the change log. Raises `NotFound` for an unknown ``second``,
    `Conflict` when both are one already."""
    alias, target = parse(first), parse(second)
    known = ids_of(conn, [alias.key, target.key])
    if target.key not in known:
        raise NotFound(f"no entity {target.key}: `lore entities` lists the known ones")
    into = known[target.key]
    if known.get(alias.key) == into:
        raise Refused(f"{alias.key} is {target.key} already")
    return _join(conn, alias, known.get(alias.key), into)


def merge_again(conn: Connection, record: dict[str, Any], now: Micros) -> dict[str, Any]:
    """Do a merge anew that was taken apart."""
    alias = Entity(record["key"], record["bare"], record["written"])
    known = ids_of(conn, [alias.key])
    return _join(conn, alias, known.get(alias.key), record["into"])


def _join(conn: Connection, alias: Entity, source: int | None, into: int) -> dict[str, Any]:
    record: dict[str, Any] = {
        "key": alias.key,
        "bare": alias.bare,
        "written": alias.written,
        "into": into,
        "id": source,
    }
    if source is not None:
        row = conn.execute(
            "SELECT key, bare, written, created_at FROM entities WHERE id = ?", (source,)
        ).fetchone()
        record |= dict(zip(("key", "bare", "written", "created_at"), row, strict=True))
        record["facts"] = _move_facts(conn, source, into)
        record["clusters"] = _move_clusters(conn, source, into)
        record["aliases"] = [
            row[0]
            for row in conn.execute(
                "SELECT key FROM entity_aliases WHERE entity = ?", (source,)
            ).fetchall()
        ]
        conn.execute("UPDATE entity_aliases SET entity = ? WHERE entity = ?", (into, source))
        conn.execute("DELETE FROM entities WHERE id = ?", (source,))
    conn.execute(
        "INSERT INTO entity_aliases(key, bare, written, entity) VALUES(?, ?, ?, ?)",
        (record["key"], record["bare"], record["written"], into),
    )
    if source is not None:
        _compare_anew(conn, [fact for fact, _ in record["facts"]])
    return record


def _move_facts(conn: Connection, source: int, into: int) -> list[list[int]]:
    """[fact, what it had of ``into`` before: 0 nothing, 1 a mention, 2 a member] of ``source``,
    with 10 added when ``source`` was a member."""
    moved = []
    for fact, member in conn.execute(
        "SELECT fact, member FROM fact_entities WHERE entity = ?", (source,)
    ).fetchall():
        row = conn.execute(
            "SELECT member FROM fact_entities WHERE entity = ? AND fact = ?", (into, fact)
        ).fetchone()
        moved.append([fact, (0 if row is None else 1 + row[0]) + 10 * member])
        conn.execute(
            "INSERT INTO fact_entities(entity, fact, member) VALUES(?, ?, ?)"
            " ON CONFLICT DO UPDATE SET member = max(member, excluded.member)",
            (into, fact, member),
        )
    conn.execute("DELETE FROM fact_entities WHERE entity = ?", (source,))
    return moved


def _move_clusters(conn: Connection, source: int, into: int) -> list[list[int]]:
    """[cluster, bit of ``source``, 1 when ``into`` was in its set too]."""
    moved = []
    for cluster, size, bit in conn.execute(
        "SELECT cluster, size, bit FROM cluster_entities WHERE entity = ?", (source,)
    ).fetchall():
        both = conn.execute(
            "SELECT 1 FROM cluster_entities WHERE entity = ? AND size = ? AND cluster = ?",
            (into, size, cluster),
        ).fetchone()
        moved.append([cluster, bit, int(both is not None)])
        if both is None:
            conn.execute(
                "INSERT INTO cluster_entities(entity, size, cluster, bit) VALUES(?, ?, ?, ?)",
                (into, size, cluster, bit),
            )
        else:
            _resize(conn, cluster, size - 1)
    conn.execute("DELETE FROM cluster_entities WHERE entity = ?", (source,))
    return moved


def _resize(conn: Connection, cluster: int, size: int) -> None:
    conn.execute("UPDATE clusters SET size = ? WHERE id = ?", (size, cluster))
    conn.execute("UPDATE cluster_entities SET size = ? WHERE cluster = ?", (size, cluster))


def split(conn: Connection, record: dict[str, Any]) -> None:
    """Take a merge apart again, by its record."""
    into, source = record["into"], record["id"]
    conn.execute("DELETE FROM entity_aliases WHERE key = ?", (record["key"],))
    if source is None:
        return
    conn.execute(
        "INSERT INTO entities(id, key, bare, written, created_at) VALUES(?, ?, ?, ?, ?)",
        (source, record["key"], record["bare"], record["written"], record["created_at"]),
    )
    conn.executemany(
        "UPDATE entity_aliases SET entity = ? WHERE key = ?",
        [(source, key) for key in record["aliases"]],
    )
    for fact, code in record["facts"]:
        member, had = divmod(code, 10)
        if not _has(conn, into, fact):
            continue  # relabelled or erased since
        conn.execute(
            "INSERT OR REPLACE INTO fact_entities(entity, fact, member) VALUES(?, ?, ?)",
            (source, fact, member),
        )
        if had:
            conn.execute(
                "UPDATE fact_entities SET member = ? WHERE entity = ? AND fact = ?",
                (had - 1, into, fact),
            )
        else:
            conn.execute("DELETE FROM fact_entities WHERE entity = ? AND fact = ?", (into, fact))
    for cluster, bit, both in record["clusters"]:
        if both:
            row = conn.execute("SELECT size FROM clusters WHERE id = ?", (cluster,)).fetchone()
            _resize(conn, cluster, row[0] + 1)
        else:
            conn.execute(
                "DELETE FROM cluster_entities WHERE entity = ? AND cluster = ?", (into, cluster)
            )
        row = conn.execute("SELECT size FROM clusters WHERE id = ?", (cluster,)).fetchone()
        conn.execute(
            "INSERT INTO cluster_entities(entity, size, cluster, bit) VALUES(?, ?, ?, ?)",
            (source, row[0], cluster, bit),
        )
    _compare_anew(conn, [fact for fact, _ in record["facts"]])


def _has(conn: Connection, entity: int, fact: int) -> bool:
    row = conn.execute(
        "SELECT 1 FROM fact_entities WHERE entity = ? AND fact = ?", (entity, fact)
    ).fetchone()
    return row is not None


def _compare_anew(conn: Connection, facts: list[int]) -> None:
    """Write comparison set and core of facts from the inverted index."""
    for fact in facts:
        members = [
            row[0]
            for row in conn.execute(
                "SELECT entity FROM fact_entities WHERE fact = ? AND member = 1", (fact,)
            )
        ]
        cluster = conn.execute("SELECT cluster FROM facts WHERE id = ?", (fact,)).fetchone()[0]
        set_columns(conn, fact, set_id=set_of(conn, members), core=core_in(conn, cluster, members))
