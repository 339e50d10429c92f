"""The one resolver of workspace identity: path or id in, `Workspace` out, and why.

Keeps the known workspaces (global store) in memory; looks at the file system in a thread with
a deadline, since a path may lie on a dead mount. Two spellings of one directory (letter case,
symlink, bind mount) are one workspace as long as the recorded root still is that directory;
an inode alone proves nothing, because file systems reuse them.
"""

import asyncio
import os
import re
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from lore import realms
from lore.errors import Conflict, Invalid, NotFound, Unavailable
from lored.core.clock import SECOND
from lored.services import identity
from lored.store import workspaces as rows
from lored.store.registry import Registry

LOOK_SECONDS = 2.0
"""Longest look at the file system for one path; a dead mount answers never."""

CACHE_SECONDS = 5.0
"""How long an answer is reused: a folder rarely becomes a repository between two calls."""

CACHE_ENTRIES = 4096
"""Paths remembered; an index run asks for the same few thousand again and again."""

_ID = re.compile(r"[0-9a-f]{12}")


class Workspace(NamedTuple):
    """A workspace: id (12 hex digits), root, how it was found, and the work tree that the asked
    path lies in when that is not the root."""

    id: str
    root: str
    how: str
    worktree: str | None = None


class Workspaces:
    """Resolver and register of workspaces."""

    def __init__(
        self, registry: Registry, home: str, *, realm: str = "", rules: realms.Rules = ()
    ) -> None:
        """``rules`` say to which realm a folder belongs; those of others than ``realm`` are
        refused."""
        self._registry = registry
        self._realm = realm
        self.realm_rules = rules
        self._barren = identity.barren_directories(home)
        self._known: dict[str, rows.Row] = {}
        self._by_inode: dict[tuple[int, int], str] = {}
        self._aliases: dict[str, str] = {}
        self._splits: set[str] = set()
        self._cache: OrderedDict[str, tuple[float, Workspace | None]] = OrderedDict()
        self._arrived: set[str] = set()
        self.on_arrival: Callable[[Workspace], Awaitable[None]] | None = None
        """Awaited once per workspace before the first call in it goes on (the mirror)."""

    async def load(self) -> None:
        """Read what the global store knows; call once it is open."""
        found, self._aliases, self._splits = await self._registry.global_.read(rows.load)
        for row in found:
            self._remember(row)

    def _remember(self, row: rows.Row) -> None:
        self._known[row[0]] = row
        if row[3] is not None and row[4] is not None:
            self._by_inode[row[3], row[4]] = row[0]

    async def resolve(self, path_or_id: str | None) -> Workspace | None:
        """The workspace of an existing path or a known id; None where there is none.

        Raises `Invalid` for a relative or missing path, `NotFound` for an unknown id,
        `Unavailable` when the file system does not answer within `LOOK_SECONDS`.
        """
        workspace = await self._resolve(path_or_id)
        if workspace is not None and workspace.id not in self._arrived:
            self._arrived.add(workspace.id)
            if self.on_arrival is not None:
                await self.on_arrival(workspace)
        return workspace

    async def _resolve(self, path_or_id: str | None) -> Workspace | None:
        if not path_or_id:
            return None
        if not path_or_id.startswith("/"):
            if _ID.fullmatch(path_or_id):
                return self.get(path_or_id)
            raise Invalid(f"workspace {path_or_id!r}: give an absolute path or a workspace id")
        cached = self._cache.get(path_or_id)
        if cached is not None and cached[0] > time.monotonic():
            return cached[1]
        await self._check_realm(path_or_id)
        found = await self._look(path_or_id)
        workspace = None if found is None else await self._register(found)
        self._store(path_or_id, workspace)
        return workspace

    async def _check_realm(self, path: str) -> None:
        if not self.realm_rules:
            return
        realm = await asyncio.to_thread(realms.of, path, self.realm_rules)
        if realm != self._realm:
            name = f"the realm {realm}" if realm else "no realm"
            raise Invalid(
                f"workspace {path} belongs to {name}, this memory is that of "
                f"{self._realm or 'no realm'}; nothing is shared between realms"
            )

    def get(self, workspace_id: str) -> Workspace:
        """A known workspace by id; raises `NotFound`."""
        row = self._known.get(workspace_id)
        if row is None:
            raise NotFound(f"no workspace {workspace_id}; `lore workspace list` shows all")
        return Workspace(row[0], row[1], row[2])

    async def identify(self, cwd: str) -> str | None:
        """The id of a session's working directory, which may be gone or of another machine.

        A missing directory belongs to the known workspace it lay in, else it is a workspace of
        its own. None for directories that never are one.
        """
        if not cwd:
            return None
        try:
            workspace = await self._resolve(cwd) if cwd.startswith("/") else None
        except (Invalid, Unavailable):
            workspace = None
        else:
            if cwd.startswith("/"):
                return None if workspace is None else workspace.id
        path = cwd.rstrip("/") or "/"
        if path in self._barren:
            return None
        cached = self._cache.get(path)
        if cached is not None and cached[0] > time.monotonic() and cached[1] is not None:
            return cached[1].id
        workspace = self._inside_known(path)
        if workspace is None:
            how = "directory of a session, not on this machine now"
            workspace = await self._register(identity.Found(path, how, None, None, None))
        self._store(path, workspace)
        return workspace.id

    def _inside_known(self, path: str) -> Workspace | None:
        if path in self._aliases:
            return self.get(self._aliases[path])
        best: rows.Row | None = None
        for row in self._known.values():
            inside = path == row[1] or path.startswith(row[1] + "/")
            # Only directories once seen here can claim what lay inside them.
            if inside and (row[3] is not None or path == row[1]):
                best = row if best is None or len(row[1]) > len(best[1]) else best
        return None if best is None else Workspace(best[0], best[1], best[2])

    def _store(self, path: str, workspace: Workspace | None) -> None:
        self._cache[path] = (time.monotonic() + CACHE_SECONDS, workspace)
        self._cache.move_to_end(path)
        while len(self._cache) > CACHE_ENTRIES:
            self._cache.popitem(last=False)

    async def _look(self, path: str) -> identity.Found | None:
        def look() -> identity.Found | None:
            return identity.find(path, barren=self._barren, splits=self._splits)

        try:
            async with asyncio.timeout(LOOK_SECONDS):
                return await asyncio.to_thread(look)
        except TimeoutError:
            raise Unavailable(
                f"workspace {path}: its file system did not answer within {LOOK_SECONDS:g} s"
            ) from None
        except (FileNotFoundError, NotADirectoryError):
            raise Invalid(f"workspace {path} does not exist") from None
        except OSError as error:
            raise Invalid(f"workspace {path}: {error.strerror}") from None

    async def _register(self, found: identity.Found) -> Workspace:
        if found.root in self._aliases:
            target = self.get(self._aliases[found.root])
            return target._replace(how=f"alias of {target.root}", worktree=found.worktree)
        workspace_id = self._same_directory(found) or identity.workspace_id(found.root)
        known = self._known.get(workspace_id)
        if known is None or (found.inode is not None and known[3:] != (found.device, found.inode)):
            root = found.root if known is None else known[1]
            row = (workspace_id, root, found.how, found.device, found.inode)
            await self._registry.global_.write(
                lambda c: rows.put(c, row, int(time.time() * SECOND))
            )
            self._remember(row)
        return Workspace(workspace_id, self._known[workspace_id][1], found.how, found.worktree)

    def _same_directory(self, found: identity.Found) -> str | None:
        """Id recorded for this very directory under another spelling."""
        if found.device is None or found.inode is None:
            return None
        known = self._by_inode.get((found.device, found.inode))
        if known is None:
            return None
        try:
            there = os.stat(self._known[known][1])
        except OSError:
            return None
        same = (there.st_dev, there.st_ino) == (found.device, found.inode)
        return known if same else None

    async def alias(self, path: str, target: str) -> Workspace:
        """Let the workspace of ``path`` share the memory of ``target`` (path or id) from now on.

        Raises `Conflict` when ``path`` has facts of its own: they would fall out of sight.
        """
        goal = await self.resolve(target)
        if goal is None:
            raise Invalid(f"{target} is not a workspace")
        found = await self._look(path)
        root = found.root if found is not None else os.path.realpath(path)
        own = identity.workspace_id(root)
        if own == goal.id:
            raise Conflict(f"{path} already is workspace {goal.id}")
        if self._registry.has_facts(own):
            raise Conflict(
                f"{root} has facts of its own; export them first: "
                f"lore --workspace {root} export > facts.jsonl, then import them into {goal.root}"
            )
        await self._registry.global_.write(lambda c: rows.put_alias(c, root, goal.id))
        self._aliases[root] = goal.id
        self._splits.discard(root)
        self._cache.clear()
        return goal

    async def split(self, path: str) -> Workspace:
        """Make a directory inside a larger workspace one of its own (monorepo parts)."""
        found = await self._look(path)
        root = os.path.realpath(path)
        if found is None or root in self._barren:
            raise Invalid(f"{path} can never be a workspace")
        await self._registry.global_.write(lambda c: rows.put_split(c, root))
        self._splits.add(root)
        self._aliases.pop(root, None)
        self._cache.clear()
        workspace = await self.resolve(root)
        if workspace is None:
            raise Invalid(f"{path} can never be a workspace")
        return workspace

    def roots(self) -> dict[str, str]:
        """The folder of every known workspace, by id."""
        return {row[0]: row[1] for row in self._known.values()}

    def known(self) -> list[dict[str, object]]:
        """All known workspaces in wire form, with aliases and whether they hold facts."""
        aliases: dict[str, list[str]] = {}
        for path, target in self._aliases.items():
            aliases.setdefault(target, []).append(path)
        return [
            {
                "id": row[0],
                "root": row[1],
                "how": row[2],
                "here": row[3] is not None,
                "facts": self._registry.has_facts(row[0]),
                "aliases": sorted(aliases.get(row[0], [])),
            }
            for row in sorted(self._known.values(), key=lambda row: row[1])
        ]

    def moved_from(self, workspace: Workspace) -> list[str]:
        """Roots that are gone and have the same last name: where this one may have moved from."""
        name = os.path.basename(workspace.root)
        return sorted(
            row[1]
            for row in self._known.values()
            if os.path.basename(row[1]) == name
            and row[0] != workspace.id
            and self._registry.has_facts(row[0])
            and not os.path.isdir(row[1])
        )
