"""Entities and tags of facts: interned names, the inverted index, comparison sets, aliases.

A key is looked up among aliases first, so a merged entity leads to the one it became.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from lored.core.clock import Micros
from lored.core.entities import TAG_TYPE, Entity, bare_name, parse
from lored.core.facts import State
from lored.store.driver import Connection
from lored.store.facts.rows import marks

SUGGESTION_NAMES: Final = 400
"""Names of a text that are looked up when entities are suggested for it."""


class Known(NamedTuple):
    """A stored entity, with how many facts (active, all) name it and its other names."""

    id: int
    key: str
    written: str
    active: int
    facts: int
    aliases: list[str]


def ids_of(conn: Connection, keys: Sequence[str]) -> dict[str, int]:
    """Key -> entity id, through aliases; unknown keys are left out."""
    if not keys:
        return {}
    question = marks(keys)
    rows = conn.execute(
        f"SELECT key, id FROM entities WHERE key IN ({question})"
        f" UNION ALL SELECT key, entity FROM entity_aliases WHERE key IN ({question})",
        (*keys, *keys),
    )
    return dict(rows.fetchall())


def intern(conn: Connection, entities: Iterable[Entity], now: Micros) -> dict[str, int]:
    """Key -> id; unknown entities are added, in the order of their keys, so that ids do not
    depend on the order of a call's arguments."""
    wanted = {entity.key: entity for entity in entities}
    found = ids_of(conn, list(wanted))
    for key in sorted(wanted.keys() - found.keys()):
        entity = wanted[key]
        found[key] = conn.execute(
            "INSERT INTO entities(key, bare, written, created_at) VALUES(?, ?, ?, ?)",
            (key, entity.bare, entity.written, now),
        ).lastrowid
    return found


def matching(conn: Connection, written: str) -> list[int]:
    """Ids that a filter or scope means: `type:name` that entity (or alias), a bare name every
    entity of that name, whatever its type."""
    entity = parse(written)
    exact = ids_of(conn, [entity.key])
    if ":" in written and exact:
        return sorted(set(exact.values()))
    if ":" in written and not written.strip().lower().startswith("subject:"):
        return []
    bare = bare_name(written.split(":", 1)[-1])
    rows = conn.execute(
        "SELECT id FROM entities WHERE bare = ?1 AND key NOT LIKE 'tag:%'"
        " UNION SELECT entity FROM entity_aliases WHERE bare = ?1",
        (bare,),
    )
    return sorted({row[0] for row in rows} | set(exact.values()))


def written_names(conn: Connection, ids: Iterable[int]) -> dict[int, str]:
    """Entity id -> the entity as first written; tags without their type."""
    wanted = list(ids)
    rows = conn.execute(
        f"SELECT id, key, written FROM entities WHERE id IN ({marks(wanted)})", tuple(wanted)
    )
    return {row[0]: shown(row[1], row[2]) for row in rows}


def shown(key: str, written: str) -> str:
    """How an entity is named to people: as written, with its type; a tag as it is."""
    kind, name = key.split(":", 1)
    if kind == TAG_TYPE and not written.lower().startswith("tag:"):
        return written
    return written if ":" in written else f"{kind}:{written or name}"


# -- facts and their entities --------------------------------------------------------------


def link(
    conn: Connection,
    fact_id: int,
    members: Iterable[int],
    others: Iterable[int],
    *,
    new: bool = False,
) -> None:
    """Write the inverted index of one fact: ``members`` of its comparison set, ``others`` that
    it only mentions. What it had before (unless it is ``new``) goes."""
    inside = set(members)
    if not new:
        conn.execute("DELETE FROM fact_entities WHERE fact = ?", (fact_id,))
    conn.executemany(
        "INSERT INTO fact_entities(entity, fact, member) VALUES(?, ?, ?)",
        [(entity, fact_id, int(entity in inside)) for entity in sorted(inside | set(others))],
    )


def set_of(conn: Connection, members: Iterable[int]) -> int | None:
    """The id of a comparison set, made if it is new; None for the empty one."""
    text = ",".join(map(str, sorted(set(members))))
    if not text:
        return None
    row = conn.execute("SELECT id FROM entity_sets WHERE members = ?", (text,)).fetchone()
    if row is not None:
        return int(row[0])
    return int(conn.execute("INSERT INTO entity_sets(members) VALUES(?)", (text,)).lastrowid)


def members_of(conn: Connection, set_id: int | None) -> frozenset[int]:
    """The entity ids of a comparison set."""
    if set_id is None:
        return frozenset()
    row = conn.execute("SELECT members FROM entity_sets WHERE id = ?", (set_id,)).fetchone()
    return split_members(row[0])


def split_members(text: str) -> frozenset[int]:
    """`3,17` -> {3, 17}."""
    return frozenset(map(int, text.split(",")))


# -- listing and suggestions ---------------------------------------------------------------


def listing(conn: Connection, limit: int, only: Sequence[int] | None = None) -> list[Known]:
    """Entities (not tags) with their counts, most used first; ``only`` restricts to ids."""
    condition = "" if only is None else f" AND e.id IN ({marks(only)})"
    rows = conn.execute(
        "SELECT e.id, e.key, e.written,"
        " count(CASE WHEN f.state = ? THEN 1 END) AS active, count(f.id) AS facts"
        " FROM entities e LEFT JOIN fact_entities x ON x.entity = e.id"
        " LEFT JOIN facts f ON f.id = x.fact AND f.state <> ?"
        f" WHERE e.key NOT LIKE 'tag:%'{condition}"
        " GROUP BY e.id HAVING facts OR EXISTS"
        " (SELECT 1 FROM entity_aliases a WHERE a.entity = e.id)"
        " ORDER BY active DESC, facts DESC, e.key LIMIT ?",
        (int(State.ACTIVE), int(State.ERASED), *(only or ()), limit),
    ).fetchall()
    names: dict[int, list[str]] = {}
    for entity, written in conn.execute(
        f"SELECT entity, written FROM entity_aliases WHERE entity IN ({marks(rows)}) ORDER BY key",
        [row[0] for row in rows],
    ):
        names.setdefault(entity, []).append(written)
    return [
        Known(row[0], row[1], shown(row[1], row[2]), row[3], row[4], names.get(row[0], []))
        for row in rows
    ]


def mentioned(conn: Connection, names: Sequence[str]) -> dict[str, list[int]]:
    """Bare name -> ids of known entities (not tags) of that name."""
    found: dict[str, list[int]] = {}
    asked = names[:SUGGESTION_NAMES]
    question = marks(asked)
    for bare, entity in conn.execute(
        f"SELECT bare, id FROM entities WHERE bare IN ({question}) AND key NOT LIKE 'tag:%'"
        f" UNION SELECT bare, entity FROM entity_aliases WHERE bare IN ({question})"
        " ORDER BY 1, 2",
        (*asked, *asked),
    ):
        found.setdefault(bare, []).append(entity)
    return found
