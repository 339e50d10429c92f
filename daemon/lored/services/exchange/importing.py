"""`import` and `export`: other memories in, ours out.

What lies at the path is read by `foreign`, in a thread. One import is one transaction of one
scope; a dry run is the same transaction, rolled back, so that it tells exactly what would come.
An import whose caller goes away is rolled back, too.
"""

import asyncio
import secrets
import time
from typing import Any, Final

from lore.errors import Invalid
from lored.core import clock, ids, jsonl
from lored.core.facts import State
from lored.core.imports.incoming import Harvest
from lored.services.app import App, Call
from lored.services.exchange import foreign
from lored.services.facts import scopes
from lored.services.facts.scopes import Target
from lored.services.operations import Operation
from lored.store.driver import Connection
from lored.store.facts import clusters as facts_clusters
from lored.store.facts import imports, mirror
from lored.store.facts import rows as facts
from lored.store.facts.intake import Sources
from lored.store.facts.log import Batch

EXPORT_FACTS: Final = 2_000
EXPORT_BYTES: Final = 4 << 20
"""A page of an export: well below the bound of a response."""

COLLISIONS_SHOWN: Final = 100


class _DryRun(Exception):
    """Carries the result out of the transaction that is taken back."""

    def __init__(self, answer: dict[str, Any]) -> None:
        self.answer = answer


class Importing:
    """The service ``importing``."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def bring(self, call: Call, params: dict[str, Any]) -> dict[str, Any]:
        """`import`: what came in, what was there, what collides. Raises `NotFound`, `Invalid`."""
        path = params["path"]
        if not path.startswith("/"):
            raise Invalid(f"import: {path!r} must be an absolute path")
        with self._app.operations.under_way(call, "import") as operation:
            return await self._bring(operation, call, params, path)

    async def _bring(
        self, operation: Operation, call: Call, params: dict[str, Any], path: str
    ) -> dict[str, Any]:
        operation.begin("reading", "files")
        harvest = await asyncio.to_thread(foreign.gather, path, params.get("format"))
        target = await scopes.for_write(self._app, call, params)
        texts = list({one.statement.text for one in harvest.facts})
        made = await asyncio.to_thread(self._app.get("facts").vectors, texts) if texts else []
        vectors = {text: one for text, one in zip(texts, made, strict=True) if one is not None}
        operation.begin("taking in", "facts", len(harvest.facts))
        now = int(time.time() * clock.SECOND)
        actor, dry = f"import by {call.client}", bool(params.get("dry_run"))

        def work(conn: Connection) -> dict[str, Any]:
            batch = Batch(conn, now=now, actor=actor)
            sources = Sources(
                self._app.get("facts").rules,
                vectors,
                lambda: ids.make_uid(now, secrets.token_bytes(10)),
            )
            answer = self._answer(
                conn,
                target,
                now,
                harvest,
                imports.bring_in(conn, batch, harvest, sources, operation.advance),
            )
            operation.advance(0)  # the last moment at which nothing is taken in
            if dry:
                raise _DryRun(answer)
            answer["batch"] = None if batch.number is None else f"B{batch.number}"
            return answer

        async with scopes.opened(self._app, target) as database:
            try:
                answer = await database.write(work)
            except _DryRun as done:
                return {**done.answer, "dry_run": True}
        if answer["created"]:
            # Not an import of the mirror: it has yet to be written to facts.jsonl.
            self._app.events.publish(
                "facts", {"action": "bulk", "created": answer["created"]}, target.workspace
            )
        return answer

    def _answer(
        self,
        conn: Connection,
        target: Target,
        now: int,
        harvest: Harvest,
        done: imports.Imported,
    ) -> dict[str, Any]:
        view = self._app.get("facts").view(target, now)
        collisions: list[dict[str, Any]] = []
        for fact_id, found in done.collisions[:COLLISIONS_SHOWN]:
            fact = facts.by_ids(conn, [fact_id])[fact_id]
            collisions.append(
                {
                    "fact": view.fact(conn, fact),
                    "collisions": view.collisions(conn, fact, found),
                }
            )
        return {
            "format": harvest.format,
            "scope": target.scope,
            "read": len(harvest.facts),
            "created": len(done.created),
            "merged": len(done.merged),
            "already_there": done.known,
            "forgotten_before": done.erased,
            "conflicts": done.conflicts,
            "problems": done.problems[:COLLISIONS_SHOWN],
            "collisions": collisions,
            "collision_count": len(done.collisions),
        }

    # -- export ----------------------------------------------------------------------------

    async def export(self, call: Call, params: dict[str, Any]) -> dict[str, Any]:
        """`export`: one page of facts as JSONL or Markdown; `next` until all is told.

        JSONL holds every fact with a text, replaced and forgotten ones included (it is the
        form that `import` takes back); Markdown shows what holds now, by cluster.
        """
        targets = await scopes.for_read(self._app, call, params)
        index, after = _position(params.get("after"))
        if index >= len(targets):
            return {"text": "", "facts": 0}
        page = _jsonl_page if params.get("format", "jsonl") == "jsonl" else _markdown_page
        target = targets[index]
        async with scopes.opened(self._app, target) as database:
            text, count, following = await database.read(lambda c: page(c, target, after))
        answer: dict[str, Any] = {"text": text, "facts": count}
        if params.get("after") is None:
            answer["total"] = sum([await self._told(one, page) for one in targets])
        if following is not None:
            return {**answer, "next": f"{index}:{following}"}
        more = index + 1 < len(targets)
        return {**answer, "next": f"{index + 1}:0" if more else None}

    async def _told(self, target: Target, page: Any) -> int:
        """Facts that an export of this scope tells."""
        async with scopes.opened(self._app, target) as database:
            count = await database.read(facts.count)
        told = sum(count.values()) - count["erased"]
        return told if page is _jsonl_page else count["active"]


def _position(after: str | None) -> tuple[int, int]:
    if after is None:
        return 0, 0
    parts = after.split(":")
    if len(parts) != 2 or not all(part.isdigit() for part in parts):
        raise Invalid(f"after={after!r}: use the `next` of the answer before")
    return int(parts[0]), int(parts[1])


def _jsonl_page(conn: Connection, target: Target, after: int) -> tuple[str, int, int | None]:
    rows = facts.select(
        conn,
        "number > ? AND state <> ? ORDER BY number LIMIT ?",
        (after, State.ERASED, EXPORT_FACTS),
    )
    successors = [row.successor for row in rows if row.successor is not None]
    numbers = facts.numbers_of(conn, successors) if successors else {}
    lines: list[str] = []
    size = 0
    for row in rows:
        said = mirror.record(row, numbers)
        said["valid_from"] = clock.to_wire(row.valid_from)
        line = jsonl.render(said) + "\n"
        if lines and size + len(line.encode()) > EXPORT_BYTES:
            return "".join(lines), len(lines), after
        lines.append(line)
        size += len(line.encode())
        after = row.number
    return "".join(lines), len(lines), after if len(rows) == EXPORT_FACTS else None


def _markdown_page(conn: Connection, target: Target, after: int) -> tuple[str, int, int | None]:
    rows = facts.select(
        conn,
        "cluster > ? AND state = 0 AND cluster IN (SELECT DISTINCT cluster FROM facts"
        " WHERE cluster > ? AND state = 0 ORDER BY cluster LIMIT ?) ORDER BY cluster, number",
        (after, after, EXPORT_FACTS),
    )
    titles = facts_clusters.titles(conn, sorted({row.cluster for row in rows}))
    parts: list[str] = [] if after else [f"# {target.spelled().replace('the', 'The', 1)}\n"]
    last: int | None = None
    for row in rows:
        if row.cluster != last:
            last = row.cluster
            parts.append(f"\n## {titles.get(last) or ids.spell('cluster', last)}\n\n")
        told = [f"since {clock.to_wire(row.valid_from)[:10]}"]
        told += [f"by {row.asserted_by}"] if row.asserted_by else []
        told += [row.source_ref] if row.source_ref else []
        said = row.text.replace("\n", "\n  ")
        parts.append(f"- **{ids.fact(row.number)}** {said} _({', '.join(told)})_\n")
    clusters = len({row.cluster for row in rows})
    return "".join(parts), len(rows), last if clusters == EXPORT_FACTS else None
