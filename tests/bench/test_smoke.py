"""Every bench runs in its smallest size and gives finite figures. No figure is judged here:
the bars are for `python -m tests.bench` on a machine that has nothing else to do.
"""

import math

import pytest

from bench.contract import Row, as_json, line, not_run, number, percentile
from bench.running import BENCHES, apart


@pytest.mark.parametrize("name", BENCHES)
@pytest.mark.timeout(300)
def test_a_bench_runs(name: str) -> None:
    rows, sound = apart(name, "smoke")
    assert sound, [row.note for row in rows]
    assert rows
    for row in rows:
        if row.figure is None:
            assert row.note, row.what
        else:
            assert math.isfinite(row.figure) and row.figure >= 0, row
        assert line(row, 50).startswith(row.what)


def test_a_verdict_follows_figure_and_bar() -> None:
    assert Row("a", 2.0, bar=2.0).verdict == "ok"
    assert Row("a", 2.1, bar=2.0).verdict == "MISSED"
    assert Row("a", 2.1, bar=2.0, better="high").verdict == "ok"
    assert Row("a", 1.9, bar=2.0, better="high").verdict == "MISSED"
    assert Row("a", 1.9).verdict == ""
    assert not_run("a", "no data").verdict == "not run"
    assert as_json([not_run("a", "no data")])[0]["note"] == "no data"


def test_numbers_have_three_digits_that_count() -> None:
    shown = [number(value) for value in (0, 0.04567, 3.14159, 42.42, 1234567.8)]
    assert shown == ["0", "0.0457", "3.14", "42.4", "1,234,568"]


def test_a_percentile_is_a_value_that_was_measured() -> None:
    values = [float(value) for value in range(1, 101)]
    assert [percentile(values, share) for share in (0.5, 0.95, 1.0)] == [50, 95, 100]
    assert percentile([7.0], 0.95) == 7.0
