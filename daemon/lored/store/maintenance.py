"""Care of one store file: checks, copies, space. Functions of a connection, no policy.

`quick_check` finds damaged pages but not an FTS index that is out of step with its rows; only
FTS5's own `integrity-check` with rank 1 does (measured), so both are run.
"""

import os
from typing import NamedTuple

from lored.store import driver
from lored.store.driver import Connection


class Problem(NamedTuple):
    """One thing found wrong: where, what, and whether `repair` can put it right."""

    part: str
    detail: str
    repairable: bool


def fts_tables(connection: Connection) -> list[str]:
    """Names of the FTS5 tables of this file, without the views on them (`fts5vocab`)."""
    rows = connection.execute(
        "SELECT name FROM sqlite_master WHERE type='table' AND sql LIKE '%USING fts5(%'"
    )
    return [row[0] for row in rows]


def check(connection: Connection, *, deep: bool) -> list[Problem]:
    """Pages, foreign keys and text indexes; ``deep`` also checks every index entry.

    Needs the writer connection, since FTS5 offers its check as an INSERT. Empty list = sound.
    """
    pragma = "integrity_check" if deep else "quick_check"
    found = [
        Problem("pages", str(row[0]), False)
        for row in connection.execute(f"PRAGMA {pragma}(20)")
        if row[0] != "ok"
    ]
    found += [
        Problem("foreign keys", f"table {row[0]}, row {row[1]}", False)
        for row in connection.execute("PRAGMA foreign_key_check").fetchmany(20)
    ]
    for table in fts_tables(connection):
        try:
            connection.execute(f"INSERT INTO {table}({table}, rank) VALUES('integrity-check', 1)")
        except driver.DatabaseError as error:
            found.append(Problem(f"text index {table}", str(error), True))
    return found


def repair(connection: Connection) -> list[str]:
    """Rebuild the text indexes that hold a copy of their text or know their source table.

    Returns the names rebuilt. Contentless tables cannot rebuild themselves; their owner
    re-indexes the rows.
    """
    rebuilt = []
    for table in fts_tables(connection):
        sql = connection.execute("SELECT sql FROM sqlite_master WHERE name=?", (table,)).fetchone()
        if "content=''" in sql[0].replace(" ", "").replace('"', "'"):
            continue
        connection.execute(f"INSERT INTO {table}({table}) VALUES('rebuild')")
        rebuilt.append(table)
    return rebuilt


def optimize(connection: Connection) -> None:
    """What idle time is for: merge FTS segments a little, refresh statistics."""
    for table in fts_tables(connection):
        connection.execute(f"INSERT INTO {table}({table}, rank) VALUES('merge', 500)")
    connection.execute("PRAGMA optimize")


def copy_to(connection: Connection, target: str) -> int:
    """A consistent, compact copy of the open store at ``target`` (must not exist), mode 0600,
    synced. Returns its bytes. Writers go on meanwhile."""
    connection.execute("VACUUM INTO ?", (target,))
    handle = os.open(target, os.O_RDONLY)
    try:
        os.fchmod(handle, 0o600)
        os.fsync(handle)
        return os.fstat(handle).st_size
    finally:
        os.close(handle)


def inspect(path: str) -> tuple[int, int, list[Problem]]:
    """application_id, schema version and problems of a closed file, opened read-only.

    Raises the driver's DatabaseError for what is not a database at all.
    """
    connection = driver.connect(path, read_only=True)
    try:
        application_id = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        found = [
            Problem("pages", str(row[0]), False)
            for row in connection.execute("PRAGMA quick_check(5)")
            if row[0] != "ok"
        ]
        return application_id, version, found
    finally:
        connection.close()
