"""Deep mode: what is read of a hit, and that it puts the answer first."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from lored.core import maxsim
from lored.core.tokens import context_form, index_form, parse_query
from lored.embed.onnx import MiniLM
from lored.services.search.deepening import passages, reordered
from lored.store import driver, migrate, pragmas
from lored.store.pragmas import StoreKind
from lored.store.search import messages, text
from lored.store.search.columns import Columns
from lored.store.search.messages import MessageHit, Scope

TALK = (
    (0, "When does the nightly database dump start?"),
    (1, "At half past three."),
    (0, "And the weekly restore drill, when does that one start?"),
    (1, "At noon on Mondays."),
    (2, "dump finished at once"),
    (1, "The dump is long. " * 200),
)


@pytest.fixture
def conn(tmp_path: Path) -> Iterator[driver.Connection]:
    """One session: two questions, two short answers, a tool's output, a long message."""
    path = tmp_path / "sessions.db"
    connection = driver.connect(str(path), read_only=False)
    migrate.bring_up(connection, StoreKind.SESSIONS, str(path), str(tmp_path))
    pragmas.prepare_writer(connection, StoreKind.SESSIONS)
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(
        "INSERT INTO sessions(id, agent, native_id, indexed_at) VALUES(1, 'codex', 's', 0)"
    )
    before, rows = "", []
    for number, (role, said) in enumerate(TALK, 1):
        connection.execute(
            "INSERT INTO messages(id, session, key, position, role, text) VALUES(?, 1, ?, ?, ?, ?)",
            (number, number.to_bytes(16, "big"), number, role, said),
        )
        rows.append((number, index_form(said), context_form(None, before, said)))
        before = said
    connection.execute(
        "INSERT INTO actions(session, position, key, kind, tool, command, status, output)"
        " VALUES(1, 9, x'01', 'command', 'Bash', 'pg_dump shop', 'ok', 5)"
    )
    text.index_messages(connection, rows)
    connection.execute("COMMIT")
    yield connection
    connection.close()


def ask(conn: driver.Connection, question: str) -> list[MessageHit]:
    """Hits by words alone."""
    query = parse_query(question)
    return messages.search(conn, Columns(), query, {}, None, Scope(), 30).hits


def test_a_short_message_is_read_after_what_was_said_before_it(conn: driver.Connection) -> None:
    hits = {hit.id: hit for hit in ask(conn, "start of the dump or noon drill, half past")}
    assert hits.keys() >= {1, 2, 4, 5, 6}
    read = dict(zip(hits, passages(conn, list(hits.values())), strict=True))
    assert read[2] == f"{TALK[0][1]} {TALK[1][1]}"
    assert read[5] == f"{TALK[3][1]} pg_dump shop\n{TALK[4][1]}"
    assert read[6] in TALK[5][1] and len(read[6]) == 1_600
    assert read[1].strip() == TALK[0][1]


def test_the_answer_to_the_question_that_was_asked_comes_first(conn: driver.Connection) -> None:
    model = MiniLM()
    question = "when does the database dump start each night"
    found = [hit for hit in ask(conn, question) if hit.id in (2, 4)]
    assert {hit.id for hit in found} == {2, 4}
    level = [MessageHit(**{**_fields(hit), "score": 1.0}) for hit in found]
    vectors = model.token_vectors([question, *passages(conn, level)])
    again = reordered(level, maxsim.parts(vectors[0], vectors[1:]))
    assert [hit.id for hit in again] == [2, 4]
    for hit in again:  # the part explains the score
        assert hit.score == pytest.approx(1.0 + hit.parts["deep"], abs=1e-4)


def test_closeness_is_the_mean_of_the_best_cosines() -> None:
    asked = np.eye(3, dtype=np.float32)[:2]
    document = np.array([[1, 0, 0], [0.6, 0.8, 0]], dtype=np.float32)
    assert maxsim.closeness(asked, document) == pytest.approx(0.9)
    assert maxsim.closeness(asked, -document) == 0.0  # never takes from a score
    assert maxsim.closeness(asked, np.zeros((0, 3), dtype=np.float32)) == 0.0


def _fields(hit: MessageHit) -> dict[str, object]:
    return {name: getattr(hit, name) for name in MessageHit.__slots__}
