"""Shortcuts of the search of messages find what the long way finds."""

import random
import re
from pathlib import Path

import numpy as np
import pytest

from lored.core.passages import begin_alike, measure, weigh
from lored.core.quantized import normalise, quantize
from lored.core.tokens import index_form, parse_query
from lored.store import driver, migrate
from lored.store.pragmas import StoreKind
from lored.store.search import text, vectors
from lored.store.search.columns import Columns
from lored.store.search.postings import SPAN_ROWS, Postings, sums
from lored.store.search.stemming import stem
from support.transcripts import SAMPLES

ENDINGS = ("", "s", "es", "ies", "ed", "ing", "y", "ied", "eed", "ational", "ization", "e", "ss")


def vocabulary() -> list[str]:
    """Words of the samples, and short and odd ones with every ending."""
    read = b"".join(p.read_bytes()[:200_000] for p in sorted(SAMPLES.rglob("*.jsonl")))
    words = set(re.findall(r"[^\W_]+", read.decode("utf-8", "replace").lower()))
    dice = random.Random(3)
    for _ in range(20_000):
        base = "".join(dice.choice("aeioybdnstz") for _ in range(dice.randrange(4)))
        words.add(base + dice.choice(ENDINGS))
    return sorted(words - {""})


def test_a_word_begins_as_its_stem() -> None:
    words = vocabulary()
    stems = stem(words)
    assert {"ies", "eyed", "abbed"} & set(words), "the odd ones are there"
    for word, one in zip(words, stems, strict=True):
        assert begin_alike([word], [one]) == [word], (word, one)
    few = begin_alike(words, stem(["deployment", "config"]))
    assert len(few) < len(words) / 10, "most words are told apart by how they begin"


@pytest.mark.parametrize(
    "text", ["", "x " * 900 + "the Deploys failed, deployed_again", "é deploy"]
)
def test_what_is_measured_is_what_stands_there(text: str) -> None:
    asked = weigh(parse_query("deploy failing"), stem, lambda _: 3, 100)
    (fit,) = measure(asked, [text], stem)
    words = re.findall(r"[^\W_]+", index_form(text[fit.start :][:1_600]).lower())
    assert fit.words == tuple(dict.fromkeys(words)) and fit.length == len(words)
    counts = {one: n for one in asked.stems if (n := stem(words).count(one))} if words else {}
    assert fit.counts == counts


@pytest.mark.parametrize("top", [50, SPAN_ROWS, 5 * SPAN_ROWS + 7])
def test_the_best_sums_are_those_of_all_rows(top: int) -> None:
    dice = np.random.default_rng(top)
    lists = [
        (weight, np.flatnonzero(dice.random(top + 1) < share).astype(np.int32))
        for weight, share in ((5.0, 0.01), (2.5, 0.1), (2.5, 0.1), (0.1, 0.5))
    ]
    table = np.zeros(top + 1)
    for weight, rows in lists:
        table[rows] += weight
    rows, values = sums([one for one in lists if len(one[1])], 20)
    assert values.tolist() == table[rows].tolist() and (np.diff(rows) > 0).all()
    best = sorted(np.flatnonzero(table).tolist(), key=lambda row: (-table[row], -row))[:20]
    assert set(best) <= set(rows.tolist())
    found = Postings(words=[("", weight, rows) for weight, rows in lists]).best(20)
    assert list(found) == best


def test_signs_are_read_when_they_are_scanned_and_again_after_a_release(tmp_path: Path) -> None:
    path = str(tmp_path / "sessions.db")
    conn = driver.connect(path, read_only=False)
    migrate.bring_up(conn, StoreKind.SESSIONS, path, str(tmp_path))
    made = normalise(np.random.default_rng(0).standard_normal((40, 64)).astype(np.float32))
    columns = Columns()

    def put(first: int, last: int) -> None:
        for number in range(first, last):
            conn.execute(
                "INSERT OR IGNORE INTO sessions(id, agent, native_id, indexed_at)"
                " VALUES(1, 'codex', 's', 0)"
            )
            conn.execute(
                "INSERT INTO messages(id, session, key, position, role, text)"
                " VALUES(?, 1, ?, ?, 0, '')",
                (number, number.to_bytes(16, "big"), number),
            )
        text.index_messages(conn, [(number, "word", "") for number in range(first, last)])
        rows = zip(range(first, last), quantize(made[first:last]), strict=True)
        vectors.put_messages(conn, "some", rows)
        columns.refresh(conn)

    def nearest(number: int) -> int:
        found = columns.nearest(conn, "some", made[number], 5, None)
        return max(found, key=lambda row: found[row])

    put(1, 20)
    assert columns.rows("some") == 19 and nearest(7) == 7
    put(20, 30)
    assert columns.rows("some") == 29 and (nearest(7), nearest(25)) == (7, 25)
    columns.release("some")
    put(30, 40)
    assert columns.rows("some") == 39
    assert [nearest(number) for number in (7, 25, 38)] == [7, 25, 38]
    assert columns.rows("some") == 39
    assert columns.cosines(conn, "some", made[3], [3, 50, 1 << 20]).keys() == {3}
    conn.close()
