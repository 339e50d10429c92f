"""Which session and message stated a fact."""

from lored.core.facts import State, text_hash
from lored.store.driver import Connection
from lored.store.facts.rows import Fact, select, set_columns, with_hash


def unlinked(conn: Connection, text: str, session_id: str) -> Fact | None:
    """The newest fact with exactly this text that has no session yet, or has this one without
    a message; an erased one never."""
    row = conn.execute("SELECT value FROM meta WHERE key = 'text_key'").fetchone()
    if row is None:
        return None
    found = with_hash(conn, text_hash(text, bytes.fromhex(row[0])))
    for fact in reversed(found):
        if fact.state is State.ERASED:
            continue
        if fact.session_id is None or (fact.session_id == session_id and fact.message_id is None):
            return fact
    return None


def is_held(conn: Connection, text: str) -> bool:
    """Whether a fact says exactly this, or did before it was replaced, forgotten or erased."""
    row = conn.execute("SELECT value FROM meta WHERE key = 'text_key'").fetchone()
    return row is not None and bool(with_hash(conn, text_hash(text, bytes.fromhex(row[0]))))


def place_of(
    conn: Connection, *, agent: str, native_id: str, message_key: bytes | None
) -> tuple[str | None, str | None]:
    """Workspace id of a session and the id of one of its messages; this one reads the sessions
    store."""
    session = conn.execute(
        "SELECT workspace FROM sessions WHERE agent = ? AND native_id = ?", (agent, native_id)
    ).fetchone()
    message = (
        None
        if message_key is None
        else conn.execute("SELECT id FROM messages WHERE key = ?", (message_key,)).fetchone()
    )
    return (
        None if session is None else session[0],
        None if message is None else str(message[0]),
    )


def link(conn: Connection, fact_id: int, session_id: str, message_id: str | None) -> None:
    """Tie a fact to the session and message that stated it."""
    set_columns(conn, fact_id, session_id=session_id, message_id=message_id)


def of_session(conn: Connection, session_id: str, limit: int) -> list[Fact]:
    """Facts that a session stated, oldest first."""
    return select(
        conn,
        "session_id = ? AND state <> ? ORDER BY created_at, id LIMIT ?",
        (session_id, int(State.ERASED), limit),
    )
