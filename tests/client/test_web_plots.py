"""The geometry of plots: inside the view box, in proportion, whatever the numbers."""

from datetime import UTC, date, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from lore.web import plots

TODAY = date(2026, 11, 30)  # a Monday
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def test_the_calendar_ends_today_and_its_weeks_begin_on_monday() -> None:
    made = plots.calendar({TODAY: 4, TODAY - timedelta(days=1): 1}, TODAY, 53)
    assert made.cells[0].day.weekday() == 0
    assert made.cells[-1].day == TODAY
    assert len(made.cells) == 52 * 7 + 1
    assert made.cells[-1].level == plots.LEVELS
    assert made.cells[-2].level == 1
    assert made.cells[0].level == 0
    assert made.total == 5
    assert all(cell.x < made.width and cell.y < made.height for cell in made.cells)
    assert [month.label for month in made.months][:3] == ["Dec", "Jan", "Feb"]


@given(st.dictionaries(st.integers(0, 370), st.integers(0, 10_000), max_size=20))
def test_levels_follow_counts(counts: dict[int, int]) -> None:
    by_day = {TODAY - timedelta(days=n): count for n, count in counts.items()}
    cells = plots.calendar(by_day, TODAY, 53).cells
    ordered = sorted(cells, key=lambda cell: cell.count)
    levels = [cell.level for cell in ordered]
    assert levels == sorted(levels)
    assert all((cell.level == 0) == (cell.count == 0) for cell in cells)
    assert max(levels) <= plots.LEVELS


@given(st.lists(st.dictionaries(st.sampled_from("abc"), st.integers(0, 5_000)), max_size=60))
def test_bars_stay_inside_and_stack(columns: list[dict[str, int]]) -> None:
    made = plots.stacked([(str(n), parts) for n, parts in enumerate(columns)], "abc")
    floor = plots.HEIGHT - plots.FOOT
    for box in made.boxes:
        assert box.x >= plots.LEFT
        assert box.x + box.width <= plots.WIDTH + 0.2
        assert box.y >= plots.TOP - 0.2
        assert box.y + box.height <= floor + 0.2
    tops = [int(tick.label.replace(",", "")) for tick in made.rows]
    assert tops == sorted(tops)
    assert tops[-1] >= max((sum(parts.values()) for parts in columns), default=0)
    assert len(made.columns) <= 6


@given(st.lists(st.integers(0, 10**9), max_size=60))
def test_a_line_has_every_point_inside(values: list[int]) -> None:
    made = plots.cumulative([(str(n), value) for n, value in enumerate(values)])
    assert made.line.count("L") == max(len(values) - 1, 0)
    for box in made.boxes:
        assert plots.LEFT <= box.x <= plots.HALF
        assert plots.TOP - 0.1 <= box.y <= plots.HEIGHT - plots.FOOT
    assert len(made.columns) <= 4
    assert made.area.endswith("Z") or not values


def fact(start: str, end: str | None = None) -> dict[str, object]:
    """Dates of a fact on the wire."""
    return {"valid_from": start, "created_at": start} | ({"valid_to": end} if end else {})


def test_validity_is_in_proportion() -> None:
    made = plots.validity(
        [
            fact("2026-11-10T12:00:00Z", "2026-11-20T12:00:00Z"),
            fact("2026-11-20T12:00:00Z"),
        ],
        NOW,
    )
    first, second = made.spans
    assert (first.x, first.width) == (0, plots.WIDTH / 2)
    assert (second.x, second.width) == (plots.WIDTH / 2, plots.WIDTH / 2)
    assert not first.open
    assert second.open
    assert made.height == 2 * plots.ROW


def test_validity_of_nothing_of_now_and_of_the_future() -> None:
    assert plots.validity([], NOW).spans == []
    (only,) = plots.validity([fact("2026-11-30T12:00:00Z")], NOW).spans
    assert only.width > 0
    assert only.x + only.width <= plots.WIDTH
    (ahead,) = plots.validity([fact("2026-11-29T12:00:00Z", "2026-12-01T12:00:00Z")], NOW).spans
    assert ahead.width == plots.WIDTH
    (odd,) = plots.validity([fact("2026-12-24T00:00:00Z", "2026-11-01T00:00:00Z")], NOW).spans
    assert 0 <= odd.x <= plots.WIDTH
