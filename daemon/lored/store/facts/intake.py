"""Lines of facts.jsonl into one facts store: outside edits, other branches, first import.

Per line, by uid, then by number:

1. The fact is known and the line is about it (`jsonl.is_same_fact`): three-way merge with the
   last agreement. A text edited by hand becomes an update (new fact, old one superseded), so
   that nothing is overwritten.
2. The number is taken by *another* fact (two git branches gave one number): the line becomes a
   new fact with the next free number; its note says so, and links of the same file that mean
   the line follow it.
3. Unknown: a new fact under its own number.

States come after all lines are in: links first, then the sentinels of forgetting. A link that
would close a circle is reported and left out. A text that was forgotten hard never returns.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from lore.errors import LoreError
from lored.core import ids, jsonl
from lored.core.clock import parse_instant
from lored.core.facts import STORED_KINDS, State, Statement, check, text_hash, union
from lored.core.jsonl import Line
from lored.core.quantized import Float32
from lored.core.validity import Window
from lored.store.driver import Connection
from lored.store.facts import changes, log, mirror, rows
from lored.store.facts import collisions as facts_collisions
from lored.store.facts.log import Batch
from lored.store.facts.pipeline import Given, Rules, place
from lored.store.facts.rows import Fact

Vectors = Mapping[str, tuple[str, Float32]]
"""Vector of a text, computed before the transaction: text -> (segment, unit float32)."""


@dataclass(slots=True)
class Intake:
    """What came in. Lists hold internal ids; ``problems`` are sentences with line numbers."""

    owner: dict[int, int] = field(default_factory=dict)
    created: list[int] = field(default_factory=list)
    changed: list[int] = field(default_factory=list)
    renumbered: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    erased: int = 0
    detached: int = 0
    collisions: list[tuple[int, facts_collisions.Found]] = field(default_factory=list)


class Sources(NamedTuple):
    """What the rows need from outside the transaction."""

    rules: Rules
    vectors: Vectors
    make_uid: Callable[[], str]


def take(conn: Connection, batch: Batch, lines: Sequence[Line], sources: Sources) -> Intake:
    """Bring the store in step with the file's lines; see the module. Idempotent."""
    work = _Intaking(conn, batch, sources)
    for index, line in enumerate(lines):
        if line.record is None:
            work.report.problems.append(line.problem or "unusable line")
        else:
            work.line(index, line.record)
    work.states()
    work.report.detached = mirror.detach(conn, list(work.report.owner.values()))
    for fact_id in work.report.created:
        fact = rows.by_ids(conn, [fact_id])[fact_id]
        if fact.state is State.ACTIVE:
            found = facts_collisions.find(conn, fact, COLLISIONS_LISTED)
            if found.listed:
                changes.mark_pending(conn, fact)
                work.report.collisions.append((fact_id, found))
    work.agree()
    return work.report


COLLISIONS_LISTED = 5
"""Collisions listed per imported fact; the pending view shows the rest."""


class _Intaking:
    """One run: the store's facts by number and uid, and what the lines mean by their ids."""

    def __init__(self, conn: Connection, batch: Batch, sources: Sources) -> None:
        self.conn, self.batch, self.sources = conn, batch, sources
        self.report = Intake()
        self.known = mirror.records(conn)
        self.base = mirror.agreed(conn)
        self.by_uid = {fact.uid: fact.id for fact, _ in self.known.values()}
        self.erased = rows.erased_hashes(conn)
        self.key = rows.text_key(conn)
        self.meant: dict[int, int] = {}
        """Number in this file -> internal id."""
        self.links: list[tuple[int, str | None]] = []
        self.said: dict[int, dict[str, Any]] = {}

    def line(self, index: int, record: dict[str, Any]) -> None:
        number = jsonl.number(record["id"])
        if text_hash(record["text"], self.key) in self.erased:
            self.report.erased += 1
            self.report.owner[index] = -1  # no such fact: compose leaves the line out
            return
        fact_id = self._find(record, number)
        if fact_id is not None and fact_id in self.said:
            self.report.problems.append(f"line {index + 1}: {record['id']} stands twice")
            return
        if fact_id is None:
            fact_id = self._create(index, record, number)
            if fact_id is None:
                return
        else:
            self._merge(fact_id, record)
        self.report.owner[index] = fact_id
        self.meant.setdefault(number, fact_id)
        self.said[fact_id] = record
        self.links.append((fact_id, record["superseded_by"]))

    def _find(self, record: dict[str, Any], number: int) -> int | None:
        if record.get("uid") in self.by_uid:
            return self.by_uid[record["uid"]]
        fact = rows.by_number(self.conn, number)
        if fact is None:
            return self._same_statement(record)
        held = mirror.record(fact, {}) if fact.id not in self.known else self.known[fact.id][1]
        return fact.id if jsonl.is_same_fact(record, held) else self._same_statement(record)

    def _same_statement(self, record: dict[str, Any]) -> int | None:
        """A fact that this very line gave before, under another number (renumbered)."""
        for fact in rows.with_hash(self.conn, text_hash(record["text"], self.key)):
            if fact.text == record["text"] and (
                mirror.seconds(fact.created_at) == record["created_at"]
            ):
                return fact.id
        return None

    def _create(self, index: int, record: dict[str, Any], number: int) -> int | None:
        taken = rows.by_number(self.conn, number) is not None
        extra = {
            key: value
            for key, value in record.items()
            if key not in jsonl.SEED_KEYS and key not in jsonl.OUR_KEYS
        }
        if taken:
            extra["note"] = f"was {record['id']} on another branch"
        elif record.get("note"):
            extra["note"] = record["note"]
        try:
            statement = check(_statement(record))
            placed = place(
                self.conn,
                self.batch,
                statement,
                rules=self.sources.rules,
                uid=self.sources.make_uid(),
                vector=self.sources.vectors.get(record["text"]),
                given=Given(
                    number=None if taken else number,
                    uid=record.get("uid") if isinstance(record.get("uid"), str) else None,
                    created_at=_created(record, self.batch.now),
                    last_accessed=parse_instant(record["last_accessed"]),
                    access_count=min(record["access_count"], 1 << 53),
                    position=index,
                    extra=extra,
                    exact=True,
                ),
                op="import",
            )
        except LoreError as error:
            self.report.problems.append(f"line {index + 1}: {record['id']}: {error}")
            return None
        if taken:
            self.report.renumbered[record["id"]] = ids.fact(placed.fact.number)
        self.report.created.append(placed.fact.id)
        return placed.fact.id

    def _merge(self, fact_id: int, record: dict[str, Any]) -> None:
        fact = rows.by_ids(self.conn, [fact_id])[fact_id]
        held = self.known[fact_id][1] if fact_id in self.known else mirror.record(fact, {})
        base = self.base[fact_id][0] if fact_id in self.base else held
        changed = jsonl.changed_fields(base, record) - {"id", "superseded_by"}
        if not changed:
            return
        merged = jsonl.merge(base, record, held)
        self.report.changed.append(fact_id)
        if "text" in changed and merged["text"] != fact.text:
            self._rewrite(fact, merged)
            return
        if changed & {"tags", "entities"}:
            changes.relabel_with(
                self.conn,
                self.batch,
                fact,
                tags=list(merged["tags"]),
                entities=list(merged.get("entities") or []),
                rules=self.sources.rules,
                op="edit",
            )
        plain = {
            key: merged.get(key) or None
            for key in changed & {"source", "asserted_by", "source_ref"}
        }
        if plain:
            before = {"facts": {str(fact.id): log.image(fact, *plain)}}
            rows.set_columns(self.conn, fact.id, **plain)
            self.batch.log(self.conn, "edit", facts=[fact.id], before=before)

    def _rewrite(self, fact: Fact, merged: dict[str, Any]) -> None:
        """A text edited by hand: stated anew, the old statement superseded."""
        statement = check(_statement({**merged, "valid_from": None, "valid_to": None}))
        placed = place(
            self.conn,
            self.batch,
            statement,
            rules=self.sources.rules,
            uid=self.sources.make_uid(),
            vector=self.sources.vectors.get(statement.text),
            given=Given(exact=True),
            op="edit",
        )
        self.report.created.append(placed.fact.id)
        if fact.state is State.ACTIVE:
            changes.supersede(self.conn, self.batch, fact, placed.fact, note="edited in file")

    # -- states ----------------------------------------------------------------------------

    def states(self) -> None:
        """Apply `superseded_by` of the lines where the file changed it."""
        for fact_id, target in sorted(self.links, key=lambda one: one[1] in _SENTINEL_STATES):
            fact = rows.by_ids(self.conn, [fact_id])[fact_id]
            held = mirror.record(fact, rows.numbers_of(self.conn, [fact.successor or 0]))
            base = self.base[fact_id][0] if fact_id in self.base else {"superseded_by": None}
            if target == base.get("superseded_by") or target == held["superseded_by"]:
                continue
            self._state(fact, target)
            if fact_id not in self.report.created:
                self.report.changed.append(fact_id)

    def _state(self, fact: Fact, target: str | None) -> None:
        if target is None:
            if fact.state in (State.SUPERSEDED, State.FORGOTTEN, State.EVICTED):
                self._believe(fact, State.ACTIVE, Window(fact.valid_from, None), None, "restore")
            return
        if target in _SENTINEL_STATES:
            if fact.state not in (_SENTINEL_STATES[target], State.ERASED):
                forgets = _SENTINEL_STATES[target] is State.FORGOTTEN
                state, op = _SENTINEL_STATES[target], "forget" if forgets else "evict"
                self._believe(fact, state, fact.window, fact.successor, op)
            return
        number = ids.fact_number(target)
        new_id = None if number is None else self.meant.get(number)
        if new_id is None and number is not None:
            named = rows.by_number(self.conn, number)
            new_id = None if named is None else named.id
        if new_id is None:
            self._believe(fact, State.SUPERSEDED, fact.window.close(self.batch.now), None, "link")
            rows.point_to(self.conn, fact.id, target)
            return
        new = rows.by_ids(self.conn, [new_id])[new_id]
        if new.id == fact.id or changes.chain_end(self.conn, new).id == fact.id:
            self.report.problems.append(
                f"{ids.fact(fact.number)}: superseded_by {target} would close a circle"
            )
            return
        self._believe(
            fact, State.SUPERSEDED, fact.window.close(new.valid_from), new.id, "supersede"
        )

    def _believe(
        self, fact: Fact, state: State, window: Window, successor: int | None, op: str
    ) -> None:
        before = {"facts": {str(fact.id): log.image(fact)}}
        rows.believe(
            self.conn, fact, now=self.batch.now, state=state, window=window, successor=successor
        )
        self.batch.log(self.conn, op, facts=[fact.id], before=before)

    def agree(self) -> None:
        """Keep, per line, what the file says now, so that only what the store alone changed is
        written out. Where the file says nothing (upstream dropped the key) the store's word
        stands on both sides."""
        now = mirror.records(self.conn)
        for fact_id, record in self.said.items():
            if fact_id not in now:
                continue
            before = self.base[fact_id][0] if fact_id in self.base else now[fact_id][1]
            renumbered = record["id"] != now[fact_id][1]["id"]
            base = {**before, **record}
            if fact_id in self.report.created and not renumbered:
                base = {**now[fact_id][1], **record}
            mirror.agree(self.conn, fact_id, base)


_SENTINEL_STATES = {jsonl.FORGOTTEN: State.FORGOTTEN, jsonl.EVICTED: State.EVICTED}


def _created(record: Mapping[str, Any], now: int) -> int:
    return parse_instant(record["created_at"]) or now


def _statement(record: Mapping[str, Any]) -> Statement:
    entities = record.get("entities")
    return Statement(
        text=record["text"],
        tags=list(union(record["tags"], [])),
        entities=[one for one in entities or [] if isinstance(one, str)]
        if isinstance(entities, list)
        else [],
        kind=record["kind"] if record.get("kind") in STORED_KINDS else "fact",
        source=record.get("source"),
        valid_from=parse_instant(record.get("valid_from")),
        valid_to=parse_instant(record.get("valid_to")),
        **{
            key: record[key]
            for key in ("asserted_by", "source_ref", "session_id", "message_id")
            if isinstance(record.get(key), str)
        },
    )
