"""Forgetting sessions: rows, index, vectors, summaries go; a tombstone stays.

Functions of a connection. What another session holds too (a fork) is that session's and
stays; it is counted and its holder named. Deleting from the text index leaves words in its
pages until they are rewritten, and deleted rows may leave bytes in free pages: see `purge`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from lored.core.batches import session_key
from lored.core.stored_text import decode
from lored.store.driver import Connection
from lored.store.portions import portions
from lored.store.search import packing, text, vectors
from lored.store.sessions import cursors
from lored.store.sessions.listing import like

NEEDLE_BYTES: Final = (24, 96)
"""Least and most bytes of a stored text that are looked for: shorter ones occur by chance,
longer ones may be split between two pages."""

NEEDLES: Final = 200
"""Texts looked for, spread over what was forgotten; a scan reads the file once for each."""


@dataclass(slots=True)
class Removed:
    """What went, or would go. ``kept``: messages that other sessions hold too, by their id;
    ``needles``: bytes that must not be found any more."""

    sessions: list[str] = field(default_factory=list)
    messages: int = 0
    actions: int = 0
    compactions: int = 0
    links: int = 0
    files: list[str] = field(default_factory=list)
    kept: dict[str, int] = field(default_factory=dict)
    needles: list[bytes] = field(default_factory=list)


def with_subagents(conn: Connection, ids: Iterable[int]) -> list[int]:
    """The sessions and those of their subagents, at any depth."""
    found: dict[int, None] = dict.fromkeys(ids)
    waiting = list(found)
    while waiting:
        number = waiting.pop()
        for (child,) in conn.execute(
            "SELECT c.id FROM sessions p JOIN sessions c ON c.parent = p.native_id "
            "AND c.agent = p.agent WHERE p.id = ?",
            (number,),
        ):
            if child not in found:
                found[child] = None
                waiting.append(child)
    return list(found)


def saying(conn: Connection, words: str, after: int, count: int) -> tuple[set[int], int | None]:
    """Sessions of which a message holds ``words`` literally (letter case aside), looked for in
    the ``count`` messages behind row ``after``; sessions that share such a message (forks) too.
    Returns them and the row to go on behind, None at the end. No index is asked: what is to be
    forgotten may stand in the middle of a word."""
    wanted = words.casefold()
    rows = conn.execute(
        "SELECT id, session, text FROM messages WHERE id > ? ORDER BY id LIMIT ?", (after, count)
    ).fetchall()
    found: set[int] = set()
    for number, session, stored in rows:
        if wanted in decode(stored).casefold():
            found.add(session)
            found.update(
                row[0]
                for row in conn.execute(
                    "SELECT session FROM message_links WHERE message = ?", (number,)
                )
            )
    return found, rows[-1][0] if len(rows) == count else None


def doing(conn: Connection, words: str) -> set[int]:
    """Sessions of which an action names ``words`` in its command or target."""
    pattern = f"%{like(words)}%"
    return {
        row[0]
        for row in conn.execute(
            "SELECT DISTINCT session FROM actions"
            " WHERE command LIKE ? ESCAPE '\\' OR target LIKE ? ESCAPE '\\'",
            (pattern, pattern),
        )
    }


def measure(conn: Connection, ids: list[int]) -> Removed:
    """What forgetting ``ids`` would remove."""
    removed = Removed()
    for number in ids:
        row = conn.execute("SELECT native_id FROM sessions WHERE id = ?", (number,)).fetchone()
        if row is None:
            continue
        removed.sessions.append(row[0])
        shared = _holders(conn, number, ids)
        for other in shared.values():
            name = conn.execute("SELECT native_id FROM sessions WHERE id = ?", (other,)).fetchone()
            removed.kept[name[0]] = removed.kept.get(name[0], 0) + 1
        total = _count(conn, "messages", number)
        removed.messages += total - len(shared)
        removed.links += _count(conn, "message_links", number)
        removed.actions += _count(conn, "actions", number)
        removed.compactions += _count(conn, "compactions", number)
        removed.files += [
            path for (path,) in conn.execute("SELECT path FROM files WHERE session = ?", (number,))
        ]
        removed.needles += _needles(conn, number, set(shared))
    step = max(1, len(removed.needles) // NEEDLES)
    removed.needles = removed.needles[::step]
    return removed


def _count(conn: Connection, table: str, session: int) -> int:
    row = conn.execute(f"SELECT count(*) FROM {table} WHERE session = ?", (session,)).fetchone()
    return int(row[0])


def _holders(conn: Connection, session: int, leaving: list[int]) -> dict[int, int]:
    """Messages of a session that a session which stays links to -> the oldest such session."""
    found: dict[int, int] = {}
    going = set(leaving)
    for message, other in conn.execute(
        "SELECT m.id, l.session FROM messages m JOIN message_links l ON l.message = m.id "
        "JOIN sessions s ON s.id = l.session WHERE m.session = ? "
        "ORDER BY s.born_at, s.native_id",
        (session,),
    ):
        if other not in going:
            found.setdefault(message, other)
    return found


def _needles(conn: Connection, session: int, kept: set[int]) -> list[bytes]:
    """Pieces of the stored texts that nothing else holds."""
    least, most = NEEDLE_BYTES
    found: list[bytes] = []
    for number, stored in conn.execute(
        "SELECT id, text FROM messages WHERE session = ? ORDER BY id", (session,)
    ):
        raw = stored if isinstance(stored, bytes) else stored.encode()
        # A frame begins with a header that many share.
        start = 16 if isinstance(stored, bytes) else 0
        piece = raw[start : start + most]
        if number in kept or len(piece) < least:
            continue
        again = conn.execute(
            "SELECT 1 FROM messages WHERE session != ? AND text = ? LIMIT 1", (session, stored)
        )
        if len(found) < NEEDLES and again.fetchone() is not None:
            continue  # the same words were said elsewhere
        found.append(piece)
    return found


def remove(conn: Connection, ids: list[int], now: int, reason: str) -> None:
    """Delete the sessions and all that was derived from them; leave tombstones."""
    for number in ids:
        row = conn.execute(
            "SELECT agent, native_id FROM sessions WHERE id = ?", (number,)
        ).fetchone()
        if row is None:
            continue
        for message, heir in _holders(conn, number, ids).items():
            _hand_over(conn, message, heir)
        gone = [
            one for (one,) in conn.execute("SELECT id FROM messages WHERE session = ?", (number,))
        ]
        for part in portions(gone):
            text.remove_messages(conn, part)
            vectors.remove_messages(conn, part)
        _keep_floor(conn)
        for (path,) in conn.execute(
            "SELECT path FROM files WHERE session = ?", (number,)
        ).fetchall():
            cursors.block(conn, path, cursors.FORGOTTEN)
        conn.execute(
            "INSERT OR REPLACE INTO tombstones(kind, key, at, reason) VALUES('session', ?, ?, ?)",
            (session_key(*row), now, reason),
        )
        conn.execute("UPDATE sessions SET forked_from = NULL WHERE forked_from = ?", (row[1],))
        conn.execute("DELETE FROM sessions WHERE id = ?", (number,))


def _hand_over(conn: Connection, message: int, heir: int) -> None:
    """Another holder of a message becomes its owner."""
    position = conn.execute(
        "DELETE FROM message_links WHERE message = ? AND session = ? RETURNING position",
        (message, heir),
    ).fetchone()[0]
    conn.execute(
        "UPDATE messages SET session = ?, position = ? WHERE id = ?", (heir, position, message)
    )
    packing.catalogue_messages(conn, [message])


def _keep_floor(conn: Connection) -> None:
    """Message ids are never used again: indexes outside the store remember them."""
    conn.execute(
        "INSERT INTO meta(key, value) SELECT 'message_floor', ifnull(max(id), 0) FROM messages "
        "WHERE true ON CONFLICT(key) DO UPDATE SET value = max(value, excluded.value)"
    )


def purge(conn: Connection) -> None:
    """Rewrite the text index without the words of removed messages, overwriting its old pages.
    Inside a write transaction, with `erasing` on."""
    text.purge_messages(conn)


def erasing(conn: Connection, on: bool) -> None:
    """Whether deleted content is overwritten at once, also where that costs writes. Outside a
    transaction, on the writer."""
    conn.execute(f"PRAGMA secure_delete={'ON' if on else 'FAST'}")


def rewrite(conn: Connection) -> None:
    """Write the whole file anew, without free pages. Outside a transaction, on the writer."""
    conn.execute("VACUUM")
