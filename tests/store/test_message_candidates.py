"""Shortcuts of the search of messages find what the long way finds."""

import random
import re

import numpy as np
import pytest

from lored.core.passages import begin_alike, measure, weigh
from lored.core.tokens import index_form, parse_query
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
