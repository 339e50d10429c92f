"""Transcript samples and a plain reader of them, without the daemon.

`SAMPLES` are those in the repository. `all_samples()` adds a larger collection when it lies
in a folder that `LORE_SHARED_DATA` names, or beside the repository.
"""

import gzip
import os
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgpack
import zstandard

from lored.core.transcripts import classify, default_roots, parser_for
from lored.core.transcripts.records import (
    Action,
    Compaction,
    Damage,
    Message,
    Record,
    Rollback,
    SessionPatch,
)

SAMPLES = Path(__file__).parents[1] / "data" / "transcripts"
_REPOSITORY = Path(__file__).parents[2]
_SHARED = Path(os.environ.get("LORE_SHARED_DATA") or _REPOSITORY.parent / "shared" / "data")
SHARED = _SHARED / "transcripts" if (_SHARED / "transcripts").is_dir() else None


@dataclass(frozen=True)
class Sample:
    """One transcript: agent, file, and the home directory that it lies in."""

    agent: str
    path: Path
    home: Path

    def __str__(self) -> str:
        return str(self.path.relative_to(self.home.parent))[-90:]


def samples_of(data: Path) -> Iterator[Sample]:
    """Every transcript below the homes in ``data``, found as the daemon finds them."""
    for home in sorted(path for path in data.iterdir() if path.is_dir()):
        for root in default_roots({}, str(home)):
            base = Path(root.path)
            if not base.is_dir():
                continue
            for path in sorted(base.rglob("*")):
                relative = path.relative_to(base).as_posix()
                if path.is_file() and classify(root.agent, relative) == "transcript":
                    yield Sample(root.agent, path, home)
        for path in sorted(home.glob("*/.aider.chat.history.md")):
            yield Sample("aider", path, home)


def all_samples() -> list[Sample]:
    """Samples of the repository and, when present, of the larger collection."""
    found = list(samples_of(SAMPLES))
    known = {sample.path.name: sample.path.stat().st_size for sample in found}
    for sample in samples_of(SHARED) if SHARED is not None else ():
        if known.get(sample.path.name) != sample.path.stat().st_size:
            found.append(sample)
    return found


def content(path: Path) -> bytes:
    """A file's bytes, decompressed."""
    data = path.read_bytes()
    if path.suffix == ".zst":
        return zstandard.ZstdDecompressor().stream_reader(data).read()
    return gzip.decompress(data) if path.suffix == ".gz" else data


def read_lines(parser: Any, path: str, data: bytes, *, packed: bool = False) -> list[Record]:
    """Records of a line file. ``packed``: the state goes through MessagePack between lines."""
    state = parser.begin(path)
    records: list[Record] = []
    offset = 0
    for line in data.split(b"\n"):
        if line.strip(b" \t\r"):
            records.extend(parser.parse(state, line, offset))
            if packed:
                state = msgpack.unpackb(msgpack.packb(state), strict_map_key=False)
        offset += len(line) + 1
    return records


def read(sample: Sample, *, packed: bool = False) -> dict[str, list[Record]]:
    """Records of a sample by native session id, with those of its sidecars."""
    path = str(sample.path)
    parser: Any = parser_for(sample.agent, path)
    found: dict[str, list[Record]] = {}
    if hasattr(parser, "parse_database"):
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        try:
            for name, records, _ in parser.parse_database(connection, {}):
                found.setdefault(name, []).extend(records)
        finally:
            connection.close()
        return found
    data = content(sample.path)
    plain = path.removesuffix(".zst").removesuffix(".gz")
    document = hasattr(parser, "parse_document")
    name = parser.session_id(plain, data if document else data[:4096])
    if name is None:
        return found
    records = (
        list(parser.parse_document(plain, data))
        if document
        else read_lines(parser, plain, data, packed=packed)
    )
    for sidecar in parser.sidecars(plain):
        if Path(sidecar).is_file():
            records.extend(parser.parse_sidecar(sidecar, Path(sidecar).read_bytes()))
    for record in records:
        owner = getattr(record, "session", None) or name
        found.setdefault(owner, []).append(record)
    return found


def session_of(records: Iterable[Record]) -> dict[str, Any]:
    """What all patches together say: the last wins, but the first start and the latest end."""
    found: dict[str, Any] = {}
    for record in records:
        if not isinstance(record, SessionPatch):
            continue
        for name in SessionPatch.__slots__:
            value = getattr(record, name)
            if name in ("session", "_") or value is None or value == {}:
                continue
            if name == "started_at" and name in found:
                value = min(value, found[name])
            elif name == "ended_at" and name in found:
                value = max(value, found[name])
            elif name == "extra":
                value = {**found.get("extra", {}), **value}
            found[name] = value
    return found


def messages(records: Iterable[Record], *roles: str) -> list[Message]:
    """Messages of the given roles as the store would keep them: one per key, the first, unless
    a later one replaces it."""
    kept: dict[str, Message] = {}
    for record in records:
        if isinstance(record, Message) and (record.key not in kept or record.replaces):
            kept[record.key] = record
    return [message for message in kept.values() if not roles or message.role in roles]


def texts(records: Iterable[Record], *roles: str) -> list[str]:
    """Their texts."""
    return [message.text for message in messages(records, *roles)]


def actions(records: Iterable[Record]) -> dict[str, Action]:
    """Actions by key, later non-empty fields over earlier ones."""
    kept: dict[str, Action] = {}
    for record in records:
        if not isinstance(record, Action):
            continue
        action = kept.setdefault(record.key, record)
        for name in ("target", "command", "exit_code", "ended_at", "output_excerpt", "commit"):
            value = getattr(record, name)
            if value is not None:
                setattr(action, name, value)
        if record.status != "running":
            action.status = record.status
    return kept


def damage(records: Iterable[Record], *, lost: bool | None = None) -> list[str]:
    """Reasons of damage, in order."""
    return [
        record.reason
        for record in records
        if isinstance(record, Damage) and (lost is None or record.lost is lost)
    ]


def strings(value: Any) -> Iterator[str]:
    """Every string in a record."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from strings(name)
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)
    elif isinstance(value, SessionPatch | Message | Action | Compaction | Rollback | Damage):
        for name in type(value).__slots__:
            yield from strings(getattr(value, name))
