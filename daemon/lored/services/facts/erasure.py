"""Hard forgetting: a fact's words out of every file of ours, and the proof.

1. One transaction takes them out of the store (`facts_erase`), leaving a shell.
2. The mirror writes facts.jsonl without them.
3. Copies follow: backups and stores set aside are cleaned in place, spooled statements of the
   same text are dropped.
4. The WAL is folded in, and all files of ours are scanned for stretches of the text. What the
   scan still finds in a store, and no other row explains, is rewritten by VACUUM.

The answer counts what was scanned and names every place where the words still stand, with the
reason: another fact that says the same, a session's transcript, a file that could not be
cleaned. It never claims more than the scan saw. Once 1 has begun, all is done to its end,
whether the caller waits for that or not.
"""

import asyncio
import json
import os
from typing import TYPE_CHECKING, Any, Final

import blake3

from lore.errors import Conflict
from lored.core import ids
from lored.core.facts import State
from lored.services.app import App, Call
from lored.services.facts import remains
from lored.services.facts.scopes import Target, locate, opened
from lored.services.moments import now
from lored.services.operations import Operation
from lored.store import driver
from lored.store.database import Database
from lored.store.driver import Connection
from lored.store.facts import erase, rows
from lored.store.facts.log import Batch
from lored.store.facts.rows import Fact

if TYPE_CHECKING:
    from lored.services.facts.front import Facts

_SQLITE: Final = b"SQLite format 3\0"

CHECKPOINTS: Final = 20
"""Attempts to fold the WAL in: a reader of a moment ago may still hold it."""

CHECKPOINT_PAUSE: Final = 0.05


async def forget_hard(
    app: App, call: Call, params: dict[str, Any], service: "Facts"
) -> dict[str, Any]:
    """Erase the fact that the call names; see the module."""
    target, fact = await locate(app, call, params, params["id"])
    if fact.state is State.ERASED:
        raise Conflict(f"{ids.fact(fact.number)} was forgotten for good already")
    with app.operations.under_way(call, "forget_fact") as operation:
        return await operation.finish(_forget(app, call, params, service, target, fact, operation))


async def _forget(
    app: App,
    call: Call,
    params: dict[str, Any],
    service: "Facts",
    target: Target,
    fact: Fact,
    operation: Operation,
) -> dict[str, Any]:
    at = now()
    operation.begin("removing its words", "stores", 1)
    wanted = remains.stretches(fact.text)
    async with opened(app, target) as database:

        def write(conn: Connection) -> tuple[dict[str, Any], dict[str, int], int]:
            row = rows.by_ids(conn, [fact.id])[fact.id]
            batch = Batch(conn, now=at, actor=call.client)
            removed = erase.erase(conn, batch, row, note=params.get("reason"))
            shell = rows.by_ids(conn, [fact.id])[fact.id]
            return service.view(target, at).fact(conn, shell), removed, batch.revision

        shown, removed, revision = await database.write(write)
        app.events.publish("facts", {"action": "forgotten", "fact": shown}, target.workspace)
        mirror = app.services.get("mirror")
        if mirror is not None:
            await mirror.sync(target.workspace)
        proof = await _prove(app, target, fact, database, wanted, operation)
    proof["removed"] = removed
    return {
        "fact": shown,
        "forgotten": True,
        "proof": proof,
        "revision": f"{database.uuid}:{revision}",
    }


async def _prove(
    app: App,
    target: Target,
    fact: Fact,
    database: Database,
    wanted: list[bytes],
    operation: Operation,
) -> dict[str, Any]:
    """Clean copies, scan everything, rewrite what is left; the proof of the answer."""
    await _fold(database)
    own = {database.path, database.path + "-wal", database.path + "-shm"}
    stores = {app.paths.global_db, app.paths.sessions_db} | {
        app.registry.workspace_path(one) for one in app.registry.known_workspaces()
    }
    live = {store + suffix for store in stores for suffix in ("", "-wal", "-shm")}
    mirror = app.services.get("mirror")
    page = mirror.path(target.workspace) if mirror is not None else None
    folders = [app.paths.data_dir, app.paths.state_dir]
    paths = sorted({*remains.files_under(folders), *([page] if page else [])})

    def look() -> tuple[remains.Scan, list[str], list[str]]:
        operation.begin("looking for its words", "bytes", 2 * remains.weigh(paths))
        first = remains.scan(paths, wanted, operation.advance)
        cleaned: list[str] = []
        failed: list[str] = []
        for path in first.found:
            if path in live or path == page or path.endswith(".log"):
                continue
            (cleaned if _clean_copy(path, fact.uid, wanted) else failed).append(path)
        return first, cleaned, failed

    first, cleaned, failed = await asyncio.to_thread(look)
    if await _unexplained(database, own & first.found.keys(), first, fact, wanted):
        await database.write_raw(lambda c: c.execute("VACUUM"))
        await _fold(database)
    last = await asyncio.to_thread(remains.scan, paths, wanted, operation.advance)
    explained = await database.read(lambda c: _others(c, wanted))
    left = {
        path: hits
        for path, hits in last.found.items()
        if not (path in own and set(hits) <= explained)
    }
    proof: dict[str, Any] = {
        "files_scanned": last.files,
        "bytes_scanned": last.read_bytes,
        "stretches": len(wanted),
        "found": len(left),
        "backups": cleaned or None,
        "elsewhere": [_place(app, path, path in failed, target) for path in sorted(left)] or None,
    }
    if fact.session_id is not None:
        proof["session"] = f"session {fact.session_id} states it too; forget_session removes that"
    return {key: value for key, value in proof.items() if value is not None}


async def _fold(database: Database) -> None:
    """Empty the WAL into the file; readers of a moment ago are given time to end."""
    for _ in range(CHECKPOINTS):
        row = await database.write_raw(
            lambda c: c.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        )
        if not row[0]:
            return
        await asyncio.sleep(CHECKPOINT_PAUSE)


async def _unexplained(
    database: Database,
    paths: set[str],
    found: remains.Scan,
    fact: Fact,
    wanted: list[bytes],
) -> bool:
    """Whether the store's own files hold stretches that no row of it has."""
    hits = {one for path in paths for one in found.found[path]}
    return bool(hits and hits - await database.read(lambda c: _others(c, list(hits))))


def _others(conn: Connection, wanted: list[bytes]) -> set[bytes]:
    """Stretches that other rows of the store have rightly."""
    found = set()
    for one in wanted:
        row = conn.execute(
            "SELECT EXISTS (SELECT 1 FROM facts WHERE instr(CAST(text AS BLOB), ?1)"
            " OR instr(CAST(source_ref AS BLOB), ?1)) OR EXISTS (SELECT 1 FROM fact_texts"
            " WHERE instr(CAST(text AS BLOB), ?1) OR instr(CAST(ctx AS BLOB), ?1))"
            " OR EXISTS (SELECT 1 FROM entities WHERE instr(CAST(written AS BLOB), ?1)"
            " OR instr(CAST(key AS BLOB), ?1))",
            (one,),
        ).fetchone()
        if row[0]:
            found.add(one)
    return found


def _place(app: App, path: str, failed: bool, target: Target) -> str:
    """Where the words still stand, and why."""
    if failed:
        return f"{path}: could not be cleaned; delete it yourself if it must go"
    if path.startswith(app.paths.sessions_db):
        return f"{path}: a session's transcript says it; forget_session removes that"
    if path.startswith((app.paths.workspaces_dir, app.paths.global_db)):
        return f"{path}: another fact says it"
    return path


# -- copies --------------------------------------------------------------------------------


def _clean_copy(path: str, uid: str, wanted: list[bytes]) -> bool:
    """Take the words out of a file that is no open store: a backup, a store set aside, a
    spooled statement. Returns whether they are gone."""
    try:
        with open(path, "rb") as file:
            is_store = file.read(16) == _SQLITE
        if is_store:
            _clean_store(path, uid)
            _sign_anew(path)
        elif os.path.basename(os.path.dirname(path)) == "spool":
            os.unlink(path)
            return True
        else:
            return False
    except (OSError, driver.Error, ValueError):
        return False
    return not remains.scan([path], wanted).found


def _clean_store(path: str, uid: str) -> None:
    conn = driver.connect(path, read_only=False)
    try:
        conn.execute("PRAGMA secure_delete=ON")
        row = conn.execute("SELECT id FROM facts WHERE uid = ?", (uid,)).fetchone()
        if row is not None:
            conn.execute("BEGIN IMMEDIATE")
            erase.wipe(conn, row[0])
            conn.execute("COMMIT")
        conn.execute("VACUUM")
    finally:
        conn.close()


def _sign_anew(path: str) -> None:
    """Write the changed file's digest into the manifest of its backup, if it belongs to one."""
    folder = os.path.dirname(path)
    for root in (folder, os.path.dirname(folder)):
        manifest = os.path.join(root, "manifest.json")
        if not os.path.isfile(manifest):
            continue
        with open(manifest, encoding="utf-8") as file:
            content = json.load(file)
        for entry in content["files"]:
            if os.path.join(root, entry["name"]) == path:
                entry["bytes"] = os.path.getsize(path)
                entry["blake3"] = blake3.blake3().update_mmap(path).hexdigest()
        draft = manifest + ".draft"
        with open(draft, "w", encoding="utf-8") as file:
            json.dump(content, file, indent=2)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(draft, 0o600)
        os.replace(draft, manifest)
        return
