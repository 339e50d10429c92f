"""Whether what a fact speaks about has changed since it was stated or verified.

A fact is bound to files and a commit by its `source_ref` (`file:PATH`, `commit:ID`, a path;
several with blanks or commas between) and by entities of type `file` that exist. Of a file,
size, time and content are compared, the content only when the rest differs. A commit stands
for the state of its repository: once HEAD is another one, the fact is unverified.

Looks at the file system, so it runs in a thread and within a deadline: a dead mount must not
hold up an answer.
"""

import asyncio
import os
import re
import stat
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Final

from lored.store.facts.bindings import Binding

HASHED_BYTES: Final = 16 << 20
"""A larger file is compared by size and time alone."""

FILES: Final = 16
"""Files bound to one fact."""

LOOK_SECONDS: Final = 0.5
"""For all bindings of one answer; without an answer in time nothing is said about them."""

_SPLIT: Final = re.compile(r"[\s,]+")
_PLACE: Final = re.compile(r"(?::\d+(?:-\d+)?(?::\d+)?|#\S*)$")
_COMMIT: Final = re.compile(r"commit:([0-9a-f]{4,64})", re.IGNORECASE)


def possible(source_ref: str | None, entities: Sequence[str], root: str | None) -> bool:
    """Whether a fact could be bound to anything at all; spares the look at the disk. Without
    a ``root`` only absolute paths can."""
    named = [part for part in _SPLIT.split(source_ref or "") if part and "://" not in part]
    named += [entity for entity in entities if entity[:5].lower() == "file:"]
    return bool(named) and (root is not None or any("/" in part[:6] for part in named))


async def bind(source_ref: str | None, entities: Sequence[str], root: str | None) -> list[Binding]:
    """What a fact is bound to, as it is now; relative paths are looked for under ``root``."""
    if not possible(source_ref, entities, root):
        return []
    try:
        return await asyncio.wait_for(
            asyncio.to_thread(_bind, source_ref, entities, root), LOOK_SECONDS
        )
    except TimeoutError:
        return []


async def changed(bindings: Mapping[int, Sequence[Binding]]) -> dict[int, str]:
    """Fact -> why it is unverified, for those facts whose files or commit have changed."""
    if not bindings:
        return {}

    def look() -> dict[int, str]:
        found = {}
        for fact, bound in bindings.items():
            reasons = [reason for one in bound if (reason := _changed(one)) is not None]
            if reasons:
                found[fact] = "; ".join(reasons)
        return found

    try:
        return await asyncio.wait_for(asyncio.to_thread(look), LOOK_SECONDS)
    except TimeoutError:
        return {}


def _bind(source_ref: str | None, entities: Sequence[str], root: str | None) -> list[Binding]:
    found: dict[str, Binding] = {}
    names = [part for part in _SPLIT.split(source_ref or "") if part]
    names += [entity for entity in entities if entity.lower().startswith("file:")]
    for name in names:
        if _COMMIT.fullmatch(name):
            head = None if root is None else head_of(root)
            if root is not None and head is not None:
                found[root] = Binding(f"commit:{root}", None, None, head.encode())
            continue
        path = name[5:] if name.lower().startswith("file:") else name
        for one in (path, _PLACE.sub("", path)):
            whole = os.path.join(root, one) if root and not one.startswith("/") else one
            if whole.startswith("/") and whole not in found and len(found) < FILES:
                binding = _look(os.path.normpath(whole))
                if binding is not None:
                    found[whole] = binding
                    break
    return list(found.values())


def _look(path: str) -> Binding | None:
    """A regular file as it is now; None for anything else."""
    try:
        about = os.stat(path)
        if not stat.S_ISREG(about.st_mode):
            return None
        hashed = _hash(path) if about.st_size <= HASHED_BYTES else None
    except (OSError, ValueError):
        return None
    return Binding(f"file:{path}", about.st_size, about.st_mtime_ns, hashed)


def _hash(path: str) -> bytes:
    digest = blake2b(digest_size=16)
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.digest()


def _changed(binding: Binding) -> str | None:
    kind, _, where = binding.target.partition(":")
    if kind == "commit":
        head = head_of(where)
        was = (binding.hash or b"").decode()
        if head is None or head == was:
            return None
        return f"stated at commit {was[:12]}, HEAD is {head[:12]} now"
    name = os.path.basename(where)
    try:
        about = os.stat(where)
        if (about.st_size, about.st_mtime_ns) == (binding.size, binding.mtime_ns):
            return None
        if binding.hash is not None and about.st_size == binding.size:
            return None if _hash(where) == binding.hash else f"{name} has changed since"
    except FileNotFoundError:
        return f"{name} is gone"
    except OSError:
        return None
    return f"{name} has changed since"


def head_of(root: str) -> str | None:
    """The commit that HEAD of the repository at ``root`` is at, read from its files (loose and
    packed refs, linked work trees); None when that cannot be told."""
    try:
        git = os.path.join(root, ".git")
        if os.path.isfile(git):
            with open(git, encoding="utf-8") as file:
                git = os.path.join(root, file.read().partition("gitdir:")[2].strip())
        with open(os.path.join(git, "HEAD"), encoding="utf-8") as file:
            head = file.read().strip()
        if not head.startswith("ref:"):
            return head or None
        ref, common = head[4:].strip(), git
        link = os.path.join(git, "commondir")
        if os.path.isfile(link):
            with open(link, encoding="utf-8") as file:
                common = os.path.normpath(os.path.join(git, file.read().strip()))
        loose = os.path.join(common, ref)
        if os.path.isfile(loose):
            with open(loose, encoding="utf-8") as file:
                return file.read().strip() or None
        with open(os.path.join(common, "packed-refs"), encoding="utf-8") as file:
            for line in file:
                if line.rstrip().endswith(" " + ref):
                    return line.split(" ", 1)[0]
    except (OSError, ValueError):
        return None
    return None
