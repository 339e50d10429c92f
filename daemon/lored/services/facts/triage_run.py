"""The operations of `apply`, each as a function of a connection inside the batch's transaction.

`Run` holds what they share: the batch, the names bound so far, what was prepared before the
transaction. An operation that refuses raises an error of `lore.errors`; `Run.execute` puts
line and operation in front of it, and the transaction is rolled back by its caller.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lore.errors import Conflict, Invalid, LoreError, NotFound
from lored.core import ids
from lored.core.triage_language import Op, Problem
from lored.services.facts import statements
from lored.services.facts.scopes import lookup
from lored.services.facts.statements import Prepared, Stated
from lored.services.facts.views import Map, View
from lored.store.driver import Connection
from lored.store.facts import bindings as facts_bindings
from lored.store.facts import changes, conflicts, disputes, merge
from lored.store.facts.bindings import Binding
from lored.store.facts.conflicts import Conflict as ConflictRow
from lored.store.facts.log import Batch
from lored.store.facts.pipeline import Rules
from lored.store.facts.rows import Fact


@dataclass(slots=True)
class Run:
    """One batch on its way. ``listed`` is the most collisions listed per statement,
    ``prepared`` are statements by index of their operation."""

    conn: Connection
    batch: Batch
    view: View
    rules: Rules
    listed: int
    prepared: Mapping[int, Prepared]
    bindings: Mapping[int, list[Binding]]
    """Files and commits of verified facts as they are now, by index."""
    names: dict[str, str] = field(default_factory=dict)
    """Name bound by `as=` -> id."""
    stated: list[Stated] = field(default_factory=list)
    touched: dict[int, str] = field(default_factory=dict)
    """Internal fact id -> what happened to it last, for subscribers."""
    disputed: dict[int, str] = field(default_factory=dict)
    """Conflict number -> the same."""

    def execute(self, op: Op) -> Map:
        """Run one operation; returns its result. Errors carry line and operation."""
        try:
            result = OPERATIONS[op.name](self, op)
        except LoreError as error:
            problem = Problem(error.message, op.index, op.line, op.name)
            data: dict[str, object] = {**error.data, "errors": [wire(problem)]}
            raise type(error)(str(problem), data) from error
        if op.bind is not None:
            self.names[op.bind] = result["id"]
            result["ref"] = op.bind
        head: Map = {"op": op.name, "index": op.index}
        if op.line is not None:
            head["line"] = op.line
        return head | result

    def text_of(self, value: str) -> str:
        """An id as written, or the one that `$name` stands for."""
        return self.names[value[1:]] if value.startswith("$") else value

    def fact(self, value: str) -> Fact:
        """The fact that an argument names. Raises `NotFound`, `Invalid` for the other scope."""
        ref = ids.parse(self.text_of(value), "fact")
        self._same_scope(ref)
        found = lookup(self.conn, ref)
        if found is None:
            raise NotFound(f"no fact {value} in {self.view.target.spelled()}", {"id": value})
        return found

    def conflict(self, value: str) -> ConflictRow:
        """The conflict that an argument names."""
        ref = ids.parse(self.text_of(value), "conflict")
        self._same_scope(ref)
        found = conflicts.by_id(self.conn, ref.number or 0)
        if found is None:
            raise NotFound(f"no {value} in {self.view.target.spelled()}", {"id": value})
        return found

    def _same_scope(self, ref: ids.Ref) -> None:
        if ref.scope is not None and ref.scope != self.view.target.scope:
            raise Invalid(
                f"{ref} is {ref.scope}, this batch works on {self.view.target.spelled()}: "
                "all or nothing holds within one scope, so send two batches"
            )


def wire(problem: Problem) -> Map:
    """An error of a batch in wire form."""
    found = {
        "line": problem.line,
        "index": problem.index,
        "op": problem.op,
        "message": problem.message,
    }
    return {key: value for key, value in found.items() if value is not None}


def _about(op: Op) -> dict[str, Any]:
    return {"actor": op.args.get("asserted_by"), "note": op.args.get("note")}


def _stated(run: Run, op: Op, stated: Stated, action: str) -> Map:
    fact = stated.placed.fact
    run.stated.append(stated)
    run.touched[fact.id] = action
    alone = stated.placed.created and action == "remembered"
    result: Map = {
        "id": ids.fact(fact.number),
        "created": stated.placed.created,
        "cluster": ids.spell("cluster", fact.cluster),
        "fact": run.view.new_fact(fact) if alone else run.view.fact(run.conn, fact),
        "collision_count": stated.found.total,
    }
    if stated.found.listed:
        result["collisions"] = run.view.collisions(run.conn, fact, stated.found.listed)
    return result


def _remember(run: Run, op: Op) -> Map:
    stated = statements.state(
        run.conn, run.batch, run.prepared[op.index], rules=run.rules, limit=run.listed
    )
    return _stated(run, op, stated, "remembered")


def _update(run: Run, op: Op) -> Map:
    old = run.fact(op.args["id"])
    changes.must_be_active(run.conn, old)
    prepared = run.prepared[op.index]
    statement = prepared.statement
    if "tags" not in op.args:
        statement.tags = list(old.tags)
    if "entities" not in op.args:
        statement.entities = list(old.entities)
    if "kind" not in op.args:
        statement.kind = old.kind
    statement.source = statement.source or old.source
    statement.source_ref = statement.source_ref or old.source_ref
    if statements.same_text(old.text, statement.text):
        raise Conflict(f"{ids.fact(old.number)} says exactly that already")
    stated = statements.state(
        run.conn, run.batch, prepared, rules=run.rules, limit=run.listed, replaces=old
    )
    run.touched[old.id] = "superseded"
    return _stated(run, op, stated, "updated") | {"old": ids.fact(old.number)}


def _supersede(run: Run, op: Op) -> Map:
    old, new = run.fact(op.args["old"]), run.fact(op.args["new"])
    changes.supersede(run.conn, run.batch, old, new, **_about(op))
    run.touched[old.id] = "superseded"
    for one in conflicts.between(run.conn, old.id, new.id, status="resolved"):
        run.disputed[one.id] = "resolved"
    return {"old": ids.fact(old.number), "new": ids.fact(new.number)}


def _conflict(run: Run, op: Op) -> Map:
    one, two = run.fact(op.args["fact_a"]), run.fact(op.args["fact_b"])
    severity = op.args.get("severity", "medium")
    number = disputes.open_conflict(run.conn, run.batch, one, two, severity=severity, **_about(op))
    run.disputed[number] = "opened"
    return {
        "id": ids.spell("conflict", number),
        "fact_a": ids.fact(one.number),
        "fact_b": ids.fact(two.number),
        "severity": severity,
    }


def _resolve(run: Run, op: Op) -> Map:
    one, winner = run.conflict(op.args["id"]), run.fact(op.args["winner"])
    disputes.resolve(run.conn, run.batch, one, winner, **_about(op))
    run.disputed[one.id] = "resolved"
    run.touched[one.fact_b if winner.id == one.fact_a else one.fact_a] = "superseded"
    return {"id": ids.spell("conflict", one.id), "winner": ids.fact(winner.number)}


def _dismiss(run: Run, op: Op) -> Map:
    one = run.conflict(op.args["id"])
    disputes.dismiss(run.conn, run.batch, one, **_about(op))
    run.disputed[one.id] = "dismissed"
    return {"id": ids.spell("conflict", one.id)}


def _forget(run: Run, op: Op) -> Map:
    fact = run.fact(op.args["id"])
    changes.forget(run.conn, run.batch, fact, **_about(op))
    run.touched[fact.id] = "forgotten"
    return {"id": ids.fact(fact.number)}


def _restore(run: Run, op: Op) -> Map:
    fact = run.fact(op.args["id"])
    changes.restore(run.conn, run.batch, fact, **_about(op))
    run.touched[fact.id] = "remembered"
    return {"id": ids.fact(fact.number)}


def _changed(op: Op, values: list[str]) -> list[str]:
    gone = {value.casefold() for value in op.args.get("remove", ())}
    unknown = gone - {value.casefold() for value in values}
    if unknown:
        raise NotFound(f"has no {', '.join(sorted(unknown))}: it has {', '.join(values) or 'none'}")
    kept = [value for value in values if value.casefold() not in gone]
    present = {value.casefold() for value in kept}
    return kept + [v for v in op.args.get("add", ()) if v.casefold() not in present]


def _relabel(run: Run, op: Op) -> Map:
    fact = run.fact(op.args["id"])
    tags, entities = fact.tags, fact.entities
    if op.name == "tag":
        tags = _changed(op, tags)
    else:
        entities = _changed(op, entities)
    changes.relabel_with(
        run.conn,
        run.batch,
        fact,
        tags=tags,
        entities=entities,
        rules=run.rules,
        op=op.name,
        **_about(op),
    )
    run.touched[fact.id] = "updated"
    return {"id": ids.fact(fact.number), "fact": run.view.fact(run.conn, fact)}


def _verify(run: Run, op: Op) -> Map:
    fact = run.fact(op.args["id"])
    changes.verify(run.conn, run.batch, fact, **_about(op))
    if op.index in run.bindings:
        facts_bindings.put(run.conn, fact.id, run.bindings[op.index])
    run.touched[fact.id] = "updated"
    return {"id": ids.fact(fact.number)}


def _processed(run: Run, op: Op) -> Map:
    seen = [run.fact(value) for value in op.args["ids"]]
    changes.processed(run.conn, run.batch, seen, **_about(op))
    return {"ids": [ids.fact(fact.number) for fact in seen]}


def _merge(run: Run, op: Op) -> Map:
    first, second = (
        (op.args["alias"], op.args["entity"])
        if op.name == "alias"
        else (op.args["from"], op.args["into"])
    )
    record = merge.join(run.conn, first, second, run.batch.now)
    if op.name == "merge" and record["id"] is None:
        raise NotFound(f"no entity {first} to merge; the operation alias makes a mere other name")
    run.batch.log(
        run.conn, op.name, entities=[record["into"]], before={"merge": record}, **_about(op)
    )
    return {"from": first, "into": second, "facts_moved": len(record.get("facts", ()))}


OPERATIONS: dict[str, Callable[[Run, Op], Map]] = {
    "remember": _remember,
    "update": _update,
    "supersede": _supersede,
    "conflict": _conflict,
    "resolve": _resolve,
    "dismiss": _dismiss,
    "forget": _forget,
    "restore": _restore,
    "tag": _relabel,
    "entity": _relabel,
    "verify": _verify,
    "processed": _processed,
    "alias": _merge,
    "merge": _merge,
}
