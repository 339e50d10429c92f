"""Recall of sessions on a real daemon: silence, days."""

from pathlib import Path

from support.claude import said, session_id, session_path
from support.daemon import start_daemon

ONE = session_id(1)
LATE = 22 * 60
"""The minute of 2026-05-01 22:00 UTC: the second of May in Tokyo."""


def test_days_are_those_of_the_user_and_nonsense_finds_nothing(home: Path) -> None:
    lines = said(ONE, "the parser drops the last token", LATE)
    lines += said(ONE, "it looked one token too far", LATE + 1, role="assistant")
    session_path(home / "user", ONE).write_bytes(lines)
    with start_daemon(home, {"TZ": "Asia/Tokyo"}) as daemon, daemon.connect(60) as client:
        client.hello()
        client.call("index_wait")
        found = client.call("episodic_recall", query="parser token", everywhere=True)
        listed = client.call("sessions", everywhere=True)["sessions"]
        line = found["sessions"][0]["session"]["summary"]["line"]
        assert line == listed[0]["summary"]["line"] and "2026-05-02" in line
        told = client.call("episodic_recall_summary")
        assert "2026-05-02" in told["text"]
        assert told["sessions"][0]["summary"]["line"] == line
        nothing = client.call("recall", query="qwxzv blorf", everywhere=True)
        assert nothing["facts"] == nothing["sessions"] == []
