"""Clusters in the store: which one a set joins, their listing. The rules: `core.clusters`."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from lored.core import clusters
from lored.core.clock import Micros
from lored.core.facts import State
from lored.store.driver import Connection
from lored.store.facts.entities import shown
from lored.store.facts.rows import marks

POSTINGS: Final = 256
"""Clusters of one entity that are simply read; an entity in more is busy and only looked up
where `core.clusters.probes` says it could decide."""

TITLE_NAMES: Final = 3


class Assignment(NamedTuple):
    """Where a fact was put: cluster, whether it is new, the bits shared with its set, and the
    similarity with it."""

    cluster: int
    created: bool
    core: int
    similarity: float


class Listed(NamedTuple):
    """A cluster with the numbers of its facts by state."""

    id: int
    title: str
    created_at: Micros
    active: int
    superseded: int


def assign(conn: Connection, members: Sequence[int], threshold: float, now: Micros) -> Assignment:
    """The cluster that a comparison set joins at ``threshold``, or a new one."""
    ordered = sorted(set(members))
    best = clusters.choose(_candidates(conn, ordered, threshold), len(ordered), threshold)
    if best is not None:
        found, value = best
        return Assignment(found.cluster, False, core_in(conn, found.cluster, ordered), value)
    cluster = conn.execute(
        "INSERT INTO clusters(size, created_at) VALUES(?, ?)", (len(ordered), now)
    ).lastrowid
    conn.executemany(
        "INSERT INTO cluster_entities(entity, size, cluster, bit) VALUES(?, ?, ?, ?)",
        [(entity, len(ordered), cluster, bit) for bit, entity in enumerate(ordered)],
    )
    conn.executemany(
        "UPDATE entities SET clusters = clusters + 1 WHERE id = ?", [(one,) for one in ordered]
    )
    return Assignment(cluster, True, clusters.core(range(len(ordered))), 1.0 if ordered else 0.0)


def core_in(conn: Connection, cluster: int, members: Iterable[int]) -> int:
    """The bits of a cluster's set that ``members`` share."""
    inside = set(members)
    rows = conn.execute("SELECT entity, bit FROM cluster_entities WHERE cluster = ?", (cluster,))
    return clusters.core(bit for entity, bit in rows if entity in inside)


def _candidates(
    conn: Connection, members: Sequence[int], threshold: float
) -> list[clusters.Candidate]:
    """Every cluster that could reach the threshold, with its exact number of shared members."""
    if not members:
        return []
    low, high = clusters.sizes(len(members), threshold)
    if high is None:
        row = conn.execute("SELECT max(size) FROM clusters").fetchone()
        high = row[0] or 0
    shared: Counter[tuple[int, int]] = Counter()
    busy = False
    for entity in members:
        rows = conn.execute(
            "SELECT size, cluster FROM cluster_entities"
            f" WHERE entity = ? AND size BETWEEN ? AND ? LIMIT {POSTINGS + 1}",
            (entity, low, high),
        ).fetchall()
        busy |= len(rows) > POSTINGS
        shared.update(rows)
    if not busy:
        return [clusters.Candidate(c, size, count) for (size, c), count in shared.items()]
    return _probe(conn, members, low, high, threshold)


def _probe(
    conn: Connection, members: Sequence[int], low: int, high: int, threshold: float
) -> list[clusters.Candidate]:
    """As `_candidates` where an entity is busy: size by size, looking up the rarest."""
    found: list[clusters.Candidate] = []
    question = marks(members)
    rarity = conn.execute(
        f"SELECT clusters, id FROM entities WHERE id IN ({question})", tuple(members)
    ).fetchall()
    for size in range(low, high + 1):
        probe = clusters.probes(rarity, size, threshold)
        if probe is None:
            continue
        near = {
            row[0]
            for entity in probe.entities
            for row in conn.execute(
                "SELECT cluster FROM cluster_entities WHERE entity = ? AND size = ?",
                (entity, size),
            )
        }
        for cluster in near:
            count = conn.execute(
                "SELECT count(*) FROM cluster_entities"
                f" WHERE entity IN ({question}) AND size = ? AND cluster = ?",
                (*members, size, cluster),
            ).fetchone()[0]
            if count >= probe.least_shared:
                found.append(clusters.Candidate(cluster, size, count))
    return found


# -- reading -------------------------------------------------------------------------------


def titles(conn: Connection, ids: Sequence[int]) -> dict[int, str]:
    """Cluster -> title from its entities as written."""
    names: dict[int, list[str]] = {cluster: [] for cluster in ids}
    for cluster, key, written in conn.execute(
        "SELECT x.cluster, e.key, e.written FROM cluster_entities x"
        f" JOIN entities e ON e.id = x.entity WHERE x.cluster IN ({marks(ids)})"
        " ORDER BY x.cluster, x.bit",
        tuple(ids),
    ):
        names[cluster].append(shown(key, written))
    return {cluster: clusters.title(found) for cluster, found in names.items()}


def entities_of(conn: Connection, cluster: int) -> list[str]:
    """The entities of a cluster's set as written."""
    rows = conn.execute(
        "SELECT e.key, e.written FROM cluster_entities x JOIN entities e ON e.id = x.entity"
        " WHERE x.cluster = ? ORDER BY x.bit",
        (cluster,),
    )
    return [shown(row[0], row[1]) for row in rows]


def listing(
    conn: Connection, limit: int, only: int | None = None, after: int | None = None
) -> list[Listed]:
    """Clusters that have facts, newest first; ``only`` one of them, ``after`` pages on."""
    condition, values = "1", []
    if only is not None:
        condition, values = "c.id = ?", [only]
    elif after is not None:
        condition, values = "c.id < ?", [after]
    rows = conn.execute(
        "SELECT c.id, c.created_at,"
        " (SELECT count(*) FROM facts f WHERE f.cluster = c.id AND f.state = 0) AS active,"
        " (SELECT count(*) FROM facts f WHERE f.cluster = c.id AND f.state <> 0 AND f.state = ?)"
        f" FROM clusters c WHERE {condition} AND EXISTS"
        " (SELECT 1 FROM facts f WHERE f.cluster = c.id AND f.state = 0 UNION ALL"
        " SELECT 1 FROM facts f WHERE f.cluster = c.id AND f.state <> 0)"
        " ORDER BY c.id DESC LIMIT ?",
        (int(State.SUPERSEDED), *values, limit),
    ).fetchall()
    names = titles(conn, [row[0] for row in rows])
    return [Listed(row[0], names[row[0]], row[1], row[2], row[3]) for row in rows]


def of_entities(conn: Connection, ids: Sequence[int], limit: int) -> list[int]:
    """Clusters with facts that name one of the entities, newest first."""
    rows = conn.execute(
        "SELECT DISTINCT f.cluster FROM fact_entities x JOIN facts f ON f.id = x.fact"
        f" WHERE x.entity IN ({marks(ids)}) AND x.member = 1 AND f.state <> ?"
        " ORDER BY f.cluster DESC LIMIT ?",
        (*ids, int(State.ERASED), limit),
    )
    return [row[0] for row in rows]
