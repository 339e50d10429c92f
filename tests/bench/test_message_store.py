"""The store that benches search is the one that its messages make one by one."""

import itertools
from pathlib import Path
from typing import Any

from bench import message_store
from bench.message_store import MINILM_DIMENSIONS, ROLES, SESSION_MESSAGES
from lored.core.outputs import output_form
from lored.core.quantized import quantize
from lored.core.stored_text import decode
from lored.core.tokens import context_form, index_form
from lored.embed.base import STATIC
from lored.embed.static import StaticEmbedder
from lored.store import driver, migrate, pragmas
from lored.store.pragmas import StoreKind
from lored.store.search import text, vectors

NOW_US = 1_790_000_000_000_000
COUNT = 3 * SESSION_MESSAGES + 7


def made(path: Path) -> Any:
    connection = driver.connect(str(path), read_only=False)
    migrate.bring_up(connection, StoreKind.SESSIONS, str(path), str(path.parent))
    pragmas.prepare_writer(connection, StoreKind.SESSIONS)
    return connection


def everything(conn: Any) -> dict[str, list[Any]]:
    """What search knows of the messages, row by row."""
    conn.execute("CREATE VIRTUAL TABLE temp.words USING fts5vocab(main, message_stems, instance)")
    return {
        name: conn.execute(query).fetchall()
        for name, query in (
            ("words", "SELECT term, doc, col, offset FROM temp.words ORDER BY 2, 3, 4"),
            ("sizes", "SELECT id, sz FROM message_stems_docsize ORDER BY id"),
            ("vectors", "SELECT message, vector FROM message_vectors WHERE segment = 1"),
            ("blocks", "SELECT kind, rows, lowest, highest, data FROM blocks WHERE kind < 2"),
        )
    }


def test_a_store_made_in_batches_is_that_of_its_messages(tmp_path: Path) -> None:
    filled, plain = made(tmp_path / "filled.db"), made(tmp_path / "plain.db")
    filled.close()
    message_store.fill(str(tmp_path / "filled.db"), COUNT, NOW_US, "w", batch=SESSION_MESSAGES)
    filled = driver.connect(str(tmp_path / "filled.db"), read_only=False)
    before, table = "", StaticEmbedder()
    stored = filled.execute(
        "SELECT m.id, m.session, m.position, m.role, m.at, m.text FROM messages m ORDER BY m.id"
    ).fetchall()
    texts = list(message_store.stream(0, COUNT))
    assert [decode(row[5]) for row in stored] == [said for _, said in texts]
    assert [row[3] for row in stored] == [ROLES[role] for role, _ in texts]
    assert [row[1:3] for row in stored] == [
        (place // SESSION_MESSAGES + 1, place % SESSION_MESSAGES) for place in range(COUNT)
    ]
    columns = "id, agent, native_id, workspace, started_at, ended_at, message_count, indexed_at"
    sessions = filled.execute(f"SELECT {columns} FROM sessions").fetchall()
    plain.executemany(f"INSERT INTO sessions({columns}) VALUES(?, ?, ?, ?, ?, ?, ?, ?)", sessions)
    for (number, session, position, role, at, packed), (_, said) in zip(stored, texts, strict=True):
        before = before if position else ""
        plain.execute(
            "INSERT INTO messages(id, session, key, position, role, at, text)"
            " VALUES(?, ?, ?, ?, ?, ?, ?)",
            (number, session, number.to_bytes(16, "big"), position, role, at, packed),
        )
        if role == ROLES["tool"]:
            text.index_messages(plain, [(number, output_form(said), "")])
            continue
        words = (number, index_form(said), context_form(at, before, said))
        text.index_messages(plain, [words])
        vector = quantize(table.embed([said]))
        vectors.put_messages(plain, STATIC, [(number, vector[0])])
        before = said[-300:]
    assert everything(filled) == everything(plain)
    wide = "SELECT count(*), max(length(vector)) FROM message_vectors WHERE segment = 2"
    spoken = sum(role != "tool" for role, _ in texts)
    assert filled.execute(wide).fetchone() == (spoken, MINILM_DIMENSIONS)
    filled.close()
    plain.close()


def test_messages_are_the_same_wherever_one_begins() -> None:
    count = len(message_store.real_messages())
    whole = itertools.islice(message_store.stream(0, count + 50), count - 50, None)
    assert list(message_store.stream(count - 50, count + 50)) == list(whole)
