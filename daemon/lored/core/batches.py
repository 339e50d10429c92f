"""What the worker hands to the daemon: rows ready to be stored, and the cursor after them.

Pure values in a form that MessagePack holds. A batch is stored in one transaction together
with its cursor; a cursor never points behind a record that is not stored. Texts are redacted
and in their stored form, keys are hashed, words for the index are made: the daemon only
writes.
"""

from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import blake3

KEY_BYTES: Final = 16
"""Of a record's key: 2^64 records until a collision is likely."""


def record_key(agent: str, key: str) -> bytes:
    """The stored key of an agent's record."""
    digest: bytes = blake3.blake3(f"{agent}\0{key}".encode("utf-8", "replace")).digest(KEY_BYTES)
    return digest


def session_key(agent: str, native_id: str) -> bytes:
    """The key of a session in `tombstones`."""
    return record_key(agent, f"session\0{native_id}")


class MessageRow(NamedTuple):
    """One message. ``session``: native id; ``at``: microseconds UTC; ``text``: stored form;
    ``words``, ``context``: forms for the text index; ``vector``: int8 bytes."""

    session: str
    key: bytes
    record_key: str | None
    role: int
    at: int | None
    text: str | bytes
    truncated_bytes: int
    flags: int
    replaces: bool
    words: str
    context: str
    vector: bytes | None


class ActionRow(NamedTuple):
    """One action, begun or ended; None fields say nothing new. ``message``: key of the message
    that made the call, ``output``: of the one that holds its output."""

    session: str
    key: bytes
    message: bytes | None
    output: bytes | None
    kind: str
    tool: str
    target: str | None
    command: str | None
    status: str
    exit_code: int | None
    started_at: int | None
    ended_at: int | None
    excerpt: str | bytes | None
    commit: str | None


class CompactionRow(NamedTuple):
    """A model's condensed record; ``kept_facts`` and ``next_steps`` are JSON lists."""

    session: str
    key: bytes
    at: int | None
    summary: str
    kept_facts: str
    next_steps: str


class Stated(NamedTuple):
    """A tool call that asked a memory to remember ``text`` (verbatim: it is compared with
    facts). ``message``: key of the message that made the call, ``at``: when; ``secret``: the
    text holds one and must not be stored."""

    session: str
    message: bytes | None
    at: int | None
    text: str
    entities: list[str]
    secret: bool


class RollbackRow(NamedTuple):
    """What stands before is void: the last ``turns`` user turns, or all from a message on; or
    what stands in the file ``part`` from ``offset`` on (`records.Rollback`)."""

    session: str
    turns: int
    from_key: bytes | None
    part: str | None
    offset: int


Row = MessageRow | ActionRow | CompactionRow | RollbackRow
_ROWS: Final[tuple[type[Row], ...]] = (MessageRow, ActionRow, CompactionRow, RollbackRow)
_NUMBER: Final = {kind: number for number, kind in enumerate(_ROWS)}


class Place(NamedTuple):
    """A cursor after a batch, and the file as it was read. ``mtime_ns`` None: not to be
    trusted; ``pending``: an unfinished line stands behind ``offset``."""

    offset: int
    scanned: int
    head_hash: bytes | None
    tail_hash: bytes | None
    state: bytes | None
    device: int
    inode: int
    size: int
    mtime_ns: int | None
    version: int
    pending: bool


class SidecarSeen(NamedTuple):
    """A sidecar that was read with its transcript."""

    path: str
    device: int
    inode: int
    size: int
    mtime_ns: int | None


@dataclass(slots=True)
class Batch:
    """Rows of one file, in file order, and the place after them.

    ``patches``: native id -> changed session fields. ``folds``: native id -> (fold state as
    MessagePack, rendered summary as JSON). ``last``: the file
    is read to its end. ``segment``: name of the segment that the vectors belong to. ``spent``:
    message key -> (native id, tokens spent from there on, until the next message).
    """

    session: str
    place: Place
    rows: list[Row] = field(default_factory=list)
    patches: dict[str, dict[str, Any]] = field(default_factory=dict)
    folds: dict[str, tuple[bytes, str]] = field(default_factory=dict)
    damage: dict[str, int] = field(default_factory=dict)
    redactions: dict[str, int] = field(default_factory=dict)
    sidecars: list[SidecarSeen] = field(default_factory=list)
    records: int = 0
    last: bool = False
    segment: str = ""
    stated: list[Stated] = field(default_factory=list)
    spent: dict[bytes, tuple[str, dict[str, int]]] = field(default_factory=dict)


def pack(batch: Batch) -> list[Any]:
    """``batch`` as lists, texts and numbers for MessagePack."""
    return [
        batch.session,
        batch.place,
        [(_NUMBER[type(row)], *row) for row in batch.rows],
        batch.patches,
        batch.folds,
        batch.damage,
        batch.redactions,
        batch.sidecars,
        batch.records,
        batch.last,
        batch.segment,
        batch.stated,
        batch.spent,
    ]


def unpack(value: list[Any]) -> Batch:
    """The inverse of `pack`. Raises ValueError or TypeError for anything else."""
    (
        session,
        place,
        rows,
        patches,
        folds,
        damage,
        redactions,
        sidecars,
        records,
        last,
        segment,
        stated,
        spent,
    ) = value
    return Batch(
        session=session,
        place=Place(*place),
        rows=[_ROWS[row[0]](*row[1:]) for row in rows],
        patches=patches,
        folds={name: (state, text) for name, (state, text) in folds.items()},
        damage=damage,
        redactions=redactions,
        sidecars=[SidecarSeen(*item) for item in sidecars],
        records=records,
        last=last,
        segment=segment,
        stated=[Stated(*item) for item in stated],
        spent=spent,
    )
