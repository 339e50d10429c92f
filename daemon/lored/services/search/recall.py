"""Recall of episodes, and of facts and episodes together: the front of search.

The order of messages is made in `store.search.messages`; here a call becomes a question
(filters, vectors) and the hits become an answer: grouped by session, the best session
first, each hit with its neighbours. What could not be used is named in `degraded`; a
failing engine is an error, never an empty answer.
"""

import asyncio
import getpass
import os
from collections.abc import Sequence
from typing import Any, Final

from lore.errors import Invalid
from lored.core.asked_time import asked_time
from lored.core.naming import plain_question
from lored.core.quantized import Float32
from lored.core.tokens import Query, parse_query
from lored.embed.base import STATIC
from lored.services.app import App, Call
from lored.services.moments import instant, now, zone
from lored.services.search import deepening
from lored.services.search.embedding import Embedding, QueryVectors, hurried
from lored.services.sessions.reading import Sessions, bounded
from lored.store.driver import Connection
from lored.store.search import episodes, messages
from lored.store.search.matching import MESSAGES, frequency_share
from lored.store.search.messages import Found, MessageHit
from lored.store.sessions.listing import Filters
from lored.store.sessions.reading import ROLES

Map = dict[str, Any]

LIMIT: Final = 10
"""Excerpts of an answer when the caller does not say."""

NEIGHBOURS: Final = 1
NEIGHBOURS_MOST: Final = 10
"""Messages shown on each side of a hit."""

QUERY_CHARS: Final = 10_000
"""Longer ones are refused: nobody asks in so many words."""

DEEP_HITS: Final = 30
"""Hits that deep mode reads again (research/retrieval 3.6)."""

RELEVANT_MS: Final = 50
"""For the model's vector of a prompt: hooks have 150 ms in all (design/trust.md)."""

AGENT_NAMES: Final = frozenset(
    ("claude", "codex", "gemini", "cursor", "copilot", "cline", "goose", "opencode", "aider")
)
"""How people call the other side of a session."""

PARTS: Final = ("facts", "sessions")

SESSION_FILTERS: Final = ("agent", "file", "command", "commit", "failed", "role")
"""What only sessions have: facts touch no files and run no commands."""


class Recall:
    """The service ``recall``."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._people = AGENT_NAMES | _user_names()

    # -- episodes ------------------------------------------------------------------------------

    async def episodic(self, call: Call, params: Map) -> Map:
        """`episodic_recall`: sessions with excerpts, the best first."""
        text = _query_text(params)
        limit = bounded(params.get("limit"), LIMIT)
        aside = _neighbours(params)
        filters, session = await self._filters(call, params)
        roles = _roles(params)
        query = parse_query(text)
        if not query.words:
            return await self._listing(filters, session, roles, limit, aside)
        asked = await self._embedding.query(await self._plain(call, params, text))
        found = await self._search(query, asked, filters, session, roles, _depth(params, limit))
        degraded = self._degraded(asked, found)
        hits = found.hits
        if params.get("deep"):
            hits, problem = await deepening.rerank(
                self._embedding, self._app.registry.sessions, asked.text, hits, DEEP_HITS
            )
            degraded += [problem] if problem else []
        explain = bool(params.get("explain"))
        answer = await self._answer(hits[:limit], aside, filters, explain=explain)
        answer["mode"] = _mode(asked, deep=bool(params.get("deep")))
        answer["degraded"] = degraded
        return answer

    async def recall(self, call: Call, params: Map) -> Map:
        """`recall`: facts and sessions for one question."""
        text, by_deed = _query_text(params), _only(params, *SESSION_FILTERS)
        parts = params.get("parts") or (list(PARTS) if text or not by_deed else ["sessions"])
        unknown = [part for part in parts if part not in PARTS]
        if unknown:
            raise Invalid(f"recall: no part {unknown[0]!r}; known are facts and sessions")
        if not text and (not by_deed or "facts" in parts):
            raise Invalid(
                "recall: say what to look for, or name a deed (file, command, commit, failed);"
                " the methods facts and sessions list without words"
            )
        shared = _only(params, "query", "workspace", "limit", "explain")
        tasks: list[asyncio.Task[Map]] = []
        try:
            async with asyncio.TaskGroup() as group:
                if "facts" in parts:
                    asked = shared | _only(params, "as_of", "known_at")
                    tasks.append(group.create_task(self._app.get("facts").recall(call, asked)))
                if "sessions" in parts:
                    names = ("since", "until", "everywhere", "deep", *SESSION_FILTERS)
                    asked = shared | _only(params, *names)
                    tasks.append(group.create_task(self.episodic(call, asked)))
        except ExceptionGroup as group_error:
            # A wrong date or limit is refused by both halves: the caller hears of it once.
            raise group_error.exceptions[0] from None
        return _joined([task.result() for task in tasks])

    async def relevant(self, call: Call, params: Map) -> Map:
        """Facts and sessions that a prompt is really about, or nothing: for injection, where
        a wrong memory is worse than none. ``params``: query, workspace, limit.

        {facts[], conflicts[], sessions[], degraded[]}; the judgement is `core.relevance`.
        """
        text = _query_text(params)
        limit = bounded(params.get("limit"), LIMIT)
        query = parse_query(text)
        if not query.words:
            return {"facts": [], "conflicts": [], "sessions": [], "degraded": []}
        plain = await self._plain(call, params, text)
        asked = await self._embedding.query(plain, deadline_ms=RELEVANT_MS)
        facts, (hits, degraded) = await asyncio.gather(
            self._relevant_facts(call, params, text, limit),
            self._relevant_messages(call, params, query, asked, limit),
        )
        answer = await self._answer(hits, 0, Filters(), explain=False)
        return {**facts, **answer, "degraded": degraded}

    async def _relevant_facts(self, call: Call, params: Map, text: str, limit: int) -> Map:
        asked: Map = {"query": text, "limit": limit, "explain": True}
        if params.get("workspace"):
            asked["workspace"] = params["workspace"]
        with hurried(RELEVANT_MS):
            found: Map = await self._app.get("facts").recall(call, asked)
        kept = []
        for fact in found["facts"]:
            parts = fact.pop("explain", {})
            if "id" in parts or parts.get("evidence", 0.0) > 0:
                kept.append(fact)
        names = {name for fact in kept for name in fact.get("conflicts", ())}
        conflicts = [c for c in found.get("conflicts", ()) if c["id"] in names]
        return {"facts": kept, "conflicts": conflicts}

    async def _relevant_messages(
        self, call: Call, params: Map, query: Query, asked: QueryVectors, limit: int
    ) -> tuple[list[MessageHit], list[str]]:
        workspace = await self._sessions.workspace_of(params, call)
        if workspace is None:
            return [], []  # what was done in one project is no business of another
        filters = Filters(workspace=workspace, subagents=True)
        found = await self._search(query, asked, filters, None, None, limit)
        kept = [hit for hit in found.hits if hit.evidence > 0]
        return kept, self._degraded(asked, found)

    # -- asking --------------------------------------------------------------------------------

    @property
    def _embedding(self) -> Embedding:
        found: Embedding = self._app.get("embedding")
        return found

    @property
    def _sessions(self) -> Sessions:
        found: Sessions = self._app.get("sessions")
        return found

    async def _plain(self, call: Call, params: Map, text: str) -> str:
        """The question without names that say who or where (see `core.naming`)."""
        workspace = await self._app.workspaces.resolve(params.get("workspace") or call.workspace)
        project = os.path.basename(workspace.root).lower() if workspace else ""
        return plain_question(text, self._people, {project} if project else ())

    async def _filters(self, call: Call, params: Map) -> tuple[Filters, int | None]:
        at = now()
        session = None
        if params.get("session_id"):
            session = (await self._sessions.resolve(params["session_id"])).id
        filters = Filters(
            workspace=None if session else await self._sessions.workspace_of(params, call),
            agent=params.get("agent"),
            since=instant(params, "since", at),
            until=instant(params, "until", at),
            file=params.get("file"),
            command=params.get("command"),
            commit=params.get("commit"),
            failed=bool(params.get("failed")),
            subagents=True,
        )
        return filters, session

    async def _search(
        self,
        query: Query,
        asked: QueryVectors,
        filters: Filters,
        session: int | None,
        roles: frozenset[int] | None,
        limit: int,
    ) -> Found:
        embedding = self._embedding
        when = asked_time(query.text, now=now(), zone=zone())
        vectors = {name: vector for name, vector in asked.found.items() if vector is not None}

        def read(conn: Connection) -> Found:
            scope = episodes.scope(conn, filters, session, roles)
            known: dict[str, Float32] = dict(vectors)
            if STATIC in known:
                share = frequency_share(conn, MESSAGES)
                weighed = embedding.static_query(asked.text, share)
                if weighed is not None:
                    known[STATIC] = weighed
            return messages.search(
                conn, embedding.columns, query, known, embedding.likeness, scope, limit, when
            )

        return await self._app.registry.sessions.read(read)

    def _degraded(self, asked: QueryVectors, found: Found) -> list[str]:
        notes = [asked.degraded] if asked.degraded else []
        waiting = self._embedding.vectoring.waiting
        model = next((name for name in found.covered if name != STATIC), None)
        if model is not None and waiting and found.covered[model] < 1.0:
            notes.append(
                f"{waiting} messages have no {model} vector yet; "
                "the static table stands in for them"
            )
        return notes

    # -- answering -----------------------------------------------------------------------------

    async def _listing(
        self,
        filters: Filters,
        session: int | None,
        roles: frozenset[int] | None,
        limit: int,
        aside: int,
    ) -> Map:
        """Without a question: what fits the filters, newest first."""

        def read(conn: Connection) -> Map:
            scope = episodes.scope(conn, filters, session, roles)
            rows = episodes.newest(conn, scope, limit)
            return {
                "sessions": episodes.grouped(conn, rows, aside, filters, zone()),
                "mode": "newest",
            }

        found = await self._app.registry.sessions.read(read)
        return {**found, "degraded": []}

    async def _answer(
        self, hits: Sequence[MessageHit], aside: int, filters: Filters, *, explain: bool
    ) -> Map:
        def read(conn: Connection) -> Map:
            rows = [episodes.shown(hit, explain=explain) for hit in hits]
            return {"sessions": episodes.grouped(conn, rows, aside, filters, zone())}

        return await self._app.registry.sessions.read(read)


def _only(params: Map, *names: str) -> Map:
    return {name: params[name] for name in names if name in params}


def _query_text(params: Map) -> str:
    text: str = (params.get("query") or "").strip()
    if len(text) > QUERY_CHARS:
        raise Invalid(f"query has {len(text)} characters, at most {QUERY_CHARS} are read")
    return text


def _neighbours(params: Map) -> int:
    count: int = params.get("context_messages", NEIGHBOURS)
    if not 0 <= count <= NEIGHBOURS_MOST:
        raise Invalid(f"context_messages={count}: 0 to {NEIGHBOURS_MOST}")
    return count


def _roles(params: Map) -> frozenset[int] | None:
    role = params.get("role")
    return None if role is None else frozenset((ROLES.index(role),))


def _depth(params: Map, limit: int) -> int:
    return max(limit, DEEP_HITS) if params.get("deep") else limit


def _mode(asked: QueryVectors, *, deep: bool) -> str:
    models = [name for name, vector in asked.found.items() if vector is not None]
    names = ["static" if name == STATIC else name for name in models]
    return "+".join(["lexical", *names, *(["deep"] if deep else [])])


def _joined(answers: Sequence[Map]) -> Map:
    found: Map = {"facts": [], "conflicts": [], "sessions": [], "degraded": []}
    modes: list[str] = []
    for answer in answers:
        for name in ("facts", "conflicts", "sessions"):
            found[name] += answer.get(name, [])
        found["degraded"] += [n for n in answer.get("degraded", ()) if n not in found["degraded"]]
        modes += [answer["mode"]] if answer.get("mode") else []
    found["mode"] = max(modes, key=len, default="")
    return found


def _user_names() -> frozenset[str]:
    """The login of whose memory this is; their messages are about themselves."""
    try:
        return frozenset({getpass.getuser().lower()})
    except (OSError, KeyError):
        return frozenset()
