"""Facts that share the name of an entity without sharing a cluster: candidates for `related`."""

from collections.abc import Collection, Sequence
from typing import Final

from lored.store.driver import Connection
from lored.store.facts.rows import marks

RELATED_READ: Final = 32
"""Newest facts, and clusters, read per entity when related facts are looked for."""


def sharing_names(conn: Connection, bare_names: Sequence[str], limit: int) -> list[int]:
    """Ids of active facts that name an entity with one of the bare names, whatever its type:
    of each entity the newest facts, and a new fact of each of the clusters about it, those
    with small sets first; newest first."""
    if not bare_names:
        return []
    entities = conn.execute(
        f"SELECT id FROM entities WHERE bare IN ({marks(bare_names)})", tuple(bare_names)
    ).fetchall()
    found: set[int] = set()
    for (entity,) in entities:
        found.update(
            row[0]
            for row in conn.execute(
                "SELECT f.id FROM (SELECT fact FROM fact_entities WHERE entity = ?"
                f" ORDER BY fact DESC LIMIT {RELATED_READ}) x JOIN facts f ON f.id = x.fact"
                " WHERE f.state = 0",
                (entity,),
            )
        )
        found.update(
            row[0]
            for row in conn.execute(
                "SELECT (SELECT f.id FROM facts f WHERE f.cluster = c.cluster AND f.state = 0"
                " ORDER BY f.core DESC, f.id DESC LIMIT 1)"
                " FROM (SELECT cluster FROM cluster_entities WHERE entity = ?"
                f" ORDER BY size, cluster LIMIT {RELATED_READ}) c",
                (entity,),
            )
            if row[0] is not None
        )
    return sorted(found, reverse=True)[:limit]


def standing(conn: Connection, ids: Collection[int], cluster: int | None) -> list[int]:
    """Of the facts ``ids`` the active ones that are not in ``cluster``."""
    rows = conn.execute(
        f"SELECT id, cluster FROM facts WHERE state = 0 AND id IN ({marks(ids)})", tuple(ids)
    )
    return [fact for fact, own in rows if own != cluster]
