"""Collisions in the store: counted in full, listed within a bound.

The rule is `core.collisions`. A small cluster is simply read. A large one is counted from its
tallies, one row per distinct core; single facts are only looked at where a tally cannot tell:
facts with an end, questions with an end, and facts that share an entity outside the
cluster's set only. Listing then reads the newest facts with the same set, the newest of each
core, and those that the caller found near by text, and orders what it read. So one entity may
have 100,000 facts in one cluster.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from lored.core import collisions as rule
from lored.core.facts import State
from lored.core.validity import Window
from lored.store.driver import Connection
from lored.store.facts.entities import members_of, split_members, written_names
from lored.store.facts.rows import IDS_AT_ONCE, Fact, by_ids, marks

SMALL: Final = 64
"""Active facts of a cluster (and of a set elsewhere) that are read one by one."""

LISTED: Final = 64
"""Facts of a large cluster read per way of finding them before they are put in order."""

_OVERLAPS: Final = (
    "(f.valid_to IS NULL OR f.valid_to > :start) AND (:end IS NULL OR f.valid_from < :end)"
    " AND (f.valid_to IS NULL OR f.valid_to > f.valid_from)"
)


class Collision(NamedTuple):
    """A fact that stands against another: why, and the shared entities as written."""

    fact: Fact
    reason: rule.Reason
    shared: list[str]


class Found(NamedTuple):
    """Collisions of one fact: the most similar ones, and how many there are in all."""

    listed: list[Collision]
    total: int


NONE: Final = Found([], 0)


class _Question(NamedTuple):
    """The fact that is asked about."""

    id: int
    cluster: int
    set_id: int
    outside: tuple[int, ...]
    """Members that the cluster's set does not have."""
    core: int
    window: Window

    @property
    def values(self) -> dict[str, object]:
        return {
            "id": self.id,
            "cluster": self.cluster,
            "set": self.set_id,
            "core": self.core,
            "start": self.window.start,
            "end": self.window.end,
        }


def find(conn: Connection, fact: Fact, limit: int, near: Sequence[int] = ()) -> Found:
    """What ``fact`` collides with, at most ``limit`` of it; ``near`` are internal ids that the
    caller found similar. With ``limit`` 0 they are only counted."""
    if not _can_collide(fact):
        return NONE
    members = members_of(conn, fact.set_id)
    mine = rule.Side(fact.id, fact.state, fact.window, fact.cluster, members)
    rows = _small(conn, fact)
    if rows is not None:
        reasons = _reasons(mine, rows)
        return Found(_ranked(conn, fact, reasons, rows, limit), len(reasons))
    question = _question(conn, fact, members)
    cores = _sharing_cores(conn, question)
    total = _count(conn, question, cores)
    if not total or not limit:
        return Found([], total)
    rows = _large(conn, question, cores, limit, near)
    return Found(_ranked(conn, fact, _reasons(mine, rows), rows, limit), total)


def count(conn: Connection, fact: Fact) -> int:
    """How many facts ``fact`` collides with."""
    return find(conn, fact, 0).total


def _can_collide(fact: Fact) -> bool:
    if fact.state is not State.ACTIVE or fact.set_id is None:
        return False
    return fact.valid_to is None or fact.valid_to > fact.valid_from


class _Row(NamedTuple):
    """A fact as far as the rule needs it, and its words."""

    side: rule.Side
    text: str


_ROW: Final = (
    "SELECT f.id, f.valid_from, f.valid_to, f.cluster, s.members, f.text"
    " FROM facts f JOIN entity_sets s ON s.id = f.set_id WHERE f.state = 0 AND "
)


def _rows(conn: Connection, condition: str, values: Sequence[object]) -> list[_Row]:
    """Active facts by a condition."""
    return [
        _Row(
            rule.Side(row[0], State.ACTIVE, Window(row[1], row[2]), row[3], split_members(row[4])),
            row[5],
        )
        for row in conn.execute(_ROW + condition, tuple(values))
    ]


def _small(conn: Connection, fact: Fact) -> list[_Row] | None:
    """Every fact that could collide with ``fact``, None when they are too many to read."""
    known = conn.execute(
        "SELECT total(facts) FROM cluster_tallies WHERE cluster = ?", (fact.cluster,)
    ).fetchone()[0]
    if known > SMALL:
        return None
    inside = _rows(conn, f"f.cluster = ? LIMIT {SMALL + 1}", (fact.cluster,))
    if len(inside) > SMALL:
        return None
    elsewhere = _rows(
        conn, f"f.set_id = ? AND f.cluster <> ? LIMIT {SMALL + 1}", (fact.set_id, fact.cluster)
    )
    return None if len(elsewhere) > SMALL else inside + elsewhere


def _reasons(mine: rule.Side, rows: Iterable[_Row]) -> dict[int, rule.Reason]:
    found = {}
    for row in rows:
        reason = rule.compare(mine, row.side)
        if reason is not None:
            found[row.side.number] = reason
    return found


def _ranked(
    conn: Connection,
    fact: Fact,
    reasons: dict[int, rule.Reason],
    rows: Iterable[_Row],
    limit: int,
) -> list[Collision]:
    """The ``limit`` most similar ones, in order, as facts with the names that they share."""
    if not reasons or not limit:
        return []
    texts = {row.side.number: row.text for row in rows}
    ranked = rule.order(
        ((number, reason, texts[number]) for number, reason in reasons.items()), fact.text
    )[:limit]
    facts = by_ids(conn, [number for number, _ in ranked])
    names = written_names(conn, {entity for _, reason in ranked for entity in reason.shared})
    return [
        Collision(facts[number], reason, sorted(names[entity] for entity in reason.shared))
        for number, reason in ranked
    ]


def _question(conn: Connection, fact: Fact, members: frozenset[int]) -> _Question:
    inside = {
        row[0]
        for row in conn.execute(
            "SELECT entity FROM cluster_entities WHERE cluster = ?", (fact.cluster,)
        )
    }
    outside = tuple(sorted(members - inside))
    return _Question(fact.id, fact.cluster, fact.set_id or 0, outside, fact.core, fact.window)


def _sharing_cores(conn: Connection, question: _Question) -> list[tuple[int, int]]:
    """(core, facts) of the cluster's cores that share something; open facts only."""
    rows = conn.execute(
        "SELECT core, facts FROM cluster_tallies WHERE cluster = ?", (question.cluster,)
    )
    return [(core, facts) for core, facts in rows if core & question.core]


# -- counting ------------------------------------------------------------------------------


def _count(conn: Connection, question: _Question, cores: list[tuple[int, int]]) -> int:
    values = question.values
    if question.window.end is not None:
        # A question with an end: which open facts begin before it, only they themselves tell.
        return sum(_scan(conn, question, open_too=True))
    total = sum(facts for _, facts in cores)
    if question.core:
        total -= 1  # the fact itself
    total += _outside(conn, question)
    total += conn.execute(
        "SELECT total(facts) FROM set_tallies WHERE set_id = :set AND cluster <> :cluster", values
    ).fetchone()[0]
    return int(total) + sum(_scan(conn, question, open_too=False))


def _outside(conn: Connection, question: _Question) -> int:
    """Open facts of the cluster that share only entities outside the cluster's set; the fact
    itself is one of them when its core is empty."""
    if not question.outside:
        return 0
    silent = conn.execute(
        "SELECT 1 FROM cluster_tallies WHERE cluster = :cluster AND core & :core = 0 LIMIT 1",
        question.values,
    ).fetchone()
    if silent is None:
        return 0
    names = ",".join(map(str, question.outside))
    row = conn.execute(
        "SELECT count(DISTINCT f.id) FROM facts f JOIN fact_entities x ON x.fact = f.id"
        f" WHERE x.entity IN ({names}) AND x.member = 1 AND f.cluster = :cluster"
        " AND f.state = 0 AND f.core & :core = 0 AND f.valid_to IS NULL AND f.id <> :id",
        question.values,
    ).fetchone()
    return int(row[0])


def _scan(conn: Connection, question: _Question, *, open_too: bool) -> tuple[int, int]:
    """Facts counted one by one, in the cluster and with the same set elsewhere: those with an
    end, with ``open_too`` also those without."""
    ends = "" if open_too else "AND f.valid_to IS NOT NULL"
    shares = "f.core & :core <> 0"
    if question.outside:
        names = ",".join(map(str, question.outside))
        shares += (
            " OR EXISTS (SELECT 1 FROM fact_entities x WHERE x.fact = f.id AND x.member = 1"
            f" AND x.entity IN ({names}))"
        )
    inside = conn.execute(
        f"SELECT count(*) FROM facts f WHERE f.cluster = :cluster AND f.state = 0 {ends}"
        f" AND {_OVERLAPS} AND f.set_id IS NOT NULL AND f.id <> :id AND ({shares})",
        question.values,
    ).fetchone()[0]
    elsewhere = conn.execute(
        f"SELECT count(*) FROM facts f WHERE f.set_id = :set AND f.state = 0 {ends}"
        f" AND {_OVERLAPS} AND f.cluster <> :cluster",
        question.values,
    ).fetchone()[0]
    return inside, elsewhere


# -- listing -------------------------------------------------------------------------------


def _large(
    conn: Connection,
    question: _Question,
    cores: list[tuple[int, int]],
    limit: int,
    near: Sequence[int],
) -> list[_Row]:
    """Of too many facts, those that come first: with the same set, newest, near by text."""
    read = max(LISTED, limit)
    ids = set(near) - {question.id}
    ids |= _newest(conn, question, f"f.set_id = :set AND {_OVERLAPS}", read)
    if len(ids) < read:
        each = max(8, read // max(1, len(cores)))
        for core, _ in sorted(cores, key=lambda row: -row[1])[:LISTED]:
            one = question._replace(core=core)
            ids |= _newest(
                conn, one, f"f.cluster = :cluster AND f.core = :core AND {_OVERLAPS}", each
            )
        ids |= _newest(
            conn,
            question,
            "f.cluster = :cluster AND f.valid_to IS NOT NULL AND f.core & :core <> 0"
            f" AND {_OVERLAPS}",
            read,
        )
    if question.outside:
        names = ",".join(map(str, question.outside))
        ids |= _newest(
            conn,
            question,
            "f.id IN (SELECT x.fact FROM fact_entities x WHERE x.member = 1"
            f" AND x.entity IN ({names}) ORDER BY x.fact DESC LIMIT {LISTED * 4})"
            f" AND f.cluster = :cluster AND {_OVERLAPS}",
            read,
        )
    wanted = sorted(ids)
    found: list[_Row] = []
    for start in range(0, len(wanted), IDS_AT_ONCE):
        part = wanted[start : start + IDS_AT_ONCE]
        found += _rows(conn, f"f.id IN ({marks(part)})", part)
    return found


def _newest(conn: Connection, question: _Question, condition: str, read: int) -> set[int]:
    rows = conn.execute(
        f"SELECT f.id FROM facts f WHERE {condition} AND f.state = 0 AND f.id <> :id"
        f" ORDER BY f.id DESC LIMIT {read}",
        question.values,
    )
    return {row[0] for row in rows}
