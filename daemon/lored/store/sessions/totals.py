"""Counts per source root, for `index_status`. A function of a connection."""

from typing import Any, Final

import orjson

from lored.store.driver import Connection

FAILING: Final = 50
"""Failing files that are listed."""

Totals = dict[tuple[str, str], dict[str, Any]]


def totals(conn: Connection) -> Totals:
    """Per (agent, root): files, gone, failed, blocked, bytes, records, sessions, messages,
    oldest and newest instant, damage by reason, failing files."""
    found: Totals = {}
    names = ("files_known", "gone", "failed", "blocked", "bytes", "records")
    for agent, root, *numbers in conn.execute(
        "SELECT agent, root, count(*), sum(gone_at IS NOT NULL), sum(failures > 0), "
        "sum(blocked IS NOT NULL), sum(size), sum(records) FROM files GROUP BY agent, root"
    ):
        found[agent, root] = {
            **dict(zip(names, numbers, strict=True)),
            "damage": {},
            "failing": [],
        }
    for agent, root, sessions, messages, oldest, newest in conn.execute(
        "SELECT f.agent, f.root, count(*), sum(s.message_count), min(s.started_at), "
        "max(s.ended_at) FROM (SELECT DISTINCT agent, root, session FROM files "
        "WHERE session IS NOT NULL) f JOIN sessions s ON s.id = f.session "
        "WHERE s.message_count > 0 OR s.action_count > 0 GROUP BY f.agent, f.root"
    ):
        found[agent, root].update(
            sessions=sessions, messages=messages, oldest=oldest, newest=newest
        )
    for agent, root, damage in conn.execute(
        "SELECT agent, root, damage FROM files WHERE damage != '{}'"
    ):
        counts = found[agent, root]["damage"]
        for reason, count in orjson.loads(damage).items():
            counts[reason] = counts.get(reason, 0) + count
    for agent, root, path, error, failures in conn.execute(
        "SELECT agent, root, path, error, failures FROM files WHERE failures > 0 "
        "ORDER BY read_at DESC LIMIT ?",
        (FAILING,),
    ):
        found[agent, root]["failing"].append(
            {"path": path, "error": error or "", "failures": failures}
        )
    return found


def folders(conn: Connection) -> list[tuple[str, str | None, int]]:
    """(working directory, workspace, sessions) of all sessions that have one."""
    return list(
        conn.execute(
            "SELECT cwd, workspace, count(*) FROM sessions WHERE cwd IS NOT NULL "
            "GROUP BY cwd, workspace ORDER BY cwd"
        )
    )
