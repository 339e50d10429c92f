"""The actions of one batch: joined by key with what is stored, written once.

An action is seen twice or more: when it begins and when its outcome is known. Later non-empty
fields win; `running` never hides an outcome. An action that another session has already
(a fork repeats it) stays there.
"""

from typing import Any, Final

from lored.core.batches import ActionRow
from lored.core.outputs import deed_line
from lored.store.driver import Connection
from lored.store.portions import portions
from lored.store.sessions.rows import SessionRow
from lored.store.sessions.stale import STALE

_FIELDS: Final = ActionRow._fields[2:]
_NAMES: Final = ("session", "position", *_FIELDS)
_COLUMNS: Final = tuple({"commit": "commit_id"}.get(name, name) for name in _NAMES)


class ActionWrites:
    """Collects the actions of a batch; `save` writes them."""

    def __init__(self, conn: Connection, keys: list[bytes]) -> None:
        """Reads what is stored under ``keys``."""
        self._conn = conn
        self._known: dict[bytes, dict[str, Any]] = {}
        for part in portions(keys):
            marks = ",".join("?" * len(part))
            for key, number, *values in conn.execute(
                f"SELECT key, id, {', '.join(_COLUMNS)} FROM actions WHERE key IN ({marks})", part
            ):
                known = dict(zip(_NAMES, values, strict=True))
                self._known[bytes(key)] = {**known, "id": number, "changed": False}

    def add(
        self, session: SessionRow, row: ActionRow, message: int | None, output: int | None
    ) -> bool:
        """Take one action; ``message`` and ``output`` are row ids of the messages that made the
        call and that hold its output. True when it is new."""
        values = dict(zip(_FIELDS, row[2:], strict=True))
        values["message"], values["output"] = message, output
        known = self._known.get(row.key)
        if known is None:
            place = {"session": session.id, "position": session.place()}
            self._known[row.key] = {"id": None, "changed": True, **place, **values}
            session.fields["action_count"] += 1
            return True
        if known["session"] != session.id:
            return False
        if known["position"] >= STALE:
            known.update(position=session.place(), changed=True)
        for name, value in values.items():
            hides = name == "status" and value == "running"
            if value is not None and known[name] != value and not hides:
                known[name] = value
                known["changed"] = True
        return False

    def deed(self, key: bytes) -> str:
        """The line of what the action under ``key`` did, of all that is known of it."""
        known = self._known[key]
        return deed_line(known["command"], known["target"])

    def save(self) -> None:
        """Write what is new and what changed."""
        fresh, changed = [], []
        for key, action in self._known.items():
            if action["changed"]:
                values = [action[name] for name in _NAMES]
                if action["id"] is None:
                    fresh.append((key, *values))
                else:
                    changed.append((*values, action["id"]))
        marks = ", ".join("?" * len(_COLUMNS))
        self._conn.executemany(
            f"INSERT INTO actions(key, {', '.join(_COLUMNS)}) VALUES(?, {marks})", fresh
        )
        setters = ", ".join(f"{name} = ?" for name in _COLUMNS)
        self._conn.executemany(f"UPDATE actions SET {setters} WHERE id = ?", changed)
