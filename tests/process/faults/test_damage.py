"""Files that are damaged while the daemon is stopped: recovered by itself, and said.

Facts come back from the newest backup and from the mirror, sessions from the transcripts; the
damaged file is kept aside.
"""

import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.claude import said, session_id, session_path
from support.daemon import RunningDaemon, make_home, remove_home, start_daemon
from support.history import all_facts, patiently
from support.wire import RawClient

FACTS = 150
ONE = session_id(1)
PAGE = 4096
PARTS = ("data", "state", "user")


def header(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(b"\0" * 100)


def middle(path: Path) -> None:
    """Every tenth page, the first ones spared, so that opening sees nothing."""
    with path.open("r+b") as file:
        for page in range(20, path.stat().st_size // PAGE, 10):
            file.seek(page * PAGE)
            file.write(os.urandom(PAGE))


def truncated(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2 // PAGE * PAGE)


def emptied(path: Path) -> None:
    os.truncate(path, 0)


def garbage_log(path: Path) -> None:
    """A WAL that is none: SQLite ignores it, and so must everything else."""
    log = Path(f"{path}-wal")
    log.write_bytes(os.urandom(100_000))
    log.chmod(0o600)


def words_out_of_step(path: Path) -> None:
    """Rows behind the text index are gone while its words stay, as after a lost write."""
    connection = sqlite3.connect(path)
    tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master")]
    if "fact_texts" in tables:
        connection.execute("UPDATE fact_texts SET text = 'other' || id WHERE id % 3 = 0")
    else:
        connection.execute("UPDATE message_stems_data SET block = x'00' WHERE id > 10")
    connection.commit()
    connection.close()


DAMAGES = [header, middle, truncated, emptied, garbage_log, words_out_of_step]


def fill(daemon: RunningDaemon, project: Path) -> set[str]:
    """Facts in both scopes, half of them before a backup, and a session; the texts of facts."""
    texts, waiting = set(), []
    with daemon.connect(60) as client:
        client.hello(workspace=str(project))
        for number in range(FACTS):
            for scope in ("global", "workspace"):
                text = f"{scope} fact {number}: port {5000 + number} serves tenant {number * 7}"
                params = {"text": text, "scope": scope, "entities": [f"tenant:{number * 7}"]}
                waiting.append(client.send("remember_fact", **params))
                texts.add(text)
            if len(waiting) > 20:
                while waiting:
                    client.wait(waiting.pop())
            if number == FACTS // 2:
                client.call("backup")
        while waiting:
            client.wait(waiting.pop())
        client.call("index_wait")
    return texts


def texts_of(client: RawClient, project: Path) -> set[str]:
    found = all_facts(client, scope="global")
    found += all_facts(client, scope="workspace", workspace=str(project))
    return {fact["text"] for fact in found if fact["active"]}


@pytest.fixture(scope="module")
def filled() -> Iterator[tuple[Path, Path, set[str]]]:
    """A stopped home with facts, a backup, a mirror and sessions; a copy of it; its facts."""
    home = make_home()
    try:
        project = home / "user" / "project"
        project.mkdir(parents=True)
        path = session_path(home / "user", ONE)
        path.write_bytes(b"".join(said(ONE, f"the aardvark number {n}", n) for n in range(400)))
        with start_daemon(home) as daemon:
            texts = fill(daemon, project)
        copy = home / "copy"
        for part in PARTS:
            shutil.copytree(home / part, copy / part, symlinks=True)
        yield home, copy, texts
    finally:
        remove_home(home)


@pytest.fixture
def whole(filled: tuple[Path, Path, set[str]]) -> tuple[Path, set[str]]:
    """The filled home as it was: at its own path, since workspaces are named by theirs."""
    home, copy, texts = filled
    for part in PARTS:
        shutil.rmtree(home / part)
        shutil.copytree(copy / part, home / part, symlinks=True)
    return home, texts


def healed(client: RawClient, name: str) -> str:
    """What `status` says of the store once it was replaced."""
    end = time.monotonic() + 60
    while True:
        for one in patiently(lambda: client.call("status"))["degraded"]:
            if one["name"] == "recovery" and name in one["reason"]:
                assert one["remedy"]
                return str(one["reason"])
        assert time.monotonic() < end, client.call("status")["degraded"]
        time.sleep(0.02)


def stores(home: Path) -> list[Path]:
    """One store of each kind."""
    (workspace,) = (home / "data" / "workspaces").glob("*.db")
    return [home / "data" / "global.db", workspace, home / "data" / "sessions.db"]


def expected_aside(damage: Callable[[Path], None], paths: list[Path]) -> list[str]:
    """Which stores had to be replaced: SQLite heals a wrong log, and we a wrong text index of
    facts; empty sessions are new ones."""
    names = [path.name for path in paths]
    if damage is garbage_log:
        return []
    if damage is words_out_of_step:
        return names[2:]
    return names[:2] if damage is emptied else names


def names_aside(paths: list[Path]) -> set[str]:
    """Names of those of which a damaged file was kept."""
    return {path.name for path in paths if list(path.parent.glob(path.name + ".corrupt-*"))}


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda one: one.__name__)
def test_damaged_stores_come_back(
    whole: tuple[Path, set[str]], damage: Callable[[Path], None]
) -> None:
    home, texts = whole
    project = home / "user" / "project"
    damaged = stores(home)
    for path in damaged:
        damage(path)
    with start_daemon(home) as daemon, daemon.connect(60) as client:
        client.hello(workspace=str(project))
        if damage is words_out_of_step:  # a start does not look so far; whoever looks heals
            wrong = [one for one in client.call("verify")["checks"] if not one["ok"]]
            assert [one["name"] for one in wrong] == ["sessions"], wrong
            assert "lore status" in wrong[0]["remedy"]
            healed(client, "sessions.db")
        client.call("index_wait")
        assert patiently(lambda: texts_of(client, project)) == texts
        shown = client.call("session", id=ONE)
        assert shown["session"]["message_count"] == 400
        checks = client.call("verify", deep=True)
        assert checks["ok"], [one for one in checks["checks"] if not one["ok"]]
        degraded = client.call("status")["degraded"]
        told = {
            path.name
            for path in damaged
            for one in degraded
            if one["name"] == "recovery" and path.name in one["reason"] and one["remedy"]
        }
        kept = names_aside(damaged)
        assert told == kept == set(expected_aside(damage, damaged))
        asked: dict[str, Any] = {"query": "tenant 707 port", "scope": "global"}
        found = patiently(lambda: client.call("recall_fact", **asked))["facts"]
        assert found[0]["text"].startswith("global fact 101:")
        asked = {"query": "aardvark", "everywhere": True}
        found = patiently(lambda: client.call("episodic_recall", **asked))["sessions"]
        assert found[0]["session"]["id"] == ONE
