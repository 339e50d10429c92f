"""Injection: the block for an agent's prompt, within a budget, with a receipt.

Without a question: the most useful facts of the workspace and of the user, and the last
session in this workspace. With a question (the user's prompt): only what search finds
relevant to it, and nothing that this session was given before; an unrelated prompt gets
nothing. Reading for an injection counts as no use of a fact.
"""

from typing import Any, Final

from lore.errors import Invalid, LoreError
from lored.core import budget, clock, summary
from lored.core.budget import Line
from lored.core.validity import Moment
from lored.services.app import App, Call
from lored.services.facts import reading
from lored.services.facts.scopes import for_read, opened
from lored.services.moments import now, zone
from lored.services.search.receipts import Receipts, key
from lored.store.driver import Connection
from lored.store.facts import bindings, find
from lored.store.sessions import listing
from lored.store.sessions import reading as stored

Map = dict[str, Any]

PARTS: Final = ("facts", "episodes")
POOL: Final = 100
"""Facts of each scope that are ranked: the most recently used ones."""
RELEVANT: Final = 8
"""Of each kind, asked of search for a question."""
EPISODES_SHARE: Final = 0.45
"""Of the budget, at most for sessions while there are facts as well."""
BUDGET_MOST: Final = 65_536
SUMMARIES_MOST: Final = 20
PROMPT_CHARS: Final = 4_000
"""Of a question, given to search: people paste logs and files below what they ask."""
QUERY_CHARS: Final = 200
"""Of the question, kept in the receipt."""


class Context:
    """The service ``context``."""

    def __init__(self, app: App) -> None:
        self._app = app
        self.receipts = Receipts(app.paths.state_dir + "/injections.jsonl")

    async def start(self) -> None:
        """Read the receipts."""
        await self.receipts.start()

    async def stop(self) -> None:
        """Finish writing receipts."""
        await self.receipts.stop()

    async def build(self, call: Call, params: Map) -> Map:
        """`context`: text (empty when nothing is worth it) and the receipt per part."""
        limit = self._limit(params)
        parts = params.get("parts") or list(PARTS)
        unknown = [part for part in parts if part not in PARTS]
        if unknown:
            raise Invalid(f"context: no part {unknown[0]!r}; known are facts and episodes")
        query = (params.get("query") or "").strip()[:PROMPT_CHARS]
        session_id = params.get("session_id") or call.session_id
        degraded: list[str] = []
        if query:
            facts, episodes = await self._relevant(call, params, query, session_id, degraded)
        else:
            self._prepare()
            facts = await self._useful(call, params) if "facts" in parts else []
            episodes = await self._last(call, params, 1, session_id) if "episodes" in parts else []
        given = self.receipts.given(session_id) if query else set()
        facts = [line for line in facts if key("facts", line.receipt) not in given]
        episodes = [line for line in episodes if key("episodes", line.receipt) not in given]
        if "facts" not in parts:
            facts = []
        if "episodes" not in parts:
            episodes = []
        text, taken = _compose(facts, episodes, limit)
        receipt: Map = {
            "facts": [line.receipt for line in taken[0]],
            "episodes": [{"id": line.receipt["id"]} for line in taken[1]],
            "bytes": len(text.encode()),
        }
        if text:
            self._note(call, params, query, session_id, receipt)
        answer: Map = {"text": text, "receipt": receipt}
        if degraded:
            answer["degraded"] = degraded
        return answer

    async def summarise(self, call: Call, params: Map) -> Map:
        """`episodic_recall_summary`: the block about the last sessions, and their briefs."""
        last = params.get("last", 1)
        if not 1 <= last <= SUMMARIES_MOST:
            raise Invalid(f"last={last}: 1 to {SUMMARIES_MOST}")
        lines = await self._last(call, params, last, None, anywhere=True)
        text, taken = budget.pack(budget.EPISODES_HEADING, lines, BUDGET_MOST)
        return {"text": text, "sessions": [line.receipt["session"] for line in taken]}

    def _prepare(self) -> None:
        """A session begins: its first prompt will want the model, which takes longer to start
        than a hook may wait, and without it fewer prompts get anything."""
        embedding = self._app.services.get("embedding")
        if embedding is not None:
            embedding.prepare()

    # -- what to choose from -----------------------------------------------------------------

    async def _useful(self, call: Call, params: Map) -> list[Line]:
        """Facts of both scopes, ranked."""
        at = now()
        found: list[Map] = []
        for target in await for_read(self._app, call, {"workspace": params.get("workspace")}):
            view = self._app.get("facts").view(target, at)

            def read(conn: Connection, view: Any = view) -> tuple[Any, list[Map], Any]:
                wanted = find.make(conn, Moment(at))
                rows = find.recently_used(conn, wanted, POOL)
                bound = bindings.of(conn, [row.id for row in rows])
                return rows, view.facts(conn, rows), bound

            async with opened(self._app, target) as database:
                rows, shown, bound = await database.read(read)
            reading.mark(shown, rows, await reading.unverified(bound))
            found += shown
        return _fact_lines(budget.rank(found, at))

    async def _last(
        self, call: Call, params: Map, count: int, current: str | None, *, anywhere: bool = False
    ) -> list[Line]:
        """The last sessions of the workspace, newest first, without the ``current`` one. Without
        a workspace: of everywhere when ``anywhere``, else none, since what was done in one
        project is no business of another."""
        where = await self._app.workspaces.resolve(params.get("workspace") or call.workspace)
        if where is None and not anywhere:
            return []
        filters = listing.Filters(workspace=where.id if where else None)

        def read(conn: Connection) -> list[tuple[Map, Map]]:
            page = listing.page(conn, filters, after=None, limit=count + 1)
            briefs = stored.briefs(conn, page.ids, zone())
            return [(briefs[i], stored.summary(conn, i)) for i in page.ids if i in briefs]

        found = await self._app.registry.sessions.read(read)
        lines = [_episode(brief, told) for brief, told in found if brief["id"] != current]
        return lines[:count]

    async def _relevant(
        self, call: Call, params: Map, query: str, current: str | None, degraded: list[str]
    ) -> tuple[list[Line], list[Line]]:
        """What search finds relevant to a prompt; nothing, and the reason, when it cannot."""
        recall = self._app.services.get("recall")
        if recall is None:
            degraded.append("search is not running: no memory for this prompt")
            return [], []
        try:
            found = await recall.relevant(
                call, {"query": query, "workspace": params.get("workspace"), "limit": RELEVANT}
            )
        except LoreError as error:
            degraded.append(f"search failed: {error.message}")
            return [], []
        degraded += found.get("degraded", ())
        episodes = [
            _episode(item["session"], item["session"].get("summary", {}))
            for item in found.get("sessions", ())
            if item["session"]["id"] != current
        ]
        return _fact_lines(found.get("facts", ())), episodes

    # -- bounds and receipts -------------------------------------------------------------------

    def _limit(self, params: Map) -> int:
        limits = [
            params.get("budget_bytes"),
            params["budget_tokens"] * budget.BYTES_PER_TOKEN if "budget_tokens" in params else None,
        ]
        given = [limit for limit in limits if limit is not None]
        for limit in given:
            if not 0 < limit <= BUDGET_MOST:
                raise Invalid(
                    f"context: a budget of {limit} bytes; 1 to {BUDGET_MOST} are possible"
                )
        return min(given) if given else int(self._app.settings.context_budget_bytes)

    def _note(
        self, call: Call, params: Map, query: str, session_id: str | None, receipt: Map
    ) -> None:
        note = {
            "at": clock.to_wire(now()),
            "client": call.client,
            "session_id": session_id,
            "workspace": params.get("workspace") or call.workspace,
            "query": query[:QUERY_CHARS] or None,
            "facts": receipt["facts"],
            "episodes": receipt["episodes"],
            "bytes": receipt["bytes"],
        }
        self.receipts.note({name: value for name, value in note.items() if value is not None})


def _fact_lines(facts: Any) -> list[Line]:
    """Lines of facts in their order; a text that stands in both scopes is told once."""
    facts = list(facts)
    scopes: dict[str, set[str]] = {}
    for fact in facts:
        scopes.setdefault(fact["id"], set()).add(fact["scope"])
    lines: list[Line] = []
    told: set[str] = set()
    for fact in facts:
        text = budget.neutral(fact["text"]).casefold()
        if text and text not in told:
            told.add(text)
            lines.append(budget.fact_line(fact, ambiguous=len(scopes[fact["id"]]) > 1))
    return lines


def _episode(brief: Map, told: Map) -> Line:
    """The lines of a session as of now and in the user's calendar."""
    ended = clock.parse_instant(brief.get("ended_at"))
    status = summary.current_status(told, brief.get("status"), ended, now())
    line = told.get("line", "")
    if "headline" in told or not line:
        line = summary.session_line({**told, "status": status}, brief.get("started_at"), zone())
    made = budget.episode_line(brief, line, told.get("key_actions"))
    return Line(made.text, {**made.receipt, "session": brief})


def _compose(
    facts: list[Line], episodes: list[Line], limit: int
) -> tuple[str, tuple[list[Line], list[Line]]]:
    """Both blocks within ``limit`` bytes: sessions first within their share, facts in what is
    left, then sessions again in what facts did not need."""
    share = int(limit * EPISODES_SHARE) if facts else limit
    episode_text, told = budget.pack(budget.EPISODES_HEADING, episodes, share)
    rest = limit - (len(episode_text.encode()) + 2 if episode_text else 0)
    fact_text, stated = budget.pack(budget.FACTS_HEADING, facts, rest)
    if len(told) < len(episodes):
        room = limit - (len(fact_text.encode()) + 2 if fact_text else 0)
        episode_text, told = budget.pack(budget.EPISODES_HEADING, episodes, room)
    return "\n\n".join(filter(None, (fact_text, episode_text))), (stated, told)
