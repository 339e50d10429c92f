"""Redaction: what is found on the labelled set, what is left alone, safe to repeat."""

import json
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lored.core.redact import redact, scan
from lored.core.redact.shapes import SHAPES

DATA = Path(__file__).parents[2] / "data" / "redact" / "labelled.jsonl"
CASES = [json.loads(line) for line in DATA.read_text("utf-8").splitlines()]


def test_recall_and_precision_on_the_labelled_set() -> None:
    missed: Counter[str] = Counter()
    false: list[str] = []
    secrets = 0
    for case in CASES:
        clean, counts = redact(case["text"])
        if case["secrets"]:
            secrets += 1
            missed[case["kind"]] += any(secret in clean for secret in case["secrets"])
        elif clean != case["text"]:
            false.append(f"{counts}: {case['text'][:120]}")
    assert secrets > 350 and len(CASES) - secrets > 500
    assert sum(missed.values()) <= secrets * 0.01, +missed
    assert not false


@pytest.mark.parametrize("case", [c for c in CASES if c["secrets"]][::11], ids=lambda c: c["kind"])
def test_findings_never_hold_the_secret(case: dict[str, object]) -> None:
    for finding in scan(str(case["text"])):
        assert 0 <= finding.start < finding.end <= len(str(case["text"]))
        for secret in case["secrets"]:  # type: ignore[attr-defined]
            assert secret not in finding.hint


def test_redacting_twice_changes_nothing() -> None:
    for case in CASES:
        once, _ = redact(case["text"])
        assert redact(once) == (once, {})


def test_clean_text_is_returned_itself() -> None:
    text = "Nothing to see: a plain sentence about tokens, keys and passwords."
    assert redact(text)[0] is text


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=300))
def test_any_text_is_handled(text: str) -> None:
    clean, counts = redact(text)
    assert redact(clean)[0] == clean
    assert bool(counts) == (clean != text)


@settings(max_examples=200, deadline=None)
@given(
    before=st.text(max_size=40).filter(lambda t: not t or not t[-1].isalnum()),
    after=st.text(max_size=40).filter(lambda t: not t or not (t[0].isalnum() or t[0] in "_-.")),
    body=st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=36, max_size=36),
)
def test_a_key_is_found_in_any_surroundings(before: str, after: str, body: str) -> None:
    # Also among wide characters: offsets must not drift between text and bytes.
    secret = "gh" + "p_" + body
    clean, counts = redact(f"{before} {secret}{after}")
    assert secret not in clean and counts.get("github-token") == 1


@settings(max_examples=600, deadline=None)
@given(st.from_regex(SHAPES, fullmatch=True))
def test_every_string_of_a_known_shape_is_found(secret: str) -> None:
    # Also proves that STARTS holds the beginning of every shape: others are never tried.
    found = scan(f"key {secret} end")
    assert [(f.start, f.end) for f in found] == [(4, 4 + len(secret))], secret


@pytest.mark.parametrize(
    "text",
    [
        "a" * 300_000,
        "key=" * 60_000,
        "password: " * 30_000,
        "://" * 80_000 + "@",
        "://a:" + "b" * 250_000,
        "-----BEGIN RSA PRIVATE KEY-----" * 3_000,
        "-----BEGIN RSA PRIVATE KEY-----\n" + "QUJD\n" * 50_000,
        "curl -u a" * 20_000 + "://",
        ("A" * 64 + "\n") * 4_000 + "PRIVATE KEY",
        "authorization: bearer " * 12_000,
        "eyJ" + "a" * 100_000 + ".eyJ" + "b" * 100_000,
        'token="' + "\\" * 100_000,
        "sk-" * 80_000,
    ],
    ids=lambda text: text[:18].strip(),
)
def test_hostile_text_costs_no_more_than_linear_time(text: str) -> None:
    """Eight times the text costs eight times the work; were it quadratic, 64 times."""

    def work(part: str) -> float:
        start = time.process_time()
        redact(part)
        return time.process_time() - start

    eighth, whole = (min(work(part) for _ in range(3)) for part in (text[: len(text) // 8], text))
    assert whole < 24 * max(eighth, 0.001)
