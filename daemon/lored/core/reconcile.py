"""What to read: a listing of files compared with the stored cursors gives a plan. Pure.

The listing is the truth, events are only a reason to look. For each file that is listed:

1. No cursor: *new*. Unless it is an old acquaintance under another name: a cursor whose file
   is missing and that has the same device and inode (*renamed*), or whose name differs only
   by `.zst` or `.gz` (*compressed*, or written out plain again, also when the other form was
   found missing before). Then the cursor moves along, once the worker has seen that the
   content fits: numbers of inodes are used again. A compressed file beside its plain form is
   not read: the plain one wins.
2. The same size, times and identity: nothing to do, unless the parser is another one now
   (*reparse*), a failed file is due (*retry*), or an unfinished last line has been left alone
   for `SETTLE_SECONDS` (*settle*: it will not be finished any more).
3. Another inode (*replaced*), fewer bytes (*shrunk*), more bytes (*grown*), or just another
   time (*touched*). All but the last are verified by the worker with the hashes of the
   cursor: it goes on at the offset when they fit and begins anew when not. A *touched* file
   of the same size is read anew, since only its middle may have changed; unless its stored
   time was too fresh to be trusted (`FRESH_NS`), then its hashes are checked (*verify*).
4. A file that failed is left alone until its time comes, also when it grows: else a hostile
   file that is written to all day costs a crash a second. A new parser version is a reason
   to try at once.

Files that have a cursor but are not listed are *gone*, if the whole root could be listed;
what was read from them stays. Additions come before removals, so a rename never loses.
Steps are ordered newest first: useful answers come from recent sessions.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

FRESH_NS: Final = 2_000_000_000
"""A file time this close to the look may stay the same for the next write (FAT has 2 s)."""

SETTLE_SECONDS: Final = 600
"""An unfinished line this old will not be finished: writers flush whole lines within seconds."""

BACKOFF_SECONDS: Final = (0, 60, 600, 3_600, 21_600, 86_400)
"""Wait after the n-th failure of a file: once at once (the worker may have been killed from
outside), then rarer, at most daily, for ever: the reason may go away."""

COMPRESSED: Final = (".zst", ".gz")

Change = Literal[
    "new",
    "grown",
    "replaced",
    "shrunk",
    "touched",
    "verify",
    "renamed",
    "compressed",
    "reparse",
    "retry",
    "settle",
    "sidecar",
    "forced",
]


class Seen(NamedTuple):
    """A file as listed: identity, size in bytes, time of change in nanoseconds."""

    device: int
    inode: int
    size: int
    mtime_ns: int


@dataclass(slots=True)
class Cursor:
    """What is stored about a file, as far as planning needs it. ``mtime_ns`` None: not to be
    trusted. ``retry_at`` in microseconds. ``pending``: bytes of an unfinished last line."""

    id: int
    path: str
    agent: str
    root: str
    device: int | None
    inode: int | None
    size: int
    mtime_ns: int | None
    offset: int
    parser_version: int
    failures: int = 0
    retry_at: int | None = None
    gone: bool = False
    blocked: bool = False
    pending: bool = False

    def fits(self, seen: Seen) -> bool:
        """Whether the file is exactly as it was when it was last looked at."""
        device, inode, size, mtime_ns = seen
        return (
            self.mtime_ns == mtime_ns
            and self.size == size
            and self.inode == inode
            and self.device == device
        )


class Step(NamedTuple):
    """One file to read and why. ``cursor`` is where to go on (its path may be the old one)."""

    change: Change
    path: str
    seen: Seen
    cursor: Cursor | None


@dataclass(slots=True)
class Plan:
    """What follows from one listing. ``waiting``: failed files whose time has not come;
    ``shadowed``: compressed files beside their plain form; ``back``: gone files that are
    there again, unchanged."""

    steps: list[Step] = field(default_factory=list)
    gone: list[Cursor] = field(default_factory=list)
    back: list[Cursor] = field(default_factory=list)
    waiting: int = 0
    shadowed: int = 0


def reconcile(
    listing: Mapping[str, Seen],
    cursors: Mapping[str, Cursor],
    *,
    now: int,
    complete: bool,
    outdated: Callable[[Cursor], bool] = lambda cursor: False,
    sidecars: Mapping[str, Sequence[str]] | None = None,
) -> Plan:
    """The plan for one root.

    Args:
        listing: path -> file, everything of the root that is to be read.
        cursors: path -> cursor, all of this root.
        now: microseconds UTC.
        complete: whether the whole root was listed, so that what is missing is gone.
        outdated: whether another version of its parser has read a file.
        sidecars: path -> its transcripts, for listed files that are only read with those.
    """
    plan = Plan()
    sidecars = sidecars or {}
    fresh: list[str] = []
    owners: set[str] = set()
    for path, seen in listing.items():
        cursor = cursors.get(path)
        if cursor is None:
            fresh.append(path)
            continue
        if cursor.gone:
            plan.back.append(cursor)
        if cursor.blocked:
            continue
        if path in sidecars:
            if not cursor.fits(seen):
                owners.update(sidecars[path])
            continue
        change = _change(cursor, seen, outdated(cursor), now)
        if change == "waiting":
            plan.waiting += 1
        elif change is not None:
            plan.steps.append(Step(change, path, seen, cursor))
    missing = {path: c for path, c in cursors.items() if path not in listing}
    _place(plan, fresh, listing, missing, sidecars, owners)
    planned = {step.path for step in plan.steps}
    for owner in owners - planned:
        if owner in listing and not (owner in cursors and cursors[owner].blocked):
            plan.steps.append(Step("sidecar", owner, listing[owner], cursors.get(owner)))
    if complete:
        plan.gone = [cursor for cursor in missing.values() if not cursor.gone]
    plan.steps.sort(key=lambda step: (-step.seen.mtime_ns, step.path))
    return plan


def _change(
    cursor: Cursor, seen: Seen, outdated: bool, now: int
) -> Change | Literal["waiting"] | None:
    if outdated:
        return "reparse"
    if cursor.failures:
        due = cursor.retry_at is None or now >= cursor.retry_at
        return "retry" if due else "waiting"
    if cursor.fits(seen):
        settled = cursor.pending and now * 1_000 - seen.mtime_ns > SETTLE_SECONDS * 1_000_000_000
        return "settle" if settled else None
    if (cursor.device, cursor.inode) != (seen.device, seen.inode):
        return "replaced"
    if seen.size != cursor.size:
        return "grown" if seen.size > cursor.size else "shrunk"
    return "verify" if cursor.mtime_ns is None else "touched"


def _place(
    plan: Plan,
    fresh: list[str],
    listing: Mapping[str, Seen],
    missing: dict[str, Cursor],
    sidecars: Mapping[str, Sequence[str]],
    owners: set[str],
) -> None:
    """Sort files without a cursor into new, renamed and compressed; takes what is found again
    out of ``missing``."""
    by_inode = {(c.device, c.inode): c for c in missing.values() if c.inode and not c.gone}
    for path in fresh:
        seen = listing[path]
        if path in sidecars:
            owners.update(sidecars[path])
            continue
        plain = plain_name(path)
        if plain != path and plain in listing:
            plan.shadowed += 1
            continue
        cursor = by_inode.get((seen.device, seen.inode))
        change: Change = "renamed"
        if cursor is None or (seen.size < cursor.offset and plain_name(cursor.path) == cursor.path):
            cursor = next((missing[name] for name in other_forms(path) if name in missing), None)
            change = "compressed"
        if cursor is None or cursor.path not in missing or cursor.blocked:
            plan.steps.append(Step("new", path, seen, None))
            continue
        del missing[cursor.path]
        plan.steps.append(Step(change, path, seen, cursor))


def plain_name(path: str) -> str:
    """``path`` without the ending of a compressed form."""
    for ending in COMPRESSED:
        if path.endswith(ending):
            return path[: -len(ending)]
    return path


def other_forms(path: str) -> list[str]:
    """The names that a file has when it is plain, or packed in another way."""
    plain = plain_name(path)
    return [name for name in (plain, *(plain + end for end in COMPRESSED)) if name != path]


def retry_at(failures: int, now: int) -> int:
    """When a file that failed ``failures`` times is due again, microseconds UTC."""
    wait = BACKOFF_SECONDS[min(failures, len(BACKOFF_SECONDS)) - 1]
    return now + wait * 1_000_000


def trusted_mtime(mtime_ns: int, looked_at: int) -> int | None:
    """The time to store for a file looked at at ``looked_at`` (microseconds UTC): None when a
    later write might leave it the same. Times in the future are never trusted."""
    return mtime_ns if looked_at * 1_000 - mtime_ns > FRESH_NS else None
