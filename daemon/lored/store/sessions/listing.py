"""Which sessions fit: one place for the filters that lists, search and forgetting share.

`condition` turns `Filters` into an SQL condition over `sessions s`; what a session did is
asked of its actions. Functions of a connection, read only.
"""

import os.path
from dataclasses import dataclass
from typing import Any, Final

from lored.core.summary.render import QUIET_S
from lored.store.driver import Connection

NEWEST: Final = "coalesce(s.ended_at, s.started_at, s.indexed_at)"
"""The instant that orders sessions."""


SHOWN: Final = "(s.message_count > 0 OR s.action_count > 0)"
"""A session that is listed: not a file with nothing but metadata."""

STATUS: Final = (
    "CASE WHEN s.status = 'active' AND ifnull(s.ended_at, 0) < "
    f"CAST((unixepoch('subsec') - {QUIET_S}) * 1000000 AS INTEGER) "
    "THEN 'interrupted' ELSE s.status END"
)
"""The status as of now: a session that stopped in the middle and has been quiet for long was
interrupted (`core.summary.settled_status`)."""


@dataclass(frozen=True, slots=True)
class Filters:
    """What is asked; None asks nothing. Instants in microseconds: ``since`` <= end of the
    session, its start < ``until``. ``file`` is a path or its tail, ``command`` any part of a
    command line, ``commit`` the beginning of its id."""

    workspace: str | None = None
    agent: str | None = None
    since: int | None = None
    until: int | None = None
    status: str | None = None
    file: str | None = None
    command: str | None = None
    commit: str | None = None
    failed: bool = False
    subagents: bool = False

    @property
    def by_deed(self) -> bool:
        """Whether actions must be looked at."""
        return bool(self.file or self.command or self.commit or self.failed)


def like(text: str) -> str:
    """``text`` as a literal part of a LIKE pattern with ESCAPE '\\'."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def deed_condition(filters: Filters) -> tuple[str, list[Any]]:
    """Condition over `actions a` for the file, command, commit and failed filters."""
    parts: list[str] = []
    values: list[Any] = []
    if filters.file:
        path = filters.file.replace("\\", "/").removeprefix("./")
        tail = like(path.lstrip("/"))
        if os.path.isabs(path):
            # Also where the transcript names the file relative to its directory.
            parts.append("(a.target = ? OR a.target = ? OR ? LIKE '%/' || a.target)")
            values += [path, path.lstrip("/"), path]
        else:
            parts.append(
                "(a.target = ? OR a.target LIKE ? ESCAPE '\\' OR a.target LIKE ? ESCAPE '\\')"
            )
            values += [path, "%/" + tail, "%\\\\" + tail.replace("/", "\\\\")]
        parts.append("a.kind IN ('edit', 'read', 'search', 'other')")
    if filters.command:
        parts.append("a.command LIKE ? ESCAPE '\\'")
        values.append(f"%{like(filters.command)}%")
    if filters.commit:
        parts.append("a.commit_id >= ? AND a.commit_id < ?")
        values += [filters.commit.lower(), filters.commit.lower() + "g"]
    if filters.failed:
        parts.append("a.status = 'failed'")
    return " AND ".join(parts) or "1", values


def condition(filters: Filters) -> tuple[str, list[Any]]:
    """Condition over `sessions s`, with the values to bind."""
    parts: list[str] = []
    values: list[Any] = []
    for column, wanted in (
        ("s.workspace", filters.workspace),
        ("s.agent", filters.agent),
        (STATUS, filters.status),
    ):
        if wanted is not None:
            parts.append(f"{column} = ?")
            values.append(wanted)
    if filters.since is not None:
        parts.append(f"{NEWEST} >= ?")
        values.append(filters.since)
    if filters.until is not None:
        parts.append("coalesce(s.started_at, s.ended_at, s.indexed_at) < ?")
        values.append(filters.until)
    if not filters.subagents:
        parts.append("s.is_subagent = 0")
    if filters.by_deed:
        deed, more = deed_condition(filters)
        parts.append(f"s.id IN (SELECT a.session FROM actions a WHERE {deed})")
        values += more
    return " AND ".join(parts) or "1", values


def by_workspace(conn: Connection) -> dict[str, tuple[int, int]]:
    """Per workspace id: sessions that a list shows, and the instant of the newest."""
    rows = conn.execute(
        f"SELECT s.workspace, count(*), max({NEWEST}) FROM sessions s "
        f"WHERE s.workspace IS NOT NULL AND s.is_subagent = 0 AND {SHOWN} GROUP BY s.workspace"
    )
    return {row[0]: (row[1], row[2]) for row in rows}


@dataclass(frozen=True, slots=True)
class Page:
    """Session row ids, newest first; how many fit in all; where to go on (None: at the end)."""

    ids: list[int]
    total: int
    next: str | None


def page(conn: Connection, filters: Filters, *, after: str | None, limit: int) -> Page:
    """One page of the sessions that fit and are `SHOWN`. Raises ValueError for a malformed
    ``after``."""
    where, values = condition(filters)
    where += f" AND {SHOWN}"
    total = conn.execute(f"SELECT count(*) FROM sessions s WHERE {where}", values).fetchone()[0]
    if after is not None:
        at, _, number = after.partition(".")
        where += f" AND ({NEWEST}, s.id) < (?, ?)"
        values = [*values, int(at), int(number)]
    rows = conn.execute(
        f"SELECT s.id, {NEWEST} FROM sessions s WHERE {where} "
        f"ORDER BY {NEWEST} DESC, s.id DESC LIMIT ?",
        (*values, limit + 1),
    ).fetchall()
    following = f"{rows[limit - 1][1]}.{rows[limit - 1][0]}" if len(rows) > limit else None
    return Page([row[0] for row in rows[:limit]], total, following)
