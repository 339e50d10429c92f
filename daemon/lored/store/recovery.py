"""Opening a store that may be damaged: set aside, never deleted; restored or begun anew.

A corrupt sessions store is renamed away and begun empty: the transcripts fill it again. A
corrupt facts store is renamed away and the newest sound backup takes its place; what the
backup lacks comes back from the JSONL mirror, which is read at start. What happened is
returned, so that `status` can say it.
"""

import os
import shutil
import time

from lored.store import driver, maintenance
from lored.store.database import Database
from lored.store.pragmas import StoreKind

SIDE_FILES = ("", "-wal", "-shm", "-journal")


async def open_or_recover(
    path: str, kind: StoreKind, *, backups_dir: str, name: str
) -> tuple[Database, dict[str, object] | None]:
    """The open store and, when it had to be replaced, a report for `status`.

    ``name`` is the store's path inside a backup (`global.db`, `workspaces/<id>.db`). Raises
    what `Database.open` raises for reasons other than damage (newer schema, full disk, ...).
    """
    try:
        database = await Database.open(path, kind, backups_dir=backups_dir)
        problem = await _first_problem(database)
        if problem is None:
            return database, None
        await database.close()
    except driver.DatabaseError as error:
        if not is_damage(error):
            raise
        problem = str(error)
    aside = set_aside(path)
    backup = None
    if kind is StoreKind.FACTS:
        backup = newest_sound(backups_dir, name, kind)
        if backup is not None:
            shutil.copyfile(backup, path)
            os.chmod(path, 0o600)
    database = await Database.open(path, kind, backups_dir=backups_dir)
    report: dict[str, object] = {"store": name, "problem": problem, "set_aside": aside}
    if backup is not None:
        report["restored_from"] = backup
    return database, report


def is_damage(error: Exception) -> bool:
    """Whether the driver speaks of the file's content, not of disk, rights or locks."""
    text = str(error).lower()
    return any(
        sign in text
        for sign in ("malformed", "not a database", "corrupt", "unsupported file format")
    )


async def _first_problem(database: Database) -> str | None:
    """A cheap look that touches each table's root page; full checks are `doctor`'s."""

    def look(connection: driver.Connection) -> str | None:
        try:
            rows = connection.execute(
                "SELECT name FROM sqlite_master WHERE type='table' AND sql NOT LIKE '%VIRTUAL%'"
            ).fetchall()
            for (name,) in rows:
                connection.execute(f'SELECT 1 FROM "{name}" LIMIT 1').fetchone()
        except driver.DatabaseError as error:
            if is_damage(error):
                return str(error)
            raise
        return None

    return await database.read(look)


def set_aside(path: str) -> str:
    """Rename a store and its side files out of the way; returns the new name."""
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
    target, number = f"{path}.corrupt-{stamp}", 1
    while os.path.exists(target):
        number += 1
        target = f"{path}.corrupt-{stamp}-{number}"
    for suffix in SIDE_FILES:
        if os.path.exists(path + suffix):
            os.rename(path + suffix, target + suffix)
    return target


def newest_sound(backups_dir: str, name: str, kind: StoreKind) -> str | None:
    """Path of the newest backup of a store that passes its checks; None when there is none."""
    try:
        folders = sorted(os.listdir(backups_dir), reverse=True)
    except FileNotFoundError:
        return None
    for folder in folders:
        path = f"{backups_dir}/{folder}/{name}"
        if not os.path.isfile(path):
            continue
        try:
            application_id, _, problems = maintenance.inspect(path)
        except driver.DatabaseError:
            continue
        if application_id == kind.application_id and not problems:
            return path
    return None
