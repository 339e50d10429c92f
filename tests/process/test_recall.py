"""Recall on a real daemon: silence, days, short prompts."""

import time
from pathlib import Path

from support.claude import said, session_id, session_path
from support.daemon import start_daemon
from support.wire import RawClient

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


FACTS = {
    "F1": ("The staging database listens on port 5433", "staging port?"),
    "F2": ("We deploy with make release from the main branch", "deploy this"),
    "F3": ("API keys live in Vault under secret/api", "vault"),
    "F4": ("The parser module is src/parser.rs", "fix the parser"),
}


def told(client: RawClient, prompt: str) -> list[str]:
    """Facts for a prompt, asked again while a busy machine keeps the model from its deadline."""
    end = time.monotonic() + 30
    while (found := client.call("context", query=prompt)).get("degraded"):
        assert time.monotonic() < end, found["degraded"]
    return [fact["id"] for fact in found["receipt"]["facts"]]


def test_short_prompts_get_the_fact_they_are_about_and_others_nothing(home: Path) -> None:
    """With the model, which the context of the session's start has made ready."""
    with start_daemon(home) as daemon, daemon.connect(60) as client:
        client.hello()
        for text, _ in FACTS.values():
            client.call("remember_fact", text=text, scope="global")
        client.call("context")
        end = time.monotonic() + 60
        while client.call("status")["embedding"]["vectors_made"] < len(FACTS):
            assert time.monotonic() < end, "no vectors"
            time.sleep(0.02)
        for name, (_, prompt) in FACTS.items():
            assert told(client, prompt) == [name], prompt
        for prompt in ("looks good", "fix the bug", "hello", "write a haiku about the sea"):
            assert told(client, prompt) == [], prompt
