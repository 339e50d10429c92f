"""Search of messages on a real store: what the index says, what is left out, what is found."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC
from pathlib import Path

import numpy as np
import pytest

from lored.core.asked_time import AskedTime, asked_time
from lored.core.quantized import quantize
from lored.core.ranking import WEIGHTS
from lored.core.tokens import context_form, index_form, parse_query
from lored.embed.base import STATIC
from lored.embed.static import StaticEmbedder
from lored.store import driver, migrate, pragmas
from lored.store.pragmas import StoreKind
from lored.store.search import matching, messages, text, vectors
from lored.store.search.columns import Columns
from lored.store.search.matching import MESSAGES, Index, plan
from lored.store.search.messages import Scope
from lored.store.search.postings import lengths, postings
from lored.store.search.stemming import stem

WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"]
DAY_US = 86_400_000_000


def said(number: int) -> str:
    """Message ``number``: every word of `WORDS` in a part of them, 1 to 120 words."""
    words = [word for place, word in enumerate(WORDS) if number % (place + 2) == 0]
    return " ".join([f"note{number}", *words, *["filler"] * (number % 120)])


@pytest.fixture
def conn(tmp_path: Path) -> Iterator[driver.Connection]:
    """400 messages in four sessions, one a day; every tenth without a time."""
    path = tmp_path / "sessions.db"
    connection = driver.connect(str(path), read_only=False)
    migrate.bring_up(connection, StoreKind.SESSIONS, str(path), str(tmp_path))
    pragmas.prepare_writer(connection, StoreKind.SESSIONS)
    connection.execute("BEGIN IMMEDIATE")
    for session in range(1, 5):
        connection.execute(
            "INSERT INTO sessions(id, agent, native_id, indexed_at) VALUES(?, 'codex', ?, 0)",
            (session, f"s{session}"),
        )
    rows = []
    for number in range(1, 401):
        at = None if number % 10 == 0 else number * DAY_US
        connection.execute(
            "INSERT INTO messages(id, session, key, position, role, at, text)"
            " VALUES(?, ?, ?, ?, 0, ?, ?)",
            (number, number % 4 + 1, number.to_bytes(16, "big"), number, at, said(number)),
        )
        rows.append((number, index_form(said(number)), context_form(at, None, said(number))))
    text.index_messages(connection, rows)
    connection.execute("COMMIT")
    yield connection
    connection.close()


def ask(conn: driver.Connection, question: str, scope: Scope | None = None) -> list[int]:
    """Ids found by words alone."""
    found = messages.search(conn, Columns(), parse_query(question), {}, None, scope or Scope(), 400)
    return [hit.id for hit in found.hits]


def test_the_rows_of_a_word_are_those_of_the_index(conn: driver.Connection) -> None:
    found = postings(conn, MESSAGES, plan(conn, MESSAGES, parse_query("beta kappa")))
    lists = {stem: rows.tolist() for stem, _, rows in found.words}
    assert lists["beta"] == [n for n in range(1, 401) if n % 3 == 0]
    assert lists["kappa"] == [n for n in range(1, 401) if n % 11 == 0]


def test_lengths_are_those_that_fts5_counted(conn: driver.Connection) -> None:
    rows = np.array([7, 240, 119, 10_000])
    words = [len(said(n).split()) + 4 * (n % 10 != 0) for n in range(1, 401)]  # day: four words
    mean = sum(words) / len(words)
    expected = [words[6] / mean, words[239] / mean, words[118] / mean, 1.0]
    assert lengths(conn, MESSAGES, rows).tolist() == pytest.approx(expected)


def test_the_score_is_that_of_bm25_where_each_word_stands_once(conn: driver.Connection) -> None:
    """Same order and same numbers as FTS5's own function, both columns counting alike."""
    wanted = plan(conn, MESSAGES, parse_query("kappa iota"))
    found = postings(conn, MESSAGES, wanted)
    found.phrases.clear()
    mine = found.best(400, lambda rows: lengths(conn, MESSAGES, rows))
    theirs = dict(
        conn.execute(
            "SELECT rowid, -bm25(message_stems, 1.0, 1.0) FROM message_stems"
            " WHERE message_stems MATCH 'kappa OR iota'"
        )
    )
    assert mine.keys() == theirs.keys()
    for row, score in theirs.items():
        assert mine[row] == pytest.approx(score, rel=1e-6)
    rows = list(theirs)
    counts = [{w: said(row).split().count(w) for w in ("kappa", "iota")} for row in rows]
    exact = found.exact(rows, counts, lengths(conn, MESSAGES, np.array(rows)))
    assert exact.tolist() == pytest.approx([theirs[row] for row in rows], rel=1e-6)


def test_the_time_asked_about_lifts_a_message_and_hides_none(conn: driver.Connection) -> None:
    when = asked_time("of 28 April 1970", now=0, zone=UTC)  # the day of message 117
    assert when is not None

    def found(time: AskedTime | None) -> list[messages.MessageHit]:
        query = parse_query("note117 note118 beta zeta")
        return messages.search(conn, Columns(), query, {}, None, Scope(), 400, time).hits

    plain = {hit.id: hit for hit in found(None)}
    lifted = {hit.id: hit for hit in found(when)}
    assert lifted.keys() == plain.keys() and len(plain) > 50
    assert lifted[117].parts["when"] == WEIGHTS["when"] and "when" not in plain[117].parts
    gained = [hit for hit in lifted.values() if hit.score > plain[hit.id].score + 1e-9]
    assert 117 in {hit.id for hit in gained}
    assert all(abs(hit.id - 117) <= 11 for hit in gained)


def test_a_phrase_counts_where_its_words_are_neighbours(conn: driver.Connection) -> None:
    found = postings(conn, MESSAGES, plan(conn, MESSAGES, parse_query("alpha beta")))
    assert [rows.tolist() for _, rows in found.phrases] == [list(range(6, 401, 6))]
    assert set(found.best(10)) <= set(range(6, 401, 6))


def test_beyond_the_budget_a_word_is_sought_in_the_newest_rows(conn: driver.Connection) -> None:
    tight = Index("message_stems", 60)
    wanted = plan(conn, tight, parse_query("kappa alpha beta"))
    assert wanted.left_out == ("alpha",)
    found = {stem: rows.tolist() for stem, _, rows in postings(conn, tight, wanted).words}
    assert found["kappa"] == list(range(11, 401, 11))
    newest = list(range(3, 400, 3))
    assert found["beta"] == newest[-len(found["beta"]) :] and 10 < len(found["beta"]) < 70


def test_words_of_all_rows_find_the_newest(conn: driver.Connection) -> None:
    """No word separates anything: what is left is the order of time."""
    whole = Index("message_stems", 10)
    wanted = plan(conn, whole, parse_query("filler"))
    best = postings(conn, whole, wanted).best(3)
    assert len(best) == 3 and min(best) > 380


def test_filters_hold_for_words(conn: driver.Connection) -> None:
    everything = ask(conn, "kappa")
    assert sorted(everything) == list(range(11, 401, 11))
    assert sorted(ask(conn, "kappa", Scope(sessions=frozenset({1})))) == list(range(44, 401, 44))
    late = ask(conn, "kappa", Scope(since=200 * DAY_US))
    assert sorted(late) == [n for n in range(11, 401, 11) if n >= 200 and n % 10]


def test_stems_are_those_of_the_index_and_shared_by_threads() -> None:
    words = ["running", "caches", "utf8", "x2", "ponies", "用", "a", "relational"]
    expected = ["run", "cach", "utf8", "x2", "poni", "用", "a", "relat"]
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda n: stem([*words, f"worker{n}ing"]), range(40)):
            assert found[:-1] == expected and found[-1].endswith("ing") is False
    assert stem([]) == []


def test_a_message_taken_out_is_not_found(conn: driver.Connection) -> None:
    conn.execute("BEGIN IMMEDIATE")
    text.remove_messages(conn, [44])
    conn.execute("DELETE FROM messages WHERE id = 44")
    conn.execute("COMMIT")
    assert 44 not in ask(conn, "kappa") and 33 in ask(conn, "kappa")


@pytest.mark.parametrize("question", ['"', "*", "NEAR(x y)", "NOT x", "x:filler2", "\0", "用", "-"])
def test_no_question_is_an_error_of_the_query_language(
    conn: driver.Connection, question: str
) -> None:
    assert ask(conn, question) == []


def test_frequencies_are_counted_anew_when_the_store_has_grown(conn: driver.Connection) -> None:
    before = plan(conn, MESSAGES, parse_query("kappa")).asked.information
    conn.execute("BEGIN IMMEDIATE")
    rows = [(1_000 + n, "kappa", "") for n in range(400)]
    for number, _, _ in rows:
        conn.execute(
            "INSERT INTO messages(id, session, key, position, role, text)"
            " VALUES(?, 1, ?, ?, 0, 'x')",
            (number, number.to_bytes(16, "big"), number),
        )
    text.index_messages(conn, rows)
    conn.execute("COMMIT")
    assert plan(conn, MESSAGES, parse_query("kappa")).asked.information < before
    assert matching.size(conn, MESSAGES) == 1_399


def test_a_message_without_a_time_is_of_no_date(conn: driver.Connection) -> None:
    """400 days of messages, every tenth without a time."""
    dated = [n for n in range(11, 401, 11) if n % 10]
    for scope in (Scope(since=0), Scope(until=1_000 * DAY_US), Scope(since=0, until=10**18)):
        assert sorted(ask(conn, "kappa", scope)) == dated
    early = ask(conn, "kappa", Scope(until=56 * DAY_US))
    assert sorted(early) == [11, 22, 33, 44, 55]


@pytest.fixture(scope="module")
def table() -> StaticEmbedder:
    return StaticEmbedder()


def test_words_that_mean_nothing_find_nothing(
    conn: driver.Connection, table: StaticEmbedder
) -> None:
    """Something is always nearest; a question of unknown words needs more than that."""
    texts = ["The car was repaired", "Bread needs flour and yeast", "Rain is expected tomorrow"]
    conn.execute("BEGIN IMMEDIATE")
    for number, one in enumerate(texts, 500):
        conn.execute(
            "INSERT INTO messages(id, session, key, position, role, text) VALUES(?, 1, ?, ?, 0, ?)",
            (number, number.to_bytes(16, "big"), number, one),
        )
    text.index_messages(conn, [(500 + i, index_form(one), "") for i, one in enumerate(texts)])
    rows = zip(range(500, 503), quantize(table.embed(texts)), strict=True)
    vectors.put_messages(conn, STATIC, rows)
    conn.execute("COMMIT")

    def found(question: str) -> list[int]:
        vector = table.embed([question])[0]
        asked = {STATIC: vector} if vector.any() else {}
        return [
            hit.id
            for hit in messages.search(
                conn, Columns(), parse_query(question), asked, table.likeness, Scope(), 10
            ).hits
        ]

    assert found("qwxzv blorf") == [] and found("zzqx fnorbl quux") == []
    assert found("automobile repairing")[0] == 500  # `repair` stands there
    assert found("vehicle")[0] == 500  # by meaning alone
    assert found("qwxzv bread")[0] == 501  # a known word among unknown ones
