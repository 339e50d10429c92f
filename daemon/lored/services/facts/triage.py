"""`apply`: a batch of operations on the facts of one store.

A batch works on one store, in one transaction: all or nothing. Which store: the one that is
named (`scope`, or qualified ids), else the one that has the facts it speaks of, else where a
statement would go.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from lore.errors import Ambiguous, Invalid, LoreError
from lored.core import ids
from lored.core.facts import Statement
from lored.core.triage_language import Op, Problem
from lored.core.triage_language import read as read_ops
from lored.core.triage_ops import IDS
from lored.services.app import App, Call
from lored.services.facts import changelog, freshness, news, related, statements
from lored.services.facts.news import News
from lored.services.facts.scopes import (
    GLOBAL,
    Target,
    asked_scope,
    for_write,
    lookup,
    opened,
)
from lored.services.facts.statements import Prepared
from lored.services.facts.triage_run import Run, wire
from lored.services.facts.views import Map
from lored.services.moments import now
from lored.store.driver import Connection
from lored.store.facts import conflicts as facts_conflicts
from lored.store.facts import keys
from lored.store.facts import rows as facts
from lored.store.facts.bindings import Binding
from lored.store.facts.log import Batch

PROBLEMS_NAMED: Final = 5
"""Problems of a batch that the message of the refusal spells out; its data has all of them."""


class _DryRun(Exception):
    """Carries the results of a batch out of a transaction that is to be rolled back."""

    def __init__(self, answer: Map) -> None:
        super().__init__()
        self.answer = answer


@dataclass(slots=True)
class _Outcome:
    answer: Map
    run: Run | None
    """None when the batch had run before (same idempotency key)."""
    news: list[News]


class Triage:
    """The service ``triage``."""

    def __init__(self, app: App) -> None:
        self._app = app

    @property
    def _facts(self) -> Any:
        return self._app.get("facts")

    # -- apply -----------------------------------------------------------------------------

    async def apply(self, call: Call, params: Map) -> Map:
        """Run a batch; with `dry_run` run it and take everything back."""
        ops, problems = read_ops(params["ops"])
        if problems:
            raise _refusal(problems)
        if not ops:
            return {"success": True, "ops_executed": 0, "results": [], "ids": {}}
        at = now()
        target = await self._target(call, params, ops)
        prepared = await self._prepare(call, ops, target, at)
        checked = await self._checked(ops, target)
        dry = bool(params.get("dry_run"))
        key = None if dry else params.get("idempotency_key")
        asked = keys.asked(params) if key else b""
        other = await related.look_at_other(self._app, self._facts, call, params, target, at)
        async with opened(self._app, target) as database:

            def write(conn: Connection) -> _Outcome:
                if key and (known := keys.known(conn, key, asked)) is not None:
                    return _Outcome({**known, "repeated": True}, None, [])
                run = Run(
                    conn,
                    Batch(conn, now=at, actor=call.client),
                    self._facts.view(target, at, other.highest),
                    self._facts.rules,
                    max(1, self._app.settings.fact_collision_max_results // max(1, len(prepared))),
                    prepared,
                    checked,
                )
                results = [run.execute(op) for op in ops]
                number = run.batch.number
                answer: Map = {
                    "success": True,
                    "ops_executed": len(results),
                    "results": results,
                    "ids": run.names,
                    "scope": target.scope,
                    "revision": other.joined(f"{database.uuid}:{run.batch.revision}", target),
                }
                if dry:
                    raise _DryRun({**answer, "dry_run": True})
                if number is not None:
                    answer["batch"] = ids.spell("batch", number)
                if key:
                    keys.keep(conn, key, asked, _kept(answer), at)
                told = news.gather(conn, run.view, run.touched, run.disputed)
                return _Outcome(answer, run, told)

            try:
                outcome = await database.write(write)
            except _DryRun as tried:
                return tried.answer
            news.tell(self._app, target, outcome.news)
            if outcome.run is not None:
                self._embed(target, outcome.run)
        return outcome.answer

    async def _target(self, call: Call, params: Map, ops: Sequence[Op]) -> Target:
        """The store that a batch works on; see the module."""
        named: dict[ids.Ref, Op] = {}
        for op in ops:
            for argument in IDS & op.args.keys():
                values = op.args[argument]
                for value in values if isinstance(values, list) else [values]:
                    if not value.startswith("$"):
                        named[_parse(op, argument, value)] = op
        scope = asked_scope(params)
        wanted = {ref.scope for ref in named if ref.scope} | ({scope} if scope else set())
        if len(wanted) > 1:
            raise Invalid(
                "the batch names global and workspace facts: all or nothing holds within one "
                "scope, so send two batches"
            )
        if wanted:
            return await for_write(self._app, call, {**params, "scope": wanted.pop()})
        default = await for_write(self._app, call, params)
        if default.workspace is None or not named:
            return default
        places = [default] if self._app.registry.has_facts(default.workspace) else []
        found = {target.scope: await self._having(target, named) for target in [GLOBAL, *places]}
        both = found["global"] & found.get("workspace", set())
        if both:
            ref = min(both, key=str)
            raise _at(
                named[ref],
                Ambiguous,
                f"{ref} exists in both scopes: say global:{ref} or workspace:{ref}, or give scope",
                {"candidates": [f"global:{ref}", f"workspace:{ref}"]},
            )
        if found["global"] and found.get("workspace"):
            ref = min(found["global"], key=str)
            raise _at(
                named[ref],
                Invalid,
                f"{ref} is a global fact, others of this batch are of "
                "the workspace: send two batches",
                {},
            )
        return GLOBAL if found["global"] or not places else default

    async def _having(self, target: Target, refs: dict[ids.Ref, Op]) -> set[ids.Ref]:
        """Which of the names this store has."""

        def read(conn: Connection) -> set[ids.Ref]:
            return {
                ref
                for ref in refs
                if (
                    facts_conflicts.by_id(conn, ref.number or 0)
                    if ref.kind == "conflict"
                    else facts.by_uid(conn, ref.uid)
                    if ref.uid
                    else facts.by_number(conn, ref.number or 0)
                )
                is not None
            }

        async with opened(self._app, target) as database:
            return await database.read(read)

    async def _prepare(
        self, call: Call, ops: Sequence[Op], target: Target, at: int
    ) -> dict[int, Prepared]:
        """Statements of the batch, with vectors and bindings, by index of their operation."""
        stated: dict[int, Statement] = {}
        problems: list[Problem] = []
        for op in ops:
            if op.name not in ("remember", "update"):
                continue
            given = {**op.args, "text": op.args["content"]}
            given["kind"] = statements.note_kind(given.get("kind"), None)
            try:
                stated[op.index] = statements.read(call, given, at)
            except LoreError as error:
                problems.append(Problem(error.message, op.index, op.line, op.name))
        if problems:
            raise _refusal(problems)
        rows = await statements.prepare(self._app, list(stated.values()), target)
        return dict(zip(stated, rows, strict=True))

    async def _checked(self, ops: Sequence[Op], target: Target) -> dict[int, list[Binding]]:
        """Files and commits of facts that the batch verifies, as they are now, by index."""
        found: dict[int, list[Binding]] = {}
        for op in ops:
            if op.name == "verify" and not op.args["id"].startswith("$"):
                ref = _parse(op, "id", op.args["id"])
                async with opened(self._app, target) as database:
                    fact = await database.read(partial(lookup, ref=ref))
                if fact is not None:
                    found[op.index] = await freshness.bind(
                        fact.source_ref, fact.entities, target.root
                    )
        return found

    def _embed(self, target: Target, run: Run) -> None:
        """Have the vectors of what a batch stated computed."""
        embedding = self._app.services.get("embedding")
        for stated in run.stated:
            if stated.placed.created and embedding is not None:
                embedding.enqueue_fact(target.workspace, stated.placed.fact.id)

    # -- undo and log ----------------------------------------------------------------------

    async def undo(self, call: Call, params: Map) -> Map:
        """Take back one entry or a whole batch; without an id the last batch that stands."""
        return await changelog.undo(self._app, call, params)

    async def log(self, call: Call, params: Map) -> Map:
        """The change log, newest first, of the scopes of the call."""
        return await changelog.listing(self._app, call, params)


def _parse(op: Op, argument: str, value: str) -> ids.Ref:
    kind: ids.Kind = (
        "conflict" if argument == "id" and op.name in ("resolve", "dismiss") else "fact"
    )
    try:
        return ids.parse(value, kind)
    except Invalid as error:
        raise _at(op, Invalid, error.message, {}) from None


def _at(op: Op, kind: type[Any], message: str, data: dict[str, object]) -> Exception:
    problem = Problem(message, op.index, op.line, op.name)
    found: Exception = kind(str(problem), {**data, "errors": [wire(problem)]})
    return found


def _refusal(problems: Sequence[Problem]) -> Invalid:
    named = "; ".join(str(one) for one in problems[:PROBLEMS_NAMED])
    more = len(problems) - PROBLEMS_NAMED
    rest = f"; and {more} more" if more > 0 else ""
    return Invalid(
        f"{named}{rest}; nothing of the batch was done",
        {"errors": [wire(problem) for problem in problems]},
    )


def _kept(answer: Map) -> Map:
    """An answer without texts, for the same request again."""
    results = [
        {key: value for key, value in result.items() if key not in ("fact", "collisions")}
        for result in answer["results"]
    ]
    return {**answer, "results": results}
