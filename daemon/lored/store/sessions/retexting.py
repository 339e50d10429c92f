"""The words of stored messages into the text index anew, a portion at a time.

What a message is searched by follows from its row alone, so this gives the index that
reading its transcript again would give: what was said, with the end of what was said before
it; a tool's output after what was done (`core.outputs`); of what a program put in, nothing.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from lored.core import stored_text, tokens
from lored.core.outputs import FORM, after_deed, deed_line, output_form
from lored.store.driver import Connection
from lored.store.search import text

PORTION: Final = 500
"""Messages of one read and one write: some tens of milliseconds, so that calls get in between."""

SPOKEN: Final = (0, 1, 3)
TOOL: Final = 2
"""`messages.role` of user, assistant, summary; of a tool's output."""

_BEFORE: Final = (
    "SELECT text FROM (SELECT * FROM (SELECT p.position, p.text FROM messages p"
    " WHERE p.session = m.session AND p.position < m.position AND p.role IN (0, 1, 3)"
    " ORDER BY p.position DESC LIMIT 1) UNION ALL SELECT * FROM (SELECT l.position, p.text"
    " FROM message_links l JOIN messages p ON p.id = l.message AND p.role IN (0, 1, 3)"
    " WHERE l.session = m.session AND l.position < m.position ORDER BY l.position DESC LIMIT 1))"
    " ORDER BY position DESC LIMIT 1"
)
"""What was said before it in its session, in a message of its own or of another session."""

_SELECT: Final = (
    f"SELECT m.id, m.role, m.at, m.text, CASE WHEN m.role <> 2 THEN ({_BEFORE}) END,"
    " a.command, a.target FROM messages m LEFT JOIN actions a ON m.role = 2 AND a.output = m.id"
)
_INDEXED: Final = "m.role IN (0, 1, 2, 3) AND m.text <> ''"


class Stored(NamedTuple):
    """What the words of one message are made of; texts as they are stored."""

    message: int
    role: int
    at: int | None
    text: str | bytes
    before: str | bytes | None
    command: str | None
    target: str | None


Forms = list[tuple[int, str, str]]
"""messages.id, index form, context form."""


def count(conn: Connection) -> int:
    """Messages that `read` will give."""
    found: int = conn.execute(f"SELECT count(*) FROM messages m WHERE {_INDEXED}").fetchone()[0]
    return found


def read(conn: Connection, after: int) -> list[Stored]:
    """The next messages after id ``after`` that have words."""
    return _rows(conn, f"m.id > ? AND {_INDEXED} ORDER BY m.id LIMIT ?", (after, PORTION))


def read_outputs(conn: Connection, after: int, last: int) -> list[Stored]:
    """Of these, up to id ``last``, only outputs of which is known what was done."""
    where = "m.id > ? AND m.id <= ? AND m.role = 2 AND a.id IS NOT NULL ORDER BY m.id LIMIT ?"
    return _rows(conn, where, (after, last, PORTION))


def _rows(conn: Connection, where: str, values: Sequence[Any]) -> list[Stored]:
    return [Stored(*row) for row in conn.execute(f"{_SELECT} WHERE {where}", values)]


def forms(rows: Sequence[Stored]) -> Forms:
    """What the index holds of these messages. Costly; call it in a thread."""
    made: dict[int, tuple[int, str, str]] = {}
    for row in rows:
        said = stored_text.decode(row.text)
        if row.role == TOOL:
            deed = deed_line(row.command, row.target)
            words, context = after_deed(deed, output_form(said)), ""
        else:
            before = None if row.before is None else stored_text.decode(row.before)
            words = tokens.index_form(said)
            context = tokens.context_form(row.at, before, said)
        made[row.message] = (row.message, words, context)
    return list(made.values())


def put(conn: Connection, made: Forms) -> None:
    """Index them; words that stood there before are replaced, messages that are gone stay so."""
    marks = ",".join("?" * len(made))
    there = {
        row[0]
        for row in conn.execute(
            f"SELECT id FROM messages WHERE id IN ({marks})", [row[0] for row in made]
        )
    }
    text.reword_messages(conn, [row for row in made if row[0] in there])


def again(conn: Connection, messages: Sequence[int]) -> None:
    """The same for some messages at once (at most `PORTION`), whose rows were changed."""
    marks = ",".join("?" * len(messages))
    rows = _rows(conn, f"m.id IN ({marks}) AND {_INDEXED}", messages)
    text.reword_messages(conn, forms(rows))


def due(conn: Connection) -> tuple[int, int] | None:
    """After which and up to which message the outputs of a store of another form are to be
    indexed anew (what comes now has the present form); None when all have it."""
    found = dict(
        conn.execute("SELECT key, value FROM meta WHERE key IN ('text_form', 'text_form_after')")
    )
    if found.get("text_form") == FORM:
        return None
    last = conn.execute("SELECT ifnull(max(id), 0) FROM messages").fetchone()[0]
    return int(found.get("text_form_after", 0)), last


def reached(conn: Connection, after: int | None) -> None:
    """Note how far that is, None = all of it."""
    if after is None:
        conn.execute("DELETE FROM meta WHERE key = 'text_form_after'")
        conn.execute("INSERT OR REPLACE INTO meta(key, value) VALUES('text_form', ?)", (FORM,))
    else:
        conn.execute(
            "INSERT OR REPLACE INTO meta(key, value) VALUES('text_form_after', ?)", (after,)
        )


def rebuild_facts(conn: Connection) -> None:
    """The same for a facts store, which keeps the texts of its index."""
    text.rebuild_facts(conn)
