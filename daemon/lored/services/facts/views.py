"""Facts, collisions, conflicts, clusters and log entries in wire form.

A `View` belongs to one store and one moment. Its methods are functions of a connection: they
read what a row is tied to and make the maps of `client/PROTOCOL.md`. Ids in ready commands
are qualified only where the other scope has such numbers too (`shared`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from lored.core import collisions, ids
from lored.core.clock import Micros, to_wire
from lored.core.facts import State
from lored.core.validity import Moment
from lored.services.facts.scopes import Target
from lored.store.driver import Connection
from lored.store.facts import clusters, find, log
from lored.store.facts import rows as facts
from lored.store.facts.collisions import Collision
from lored.store.facts.conflicts import Conflict
from lored.store.facts.rows import Fact

Map = dict[str, Any]

_STATES = {state: state.name.lower() for state in State}
_UNSEEN = (0, 0)


@dataclass(slots=True)
class View:
    """How one store's rows read at ``now``. ``seen`` adds accesses that are not written yet:
    internal id -> (count, last); ``unverified`` holds reasons by internal id."""

    target: Target
    now: Micros
    seen: Mapping[int, tuple[int, Micros]] = field(default_factory=dict)
    unverified: Mapping[int, str] = field(default_factory=dict)
    shared: int = 0
    """Up to which F-number the other scope has facts too: those need their scope in a command."""

    def name(self, number: int) -> str:
        """The id of a fact of this store for a command: qualified when it must be."""
        return ids.fact(number, self.target.scope if number <= self.shared else None)

    def conflict_name(self, number: int) -> str:
        """`conflict:7`."""
        return ids.spell("conflict", number)

    # -- facts -----------------------------------------------------------------------------

    def facts(self, conn: Connection, rows: Sequence[Fact]) -> list[Map]:
        """Facts with successor, predecessors and open conflicts."""
        links = find.links(conn, rows)
        return [self._fact(row, links[row.id]) for row in rows]

    def fact(self, conn: Connection, row: Fact) -> Map:
        """One fact, as `facts`."""
        return self.facts(conn, [row])[0]

    def new_fact(self, row: Fact) -> Map:
        """A fact that was just stated in nobody's place, so is tied to nothing yet."""
        return self._fact(row, find.UNTIED)

    def _fact(self, row: Fact, links: find.Links) -> Map:
        count, last = self.seen.get(row.id, _UNSEEN)
        found: Map = {
            "id": ids.fact(row.number),
            "scope": self.target.scope,
            "workspace": self.target.workspace,
            "uid": row.uid,
            "text": row.text,
            "tags": row.tags,
            "entities": row.entities,
            "kind": row.kind,
            "source": row.source,
            "asserted_by": row.asserted_by,
            "source_ref": row.source_ref,
            "session_id": row.session_id,
            "message_id": row.message_id,
            "created_at": _wire(row.created_at),
            "verified_at": _instant(row.verified_at),
            "last_accessed": _wire(max(row.last_accessed, last)),
            "access_count": row.access_count + count,
            "valid_from": _wire(row.valid_from),
            "valid_to": _instant(row.valid_to),
            "superseded_by": row.successor_ref,
            "supersedes": None,
            "cluster": ids.spell("cluster", row.cluster),
            "state": _STATES[row.state],
            "active": Moment(self.now).shows(row.state, row.window, row.created_at),
            "conflicts": None,
        }
        if links is not find.UNTIED:
            if links.superseded_by is not None:
                found["superseded_by"] = ids.fact(links.superseded_by)
            found["supersedes"] = [ids.fact(number) for number in links.supersedes] or None
            found["conflicts"] = [self.conflict_name(one) for one in links.conflicts] or None
        reason = self.unverified.get(row.id)
        if reason is not None:
            found["unverified"] = {"reason": reason}
        return {key: value for key, value in found.items() if value is not None}

    # -- collisions and conflicts ----------------------------------------------------------

    def collisions(self, conn: Connection, fact: Fact, found: Sequence[Collision]) -> list[Map]:
        """What ``fact`` stands against, each with similarity, reason and ready commands."""
        texts = self.facts(conn, [one.fact for one in found])
        return [
            {
                "fact": text,
                "similarity": round(one.reason.similarity, 3),
                "shared": one.shared,
                "why": collisions.why(
                    one.reason, one.shared, same_cluster=one.fact.cluster == fact.cluster
                ),
                "commands": collisions.commands(self.name(one.fact.number), self.name(fact.number)),
            }
            for one, text in zip(found, texts, strict=True)
        ]

    def conflicts(self, conn: Connection, rows: Sequence[Conflict]) -> list[Map]:
        """Conflicts with both facts in full."""
        wanted = {side for row in rows for side in (row.fact_a, row.fact_b)}
        known = facts.by_ids(conn, wanted)
        order = list(known.values())
        texts = dict(zip(known, self.facts(conn, order), strict=True))
        found: list[Map] = []
        for row in rows:
            one: Map = {
                "id": self.conflict_name(row.id),
                "scope": self.target.scope,
                "workspace": self.target.workspace,
                "status": row.status,
                "severity": row.severity,
                "fact_a": texts[row.fact_a],
                "fact_b": texts[row.fact_b],
                "note": row.note,
                "opened_at": to_wire(row.opened_at),
                "opened_by": row.opened_by,
                "resolved_at": _instant(row.resolved_at),
                "resolved_by": row.resolved_by,
                "resolution": row.resolution,
                "winner": None if row.winner is None else texts[row.winner]["id"],
            }
            found.append({key: value for key, value in one.items() if value is not None})
        return found

    # -- clusters and log ------------------------------------------------------------------

    def cluster(self, conn: Connection, row: clusters.Listed, limit: int) -> Map:
        """A cluster with its newest active and superseded facts, ``limit`` of each."""
        shown: dict[str, list[Map]] = {}
        for name, condition in (
            ("facts", "cluster = ? AND state = 0"),
            ("superseded_facts", f"cluster = ? AND state <> 0 AND state = {State.SUPERSEDED:d}"),
        ):
            rows = facts.select(conn, f"{condition} ORDER BY id DESC LIMIT ?", (row.id, limit))
            shown[name] = self.facts(conn, rows)
        return {
            "id": ids.spell("cluster", row.id),
            "scope": self.target.scope,
            "type": "fact_cluster",
            "title": row.title,
            "entities": clusters.entities_of(conn, row.id),
            "created_at": _wire(row.created_at),
            "active_count": row.active,
            "superseded_count": row.superseded,
            **shown,
        }

    def entries(self, conn: Connection, rows: Sequence[log.Entry]) -> list[Map]:
        """Lines of the change log."""
        subjects = {subject for row in rows for kind, subject in row.subjects if kind == log.FACT}
        numbers = {fact.id: fact.number for fact in facts.by_ids(conn, subjects).values()}
        found: list[Map] = []
        for row in rows:
            named = [
                ids.fact(numbers[subject])
                for kind, subject in row.subjects
                if kind == log.FACT and subject in numbers
            ]
            disputed = [
                self.conflict_name(subject)
                for kind, subject in row.subjects
                if kind == log.CONFLICT
            ]
            one: Map = {
                "id": ids.spell("log", row.id),
                "batch": ids.spell("batch", row.batch),
                "scope": self.target.scope,
                "at": to_wire(row.at),
                "op": row.op,
                "by": row.actor,
                "note": row.note,
                "subject": " ".join([*named[:8], *disputed[:8]]) or None,
                "facts": named or None,
                "conflicts": disputed or None,
                "undone_by": None if row.undone_by is None else ids.spell("log", row.undone_by),
            }
            found.append({key: value for key, value in one.items() if value is not None})
        return found


@lru_cache(4096)
def _wire(at: Micros) -> str:
    """`to_wire`: one answer shows the same instants many times."""
    return to_wire(at)


def _instant(at: Micros | None) -> str | None:
    return None if at is None else _wire(at)
