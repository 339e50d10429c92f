"""What the indexer says about itself: roots with mode, counts, lag, damage and warnings.

Health is lag, not liveness: a root that is watched but whose changes are not read says so,
and a root that yields nothing where something should be is a warning, never silence.
"""

import asyncio
import os
from typing import TYPE_CHECKING, Any, Final

from lored.core.clock import to_wire
from lored.services.app import App
from lored.services.indexing.roots import Root
from lored.services.moments import now
from lored.store.sessions import cursors
from lored.store.sessions.totals import totals

if TYPE_CHECKING:
    from lored.services.indexing.indexer import Indexing

LAG_WARNING_MS: Final = 120_000
"""A change that waits longer while nothing is backfilled is a reason to look."""

NAMED: Final = 5
"""Failing files and errors that are named."""

UNKNOWN: Final = ("unknown_type:", "unknown_version:")


class IndexReport:
    """Builds the answers of `index_status`, `sources` and `verify`."""

    def __init__(self, indexing: "Indexing", app: App) -> None:
        self._indexing = indexing
        self._app = app

    def off_reason(self) -> str:
        """Why nothing is indexed."""
        if self._indexing.sources.problem:
            return self._indexing.sources.problem
        return "indexing is switched off; set index_enabled = true in config.toml"

    async def status(self) -> dict[str, Any]:
        """State, progress and roots."""
        indexing = self._indexing
        found: dict[str, Any] = {
            "state": indexing.state,
            "progress": indexing.progress.describe(indexing.state),
            "queue": len(indexing.backlog),
            "worker": indexing.pipeline.pid,
            "worker_starts": indexing.pipeline.starts,
            "roots": await self.roots(),
        }
        if indexing.looking.watches is not None:
            found["watches"] = indexing.looking.watches
            found["watch_limit"] = indexing.looking.limit
        if indexing.looking.hints is not None:
            found["events_lost"] = indexing.looking.hints.overflows
        if indexing.state == "off":
            found["reason"] = self.off_reason()
        if indexing.trouble:
            found["reason"] = indexing.trouble
        return found

    async def roots(self) -> list[dict[str, Any]]:
        """All roots that exist or ever held something, or were named by the user."""
        stored = await self._app.registry.sessions.read(totals)
        found = []
        for key, root in self._indexing.roots.items():
            counts = stored.get(key, {})
            if root.exists or counts or root.origin in ("config", "added", "environment"):
                found.append(self._root(root, counts))
        return found

    def _root(self, root: Root, counts: dict[str, Any]) -> dict[str, Any]:
        waiting = self._indexing.backlog.of_root(root.key)
        at = now()
        oldest = min((item.noticed_at for item in waiting if item.hot), default=at)
        found: dict[str, Any] = {
            "agent": root.spec.agent,
            "path": root.spec.path,
            "origin": root.origin,
            "enabled": root.enabled,
            "mode": root.mode,
            "files": root.files,
            "pending": len(waiting),
            "lag_ms": (at - oldest) // 1_000,
            "folders": root.folders,
            "quarantined": counts.get("failed", 0),
            **{
                name: counts.get(name, 0)
                for name in ("sessions", "messages", "bytes", "records", "gone", "blocked")
            },
        }
        for name, instant in (
            ("newest_at", counts.get("newest")),
            ("oldest_at", counts.get("oldest")),
            ("last_sweep_at", root.swept_at),
            ("last_progress_at", root.progress_at),
        ):
            if instant is not None:
                found[name] = to_wire(instant)
        if root.watched is not None and root.watched.reason:
            found["reason"] = root.watched.reason
        if counts.get("damage"):
            found["damage"] = counts["damage"]
        if counts.get("failing"):
            found["failing"] = counts["failing"][:NAMED]
        found["warnings"] = self._warnings(root, counts, found)
        return found

    def _warnings(self, root: Root, counts: dict[str, Any], found: dict[str, Any]) -> list[str]:
        warnings: list[str] = []
        settled = self._indexing.looking.swept and not found["pending"]
        if root.hanging:
            warnings.append(f"{root.spec.path} does not answer (a dead mount?); it is tried again")
        if root.enabled and not root.exists and root.origin in ("config", "added", "environment"):
            warnings.append(f"{root.spec.path} does not exist")
        if root.enabled and root.exists and settled and not root.files and root.complete:
            warnings.append("no transcript was found here; has the agent moved its sessions?")
        elif root.files and settled and not counts.get("messages") and not counts.get("blocked"):
            warnings.append(f"{root.files} files give no message; is the format a newer one?")
        if root.limited:
            limit = self._indexing.looking.limit
            warnings.append(
                f"not every folder can be watched (fs.inotify.max_user_watches is {limit}); "
                "appended text is found by looking, every few seconds"
            )
        warnings += [f"cannot read {error}" for error in root.errors[:NAMED]]
        if root.odd_names:
            warnings.append(f"{root.odd_names} names are not UTF-8 and were left out")
        if root.links_out:
            warnings.append(
                f"{root.links_out} files are links that lead out of this root and are not read; "
                "add the folder they lead to: lore sources --add AGENT=PATH"
            )
        for reason, count in counts.get("damage", {}).items():
            if reason.startswith(UNKNOWN):
                kind, _, name = reason.partition(":")
                warnings.append(f"{count} records of {kind.replace('_', ' ')} {name}")
        for failing in counts.get("failing", ())[:NAMED]:
            warnings.append(
                f"{failing['path']} failed {failing['failures']} times: {failing['error']}"
            )
        if found["lag_ms"] > LAG_WARNING_MS and self._indexing.state != "indexing":
            warnings.append(f"changes wait for {found['lag_ms'] // 1_000} s")
        return warnings

    def degraded(self) -> list[dict[str, str]]:
        """What does not work as it should, with the remedy."""
        indexing = self._indexing
        modes: list[tuple[str, str, str]] = []
        if indexing.sources.problem:
            modes.append(("no_index", indexing.sources.problem, "then: lore restart"))
        if indexing.trouble:
            remedy = "free space, or check the disk; it goes on by itself"
            if indexing.pipeline.replaced:
                remedy = "lore restart"
            elif indexing.pipeline.broken_until is not None:
                remedy = "see lore logs; it is tried again within a minute"
            modes.append(("index_waits", indexing.trouble, remedy))
        if any(root.limited for root in indexing.roots.values()):
            modes.append(
                (
                    "watch_limit",
                    "folders have no watch because the inotify limit is reached",
                    "raise fs.inotify.max_user_watches (sysctl); until then files are polled",
                )
            )
        for root in (one for one in indexing.roots.values() if one.hanging):
            remedy = (
                f"check the mount, or: lore sources --remove {root.spec.agent}={root.spec.path}"
            )
            modes.append(("root_hangs", f"{root.spec.path} does not answer", remedy))
        for name, problem in indexing.format_problems.items():
            modes.append(("no_format", f"format {name}: {problem}", "repair or remove the package"))
        return [
            {"name": name, "reason": reason, "remedy": remedy} for name, reason, remedy in modes
        ]

    async def verify(self, *, deep: bool, fix: bool) -> list[dict[str, Any]]:
        """Index against sources: every file is read to its end, or the reason is known."""
        unread: list[str] = []
        known = await self._app.registry.sessions.read(cursors.load)
        for cursor in known:
            root = self._indexing.roots.get((cursor.agent, cursor.root))
            if root is None or not root.enabled:
                continue  # of a source that is none any more: what was read of it stays
            if cursor.gone or cursor.blocked or cursor.failures:
                continue
            size = await asyncio.to_thread(_size, cursor.path)
            if (
                size is not None
                and size > cursor.size
                and cursor.path not in self._indexing.backlog
            ):
                unread.append(cursor.path)
        check: dict[str, Any] = {"name": "index against sources", "ok": not unread}
        check["detail"] = f"{len(known)} files, {len(unread)} with unread text"
        if unread:
            check["remedy"] = "lore index --wait"
            if fix and self._indexing.looking.hints is not None:
                await self._indexing.index(None, force=False)
                check["fixed"] = True
        failing = [cursor.path for cursor in known if cursor.failures]
        checks = [check]
        if failing:
            checks.append(
                {
                    "name": "files that fail",
                    "ok": False,
                    "detail": f"{len(failing)}, e.g. {failing[0]}",
                    "remedy": "see lore sources; lore index --force PATH tries one again",
                }
            )
        return checks


def _size(path: str) -> int | None:
    try:
        return os.stat(path).st_size
    except OSError:
        return None
