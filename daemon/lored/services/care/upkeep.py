"""`verify` and `maintain`: proof of health, and the care that idle time is for.

Verify answers a list of checks, each with what was looked at, what is wrong and the remedy;
with `fix` it repairs what can be repaired without loss (text indexes, file modes). Other
services contribute their own checks by a method `verify(deep, fix) -> list of checks`. What is
repaired is repaired store by store, so a check may end early at any point.
"""

import os
import stat
from typing import Any

from lored.services.app import App, Call
from lored.services.operations import Operation
from lored.store import driver, maintenance, suspicion
from lored.store.database import Database
from lored.store.migrate import ForeignFile, NewerSchema
from lored.store.registry import SESSIONS_DB, store_name

CONTRIBUTORS = ("mirror", "sessions", "indexing", "recall")
"""Services asked for checks of their own, in this order."""


class Upkeep:
    """Checks and maintenance over all stores."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def verify(self, call: Call, *, deep: bool, fix: bool) -> dict[str, Any]:
        """All checks: `checks` [{name, ok, detail?, remedy?, fixed?}] and `ok` over all."""
        with self._app.operations.under_way(call, "verify") as operation:
            checks = await self._verify(operation, deep, fix)
        return {"checks": checks, "ok": all(one["ok"] or one.get("fixed") for one in checks)}

    async def _verify(self, operation: Operation, deep: bool, fix: bool) -> list[dict[str, Any]]:
        checks = [self._driver(), *self._modes(fix)]
        registry = self._app.registry
        damaged: list[tuple[Database, str]] = []
        sizes: dict[str | None, int] = {None: _size(self._app.paths.global_db)}
        for one in registry.known_workspaces():
            sizes[one] = _size(registry.workspace_path(one))
        last = _size(registry.sessions.path)
        operation.begin("checking stores", "bytes", sum(sizes.values()) + last)
        for workspace_id, size in sizes.items():
            name = self._facts_name(workspace_id)
            try:
                async with registry.facts(workspace_id) as database:
                    found = await self._store(name, database, deep, fix)
                    if found[0].pop("damaged", False):
                        damaged.append((database, store_name(workspace_id)))
                    checks += found
            except (NewerSchema, ForeignFile) as error:
                checks.append({"name": name, "ok": False, "detail": str(error)})
            operation.advance(size)
        found = await self._store("sessions", registry.sessions, deep, fix)
        if found[0].pop("damaged", False):
            damaged.append((registry.sessions, SESSIONS_DB))
        checks += found
        operation.advance(last)
        services = self._app.services
        asked = [services[name] for name in CONTRIBUTORS if hasattr(services.get(name), "verify")]
        operation.begin("comparing with mirror and sources", "checks", len(asked))
        for contributor in asked:
            checks += await contributor.verify(deep=deep, fix=fix)
            operation.advance()
        for database, stored in damaged:  # last, as the checks need the stores too
            registry.suspect(database, stored)
        return checks

    def _facts_name(self, workspace_id: str | None) -> str:
        """`facts global`, or with the folder that a workspace's id means."""
        if workspace_id is None:
            return "facts global"
        roots = self._app.workspaces.roots()
        return f"facts of {roots.get(workspace_id, workspace_id)}"

    def _driver(self) -> dict[str, Any]:
        found = driver.capabilities()
        check: dict[str, Any] = {
            "name": "sqlite driver",
            "ok": bool(found["sqlite_vec"]),
            "detail": f"{found['driver']}, SQLite {found['sqlite']}",
        }
        if not found["sqlite_vec"]:
            check["ok"] = True  # the numpy path gives the same answers
            check["detail"] += f"; vectors on numpy ({found['sqlite_vec_reason']})"
        return check

    def _modes(self, fix: bool) -> list[dict[str, Any]]:
        """No directory or file of ours is open to others."""
        paths = self._app.paths
        wrong = []
        for top in (paths.data_dir, paths.state_dir, paths.runtime_dir):
            for folder, _, names in os.walk(top):
                for path in (folder, *(f"{folder}/{name}" for name in names)):
                    try:
                        found = os.lstat(path)
                    except FileNotFoundError:
                        continue
                    if not stat.S_ISLNK(found.st_mode) and stat.S_IMODE(found.st_mode) & 0o077:
                        wrong.append(path)
                        if fix:
                            os.chmod(path, stat.S_IMODE(found.st_mode) & 0o700)
        check: dict[str, Any] = {"name": "file modes", "ok": not wrong}
        if wrong:
            check["detail"] = f"{len(wrong)} open to others, e.g. {wrong[0]}"
            check["remedy"] = "lore doctor --fix, or chmod go-rwx"
            check["fixed"] = fix
        return [check]

    async def _store(
        self, name: str, database: Database, deep: bool, fix: bool
    ) -> list[dict[str, Any]]:
        problems = await database.write_raw(lambda c: maintenance.check(c, deep=deep))
        if not problems:
            return [{"name": name, "ok": True}]
        check: dict[str, Any] = {
            "name": name,
            "ok": False,
            "detail": "; ".join(f"{one.part}: {one.detail}" for one in problems[:5]),
        }
        if all(one.repairable for one in problems):
            check["remedy"] = "lore doctor --fix rebuilds the text index"
            if fix:
                await database.write(maintenance.repair)
                left = await database.write_raw(lambda c: maintenance.check(c, deep=deep))
                check["fixed"] = not left
        else:
            suspicion.mark(database.path)
            check["damaged"] = True
            check["remedy"] = (
                "see lore status: a damaged store is set aside now and restored (facts from the "
                "newest backup and what is readable, sessions from the transcripts); "
                "where it stays: lore restart"
            )
        return [check]

    async def maintain(self, call: Call) -> dict[str, Any]:
        """Merge text indexes, refresh statistics, truncate WALs, back up when due."""
        steps: list[str] = []
        with self._app.operations.under_way(call, "maintain") as operation:
            stores = self._app.registry.open_stores()
            operation.begin("optimising", "stores", len(stores))
            for name, database in stores.items():
                await database.write(maintenance.optimize)
                await database.checkpoint()
                operation.advance()
                known = name in ("global", "sessions")
                steps.append(f"optimised {name if known else self._facts_name(name)}")
            dropped = await self._app.get("retention").run()
            if dropped:
                steps.append(f"dropped {dropped} sessions older than retention_days")
            backup = self._app.get("backup")
            if backup.age_seconds() >= 86_400:
                done = await backup.run(operation)
                steps.append(f"backed up to {done['path']}")
        return {"steps": steps}


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
