"""Backups of the precious stores: nightly, on request, verified, restored.

A backup is a folder `<UTC stamp>/` with `global.db`, `workspaces/<id>.db` and
`manifest.json` (sizes and BLAKE3 of each file). It is written under a temporary name and
renamed when complete and checked, so a folder with a stamp is always whole. Sessions are not
in it: transcripts rebuild them.
"""

import asyncio
import os
import re
import shutil
import time
from typing import Any, Final

import blake3
import orjson

from lore.errors import Invalid, NotFound, Unavailable
from lored.services.app import App, Call
from lored.services.operations import Operation
from lored.store import maintenance
from lored.store.database import Database
from lored.store.migrate import SCHEMA_VERSION, ForeignFile, NewerSchema
from lored.store.pragmas import StoreKind

PERIOD_SECONDS: Final = 86_400.0
"""Nightly means once in any 24 hours that the daemon runs, and not at a fixed hour."""

CHECK_SECONDS: Final = 600.0
"""How often the due time is looked at; a suspended laptop catches up within this."""

_STAMP: Final = re.compile(r"\d{8}T\d{6}Z(-\d+)?")
_NAME: Final = re.compile(r"global\.db|workspaces/[0-9a-f]{12}\.db")


class Backup:
    """The backup service; `start` begins the nightly task."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._folder = app.paths.backups_dir
        self._task: asyncio.Task[None] | None = None
        self._one_at_a_time = asyncio.Lock()
        self.last_error: str | None = None
        self.left_out: list[dict[str, str]] = []
        """Stores that the last backup could not open."""

    async def start(self) -> None:
        """Begin to look for the due time."""
        self._task = asyncio.create_task(self._nightly(), name="backup")

    async def stop(self) -> None:
        """End the nightly task; a copy that runs is abandoned and its temporary folder stays
        invisible (it is removed at the next backup)."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _nightly(self) -> None:
        while True:
            try:
                if self.age_seconds() >= PERIOD_SECONDS and self._has_facts():
                    await self.run()
                    self.last_error = None
            except Exception as error:  # whatever it is, the next night must come
                self.last_error = str(error) or type(error).__name__
                self._app.events.publish("status", {"backup": "failed"})
            await asyncio.sleep(CHECK_SECONDS)

    def _has_facts(self) -> bool:
        """An untouched installation needs no copies of empty stores."""
        return os.path.exists(self._app.paths.global_db)

    def folders(self) -> list[str]:
        """Complete backups, oldest first, as paths."""
        try:
            names = os.listdir(self._folder)
        except FileNotFoundError:
            return []
        return [f"{self._folder}/{name}" for name in sorted(names) if _STAMP.fullmatch(name)]

    def age_seconds(self) -> float:
        """Seconds since the newest backup; infinite when there is none or its time lies ahead."""
        folders = self.folders()
        if not folders:
            return float("inf")
        age = time.time() - os.stat(folders[-1] + "/manifest.json").st_mtime
        return age if age >= 0 else float("inf")

    def status(self) -> dict[str, Any]:
        """How many there are and how old the newest is."""
        folders, age = self.folders(), self.age_seconds()
        newest = None if not folders else folders[-1]
        return {"count": len(folders), "newest": newest, "age_s": int(age) if folders else None}

    def degraded(self) -> list[dict[str, str]]:
        """A backup that failed, and stores that had to be replaced at the start."""
        found = []
        if self.last_error is not None:
            found.append(
                {
                    "name": "backup",
                    "reason": f"the last backup failed: {self.last_error}",
                    "remedy": f"free space for {self._folder}, then: lore backup",
                }
            )
        found += [
            {
                "name": "backup",
                "reason": f"the last backup is without {one['name']}",
                "remedy": one["reason"],
            }
            for one in self.left_out
        ]
        for report in self._app.registry.recoveries:
            source = report.get("restored_from")
            done = f"restored from {source}" if source else "begun anew"
            if report.get("salvaged"):
                done += f"; salvaged from the damaged file: {report['salvaged']}"
            found.append(
                {
                    "name": "recovery",
                    "reason": f"{report['store']} was damaged ({report['problem']}) and {done}",
                    "remedy": f"the damaged file is {report['set_aside']}; lore doctor checks all",
                }
            )
        return found

    async def back_up(self, call: Call, target: str | None) -> dict[str, Any]:
        """`backup`: see `run`."""
        with self._app.operations.under_way(call, "backup") as operation:
            return await self.run(operation, target)

    async def run(
        self, operation: Operation | None = None, target: str | None = None
    ) -> dict[str, Any]:
        """Back up now into our folder, or into a new folder at ``target`` (absolute).

        Returns `path`, `files` (name, bytes) and, if any, what was `left_out` (name, reason): a
        store that is not for this release must not cost the others their copy. Raises `Invalid`
        when ``target`` exists. What ends early leaves no folder.
        """
        if target is not None:
            if not target.startswith("/"):
                raise Invalid(f"backup: {target!r} must be an absolute path")
            if os.path.lexists(target):
                raise Invalid(f"backup: {target} exists already; name a new folder")
        async with self._one_at_a_time:
            final = target or self._new_folder()
            draft = final + ".incomplete"
            await asyncio.to_thread(self._clear_drafts, draft)
            os.makedirs(draft + "/workspaces", mode=0o700)
            files: list[dict[str, Any]] = []
            left_out: list[dict[str, str]] = []
            stores = self._stores()
            if operation is not None:
                operation.begin("copying", "stores", len(stores))
            try:
                for name, workspace_id in stores:
                    try:
                        async with self._app.registry.facts(workspace_id) as database:
                            files.append(await self._copy(database, draft, name))
                    except (NewerSchema, ForeignFile) as error:
                        left_out.append({"name": name, "reason": str(error)})
                    if operation is not None:
                        operation.advance()
                await asyncio.to_thread(_finish, draft, final, files)
            except BaseException:
                shutil.rmtree(draft, ignore_errors=True)
                raise
            if target is None:
                await asyncio.to_thread(self._prune)
        self.left_out = left_out
        told = [{"name": f["name"], "bytes": f["bytes"]} for f in files]
        return {"path": final, "files": told, **({"left_out": left_out} if left_out else {})}

    def _stores(self) -> list[tuple[str, str | None]]:
        known = self._app.registry.known_workspaces()
        return [("global.db", None), *((f"workspaces/{one}.db", one) for one in known)]

    async def _copy(self, database: Database, draft: str, name: str) -> dict[str, Any]:
        path = f"{draft}/{name}"
        size = await database.write_raw(lambda c: maintenance.copy_to(c, path))
        _, _, problems = await asyncio.to_thread(maintenance.inspect, path)
        if problems:
            raise Unavailable(f"backup of {name} is not sound: {problems[0].detail}")
        digest = await asyncio.to_thread(_digest, path)
        return {"name": name, "bytes": size, "blake3": digest}

    def _new_folder(self) -> str:
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        path, number = f"{self._folder}/{stamp}", 1
        while os.path.exists(path):
            number += 1
            path = f"{self._folder}/{stamp}-{number}"
        return path

    def _clear_drafts(self, draft: str) -> None:
        shutil.rmtree(draft, ignore_errors=True)
        if os.path.isdir(self._folder):
            for name in os.listdir(self._folder):
                if name.endswith(".incomplete"):
                    shutil.rmtree(f"{self._folder}/{name}", ignore_errors=True)

    def _prune(self) -> None:
        for path in self.folders()[: -self._app.settings.backup_keep]:
            shutil.rmtree(path)

    async def restore(self, call: Call, path: str) -> dict[str, Any]:
        """Put every store of a backup folder back; what is there now is set aside, not deleted.

        All files are checked (manifest digest, pages, schema) before the first is replaced;
        then all are, whether the caller waits for that or not. Returns `restored` names and
        `set_aside` paths. Raises `NotFound` or `Invalid`.
        """
        source = path if path.startswith("/") else f"{self._folder}/{path}"
        manifest = await asyncio.to_thread(_read_manifest, source)
        with self._app.operations.under_way(call, "restore") as operation:
            operation.begin("checking the backup", "stores", len(manifest))
            for entry in manifest:
                await asyncio.to_thread(_verify, source, entry)
                operation.advance()
            return await operation.finish(self._put_back(operation, source, manifest))

    async def _put_back(
        self, operation: Operation, source: str, manifest: list[dict[str, Any]]
    ) -> dict[str, Any]:
        operation.begin("putting back", "stores", len(manifest))
        restored, aside = [], []
        async with self._one_at_a_time:
            for entry in manifest:
                old = await self._app.registry.replace(entry["name"], f"{source}/{entry['name']}")
                restored.append(entry["name"])
                if old is not None:
                    aside.append(old)
                operation.advance()
        await self._app.workspaces.load()
        self._app.events.publish("status", {"restored": restored})
        return {"restored": restored, "set_aside": aside}


def _digest(path: str) -> str:
    return blake3.blake3(max_threads=1).update_mmap(path).hexdigest()


def _finish(draft: str, final: str, files: list[dict[str, Any]]) -> None:
    with open(draft + "/manifest.json", "wb") as file:
        file.write(orjson.dumps({"format": 1, "files": files}, option=orjson.OPT_INDENT_2))
        file.flush()
        os.fsync(file.fileno())
    os.chmod(draft + "/manifest.json", 0o600)
    os.rename(draft, final)
    parent = os.open(os.path.dirname(final), os.O_RDONLY)
    try:
        os.fsync(parent)
    finally:
        os.close(parent)


def _read_manifest(folder: str) -> list[dict[str, Any]]:
    try:
        with open(folder + "/manifest.json", "rb") as file:
            files = orjson.loads(file.read(1 << 20))["files"]
    except FileNotFoundError:
        raise NotFound(f"{folder} holds no backup (no manifest.json)") from None
    except (ValueError, KeyError, TypeError):
        raise Invalid(f"{folder}/manifest.json is damaged") from None
    for entry in files:
        # Names come from a file that anyone may have written: only our two shapes are paths.
        if not isinstance(entry, dict) or not _NAME.fullmatch(str(entry.get("name"))):
            raise Invalid(f"{folder}/manifest.json names a file that is no store of ours")
    return list(files)


def _verify(folder: str, entry: dict[str, Any]) -> None:
    path = f"{folder}/{entry['name']}"
    if os.path.islink(path) or not os.path.isfile(path):
        raise NotFound(f"{path} of the backup is missing")
    if _digest(path) != entry.get("blake3"):
        raise Invalid(f"{path} is not what was backed up (digest differs)")
    application_id, version, problems = maintenance.inspect(path)
    if application_id != StoreKind.FACTS.application_id or problems:
        raise Invalid(f"{path} is not a sound facts store")
    if version > SCHEMA_VERSION[StoreKind.FACTS]:
        raise Invalid(f"{path} was written by a newer release (schema {version}); upgrade lored")
