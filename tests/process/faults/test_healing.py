"""Stores that are damaged under the running daemon: healed without a restart, nothing lost.

The damage shows to whoever reads the bad page next. The test damages the file behind SQLite's
back and goes on calling, as clients do, until `status` tells what was done.
"""

import os
import threading
from pathlib import Path

import pytest

from process.faults.test_damage import FACTS, fill, healed, texts_of
from support.claude import said, session_id, session_path
from support.daemon import RunningDaemon, start_daemon
from support.history import Writer, patiently
from support.wire import RawClient, Refusal

ONE = session_id(1)
PAGE = 4096
MESSAGES = 1500


def spoil(path: Path, first: int) -> None:
    """Every page from ``first`` on is nonsense."""
    with path.open("r+b") as file:
        for page in range(first, path.stat().st_size // PAGE):
            file.seek(page * PAGE)
            file.write(os.urandom(PAGE))


def call_on(client: RawClient, method: str, **params: object) -> None:
    """A call of a client that lives with refusals."""
    try:
        client.call(method, **params)
    except Refusal as refusal:
        assert refusal.code in ("unavailable", "busy", "not_found"), refusal.wire


def test_a_damaged_sessions_store_is_filled_again_while_it_runs(
    daemon: RunningDaemon, client: RawClient
) -> None:
    path = session_path(daemon.home / "user", ONE)
    lines = [said(ONE, f"the aardvark number {n} " + "and so on " * 30, n) for n in range(MESSAGES)]
    path.write_bytes(b"".join(lines))
    client.call("index_wait")
    client.call("remember_fact", text="unharmed: quartz", scope="global")
    client.call("maintain")  # all of it is in the file, not in its log
    spoil(Path(daemon.paths.sessions_db), 3)
    with path.open("ab") as file:
        file.write(said(ONE, "the last aardvark of all", MESSAGES))
    for _ in range(20):
        call_on(client, "session_messages", id=ONE)
        call_on(client, "episodic_recall", query="aardvark", everywhere=True)
    reason = healed(client, "sessions.db")
    assert "damaged" in reason
    assert patiently(lambda: client.call("index_wait"))["failed"] == 0
    shown = client.call("session", id=ONE)["session"]
    assert shown["message_count"] == MESSAGES + 1
    found = client.call("episodic_recall", query="last aardvark of all", everywhere=True)
    assert found["sessions"][0]["session"]["id"] == ONE
    assert client.call("facts", scope="global")["total"] == 1
    assert client.call("verify", deep=True)["ok"]
    with path.open("ab") as file:
        file.write(said(ONE, "and it goes on", MESSAGES + 1))
    client.call("index_wait")
    assert client.call("session", id=ONE)["session"]["message_count"] == MESSAGES + 2
    assert list(Path(daemon.paths.data_dir).glob("sessions.db.corrupt-*"))
    assert "defect" not in daemon.log()


@pytest.mark.timeout(240)
def test_a_damaged_facts_store_is_restored_under_those_who_write(home: Path) -> None:
    """The file loses its header while clients state facts: all that was acknowledged, before and
    after, is there, and nobody restarts anything."""
    project = home / "user" / "project"
    project.mkdir(parents=True)
    with start_daemon(home) as daemon, daemon.connect(60) as client:
        texts = fill(daemon, project)
        client.hello(workspace=str(project))
        client.call("maintain")
        store = Path(daemon.paths.global_db)
        writer, ended = Patient("ada", 1, scope="global"), threading.Event()
        thread = threading.Thread(target=writer.run, args=(daemon.socket, ended), daemon=True)
        with store.open("r+b") as file:
            file.write(bytes(100))
        thread.start()
        for _ in range(20):
            call_on(client, "facts", scope="global", limit=200)
            call_on(client, "verify", deep=True)
        reason = healed(client, "global.db")
        assert "restored from" in reason and "salvaged" in reason
        before = writer.acknowledged
        while thread.is_alive() and writer.acknowledged < before + 5:
            call_on(client, "ping")
        ended.set()
        thread.join(60)
        assert writer.acknowledged >= before + 5, "writes go on"
        writer.check(client)
        assert texts <= patiently(lambda: texts_of(client, project))
        assert len(texts) == 2 * FACTS
        assert patiently(lambda: client.call("verify", deep=True))["ok"]
        assert "defect" not in daemon.log()


class Patient(Writer):
    """States facts, and states them again with the same key when it is refused."""

    def run(self, path: str, ended: threading.Event) -> None:
        with RawClient(path, 30) as client:
            client.hello()
            while not ended.is_set():
                text = self.text()
                params = {"text": text, "idempotency_key": self.key(), **self.where}
                while True:
                    try:
                        answer = client.call("remember_fact", **params)
                        break
                    except Refusal as refusal:
                        assert refusal.code in ("busy", "unavailable"), refusal.wire
                self.states[text] = "active"
                self.ids[text] = f"{self.where['scope']}:{answer['fact']['id']}"
                self.acknowledged += 1
