"""Opening a store that may be damaged: set aside, never deleted; restored or begun anew.

A corrupt sessions store is renamed away and begun empty: the transcripts fill it again. A
corrupt facts store is renamed away and the newest sound backup takes its place; what the
backup lacks is salvaged row by row from the damaged file, and comes back from the JSONL mirror,
which is read at start. What happened is returned, so that `status` can say it.
"""

import asyncio
import os
import shutil
import time
from typing import Final

import structlog

from lore.errors import LoreError
from lored.store import driver, maintenance, suspicion
from lored.store.database import Database
from lored.store.facts import salvage
from lored.store.facts.pipeline import Rules
from lored.store.pragmas import StoreKind

SIDE_FILES: Final = ("", "-wal", "-shm", "-journal")

QUICK_BYTES: Final = 16 << 20
"""A facts store up to this size is checked whole at each opening: 4 ms a MiB (measured)."""

log = structlog.get_logger()


async def open_or_recover(
    path: str, kind: StoreKind, *, backups_dir: str, name: str, rules: Rules
) -> tuple[Database, dict[str, object] | None]:
    """The open store and, when it had to be replaced, a report for `status`.

    ``name`` is the store's path inside a backup (`global.db`, `workspaces/<id>.db`), ``rules``
    are those by which salvaged facts find their cluster. Raises
    what `Database.open` raises for reasons other than damage (newer schema, full disk, ...).
    """
    backup = newest_sound(backups_dir, name, kind) if _is_emptied(path, kind) else None
    try:
        if backup is not None:
            raise driver.DatabaseError("the file is empty: not a database")
        database = await Database.open(path, kind, backups_dir=backups_dir)
        try:
            problem = await first_problem(database)
        except BaseException:
            await database.close()
            raise
        if problem is None:
            if not database.lacks_room:
                suspicion.clear(path)
            return database, None
        await database.close()
    except driver.DatabaseError as error:
        if not suspicion.is_damage(error):
            raise
        problem = str(error)
    return await replace(
        path, kind, problem, backup, backups_dir=backups_dir, name=name, rules=rules
    )


async def problem_met(database: Database) -> str | None:
    """What is wrong with an open store in which a call met damage; None when all of it could be
    read (and a text index out of step is rebuilt)."""
    try:
        return await first_problem(database)
    except driver.DatabaseError as error:
        if not suspicion.is_damage(error):
            raise
        return str(error)


async def replace(
    path: str,
    kind: StoreKind,
    problem: str,
    backup: str | None = None,
    *,
    backups_dir: str,
    name: str,
    rules: Rules,
) -> tuple[Database, dict[str, object]]:
    """Set a damaged store aside that nobody has open, and open what takes its place: for facts
    ``backup``, else the newest sound one, with what can be salvaged. And the report."""
    aside = set_aside(path)
    suspicion.clear(path)
    if kind is StoreKind.FACTS:
        backup = backup or newest_sound(backups_dir, name, kind)
        if backup is not None:
            shutil.copyfile(backup, path)
            os.chmod(path, 0o600)
    database = await Database.open(path, kind, backups_dir=backups_dir)
    report: dict[str, object] = {"store": name, "problem": problem, "set_aside": aside}
    if backup is not None:
        report["restored_from"] = backup
    if kind is StoreKind.FACTS:
        report["salvaged"] = await _salvage(database, aside, rules)
    return database, report


async def _salvage(database: Database, aside: str, rules: Rules) -> str:
    """Put what is readable in the damaged file into the new store; how it went, in words."""
    found = await asyncio.to_thread(salvage.read, aside)
    now = time.time_ns() // 1000
    try:
        taken = await database.write(lambda c: salvage.put_in(c, found, rules, now))
    except (LoreError, driver.Error, ValueError) as error:
        log.error("salvage_failed", store=database.path, exc_info=error)
        return f"nothing, {type(error).__name__}: see lore logs"
    log.warning(
        "salvaged",
        store=database.path,
        read=len(found.facts),
        created=len(taken.created),
        changed=len(taken.changed),
        problems=len(taken.problems),
    )
    parts = "some rows were unreadable" if found.has_gaps else "every row was readable"
    return f"{len(taken.created)} facts and {len(taken.changed)} changes newer than that; {parts}"


def _is_emptied(path: str, kind: StoreKind) -> bool:
    """Whether the file of precious facts is there and has no byte: SQLite would take it for a
    new store."""
    try:
        return kind is StoreKind.FACTS and os.stat(path).st_size == 0
    except OSError:
        return False


async def first_problem(database: Database) -> str | None:
    """What makes the store unusable, or None.

    Always each table's root page; all pages and text indexes where that is quick (facts, up
    to `QUICK_BYTES`) or damage was met. A text index that is out of step is rebuilt here.
    """

    def look(connection: driver.Connection) -> str | None:
        rows = connection.execute(
            "SELECT name FROM sqlite_master WHERE type='table' AND sql NOT LIKE '%VIRTUAL%'"
        ).fetchall()
        for (table,) in rows:
            connection.execute(f'SELECT 1 FROM "{table}" LIMIT 1').fetchone()
        return None

    await database.read(look)
    small = database.kind is StoreKind.FACTS and os.stat(database.path).st_size <= QUICK_BYTES
    if database.lacks_room or not (small or suspicion.is_marked(database.path)):
        return None
    problems = await database.write_raw(lambda c: maintenance.check(c, deep=False))
    if any(one.repairable for one in problems) and not any(one.part == "pages" for one in problems):
        rebuilt = await database.write(maintenance.repair)
        log.warning("text index rebuilt", store=database.path, tables=",".join(rebuilt))
        problems = await database.write_raw(lambda c: maintenance.check(c, deep=False))
    # A reference to a missing row is for `doctor`: the rest of the store is of use.
    fatal = [one for one in problems if one.part == "pages" or one.repairable]
    return f"{fatal[0].part}: {fatal[0].detail}" if fatal else None


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
