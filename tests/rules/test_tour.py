"""The recordings of `client/TOUR.md` are what the commands print."""

from support import tour


def test_the_recordings_are_real() -> None:
    page = tour.PAGE.read_text(encoding="utf-8")
    assert len(tour.commands(page)) > 20
    played = tour.shape(tour.record(page))
    assert played == tour.shape(page), "PYTHONPATH=tests python -m support.tour records it anew"


def test_a_shape_keeps_words_and_drops_what_changes() -> None:
    one = "F2 stated 5 min ago, 1,234 messages, pid 17  2026-11-30 10:00"
    assert tour.shape(one) == tour.shape("F2 stated just now, 9 messages, pid 4 2026-12-01 23:59")
    assert tour.shape(one) != tour.shape("F2 stated 5 min ago, 9 sessions, pid 4 2026-12-01 23:59")
