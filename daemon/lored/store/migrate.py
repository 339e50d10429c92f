"""Schemas and their history: create, upgrade with a backup, refuse what is newer.

SQL lives in `sql/<kind>/schema/NN-name.sql` (idempotent, the newest shape, run at every
open) and `sql/<kind>/migrations/NN-name.sql` (NN = resulting version, run once on older
files, before the schema scripts). The file header carries `application_id` (kind) and
`user_version` (schema); each step is a row of `schema_log`; `meta` holds the store's uuid,
its revision counter and the digest of the scripts that made it: a file that these very scripts
made is not written to, so that it opens quickly, and on a full disk.
"""

import hashlib
import os
import time
import uuid
from functools import cache
from importlib import resources
from typing import Final

from lored import __version__
from lored.store.driver import Connection, OperationalError
from lored.store.pragmas import StoreKind
from lored.store.room import FULL

SCHEMA_VERSION: Final = {StoreKind.FACTS: 1, StoreKind.SESSIONS: 1}
"""The newest schema of each kind; raise it together with a migration script."""

_COMMON: Final = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value ANY NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS schema_log (
  version INTEGER NOT NULL, program TEXT NOT NULL, applied_at INTEGER NOT NULL) STRICT;
"""


class NewerSchema(Exception):
    """The file was written by a newer release; it is left alone."""


class ForeignFile(Exception):
    """The file is a SQLite database, but not one of ours."""


@cache
def _digest(kind: StoreKind) -> str:
    """Of everything that makes a store of this kind."""
    parts = [_COMMON, str(SCHEMA_VERSION[kind])]
    parts += [script for _, script in _scripts(kind, "schema")]
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()


def _scripts(kind: StoreKind, folder: str) -> list[tuple[int, str]]:
    root = resources.files("lored.store") / "sql" / kind.value / folder
    if not root.is_dir():
        return []
    found = [
        (int(entry.name.split("-", 1)[0]), entry.read_text(encoding="utf-8"))
        for entry in root.iterdir()
        if entry.name.endswith(".sql")
    ]
    return sorted(found)


def split_script(script: str) -> list[str]:
    """Single statements of a script (triggers included), for use inside one transaction.

    `executescript` would commit the open transaction.
    """
    from lored.store.driver import sqlite

    statements, buffer = [], ""
    for line in script.splitlines(keepends=True):
        buffer += line
        if ";" in line and sqlite.complete_statement(buffer):
            statements.append(buffer.strip())
            buffer = ""
    if buffer.strip() and not all(
        part.lstrip().startswith("--") or not part.strip() for part in buffer.splitlines()
    ):
        raise ValueError(f"unfinished statement: {buffer[:80]!r}")
    return statements


def bring_up(connection: Connection, kind: StoreKind, path: str, backups_dir: str) -> str:
    """Make the file's schema the newest and return its uuid. Idempotent.

    Raises `ForeignFile` or `NewerSchema` before anything is written.
    """
    version, target = _version(connection, kind, path), SCHEMA_VERSION[kind]
    if version == target:
        made = dict(connection.execute("SELECT key, value FROM meta WHERE key IN ('uuid', 'made')"))
        if made.get("made") == _digest(kind):
            connection.execute("PRAGMA foreign_keys=ON")
            return str(made["uuid"])
    if 0 < version < target:
        _backup(connection, path, version, backups_dir)
    connection.execute("PRAGMA foreign_keys=OFF")
    connection.execute("BEGIN IMMEDIATE")
    try:
        for statement in split_script(_COMMON):
            connection.execute(statement)
        if 0 < version < target:
            for number, script in _scripts(kind, "migrations"):
                if version < number <= target:
                    for statement in split_script(script):
                        connection.execute(statement)
                    _log(connection, number)
        for _, script in _scripts(kind, "schema"):
            for statement in split_script(script):
                connection.execute(statement)
        if version == 0:
            _log(connection, target)
        connection.execute(f"PRAGMA application_id={kind.application_id}")
        connection.execute(f"PRAGMA user_version={target}")
        connection.execute(
            "INSERT INTO meta(key, value) VALUES('uuid', ?), ('revision', 0) "
            "ON CONFLICT(key) DO NOTHING",
            (uuid.uuid4().hex,),
        )
        connection.execute("INSERT OR REPLACE INTO meta VALUES('made', ?)", (_digest(kind),))
        broken = connection.execute("PRAGMA foreign_key_check").fetchone()
        if broken is not None:
            raise ForeignFile(f"{path}: rows without their parent in table {broken[0]}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    connection.execute("PRAGMA foreign_keys=ON")
    return _uuid(connection)


def _version(connection: Connection, kind: StoreKind, path: str) -> int:
    """The schema of the file; 0 for an empty one. Raises `ForeignFile` or `NewerSchema`."""
    application_id = connection.execute("PRAGMA application_id").fetchone()[0]
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    target = SCHEMA_VERSION[kind]
    if tables and application_id != kind.application_id:
        raise ForeignFile(f"{path} is not a {kind.value} store of lored; it was left alone")
    if version > target:
        raise NewerSchema(
            f"{path} has schema {version}, this release knows {target}: "
            "upgrade lored, or restore a backup made by this release"
        )
    return version


def check(connection: Connection, kind: StoreKind, path: str) -> str:
    """The uuid of a store that is read as it is. Raises `ForeignFile`, `NewerSchema`, or
    OperationalError where it would have to be written first."""
    if _version(connection, kind, path) != SCHEMA_VERSION[kind]:
        raise OperationalError(FULL)
    return _uuid(connection)


def _uuid(connection: Connection) -> str:
    found: str = connection.execute("SELECT value FROM meta WHERE key='uuid'").fetchone()[0]
    return found


def _log(connection: Connection, version: int) -> None:
    connection.execute(
        "INSERT INTO schema_log(version, program, applied_at) VALUES(?, ?, ?)",
        (version, __version__, int(time.time())),
    )


def _backup(connection: Connection, path: str, version: int, backups_dir: str) -> None:
    os.makedirs(backups_dir, mode=0o700, exist_ok=True)
    name = os.path.basename(path)
    target = f"{backups_dir}/{name}.schema{version}.{int(time.time())}"
    connection.execute("VACUUM INTO ?", (target,))
    os.chmod(target, 0o600)


def bump_revision(connection: Connection) -> int:
    """Count one change of the store; call inside the write transaction. Returns the number."""
    row = connection.execute(
        "UPDATE meta SET value = value + 1 WHERE key='revision' RETURNING value"
    ).fetchone()
    return int(row[0])


def revision(connection: Connection) -> int:
    """The current revision number of the store."""
    return int(connection.execute("SELECT value FROM meta WHERE key='revision'").fetchone()[0])
