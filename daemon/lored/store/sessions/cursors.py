"""The cursors of files: one row per file ever read. Functions of a connection.

A cursor is written by `store` in the transaction that stores the rows it stands behind.
Other functions here move, reset, block or mark it; none of them touches what was read.
"""

import os
from collections.abc import Iterable
from typing import Any, Final

import orjson

from lored.core.batches import Place, SidecarSeen
from lored.core.reconcile import Cursor, Plan, Seen, other_forms, retry_at
from lored.store.driver import Connection
from lored.store.sessions import stale

FORGOTTEN: Final = "forgotten"
EXCLUDED: Final = "excluded"

_COLUMNS: Final = (
    "id, path, agent, root, device, inode, size, mtime_ns, offset, parser_version, failures, "
    "retry_at, gone_at IS NOT NULL, blocked IS NOT NULL, scanned > offset"
)


def load(conn: Connection) -> list[Cursor]:
    """All cursors, as planning needs them."""
    return [_cursor(row) for row in conn.execute(f"SELECT {_COLUMNS} FROM files")]


def get(conn: Connection, path: str) -> Cursor | None:
    """The cursor of one file."""
    row = conn.execute(f"SELECT {_COLUMNS} FROM files WHERE path = ?", (path,)).fetchone()
    return None if row is None else _cursor(row)


def _cursor(row: Any) -> Cursor:
    *plain, gone, blocked, pending = row
    cursor = Cursor(*plain)
    cursor.gone, cursor.blocked, cursor.pending = bool(gone), bool(blocked), bool(pending)
    return cursor


def resume(conn: Connection, path: str) -> dict[str, Any]:
    """The fields of a job that goes on where the cursor stands; empty without a cursor."""
    row = conn.execute(
        "SELECT offset, scanned, head_hash, tail_hash, state FROM files WHERE path = ?", (path,)
    ).fetchone()
    if row is None:
        return {}
    names = ("offset", "scanned", "head_hash", "tail_hash", "state")
    return dict(zip(names, row, strict=True))


def ensure(conn: Connection, path: str, agent: str, root: str, version: int) -> int:
    """The row id of a file, made when it is new."""
    row = conn.execute(
        "INSERT INTO files(path, agent, root, parser_version, size) VALUES(?, ?, ?, ?, 0) "
        "ON CONFLICT(path) DO UPDATE SET agent = excluded.agent, root = excluded.root "
        "RETURNING id",
        (path, agent, root, version),
    ).fetchone()
    return int(row[0])


def store(
    conn: Connection,
    file: int,
    place: Place,
    *,
    session: int | None,
    records: int,
    damage: dict[str, int],
    now: int,
    last: bool,
) -> None:
    """Set the cursor after a batch. When ``last``, the file counts as read and its failures are
    over."""
    old = conn.execute("SELECT damage FROM files WHERE id = ?", (file,)).fetchone()[0]
    if damage:
        counts = orjson.loads(old)
        for reason, count in damage.items():
            counts[reason] = counts.get(reason, 0) + count
        old = orjson.dumps(counts, option=orjson.OPT_SORT_KEYS).decode()
    conn.execute(
        "UPDATE files SET session = ?, device = ?, inode = ?, size = ?, mtime_ns = ?, offset = ?, "
        "scanned = ?, head_hash = ?, tail_hash = ?, parser_version = ?, state = ?, "
        "records = records + ?, damage = ?, read_at = ?, gone_at = NULL, error = NULL, "
        "failures = CASE WHEN ? THEN 0 ELSE failures END, retry_at = NULL, "
        "anew = CASE WHEN ? THEN 0 ELSE anew END WHERE id = ?",
        (
            session,
            place.device,
            place.inode,
            place.size,
            place.mtime_ns,
            place.offset,
            place.scanned,
            place.head_hash,
            place.tail_hash,
            place.version,
            place.state,
            records,
            old,
            now,
            last,
            last,
            file,
        ),
    )


def store_sidecars(
    conn: Connection,
    sidecars: Iterable[SidecarSeen],
    *,
    agent: str,
    root: str,
    version: int,
    now: int,
) -> None:
    """Remember how sidecars looked when they were read."""
    conn.executemany(
        "INSERT INTO files(path, agent, root, device, inode, size, mtime_ns, parser_version, "
        "read_at) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT(path) DO UPDATE SET "
        "device = excluded.device, inode = excluded.inode, size = excluded.size, "
        "mtime_ns = excluded.mtime_ns, parser_version = excluded.parser_version, "
        "read_at = excluded.read_at, gone_at = NULL, error = NULL, failures = 0",
        [
            (s.path, agent, root, s.device, s.inode, s.size, s.mtime_ns, version, now)
            for s in sidecars
        ],
    )


def settle(conn: Connection, path: str, seen: Seen, version: int, now: int) -> None:
    """A file that holds nothing for us: remember how it looked, so that it is only looked at
    again when it changes."""
    conn.execute(
        "UPDATE files SET device = ?, inode = ?, size = ?, mtime_ns = ?, parser_version = ?, "
        "read_at = ?, failures = 0, retry_at = NULL, error = NULL, gone_at = NULL, anew = 0 "
        "WHERE path = ?",
        (*seen, version, now, path),
    )


def fail(conn: Connection, path: str, error: str, version: int, now: int) -> int:
    """Count a failure of a file and set when it is due again; the number of failures."""
    row = conn.execute("SELECT failures FROM files WHERE path = ?", (path,)).fetchone()
    failures = (row[0] if row else 0) + 1
    conn.execute(
        "UPDATE files SET failures = ?, retry_at = ?, error = ?, parser_version = ?, read_at = ? "
        "WHERE path = ?",
        (failures, retry_at(failures, now), error[:500], version, now, path),
    )
    return failures


def move(conn: Connection, old: str, new: str) -> None:
    """A file has another name now: its cursor goes along, and the row under the new name gives
    way. Does nothing when there is no cursor under the old name (any more)."""
    if new != old and get(conn, old) is not None:
        conn.execute("DELETE FROM files WHERE path = ?", (new,))
        conn.execute("UPDATE files SET path = ?, gone_at = NULL WHERE path = ?", (new, old))


def take_over(conn: Connection, path: str) -> str | None:
    """Let a file that nothing was read of go on where another form of it (packed, unpacked)
    was left; the name of that. Asked when the file is read: plans may be behind."""
    row = conn.execute("SELECT session, offset FROM files WHERE path = ?", (path,)).fetchone()
    if row is not None and (row[0] is not None or row[1]):
        return None
    for name in other_forms(path):
        found = conn.execute(
            "SELECT 1 FROM files WHERE path = ? AND session IS NOT NULL", (name,)
        ).fetchone()
        if found is not None:
            move(conn, name, path)
            return name
    return None


def mark_gone(conn: Connection, ids: Iterable[int], now: int) -> None:
    """Files that are not there any more; what was read from them stays."""
    conn.executemany(
        "UPDATE files SET gone_at = ? WHERE id = ? AND gone_at IS NULL", [(now, i) for i in ids]
    )


def mark_back(conn: Connection, ids: Iterable[int]) -> None:
    """Files that are there again."""
    conn.executemany("UPDATE files SET gone_at = NULL WHERE id = ?", [(i,) for i in ids])


def mark(conn: Connection, plan: Plan, now: int) -> None:
    """Write down which files are gone, and which are there again."""
    mark_gone(conn, [cursor.id for cursor in plan.gone], now)
    mark_back(conn, [cursor.id for cursor in plan.back])


def block(conn: Connection, path: str, reason: str) -> None:
    """Never read this file again while ``reason`` holds."""
    conn.execute(
        "UPDATE files SET blocked = ?, state = NULL, session = NULL WHERE path = ?", (reason, path)
    )


def unblock(conn: Connection, reason: str) -> int:
    """Take back all blocks for ``reason``: the files are read from their start again."""
    cursor = conn.execute(
        "UPDATE files SET blocked = NULL, offset = 0, scanned = 0, head_hash = NULL, "
        "tail_hash = NULL, size = 0, mtime_ns = NULL WHERE blocked = ?",
        (reason,),
    )
    return int(cursor.rowcount)


def reset(conn: Connection, path: str) -> list[str]:
    """Read a file again from its start, and with it every other file of its session, since the
    summary of a session is a fold over all of them.

    Rows that were read stay: what comes again replaces them by key (`stale`). Returns the
    paths to read.
    """
    row = conn.execute("SELECT session FROM files WHERE path = ?", (path,)).fetchone()
    paths = [path]
    if row is not None and row[0] is not None:
        paths = [
            found[0]
            for found in conn.execute(
                "SELECT path FROM files WHERE path = ? OR (session = ? AND gone_at IS NULL "
                "AND blocked IS NULL) ORDER BY id",
                (path, row[0]),
            )
        ]
        stale.mark(conn, row[0])
        conn.execute("UPDATE sessions SET fold = NULL WHERE id = ?", (row[0],))
    conn.executemany(_REWIND + "anew = 1 WHERE path = ?", [(name,) for name in paths])
    return paths


def rewind(conn: Connection, path: str) -> None:
    """Read one file of several of its session again from its start: places stay."""
    conn.execute(_REWIND + "anew = 2 WHERE path = ?", (path,))


_REWIND: Final = (
    "UPDATE files SET offset = 0, scanned = 0, head_hash = NULL, tail_hash = NULL, state = NULL, "
    "size = 0, mtime_ns = NULL, records = 0, damage = '{}', retry_at = NULL, "
)


def shares_session(conn: Connection, path: str) -> bool:
    """Whether another file that is still there belongs to the session of this one."""
    row = conn.execute(
        "SELECT EXISTS (SELECT 1 FROM files a JOIN files b ON a.session = b.session "
        "AND a.id != b.id WHERE a.path = ? AND b.gone_at IS NULL)",
        (path,),
    ).fetchone()
    return bool(row[0])


def storable(path: str) -> bool:
    """Whether a path can be stored: names that are no UTF-8 cannot."""
    try:
        os.fsencode(path).decode()
    except UnicodeDecodeError:
        return False
    return True
