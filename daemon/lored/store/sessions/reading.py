"""Reading the sessions store: briefs, lists, spans of messages, actions, lineage.

Functions of a connection, read only; writing is in `store.sessions.writes`, forgetting in
`store.sessions.forget`. What they return is wire-ready: string keys, instants as ISO text,
absent values left out. Native session ids are the ids that callers see.
"""

from collections.abc import Iterable, Sequence
from datetime import tzinfo
from typing import Any, Final, NamedTuple

import orjson

from lored.core.clock import to_wire
from lored.core.stored_text import decode
from lored.core.summary import session_line
from lored.store.driver import Connection
from lored.store.sessions import spent
from lored.store.sessions.listing import STATUS, Filters, deed_condition, like
from lored.store.sessions.marks import ROLLED_BACK
from lored.store.sessions.stale import DROPPED

ROLES: Final = ("user", "assistant", "tool", "summary", "context")
"""`messages.role` is an index into this."""

CANDIDATES: Final = 10
"""Sessions named in an answer about an ambiguous prefix."""

EXCERPT_CHARS: Final = 2_000
"""Shown of an action's output: its head and its tail."""

_BRIEF: Final = (
    "id, native_id, agent, workspace, cwd, worktree, branch, title, started_at, ended_at, "
    f"{STATUS}, model, message_count, user_count, action_count, cost_usd, tokens, parent, "
    "forked_from, is_subagent, summary, json_extract(extra, '$.repeated')"
)


class SessionRef(NamedTuple):
    """A session as stored: row id, agent, native id."""

    id: int
    agent: str
    native_id: str


def find(conn: Connection, name: str) -> list[SessionRef]:
    """Sessions that ``name`` means: an exact native id (also `AGENT:ID`), else those whose id
    begins with it, else whose last part does. At most `CANDIDATES` + 1, newest first."""
    agent, _, rest = name.partition(":")
    exact = conn.execute(
        "SELECT id, agent, native_id FROM sessions WHERE native_id = ? "
        "OR (native_id = ? AND agent = ?)",
        (name, rest, agent),
    ).fetchall()
    if exact:
        return [SessionRef(*row) for row in exact]
    for pattern in (like(name) + "%", "%/" + like(name) + "%"):
        rows = conn.execute(
            "SELECT id, agent, native_id FROM sessions WHERE native_id LIKE ? ESCAPE '\\' "
            "ORDER BY ended_at DESC LIMIT ?",
            (pattern, CANDIDATES + 1),
        ).fetchall()
        if rows:
            return [SessionRef(*row) for row in rows]
    return []


def briefs(conn: Connection, ids: Iterable[int], zone: tzinfo) -> dict[int, dict[str, Any]]:
    """The wire briefs of sessions by row id, with days in ``zone``; unknown ids are left out."""
    wanted = list(ids)
    found: dict[int, dict[str, Any]] = {}
    for start in range(0, len(wanted), 500):
        part = wanted[start : start + 500]
        marks = ",".join("?" * len(part))
        for row in conn.execute(f"SELECT {_BRIEF} FROM sessions s WHERE id IN ({marks})", part):
            found[row[0]] = _brief(row, zone)
    return found


def _brief(row: Sequence[Any], zone: tzinfo) -> dict[str, Any]:
    told = orjson.loads(row[20])
    tokens = orjson.loads(row[16])
    if row[21] is not None:
        tokens = spent.own(tokens, orjson.loads(row[21]))
    values = {
        "id": row[1],
        "agent": row[2],
        "workspace": row[3],
        "cwd": row[4],
        "worktree": row[5],
        "branch": row[6],
        "title": row[7],
        "started_at": None if row[8] is None else to_wire(row[8]),
        "ended_at": None if row[9] is None else to_wire(row[9]),
        "status": row[10],
        "model": row[11],
        "message_count": row[12],
        "user_count": row[13],
        "action_count": row[14],
        "cost_usd": row[15],
        "tokens": tokens or None,
        "parent": row[17],
        "forked_from": row[18],
        "is_subagent": bool(row[19]),
        "summary": {
            # Told anew: the stored line ends as the session stood when it was written.
            "line": session_line({**told, "status": row[10]}, row[8], zone) if told else "",
            "key_actions": told.get("key_actions", ""),
        },
    }
    return {key: value for key, value in values.items() if value is not None}


def summary(conn: Connection, session: int) -> dict[str, Any]:
    """The whole rendered summary of a session, empty when there is none yet."""
    row = conn.execute("SELECT summary FROM sessions WHERE id = ?", (session,)).fetchone()
    found: dict[str, Any] = orjson.loads(row[0]) if row else {}
    return found


class Span(NamedTuple):
    """Messages of one session and the position to go on from (None at the end)."""

    messages: list[dict[str, Any]]
    next: int | None


_HELD: Final = (
    "SELECT id, record_key, position, role, at, text, truncated_bytes, flags FROM messages "
    "WHERE session = :session AND position BETWEEN :low AND :high UNION ALL "
    "SELECT m.id, m.record_key, l.position, m.role, m.at, m.text, m.truncated_bytes, m.flags "
    "FROM message_links l JOIN messages m ON m.id = l.message "
    "WHERE l.session = :session AND l.position BETWEEN :low AND :high "
)
"""Own and shared messages of a session between two positions."""


def span(conn: Connection, session: int, *, low: int, high: int, limit: int, budget: int) -> Span:
    """Messages from position ``low`` to ``high``, at most ``limit`` and about ``budget``
    characters of text, in order; shared ones included."""
    rows = conn.execute(
        _HELD + "ORDER BY 3, 1 LIMIT :limit",
        {"session": session, "low": low, "high": high, "limit": limit + 1},
    ).fetchall()
    messages: list[dict[str, Any]] = []
    for row in rows:
        text = decode(row[5])
        budget -= len(text)
        if len(messages) == limit or (messages and budget < 0):
            return Span(messages, row[2])
        messages.append(message(row, text))
    return Span(messages, None)


def message(row: Sequence[Any], text: str) -> dict[str, Any]:
    """Wire form of a message row (id, record_key, position, role, at, text, truncated_bytes,
    flags) with its decoded ``text``."""
    values = {
        "message_id": str(row[0]),
        "record_key": row[1],
        "position": row[2],
        "role": ROLES[row[3]],
        "at": None if row[4] is None else to_wire(row[4]),
        "text": text,
        "truncated_bytes": row[6] or None,
        "rolled_back": True if row[7] & ROLLED_BACK else None,
        "dropped": True if row[7] & DROPPED else None,
    }
    return {key: value for key, value in values.items() if value is not None}


def position_of(conn: Connection, session: int, message_id: int) -> int | None:
    """Where a message stands in ``session`` (as its own or as a shared one)."""
    row = conn.execute(
        "SELECT position FROM messages WHERE id = :m AND session = :s UNION ALL "
        "SELECT position FROM message_links WHERE message = :m AND session = :s",
        {"m": message_id, "s": session},
    ).fetchone()
    return None if row is None else int(row[0])


def span_around(conn: Connection, session: int, position: int, count: int) -> tuple[int, int]:
    """Positions (low, high) that hold ``count`` messages around ``position``."""
    before = max(0, (count - 1) // 2)
    sides = []
    for comparison, order, number in (("<", "DESC", before), (">", "ASC", count - 1 - before)):
        rows = conn.execute(
            f"SELECT position FROM (SELECT position FROM messages WHERE session = :s "
            f"AND position {comparison} :p UNION ALL SELECT position FROM message_links "
            f"WHERE session = :s AND position {comparison} :p) ORDER BY 1 {order} LIMIT :n",
            {"s": session, "p": position, "n": number},
        ).fetchall()
        sides.append(rows[-1][0] if rows else position)
    return sides[0], sides[1]


def actions(conn: Connection, session: int, limit: int) -> list[dict[str, Any]]:
    """The actions of a session in order, at most ``limit`` (the newest ones)."""
    return _actions(conn, "a.session = ?", [session], limit)


def deeds(conn: Connection, session: int, filters: Filters, limit: int) -> list[dict[str, Any]]:
    """The actions of a session that ``filters`` ask for, in order, at most ``limit`` (the newest
    ones: the last run of a command is the one that settled it)."""
    where, values = deed_condition(filters)
    return _actions(conn, f"a.session = ? AND {where}", [session, *values], limit)


def _actions(
    conn: Connection, where: str, values: Sequence[Any], limit: int
) -> list[dict[str, Any]]:
    rows = conn.execute(
        "SELECT a.kind, a.tool, a.target, a.command, a.status, a.exit_code, a.started_at, "
        "a.ended_at, ifnull(a.excerpt, o.text), a.commit_id, a.position, a.message "
        f"FROM actions a LEFT JOIN messages o ON o.id = a.output WHERE {where} "
        "ORDER BY a.position DESC, a.id DESC LIMIT ?",
        (*values, limit),
    ).fetchall()
    found = []
    for row in reversed(rows):
        named = {
            "kind": row[0],
            "tool": row[1],
            "target": row[2],
            "command": row[3],
            "status": row[4],
            "exit_code": row[5],
            "started_at": None if row[6] is None else to_wire(row[6]),
            "ended_at": None if row[7] is None else to_wire(row[7]),
            "excerpt": None if row[8] is None else _excerpt(decode(row[8])),
            "commit": row[9],
            "position": row[10],
            "message_id": None if row[11] is None else str(row[11]),
        }
        found.append({key: value for key, value in named.items() if value is not None})
    return found


def _excerpt(text: str) -> str:
    if len(text) <= EXCERPT_CHARS:
        return text
    half = EXCERPT_CHARS // 2
    return f"{text[:half]}\n[…]\n{text[-half:]}"


def compactions(conn: Connection, session: int) -> list[dict[str, Any]]:
    """The model's own condensed records in a session, in order."""
    return [
        {
            "position": row[0],
            **({} if row[1] is None else {"at": to_wire(row[1])}),
            "summary": row[2],
            "kept_facts": orjson.loads(row[3]),
            "next_steps": orjson.loads(row[4]),
        }
        for row in conn.execute(
            "SELECT position, at, summary, kept_facts, next_steps FROM compactions "
            "WHERE session = ? ORDER BY position",
            (session,),
        )
    ]


def lineage(conn: Connection, session: int) -> dict[str, Any]:
    """How a session hangs together with others: parent, children, forks, files."""
    agent, native, parent, forked = conn.execute(
        "SELECT agent, native_id, parent, forked_from FROM sessions WHERE id = ?", (session,)
    ).fetchone()
    children = conn.execute(
        "SELECT native_id FROM sessions WHERE agent = ? AND parent = ? ORDER BY started_at, id",
        (agent, native),
    ).fetchall()
    forks = conn.execute(
        "SELECT native_id FROM sessions WHERE agent = ? AND forked_from = ? "
        "ORDER BY started_at, id",
        (agent, native),
    ).fetchall()
    files = conn.execute(
        "SELECT path, gone_at FROM files WHERE session = ? ORDER BY path", (session,)
    ).fetchall()
    found: dict[str, Any] = {
        "subagents": [row[0] for row in children],
        "forks": [row[0] for row in forks],
        "files": [
            {"path": path, **({} if gone is None else {"gone_at": to_wire(gone)})}
            for path, gone in files
        ],
    }
    if parent:
        found["parent"] = parent
    if forked:
        found["forked_from"] = forked
    return found
