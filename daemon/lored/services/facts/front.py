"""The fact memory of one daemon: state, replace, forget, check facts; its front for handlers.

Each change is one write transaction of one store (text, index, vector, cluster, log,
revision); subscribers and the later model vector follow after the commit. Reads are in
`reading` and `recall`, hard forgetting in `erasure`.
"""

from collections.abc import Sequence
from typing import Any

from lore.errors import Conflict, Invalid
from lored.core import ids
from lored.core.entities import parse_all
from lored.core.quantized import Float32
from lored.services.app import App, Call
from lored.services.facts import erasure, freshness, origins, reading, related, said, statements
from lored.services.facts import recall as fact_recall
from lored.services.facts.access import Access
from lored.services.facts.scopes import Target, for_write, locate, opened
from lored.services.facts.statements import Prepared, Stated
from lored.services.facts.views import Map, View
from lored.services.moments import now
from lored.store.driver import Connection
from lored.store.facts import bindings, clusters, collisions, keys, rows
from lored.store.facts import changes as facts_changes
from lored.store.facts.log import Batch
from lored.store.facts.pipeline import Placed
from lored.store.facts.rows import Fact


class Facts:
    """The service ``facts``."""

    def __init__(self, app: App) -> None:
        self._app = app
        self.rules = statements.rules(app.settings)
        self.access = Access(app, app.settings.fact_access_flush_seconds)
        self.awaited = origins.Awaited()

    async def start(self) -> None:
        """Begin to write access counters in the background."""
        self.access.start()

    async def stop(self) -> None:
        """Write the counters that are left."""
        await self.access.stop()

    # -- stating ---------------------------------------------------------------------------

    async def remember(self, call: Call, params: Map) -> Map:
        """State a fact (`remember_fact`)."""
        at = now()
        target = await for_write(self._app, call, params)
        statement = statements.read(call, params, at)
        if statement.session_id is None:
            said = self.awaited.claim(statement.text, target.workspace, at)
            statement.session_id, statement.message_id = said or (None, statement.message_id)
        (prepared,) = await statements.prepare(self._app, [statement], target)
        key = params.get("idempotency_key")
        hashed = keys.asked(params) if key else b""
        names = [entity.bare for entity in parse_all(statement.entities)]
        asked = related.Asked(statement.entities, names, prepared.vector)
        settings = self._app.settings
        other = await related.look_at_other(self._app, self, call, params, target, at, asked)
        async with opened(self._app, target) as database:

            def write(conn: Connection) -> tuple[Stated, Map, bool]:
                known = keys.known(conn, key, hashed) if key else None
                near = related.near(conn, settings, asked)
                batch = Batch(conn, now=at, actor=statement.asserted_by or call.client)
                if known is not None:
                    stated = self._again(conn, known)
                else:
                    stated = statements.state(
                        conn,
                        batch,
                        prepared,
                        rules=self.rules,
                        limit=self._listed,
                        near=list(near.cosines),
                    )
                    if key:
                        given = {
                            "fact": stated.placed.fact.id,
                            "created": stated.placed.created,
                        }
                        keys.keep(conn, key, hashed, given, at)
                view = self.view(target, at, other.highest)
                alone = known is None and stated.placed.created
                answer = self._answer(conn, view, stated, alone=alone)
                fact, listed = stated.placed.fact, stated.found.listed
                items = related.choose(
                    conn,
                    settings,
                    view,
                    near,
                    asked._replace(entities=fact.entities),
                    apart=[fact.id, *(one.fact.id for one in listed)],
                    cluster=fact.cluster,
                )
                answer["related"] = related.best_of(settings, items, other.items)
                answer["revision"] = other.joined(f"{database.uuid}:{batch.revision}", target)
                return stated, answer, known is None

            stated, answer, fresh = await database.write(write)
            if fresh:  # told before anything is awaited: events come in the order of commits
                self._after(target, stated, answer["fact"], "remembered")
        warned = statements.warnings(statement.text)
        if warned:
            answer["warnings"] = warned
        return answer

    def _again(self, conn: Connection, known: Map) -> Stated:
        """The answer to a key that stated before."""
        fact = rows.by_ids(conn, [known["fact"]])[known["fact"]]
        found = collisions.find(conn, fact, self._listed)
        return Stated(Placed(fact, False, False), found)

    @property
    def _listed(self) -> int:
        return self._app.settings.fact_collision_max_results

    def _answer(self, conn: Connection, view: View, stated: Stated, *, alone: bool) -> Map:
        """``alone``: the fact was stated in nobody's place."""
        fact = stated.placed.fact
        titles = clusters.titles(conn, [fact.cluster])
        return {
            "fact": view.new_fact(fact) if alone else view.fact(conn, fact),
            "cluster": {
                "id": ids.spell("cluster", fact.cluster),
                "title": titles[fact.cluster],
                "created": stated.placed.cluster_created,
            },
            "created": stated.placed.created,
            "collisions": view.collisions(conn, fact, stated.found.listed),
            "collision_count": stated.found.total,
        }

    def vectors(self, texts: Sequence[str]) -> list[tuple[str, Float32] | None]:
        """(segment, static vector) of each text, for whoever places facts in a store himself.
        Quick, and may be called in any thread."""
        return statements.vectors(self._app, texts)

    def view(self, target: Target, at: int, shared: int = 0) -> View:
        """How rows of ``target`` read at ``at``, unwritten access counts included; ``shared`` is
        the highest F-number of the caller's other scope."""
        return View(target, at, self.access.pending(target.workspace), shared=shared)

    def _after(self, target: Target, stated: Stated, fact: Map, action: str) -> None:
        """Tell subscribers; have the model's vector computed."""
        self._app.events.publish("facts", {"action": action, "fact": fact}, target.workspace)
        embedding = self._app.services.get("embedding")
        if stated.placed.created and embedding is not None:
            embedding.enqueue_fact(target.workspace, stated.placed.fact.id)

    # -- changing --------------------------------------------------------------------------

    async def update(self, call: Call, params: Map) -> Map:
        """Replace a fact by a new text (`update_fact`); labels that are not given are kept."""
        at = now()
        target, old = await locate(self._app, call, params, params["id"])
        statement = statements.read(call, inherited(old, params), at)
        (prepared,) = await statements.prepare(self._app, [statement], target)
        key = params.get("idempotency_key")
        asked = keys.asked(params) if key else b""
        async with opened(self._app, target) as database:
            other = await related.look_at_other(self._app, self, call, params, target, at)

            def write(conn: Connection) -> tuple[Stated, Map, bool]:
                known = keys.known(conn, key, asked) if key else None
                batch = Batch(conn, now=at, actor=statement.asserted_by or call.client)
                if known is not None:
                    stated = self._again(conn, known)
                else:
                    before = rows.by_ids(conn, [old.id])[old.id]
                    stated = self.replace(conn, batch, before, prepared)
                    if key:
                        given = {"fact": stated.placed.fact.id, "created": stated.placed.created}
                        keys.keep(conn, key, asked, given, at)
                view = self.view(target, at, other.highest)
                answer = self._answer(conn, view, stated, alone=False)
                answer["old"] = view.fact(conn, rows.by_ids(conn, [old.id])[old.id])
                answer["new"] = answer.pop("fact")
                answer["revision"] = other.joined(f"{database.uuid}:{batch.revision}", target)
                return stated, answer, known is None

            stated, answer, fresh = await database.write(write)
            if fresh:
                old_now = {"action": "superseded", "fact": answer["old"]}
                self._app.events.publish("facts", old_now, target.workspace)
                self._after(target, stated, answer["new"], "updated")
        warned = statements.warnings(statement.text)
        if warned:
            answer["warnings"] = warned
        return answer

    def replace(self, conn: Connection, batch: Batch, old: Fact, prepared: Prepared) -> Stated:
        """State ``prepared`` in the place of ``old``, inside a transaction."""
        facts_changes.must_be_active(conn, old)
        if statements.same_text(old.text, prepared.statement.text):
            raise Conflict(
                f"{ids.fact(old.number)} says exactly that already; "
                "change its labels with the operations tag and entity"
            )
        return statements.state(
            conn, batch, prepared, rules=self.rules, limit=self._listed, replaces=old
        )

    async def forget(self, call: Call, params: Map) -> Map:
        """Forget a fact softly, take that back, or (`hard`) remove it for good."""
        if params.get("hard"):
            if params.get("undo"):
                raise Invalid("hard and undo exclude each other: a hard forget has no undo")
            return await erasure.forget_hard(self._app, call, params, self)
        undo = bool(params.get("undo"))
        change = facts_changes.restore if undo else facts_changes.forget
        answer = await self._change(call, params, change)
        answer["forgotten"] = not undo
        self._publish(answer, "remembered" if undo else "forgotten")
        return answer

    async def verify(self, call: Call, params: Map) -> Map:
        """Note that a fact was checked, and take its files and commit as they are now."""
        target, fact = await locate(self._app, call, params, params["id"])
        bound = await freshness.bind(fact.source_ref, fact.entities, target.root)

        def change(conn: Connection, batch: Batch, row: Fact, **more: Any) -> int:
            bindings.put(conn, row.id, bound)
            return facts_changes.verify(conn, batch, row, **more)

        answer = await self._change(call, params, change)
        self._publish(answer, "updated")
        return answer

    async def _change(self, call: Call, params: Map, change: Any) -> Map:
        """Run a function of `facts_changes` on the fact that the call names."""
        at = now()
        target, fact = await locate(self._app, call, params, params["id"])
        async with opened(self._app, target) as database:

            def write(conn: Connection) -> Map:
                row = rows.by_ids(conn, [fact.id])[fact.id]
                batch = Batch(conn, now=at, actor=call.client)
                change(conn, batch, row, note=params.get("reason"))
                found: Map = {"fact": self.view(target, at).fact(conn, row)}
                found["revision"] = f"{database.uuid}:{batch.revision}"
                return found

            answer: Map = await database.write(write)
            return answer

    def _publish(self, answer: Map, action: str) -> None:
        fact = answer["fact"]
        payload = {"action": action, "fact": fact}
        self._app.events.publish("facts", payload, fact.get("workspace"))

    # -- reading ---------------------------------------------------------------------------

    async def recall(self, call: Call, params: Map) -> Map:
        """Find facts (`recall_fact`)."""
        return await fact_recall.recall(self._app, self, call, params)

    async def get(self, call: Call, params: Map) -> Map:
        """One fact with history, conflicts and origin."""
        return await reading.one(self._app, self, call, params)

    async def history(self, call: Call, params: Map) -> Map:
        """The chain of a fact and its change log."""
        return await reading.history(self._app, self, call, params)

    async def listing(self, call: Call, params: Map) -> Map:
        """Facts newest first, in pages."""
        return await reading.listing(self._app, self, call, params)

    async def changes(self, since: str, workspace: str | None, limit: int = reading.CHANGES) -> Map:
        """What changed after the revision token ``since`` (see `services.facts.revisions`) in the
        global store and that of the workspace id: {changes, revision, fresh}."""
        return await reading.changes(self._app, self, since, workspace, limit)

    async def link_statement(
        self,
        tool_call: Map,
        session_id: str,
        message_id: str | None,
        workspace: str | None,
    ) -> Map | None:
        """Tie the fact that a transcript's tool call stated to its session and message; see
        `origins.link`."""
        return await origins.link(self._app, tool_call, session_id, message_id, workspace)

    async def facts_of_session(self, session_id: str, workspace: str | None = None) -> list[Map]:
        """Facts stated in a session, oldest first; see `origins.of_session`."""
        return await origins.of_session(self._app, self, session_id, workspace)

    async def statements_of_session(
        self, call: Call, statements: Sequence[Map], workspace: str | None
    ) -> list[Map]:
        """Statements of a session that no fact says, and what stands against them; see
        `said.against`."""
        return await said.against(self._app, call, statements, workspace)


def inherited(old: Fact, params: Map) -> Map:
    """The parameters of an update, completed from the fact that is replaced. Who asserts the
    new text and in which session is not inherited: that was said about the old one."""
    kept = {
        "tags": old.tags,
        "entities": old.entities,
        "kind": old.kind,
        "source": old.source,
        "source_ref": old.source_ref,
    }
    given = {name: value for name, value in params.items() if value is not None}
    return {**{name: value for name, value in kept.items() if value is not None}, **given}
