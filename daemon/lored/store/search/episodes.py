"""Which messages a call may find, and how found messages become an answer.

Functions of a connection, read only. The answer groups excerpts by session, sessions in the
order of their best excerpt, each excerpt with the spoken messages beside it.
"""

from collections.abc import Iterable, Sequence
from datetime import tzinfo
from typing import Any, Final

from lored.core.clock import to_wire
from lored.core.excerpts import EXCERPT_CHARS, NEIGHBOUR_CHARS, cut, harmless
from lored.core.stored_text import decode
from lored.store.driver import Connection
from lored.store.search.columns import ALL_ROLES
from lored.store.search.messages import MessageHit, Scope
from lored.store.sessions import listing, reading
from lored.store.sessions.listing import NEWEST, Filters
from lored.store.sessions.reading import ROLES

Map = dict[str, Any]

DEEDS_MOST: Final = 50_000
"""Messages that did what is asked for, that are marked: the newest."""

DEEDS_SHOWN: Final = 3
"""Actions of a session beside its excerpts."""

DEED_SHOWN_CHARS: Final = 200
"""Of what an output is the output of: a command line, not a script."""

_SPOKEN: Final = "(0, 1, 3)"
"""`messages.role` of user, assistant, summary."""


def scope(
    conn: Connection,
    filters: Filters,
    session: int | None = None,
    roles: frozenset[int] | None = None,
) -> Scope:
    """The messages that ``filters`` allow. Dates are about messages, all else about sessions;
    messages that did what is asked for are marked. ``session``: only this row."""
    wanted = Filters(
        workspace=filters.workspace,
        agent=filters.agent,
        status=filters.status,
        file=filters.file,
        command=filters.command,
        commit=filters.commit,
        failed=filters.failed,
        subagents=True,
    )
    where, values = listing.condition(wanted)
    if session is not None:
        where, values = f"{where} AND s.id = ?", [*values, session]
    chosen = None
    if where != "1":
        chosen = frozenset(
            row[0] for row in conn.execute(f"SELECT s.id FROM sessions s WHERE {where}", values)
        )
    deeds: frozenset[int] = frozenset()
    if filters.by_deed:
        deed, bound = listing.deed_condition(filters)
        deeds = frozenset(
            row[0]
            for row in conn.execute(
                f"SELECT a.message FROM actions a WHERE {deed} AND a.message IS NOT NULL"
                " ORDER BY a.id DESC LIMIT ?",
                (*bound, DEEDS_MOST),
            )
        )
    return Scope(chosen, roles or ALL_ROLES, filters.since, filters.until, deeds)


def newest(conn: Connection, allowed: Scope, limit: int) -> list[Map]:
    """Excerpts without a question: the newest messages of the scope; with deeds, those that did
    them. Of a session at most three, so that one does not hide the others."""
    parts, values = ["m.role IN (0, 1, 3)"], list[Any]()
    if allowed.deeds:
        parts = ["m.id IN (SELECT value FROM json_each(?))"]
        values.append(_json(allowed.deeds))
    if not ALL_ROLES.issubset(allowed.roles):
        parts[0] = "1" if not allowed.deeds else parts[0]
        parts.append("m.role IN (SELECT value FROM json_each(?))")
        values.append(_json(allowed.roles))
    for comparison, instant in ((">=", allowed.since), ("<", allowed.until)):
        if instant is not None:
            parts.append(f"m.at {comparison} ?")
            values.append(instant)
    where = " AND ".join(parts)
    rows: list[Map] = []
    for session in _newest_sessions(conn, allowed, limit):
        found = conn.execute(
            "SELECT m.id, m.session, m.position, m.role, m.at, m.text, m.record_key"
            f" FROM messages m WHERE m.session = ? AND {where}"
            " ORDER BY m.position DESC LIMIT ?",
            (session, *values, min(3, limit - len(rows))),
        )
        rows += [
            _excerpt(number, owner, position, role, at, decode(text), record_key)
            for number, owner, position, role, at, text, record_key in found
        ]
        if len(rows) >= limit:
            break
    return rows


def _newest_sessions(conn: Connection, allowed: Scope, limit: int) -> list[int]:
    where, values = "1", list[Any]()
    if allowed.sessions is not None:
        where, values = "s.id IN (SELECT value FROM json_each(?))", [_json(allowed.sessions)]
    if allowed.until is not None:
        where += " AND coalesce(s.started_at, s.ended_at, s.indexed_at) < ?"
        values.append(allowed.until)
    if allowed.since is not None:
        where += f" AND {NEWEST} >= ?"
        values.append(allowed.since)
    return [
        row[0]
        for row in conn.execute(
            f"SELECT s.id FROM sessions s WHERE {where} AND s.message_count > 0"
            f" ORDER BY s.is_subagent, {NEWEST} DESC LIMIT ?",
            (*values, 10 * limit),
        )
    ]


def shown(hit: MessageHit, *, explain: bool) -> Map:
    """An excerpt of a hit."""
    found = _excerpt(
        hit.id,
        hit.session,
        hit.position,
        hit.role,
        hit.at,
        hit.text,
        hit.record_key,
        hit.fit.start,
        hit.fit.matched,
    )
    if hit.deed:
        found["deed"] = cut(hit.deed, 0, (), DEED_SHOWN_CHARS)
    found["score"] = round(hit.score, 4)
    found["matched"] = list(hit.fit.matched)
    if explain:
        found["explain"] = {**hit.parts, "evidence": round(hit.evidence, 4)}
        if hit.cosine is not None:
            found["explain"]["cosine"] = round(hit.cosine, 4)
    return found


def _excerpt(
    number: int,
    session: int,
    position: int,
    role: int,
    at: int | None,
    text: str,
    record_key: str | None,
    start: int = 0,
    words: Sequence[str] = (),
    limit: int = EXCERPT_CHARS,
) -> Map:
    found: Map = {
        "session": session,
        "message_id": str(number),
        "record_key": None if record_key is None else harmless(record_key),
        "position": position,
        "role": ROLES[role],
        "at": None if at is None else to_wire(at),
        "text": cut(text, start, words, limit),
        "matched": [],
    }
    return {name: value for name, value in found.items() if value is not None}


def grouped(
    conn: Connection, excerpts: Sequence[Map], aside: int, filters: Filters, zone: tzinfo
) -> list[Map]:
    """Excerpts by session: [{session: brief, score, excerpts[]}], best session first, excerpts
    in the order given, each with up to ``aside`` messages on both sides. When ``filters`` ask
    for a deed, each session also has `deeds[]`: its last actions that are such. ``zone``: of
    the days in the lines of sessions."""
    order: dict[int, list[Map]] = {}
    for excerpt in excerpts:
        order.setdefault(excerpt["session"], []).append(excerpt)
    briefs = reading.briefs(conn, order, zone)
    linked = _linked(conn, order) if aside else frozenset[int]()
    answer = []
    for session, members in order.items():
        if session not in briefs:
            continue
        for member in members:
            del member["session"]
            for name in ("before", "after"):
                member[name] = _beside(
                    conn,
                    session,
                    member["position"],
                    aside,
                    before=name == "before",
                    linked=session in linked,
                )
        item: Map = {"session": briefs[session], "excerpts": members}
        if filters.by_deed:
            item["deeds"] = reading.deeds(conn, session, filters, DEEDS_SHOWN)
        scores = [member["score"] for member in members if "score" in member]
        if scores:
            item["score"] = max(scores)
        answer.append(item)
    return answer


def _linked(conn: Connection, sessions: Iterable[int]) -> frozenset[int]:
    """Those of ``sessions`` that show messages of others."""
    listed = _json(frozenset(sessions))
    return frozenset(
        row[0]
        for row in conn.execute(
            "SELECT value FROM json_each(?)"
            " WHERE EXISTS (SELECT 1 FROM message_links WHERE session = value)",
            (listed,),
        )
    )


def _beside(
    conn: Connection, session: int, position: int, count: int, *, before: bool, linked: bool
) -> list[Map]:
    """Up to ``count`` spoken messages next to a place. ``linked``: whether messages of other
    sessions are shown there too; looking for them takes twice the time."""
    if not count:
        return []
    comparison, order = ("<", "DESC") if before else (">", "ASC")
    source = (
        "SELECT id, position, role, at, text, record_key FROM messages"
        f" WHERE session = :s AND position {comparison} :p AND role IN {_SPOKEN}"
    )
    if linked:
        source = (
            f"SELECT id, position, role, at, text, record_key FROM ({source} UNION ALL"
            " SELECT m.id, l.position, m.role, m.at, m.text, m.record_key"
            " FROM message_links l JOIN messages m ON m.id = l.message"
            f" WHERE l.session = :s AND l.position {comparison} :p AND m.role IN {_SPOKEN})"
        )
    rows = conn.execute(
        f"{source} ORDER BY position {order} LIMIT :n", {"s": session, "p": position, "n": count}
    ).fetchall()
    found = []
    for row in reversed(rows) if before else rows:
        excerpt = _excerpt(
            row[0], session, row[1], row[2], row[3], decode(row[4]), row[5], limit=NEIGHBOUR_CHARS
        )
        del excerpt["session"], excerpt["matched"]
        found.append(excerpt)
    return found


def _json(numbers: frozenset[int]) -> str:
    return "[" + ",".join(map(str, numbers)) + "]"
