"""The change log: who did what and when, and what undo needs.

One `Batch` per write transaction that changes facts: it bumps the store's revision once and
numbers its entries; the batch's number is that of its first entry. An entry never holds a
fact's text, only the columns that an operation changed, as they were, so that erasing a text
needs no search through the log.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from lored.core.clock import Micros
from lored.store import migrate
from lored.store.driver import Connection
from lored.store.facts.rows import Fact, marks

FACT: Final = 0
CONFLICT: Final = 1
ENTITY: Final = 2

BELIEF: Final = ("state", "valid_from", "valid_to", "successor", "successor_ref", "pending")
"""Columns that an operation on what is believed can change."""

LABELS: Final = ("tags", "entities", "cluster")


class Entry(NamedTuple):
    """One line of the log. `subjects` are (kind, internal id)."""

    id: int
    batch: int
    revision: int
    at: Micros
    op: str
    actor: str | None
    note: str | None
    before: dict[str, Any]
    undone_by: int | None
    subjects: list[tuple[int, int]]


class Batch:
    """The entries of one transaction. ``actor`` is who asked, ``now`` when."""

    def __init__(self, conn: Connection, *, now: Micros, actor: str | None) -> None:
        self.now = now
        self.actor = actor
        self.revision = migrate.bump_revision(conn)
        self.number: int | None = None
        """Number of the batch (B<n>), None before the first entry."""

    def log(
        self,
        conn: Connection,
        op: str,
        *,
        facts: Iterable[int] = (),
        conflicts: Iterable[int] = (),
        entities: Iterable[int] = (),
        before: dict[str, Any] | None = None,
        actor: str | None = None,
        note: str | None = None,
    ) -> int:
        """Write one entry about the given internal ids; returns its number (L<n>)."""
        entry: int = conn.execute(
            "INSERT INTO change_log(batch, revision, at, op, actor, note, before)"
            " VALUES(?, ?, ?, ?, ?, ?, ?)",
            (
                self.number,
                self.revision,
                self.now,
                op,
                actor or self.actor,
                note,
                json.dumps(before or {}, ensure_ascii=False, separators=(",", ":")),
            ),
        ).lastrowid
        if self.number is None:
            self.number = entry
        conn.executemany(
            "INSERT OR IGNORE INTO change_subjects(kind, subject, entry) VALUES(?, ?, ?)",
            [
                (kind, subject, entry)
                for kind, subjects in ((FACT, facts), (CONFLICT, conflicts), (ENTITY, entities))
                for subject in subjects
            ],
        )
        return entry


def image(fact: Fact, *columns: str) -> dict[str, Any]:
    """The given columns of a fact as they are now, for an entry's `before`."""
    return {
        name: int(value) if isinstance(value := getattr(fact, name), bool) else value
        for name in columns or BELIEF
    }


_COLUMNS: Final = "id, coalesce(batch, id), revision, at, op, actor, note, before, undone_by"


def _entries(conn: Connection, condition: str, values: Sequence[object]) -> list[Entry]:
    rows = conn.execute(
        f"SELECT {_COLUMNS} FROM change_log l WHERE {condition}", tuple(values)
    ).fetchall()
    subjects: dict[int, list[tuple[int, int]]] = {}
    for entry, kind, subject in conn.execute(
        "SELECT entry, kind, subject FROM change_subjects"
        f" WHERE entry IN ({marks(rows)}) ORDER BY kind, subject",
        [row[0] for row in rows],
    ):
        subjects.setdefault(entry, []).append((kind, subject))
    return [
        Entry(*(*row[:7], json.loads(row[7]), row[8], subjects.get(row[0], []))) for row in rows
    ]


def entry(conn: Connection, number: int) -> Entry | None:
    """L<number>."""
    found = _entries(conn, "id = ?", (number,))
    return found[0] if found else None


def of_batch(conn: Connection, batch: int) -> list[Entry]:
    """Entries of B<batch>, first to last."""
    return _entries(conn, "batch = ?1 OR (id = ?1 AND batch IS NULL) ORDER BY id", (batch,))


def last(conn: Connection) -> Entry | None:
    """The newest entry that is neither undone nor itself an undo."""
    found = _entries(
        conn, "undone_by IS NULL AND op NOT IN ('undo', 'erase') ORDER BY id DESC LIMIT 1", ()
    )
    return found[0] if found else None


def listing(
    conn: Connection,
    *,
    limit: int,
    subject: tuple[int, int] | None = None,
    since: Micros | None = None,
) -> list[Entry]:
    """Entries newest first; ``subject`` (kind, internal id) restricts to those about it."""
    condition, values = "1", list[object]()
    if subject is not None:
        condition += " AND id IN (SELECT entry FROM change_subjects WHERE kind = ? AND subject = ?)"
        values += subject
    if since is not None:
        condition += " AND at >= ?"
        values.append(since)
    return _entries(conn, f"{condition} ORDER BY id DESC LIMIT ?", (*values, limit))


def later(conn: Connection, entry: Entry) -> list[Entry]:
    """Entries after ``entry`` about the same things that still stand: they must be undone
    first. An undo and what it took back cancel out."""
    return _entries(
        conn,
        "id > ? AND undone_by IS NULL AND op <> 'undo' AND id IN"
        " (SELECT y.entry FROM change_subjects x JOIN change_subjects y"
        " ON y.kind = x.kind AND y.subject = x.subject WHERE x.entry = ?) ORDER BY id",
        (entry.id, entry.id),
    )


def mark_undone(conn: Connection, entry: Entry, by: int) -> None:
    """Note that ``by`` took ``entry`` back. Undoing an undo puts the first one in force again."""
    if entry.op == "undo":
        conn.execute("UPDATE change_log SET undone_by = NULL WHERE undone_by = ?", (entry.id,))
        conn.execute("UPDATE change_log SET undone_by = id WHERE id = ?", (by,))
    conn.execute("UPDATE change_log SET undone_by = ? WHERE id = ?", (by, entry.id))


class Changed(NamedTuple):
    """Something that changed after a revision: the last operation on it."""

    kind: int
    subject: int
    op: str
    revision: int


def changed_since(conn: Connection, since: int, limit: int) -> tuple[list[Changed], int]:
    """Facts and conflicts that changed after revision ``since``, oldest change first, at most
    ``limit``, and up to which revision the list is complete."""
    rows = conn.execute(
        "SELECT x.kind, x.subject, l.op, max(l.revision) FROM change_log l"
        " JOIN change_subjects x ON x.entry = l.id WHERE l.revision > ? AND x.kind <> ?"
        " GROUP BY x.kind, x.subject ORDER BY 4, 1, 2 LIMIT ?",
        (since, ENTITY, limit + 1),
    ).fetchall()
    found = [Changed(*row) for row in rows]
    if len(found) <= limit:
        return found, migrate.revision(conn)
    # Never cut within a revision: the rest of it would be missed.
    cut = found[limit].revision
    kept = [one for one in found if one.revision < cut]
    if not kept:
        kept = [
            Changed(*row)
            for row in conn.execute(
                "SELECT x.kind, x.subject, l.op, l.revision FROM change_log l"
                " JOIN change_subjects x ON x.entry = l.id WHERE l.revision = ? AND x.kind <> ?"
                " GROUP BY x.kind, x.subject ORDER BY 1, 2",
                (cut, ENTITY),
            )
        ]
        return kept, cut
    return kept, kept[-1].revision


def facts_changed(conn: Connection, since: int) -> list[int]:
    """Internal ids of facts that changed after revision ``since``."""
    rows = conn.execute(
        "SELECT DISTINCT x.subject FROM change_log l JOIN change_subjects x ON x.entry = l.id"
        " WHERE l.revision > ? AND x.kind = ? ORDER BY 1",
        (since, FACT),
    )
    return [row[0] for row in rows]
