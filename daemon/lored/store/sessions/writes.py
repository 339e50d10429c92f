"""Writing what was read: one batch, its cursor, and all index rows in one transaction.

Rules, in the order of `apply`:

1. A session that was forgotten stays so: its rows are dropped.
2. A message key that is new gets a row, the next position and its index rows. A key that the
   same session has already is the same message: the first wins, unless the record says that
   it replaces, or the file is read *anew*: then newer content wins. A key of another session
   is a copy made by a fork: it becomes a link, nothing is stored twice; of times, the first.
3. Actions are joined by key (`store.sessions.actions`).
4. When a file is read anew, what its session holds is placed anew (`stale`): reading a
   file again never duplicates, never loses, and ends in the order of the file.
5. The cursor last; when the file is at its end, lineage is settled (`lineage`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from lored.core.batches import ActionRow, Batch, CompactionRow, MessageRow
from lored.store.driver import Connection
from lored.store.portions import portions
from lored.store.search import vectors
from lored.store.sessions import cursors, lineage, rows, stale, told, voids
from lored.store.sessions import marks as session_marks
from lored.store.sessions.actions import ActionWrites
from lored.store.sessions.rows import SessionRow
from lored.store.sessions.stale import STALE
from lored.store.sessions.words import Words
from lored.store.sessions.written import FileRef, Written

REPLACE: Final = 2
"""`files.anew` of a document that shares its session: newer content wins, places stay."""

SPOKEN: Final = (0, 1, 3)  # user, assistant, summary


@dataclass(slots=True)
class _Message:
    id: int
    session: int
    position: int
    role: int = 0
    at: int | None = None
    text: str | bytes = ""
    flags: int = 0


def apply(
    conn: Connection,
    file: FileRef,
    batch: Batch,
    *,
    workspaces: Mapping[str, tuple[str | None, str | None]],
    now: int,
) -> Written:
    """Store a batch. ``workspaces``: cwd -> (workspace id, work tree) of its patches' cwds."""
    return _Writing(conn, file, batch, workspaces, now).run()


class _Writing:
    """One batch in one transaction."""

    def __init__(
        self,
        conn: Connection,
        file: FileRef,
        batch: Batch,
        workspaces: Mapping[str, tuple[str | None, str | None]],
        now: int,
    ) -> None:
        self.conn, self.file, self.batch = conn, file, batch
        self.workspaces, self.now = workspaces, now
        self.written = Written()
        self.sessions: dict[str, SessionRow | None] = {}
        self.owners: set[int] = set()
        self.found: dict[bytes, _Message] = {}
        self.inserts: list[tuple[Any, ...]] = []
        self.words = Words()
        self.vectors: list[tuple[int, bytes]] = []
        # Whether the message before is as it was: its end is context of the next in the index.
        self.calm: dict[int, bool] = {}

    def run(self) -> Written:
        batch, place = self.batch, self.batch.place
        file = cursors.ensure(
            self.conn, self.file.path, self.file.agent, self.file.root, place.version
        )
        self.anew = self.conn.execute("SELECT anew FROM files WHERE id = ?", (file,)).fetchone()[0]
        own = self.session(batch.session) if batch.session else None
        self.look_up()
        for row in batch.rows:
            session = self.session(row.session)
            if session is None:
                continue
            if isinstance(row, MessageRow):
                self.message(session, row)
            elif isinstance(row, ActionRow):
                output = self.row_of(row.output)
                self.written.actions += self.actions.add(
                    session, row, self.row_of(row.message), output
                )
                if output is not None:
                    self.words.after(output, row.key)
            elif isinstance(row, CompactionRow):
                session_marks.add_compaction(self.conn, session, row)
            elif row.part is not None:
                voids.undo(self.conn, self.file.agent, session.native_id, row.part, row.offset)
            else:
                self.flush()
                session_marks.roll_back(self.conn, session, row)
        self.flush()
        self.finish(own, file)
        return self.written

    def session(self, name: str) -> SessionRow | None:
        if name not in self.sessions:
            agent = self.file.agent
            row = None
            if not rows.is_forgotten(self.conn, agent, name):
                row = rows.load(self.conn, agent, name) or rows.create(
                    self.conn, agent, name, self.now
                )
            self.sessions[name] = row
        return self.sessions[name]

    def look_up(self) -> None:
        """All stored messages and actions with keys of this batch."""
        messages: dict[bytes, None] = {}
        actions: dict[bytes, None] = {}
        for row in self.batch.rows:
            if isinstance(row, MessageRow):
                messages[row.key] = None
            elif isinstance(row, ActionRow):
                actions[row.key] = None
                messages.update(dict.fromkeys(k for k in (row.message, row.output) if k))
        for part in portions(messages):
            marks = ",".join("?" * len(part))
            for key, *values in self.conn.execute(
                "SELECT key, id, session, position, role, at, text, flags FROM messages "
                f"WHERE key IN ({marks})",
                part,
            ):
                self.found[bytes(key)] = _Message(*values)
        self.actions = ActionWrites(self.conn, list(actions))
        self.next_id = self.conn.execute(
            "SELECT max(ifnull((SELECT max(id) FROM messages), 0), "
            "ifnull((SELECT value FROM meta WHERE key = 'message_floor'), 0))"
        ).fetchone()[0]

    def row_of(self, key: bytes | None) -> int | None:
        known = None if key is None else self.found.get(key)
        return None if known is None else known.id

    def message(self, session: SessionRow, row: MessageRow) -> None:
        known = self.found.get(row.key)
        if known is None:
            self.next_id += 1
            known = _Message(self.next_id, session.id, session.place(), row.role)
            self.found[row.key] = known
            self.inserts.append(
                (
                    known.id,
                    session.id,
                    row.key,
                    row.record_key,
                    known.position,
                    row.role,
                    row.at,
                    row.text,
                    row.truncated_bytes,
                    row.flags,
                )
            )
            self.index(known.id, row)
            if row.role in SPOKEN:
                self.calm[session.id] = False
            self.count(session, row.role, row.at)
            self.written.messages += 1
        elif known.session == session.id:
            self.again(session, row, known)
        else:
            self.link(session, row, known)

    def again(self, session: SessionRow, row: MessageRow, known: _Message) -> None:
        """The same session holds the message already."""
        first_time = known.position >= STALE
        if not (first_time or row.replaces or self.anew == REPLACE):
            return
        position = session.place() if first_time else known.position
        same = (known.role, known.at, known.text) == (row.role, row.at, row.text)
        calm = self.calm.get(session.id, False)
        if row.role in SPOKEN:
            self.calm[session.id] = same
        if same and not calm and row.words:
            self.words.put(known.id, row.words, row.context)
        if same and (known.position, known.flags) == (position, row.flags):
            return
        self.flush()  # it may be one of this batch
        self.conn.execute(
            "UPDATE messages SET position = ?, role = ?, at = ?, text = ?, truncated_bytes = ?, "
            "flags = ? WHERE id = ?",
            (position, row.role, row.at, row.text, row.truncated_bytes, row.flags, known.id),
        )
        if not same:
            self.index(known.id, row)
            if not row.words:
                self.words.drop(self.conn, known.id)
            if row.vector is None:
                vectors.remove_messages(self.conn, [known.id])
            session.fields["user_count"] += (row.role == 0) - (known.role == 0)
            session.cover(row.at)
        self.found[row.key] = _Message(
            known.id, session.id, position, row.role, row.at, row.text, row.flags
        )

    def link(self, session: SessionRow, row: MessageRow, known: _Message) -> None:
        """Another session holds the message: this one repeats it, maybe with a time of its own."""
        if row.at is not None and (known.at is None or row.at < known.at):
            self.flush()
            self.conn.execute("UPDATE messages SET at = ? WHERE id = ?", (row.at, known.id))
            known.at = row.at
            self.index(known.id, row)
        old = self.conn.execute(
            "SELECT position FROM message_links WHERE session = ? AND message = ?",
            (session.id, known.id),
        ).fetchone()
        if old is not None and old[0] < STALE:
            return
        self.flush()
        position = session.place()
        if old is not None:
            self.conn.execute(
                "UPDATE message_links SET position = ? WHERE session = ? AND message = ?",
                (position, session.id, known.id),
            )
            return
        self.conn.execute(
            "INSERT INTO message_links(session, position, message) VALUES(?, ?, ?)",
            (session.id, position, known.id),
        )
        session.fields["shared"] = 1
        session.born_at = None
        self.owners.add(known.session)
        self.count(session, row.role, row.at)
        self.written.links += 1

    def index(self, number: int, row: MessageRow) -> None:
        if row.words:
            self.words.put(number, row.words, row.context)
        if row.vector is not None:
            self.vectors.append((number, row.vector))

    def count(self, session: SessionRow, role: int, at: int | None) -> None:
        session.fields["message_count"] += 1
        session.fields["user_count"] += role == 0
        session.cover(at)

    def flush(self) -> None:
        """Write the messages collected so far, and their vectors."""
        if self.inserts:
            self.conn.executemany(
                "INSERT INTO messages(id, session, key, record_key, position, role, at, text, "
                "truncated_bytes, flags) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                self.inserts,
            )
            self.inserts = []
        if self.vectors:
            vectors.put_messages(self.conn, self.batch.segment, self.vectors)
            self.vectors = []

    def finish(self, own: SessionRow | None, file: int) -> None:
        """Actions, sessions, summaries, cursor, lineage."""
        batch = self.batch
        self.actions.save()
        self.words.save(self.conn, self.actions.deed)
        for name, patch in batch.patches.items():
            session = self.session(name)
            if session is not None:
                session.patch(patch)
                place = self.workspaces.get(session.fields["cwd"] or "")
                if place is not None:
                    session.fields["workspace"], session.fields["worktree"] = place
        for name, (state, summary) in batch.folds.items():
            session = self.session(name)
            if session is None:
                continue
            status = orjson.loads(summary).get("status")
            session.fields["status"] = status or session.fields["status"]
            self.conn.execute(
                "UPDATE sessions SET fold = ?, summary = ? WHERE id = ?",
                (state, summary, session.id),
            )
        if own is not None and batch.last:
            if self.anew == 1:
                own.fields["positions"] = stale.settle(
                    self.conn, own.id, file, own.fields["positions"]
                )
            if own.fields["ended_at"] is None:
                own.fields["ended_at"] = self.file.seen_at
        self.save_sessions()
        for number in told.keep(
            self.conn,
            self.file.agent,
            batch,
            {name: row.id for name, row in self.sessions.items() if row is not None},
            {key: told.Held(one.id, one.session) for key, one in self.found.items()},
        ):
            self.written.sessions.setdefault(number, False)
        cursors.store(
            self.conn,
            file,
            batch.place,
            session=None if own is None else own.id,
            records=batch.records,
            damage=batch.damage,
            now=self.now,
            last=batch.last,
        )
        cursors.store_sidecars(
            self.conn,
            batch.sidecars,
            agent=self.file.agent,
            root=self.file.root,
            version=batch.place.version,
            now=self.now,
        )
        if batch.last:
            if own is not None:
                self.written.again = voids.begin_anew(
                    self.conn, self.file.agent, own.native_id, own.id
                )
            for session in self.sessions.values():
                if session is not None and session.unsettled:
                    changed = lineage.settle(self.conn, session.id)
                    self.written.sessions = dict.fromkeys(changed, False) | self.written.sessions

    def save_sessions(self) -> None:
        for session in self.sessions.values():
            if session is not None:
                rows.save(self.conn, session, self.now)
                self.written.sessions[session.id] = session.is_new
        self.conn.executemany(
            "UPDATE sessions SET shared = 1, born_at = NULL WHERE id = ?",
            [(owner,) for owner in self.owners],
        )
