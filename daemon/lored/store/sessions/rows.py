"""The row of one session while a batch is written: read once, changed in memory, written once.

Owns what patches mean for the columns. Functions of a connection.
"""

from dataclasses import dataclass
from typing import Any, Final

import orjson

from lored.core.batches import session_key
from lored.core.session_fields import merge
from lored.store.driver import Connection

_COLUMNS: Final = (
    "parent",
    "forked_from",
    "is_subagent",
    "cwd",
    "branch",
    "commit_id",
    "model",
    "title",
    "agent_version",
    "status",
    "started_at",
    "ended_at",
    "cost_usd",
    "tokens",
    "extra",
    "workspace",
    "worktree",
    "message_count",
    "user_count",
    "action_count",
    "positions",
    "shared",
)
_SELECT: Final = (
    f"SELECT id, born_at, {', '.join(_COLUMNS)} FROM sessions WHERE agent = ? AND native_id = ?"
)
_UPDATE: Final = (
    f"UPDATE sessions SET {', '.join(f'{name} = ?' for name in _COLUMNS)}, born_at = ?, "
    "indexed_at = ? WHERE id = ?"
)
_COUNTS: Final = ("message_count", "user_count", "action_count", "positions", "shared")
_RENAMED: Final = {"commit": "commit_id"}


@dataclass(slots=True)
class SessionRow:
    """One session; ``fields`` by column, JSON columns as maps."""

    id: int
    native_id: str
    fields: dict[str, Any]
    is_new: bool = False
    born_at: int | None = None

    @property
    def unsettled(self) -> bool:
        """Whether it shares messages and its lineage is not settled: the time of what it repeats
        may have been told again since."""
        if not self.fields["shared"] or self.born_at is None:
            return bool(self.fields["shared"])
        started = self.fields["started_at"]
        return bool(self.fields["forked_from"]) and started is not None and started < self.born_at

    def place(self) -> int:
        """The position of the next record."""
        position: int = self.fields["positions"]
        self.fields["positions"] = position + 1
        return position

    def patch(self, patch: dict[str, Any]) -> None:
        """Take over what a transcript says about the session."""
        patch = dict(patch)
        prompt_title = patch.pop("prompt_title", None)
        patch.pop("titles", None)  # of others: `store.sessions.titles`
        if "title" in patch:
            patch["extra"] = {**patch.get("extra", {}), "titled": True}
        elif prompt_title and not self.fields["extra"].get("titled"):
            patch["title"] = prompt_title
        if "forked_from" in patch:
            origin = {"declared_origin": patch["forked_from"]}
            patch["extra"] = {**patch.get("extra", {}), **origin}
        merge(self.fields, {_RENAMED.get(name, name): value for name, value in patch.items()})

    def cover(self, at: int | None) -> None:
        """A message of that instant belongs to the session."""
        if at is not None:
            merge(self.fields, {"started_at": at, "ended_at": at})


def is_forgotten(conn: Connection, agent: str, native_id: str) -> bool:
    """Whether the session was forgotten and must not come back."""
    row = conn.execute(
        "SELECT 1 FROM tombstones WHERE kind = 'session' AND key = ?",
        (session_key(agent, native_id),),
    ).fetchone()
    return row is not None


def load(conn: Connection, agent: str, native_id: str) -> SessionRow | None:
    """The row of a session, None when it is not stored."""
    row = conn.execute(_SELECT, (agent, native_id)).fetchone()
    if row is None:
        return None
    fields = dict(zip(_COLUMNS, row[2:], strict=True))
    fields["tokens"] = orjson.loads(fields["tokens"])
    fields["extra"] = orjson.loads(fields["extra"])
    return SessionRow(row[0], native_id, fields, born_at=row[1])


def create(conn: Connection, agent: str, native_id: str, now: int) -> SessionRow:
    """A new, empty session."""
    number = conn.execute(
        "INSERT INTO sessions(agent, native_id, indexed_at) VALUES(?, ?, ?) RETURNING id",
        (agent, native_id, now),
    ).fetchone()[0]
    fields: dict[str, Any] = dict.fromkeys(_COLUMNS)
    fields.update(dict.fromkeys(_COUNTS, 0), tokens={}, extra={}, status="active", is_subagent=0)
    return SessionRow(number, native_id, fields, is_new=True)


def save(conn: Connection, row: SessionRow, now: int) -> None:
    """Write the row back."""
    values = dict(row.fields)
    values["is_subagent"] = int(bool(values["is_subagent"]))
    for name in ("tokens", "extra"):
        values[name] = orjson.dumps(values[name], option=orjson.OPT_SORT_KEYS).decode()
    conn.execute(_UPDATE, (*(values[name] for name in _COLUMNS), row.born_at, now, row.id))


def known_fields(row: SessionRow) -> dict[str, Any]:
    """What the worker needs to render a summary: fields of `session_fields`, none empty. A title
    that was made from the first prompt is told as such: there may be another one now."""
    names = {"commit_id": "commit"}
    if not row.fields["extra"].get("titled"):
        names["title"] = "prompt_title"
    return {
        names.get(name, name): value
        for name, value in row.fields.items()
        if name not in _COUNTS and name != "extra" and value not in (None, "", {})
    }
