"""From a caller's words to a stored fact: what is prepared before the transaction, and the
function that runs inside it. Shared by `remember_fact`, `update_fact` and `apply`.

Vectors and the state of bound files are computed before, so the only writer of a store never
waits for a model or a disk.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from lore.errors import Invalid
from lore.wire.methods import KINDS
from lored.core import ids
from lored.core.clock import DAY, Micros
from lored.core.facts import NOTE_KINDS, STORED_KINDS, Statement, check, normal_form
from lored.core.quantized import Float32
from lored.core.redact import scan
from lored.embed.base import STATIC
from lored.services.app import App, Call
from lored.services.facts import freshness
from lored.services.facts.scopes import Target
from lored.services.moments import instant
from lored.services.settings import Settings
from lored.store.driver import Connection
from lored.store.facts import bindings as facts_bindings
from lored.store.facts import changes, collisions
from lored.store.facts.bindings import Binding
from lored.store.facts.collisions import Found
from lored.store.facts.log import Batch
from lored.store.facts.pipeline import Given, Placed, Rules, place
from lored.store.facts.rows import Fact

_TEXTS: Final = ("source", "asserted_by", "source_ref", "session_id", "message_id")


@dataclass(slots=True)
class Prepared:
    """A checked statement with all that its transaction needs."""

    statement: Statement
    vector: tuple[str, Float32] | None
    bindings: list[Binding] = field(default_factory=list)


@dataclass(slots=True)
class Stated:
    """What came of a statement: where it went and what it stands against."""

    placed: Placed
    found: Found


def rules(settings: Settings) -> Rules:
    """The settings that decide where a fact goes.

    Raises `Invalid` for an unknown kind or a number of days that is none.
    """
    expiry: dict[str, Micros] = {}
    for kind, days in settings.fact_expiry_days.items():
        if kind not in STORED_KINDS:
            raise Invalid(f"setting fact_expiry_days: {kind!r} is no kind ({', '.join(KINDS)})")
        if isinstance(days, bool) or not isinstance(days, int | float) or not 0 < days <= 36_500:
            raise Invalid(f"setting fact_expiry_days: {kind} = {days!r} is not 0 to 36500 days")
        expiry[kind] = int(days * DAY)
    return Rules(settings.fact_cluster_jaccard_threshold, expiry)


def read(call: Call, params: dict[str, Any], at: Micros) -> Statement:
    """The statement in the parameters of a call, checked; dates are read in the user's zone."""
    statement = Statement(
        params["text"],
        list(params.get("tags", ())),
        list(params.get("entities", ())),
        params.get("kind") or "fact",
        valid_from=instant(params, "valid_from", at),
        valid_to=instant(params, "valid_to", at),
    )
    for name in _TEXTS:
        value = params.get(name)
        setattr(statement, name, value.strip() or None if value else None)
    if statement.session_id is None:
        statement.session_id = call.session_id
    return check(statement)


def note_kind(episode_type: str | None, kind: str | None) -> str:
    """The kind that Remind's `episode_type` means; `kind` wins. Raises `Invalid`."""
    if kind is not None or episode_type is None:
        return kind or "fact"
    name = episode_type.strip().lower()
    if name not in STORED_KINDS:
        raise Invalid(
            f"episode_type {episode_type!r}: one of {', '.join((*KINDS, *NOTE_KINDS))}",
            {"parameter": "episode_type"},
        )
    return name


def vectors(app: App, texts: Sequence[str]) -> list[tuple[str, Float32] | None]:
    """The static vector of each text with its segment; None where there is none."""
    embedding = app.services.get("embedding")
    if embedding is None or not texts:
        return [None] * len(texts)
    rows = embedding.static(texts)
    return [(STATIC, row) if row.any() else None for row in rows]


async def prepare(app: App, statements: Sequence[Statement], target: Target) -> list[Prepared]:
    """Vectors and bindings of statements that go to ``target``."""
    found = []
    texts = [statement.text for statement in statements]
    for statement, vector in zip(statements, vectors(app, texts), strict=True):
        bound = await freshness.bind(statement.source_ref, statement.entities, target.root)
        found.append(Prepared(statement, vector, bound))
    return found


def state(
    conn: Connection,
    batch: Batch,
    prepared: Prepared,
    *,
    rules: Rules,
    limit: int,
    near: Sequence[int] = (),
    replaces: Fact | None = None,
    given: Given | None = None,
    note: str | None = None,
) -> Stated:
    """Place a statement; with ``replaces`` supersede that fact by it; then find what it stands
    against, at most ``limit`` of them (see `collisions.find` for ``near``)."""
    uid = ids.make_uid(batch.now, os.urandom(10))
    placed = place(
        conn,
        batch,
        prepared.statement,
        rules=rules,
        uid=uid,
        vector=prepared.vector,
        given=given,
    )
    if placed.created and prepared.bindings:
        facts_bindings.put(conn, placed.fact.id, prepared.bindings)
    if replaces is not None and replaces.id != placed.fact.id:
        changes.supersede(
            conn, batch, replaces, placed.fact, actor=prepared.statement.asserted_by, note=note
        )
    found = collisions.find(conn, placed.fact, limit, near)
    if placed.created and found.total:
        changes.mark_pending(conn, placed.fact)
    return Stated(placed, found)


def same_text(one: str, two: str) -> bool:
    """Whether two texts are the same statement."""
    return normal_form(one) == normal_form(two)


def warnings(text: str) -> list[str]:
    """What a caller should know about a statement that was kept as it is."""
    rules_hit = sorted({finding.rule for finding in scan(text)})
    return [
        f"looks like a secret ({rule}): facts are kept as stated; forget it with hard if it is one"
        for rule in rules_hit
    ]
