"""What every transcript becomes: normalised records, and the contract of a source module.

Pure values. A source module (`core/transcripts/<agent>.py`) turns the bytes of ONE line (or
one document, or rows of one database) into these; it owns that format's oddities and
nothing else. The worker packs records as MessagePack, so fields hold only text, numbers,
booleans, None, lists and maps.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Role = Literal["user", "assistant", "tool", "summary", "context"]
"""`user` only on positive evidence that a person wrote it; `tool` = output of a tool;
`summary` = a model's recap (compaction, away summary); `context` = everything injected."""

ActionKind = Literal["edit", "command", "search", "read", "web", "agent", "other"]
SessionStatus = Literal["active", "completed", "failed", "interrupted"]


@dataclass(slots=True)
class SessionPatch:
    """New knowledge about a session; None and empty mean "nothing new". Last one wins, except
    `started_at` (smallest) and `ended_at` (largest). `session` names the native session id
    when a file holds lines of several; None = the file's own."""

    session: str | None = None
    parent: str | None = None
    forked_from: str | None = None
    is_subagent: bool | None = None
    cwd: str | None = None
    branch: str | None = None
    commit: str | None = None
    model: str | None = None
    title: str | None = None
    prompt_title: str | None = None
    """First words of the first real prompt: the title while no `title` is known."""
    agent_version: str | None = None
    status: SessionStatus | None = None
    started_at: str | None = None
    ended_at: str | None = None
    cost_usd: float | None = None
    titles: dict[str, str] = field(default_factory=dict)
    """Titles of whatever sessions hold the messages with these keys."""
    tokens: dict[str, int] = field(default_factory=dict)
    """`input`, `output`, `cache_read`, `cache_write`, `reasoning`: totals of the session so far."""
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Message:
    """One thing said. `key` is unique within (agent): the record's own id where the format has
    one (so that copies in forks are recognised), else made from session and position."""

    key: str
    role: Role
    text: str
    at: str | None = None
    """UTC ISO-8601 with Z; None = inherit from the message before."""
    model: str | None = None
    session: str | None = None
    parent_key: str | None = None
    replaces: bool = False
    """The same key again with newer content wins (Gemini JSONL, opencode rows)."""
    rolled_back: bool = False
    truncated_bytes: int = 0
    """Bytes of text that the size policy left out."""
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Action:
    """One thing done: a tool call. First seen with status `running`, later the same key again
    with its outcome; later non-empty fields win."""

    key: str
    kind: ActionKind
    tool: str
    target: str | None = None
    """Path, URL or query."""
    command: str | None = None
    status: Literal["running", "ok", "failed", "unknown"] = "running"
    exit_code: int | None = None
    started_at: str | None = None
    ended_at: str | None = None
    output_excerpt: str | None = None
    """At most `OUTPUT_EXCERPT_CHARS` of the output: head and tail."""
    message_key: str | None = None
    session: str | None = None
    commit: str | None = None
    """Commit made by this action, when its output says so."""
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Compaction:
    """A model's condensed record of what went before."""

    key: str
    summary: str
    kept_facts: list[str] = field(default_factory=list)
    next_steps: list[str] = field(default_factory=list)
    at: str | None = None
    session: str | None = None


@dataclass(slots=True)
class Rollback:
    """The last `turns` user turns (or all from `from_key` on) before this point are void: they
    stay searchable, marked. With `part`, what stands in another file of the session, whose name
    ends with that id, from the byte `offset` of its content on."""

    turns: int = 0
    from_key: str | None = None
    part: str | None = None
    offset: int = 0
    session: str | None = None


@dataclass(slots=True)
class Damage:
    """Bytes that could not be used; counted per file and reason, shown in status."""

    reason: str
    """`torn`, `glued`, `spliced`, `nul`, `utf8`, `json`, `too_long`, `too_deep`, `not_object`,
    `shape` (a record that is not built as its format says), `unknown_type:<name>`,
    `unknown_version:<name>`."""
    offset: int = 0
    length: int = 0
    lost: bool = True
    """False when everything in it was recovered."""


Record = SessionPatch | Message | Action | Compaction | Rollback | Damage

OUTPUT_EXCERPT_CHARS = 2_000
"""Kept of a tool's output: errors stand at the end, causes at the start."""

MESSAGE_CHARS = 64_000
"""Kept of one message; longer ones keep head and tail with a marker between."""

RECORD_BYTES = 32 << 20
"""A longer line is scanned for id, type and time only."""


class LineParser(Protocol):
    """A format of one record per line. Stateless object; what must survive between lines
    (open tool calls, current model, seen ids) is in `state`, a map that MessagePack can hold
    and that is stored with the cursor, so parsing can stop and go on at any line."""

    agent: str
    version: int
    """Raise it when the same bytes give better records: files are then read again."""

    def session_id(self, path: str, head: bytes) -> str | None:
        """Native session id of a file from its path (and first 4 KiB), None = not a transcript."""
        ...

    def begin(self, path: str) -> dict[str, Any]:
        """Fresh state for a file."""
        ...

    def parse(self, state: dict[str, Any], line: bytes, offset: int) -> Iterable[Record]:
        """Records of one complete line (without its newline) at byte ``offset``.

        Never raises: anything unusable becomes `Damage`. Mutates ``state``.
        """
        ...

    def sidecars(self, path: str) -> list[str]:
        """Other files that speak about this session only (`.meta.json`, ...). What a root has
        one of for all its sessions is a sidecar by `classify` alone, and its records name
        their sessions."""
        ...

    def parse_sidecar(self, path: str, data: bytes) -> Iterable[Record]:
        """Records of a sidecar, read whole each time it changes."""
        ...


class DocumentParser(Protocol):
    """A format where one file is one document, rewritten whole: parsed whole at each change;
    the store diffs by message key."""

    agent: str
    version: int

    def session_id(self, path: str, head: bytes) -> str | None:
        """Native session id; ``head`` is the whole document, or empty when only the path is
        known."""
        ...

    def sidecars(self, path: str) -> list[str]: ...

    def parse_sidecar(self, path: str, data: bytes) -> Iterable[Record]: ...

    def parse_document(self, path: str, data: bytes) -> Iterable[Record]: ...


class DatabaseParser(Protocol):
    """A format kept in SQLite: `query` gets a read-only connection (opened by the worker)."""

    agent: str
    version: int

    def session_id(self, path: str, head: bytes) -> str | None: ...

    def parse_database(
        self, connection: Any, watermark: dict[str, Any]
    ) -> Iterable[tuple[str, list[Record], dict[str, Any]]]:
        """(native session id, its changed records, new watermark) per changed session."""
        ...
