"""Realms by rules of config.toml: the folder decides, and nothing crosses."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lore import realms
from lore.errors import Invalid
from process.test_indexing import until
from support.claude import said, session_id, session_path
from support.daemon import RunningDaemon, environment, start_daemon
from support.wire import RawClient, Refusal

OUR, THEIR = session_id(1), session_id(2)


def test_the_innermost_folder_decides(tmp_path: Path) -> None:
    rules = realms.parse({"a": [str(tmp_path)], "b": [f"{tmp_path}/in", "/srv/b"]})
    assert realms.of(f"{tmp_path}/x", rules) == "a"
    assert realms.of(f"{tmp_path}/in/x", rules) == realms.of("/srv/b", rules) == "b"
    assert realms.of(f"{tmp_path}-other", rules) == realms.of("/", rules) == ""
    (tmp_path / "link").symlink_to("/srv/b/x")
    assert realms.of(f"{tmp_path}/link", rules) == "b", "where it leads, not how it is spelt"


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ([], "NAME ="),
        ({"a/b": ["/x"]}, "letters"),
        ({"a": "/x"}, "list of folders"),
        ({"a": ["x"]}, "not an absolute path"),
        ({"a": ["/x"], "b": ["/x/"]}, "in both a and b"),
    ],
)
def test_rules_that_are_none(table: Any, words: str) -> None:
    with pytest.raises(Invalid, match=words):
        realms.parse(table)


@pytest.fixture
def two(home: Path) -> Iterator[tuple[RunningDaemon, RunningDaemon]]:
    """The daemon without a name and that of the realm `client-a`, over one user's transcripts."""
    walled = home / "user" / "client-a"
    walled.mkdir()
    (home / "user" / "own").mkdir()
    (home / "config").mkdir()
    (home / "config" / "config.toml").write_text(f'[realms]\nclient-a = ["{walled}"]\n')
    for session, cwd in ((OUR, home / "user" / "own"), (THEIR, walled / "deep")):
        path = session_path(home / "user", session)
        lines = [json.loads(line) for line in said(session, "the aardvark of it", 0).splitlines()]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps({**line, "cwd": str(cwd)}) + "\n" for line in lines))
    with start_daemon(home) as plain, start_daemon(home, {"LORE_REALM": "client-a"}) as realm:
        yield plain, realm


def lore(home: Path, cwd: Path, *words: str) -> Any:
    """What the command answers in a folder."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "lore.cli.main", *words, "--json"],
        cwd=cwd,
        env=environment(home),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)["data"]


def test_nothing_crosses(two: tuple[RunningDaemon, RunningDaemon], home: Path) -> None:
    plain, realm = two
    own, walled = home / "user" / "own", home / "user" / "client-a"
    assert lore(home, walled, "status")["realm"] == "client-a"
    assert "realm" not in lore(home, own, "status")
    lore(home, walled, "remember", "--global", "the tariff of client a is 12")
    lore(home, own, "remember", "--global", "the tariff of all others is 10")
    for folder, fact, session in ((walled, "client a is 12", THEIR), (own, "others is 10", OUR)):
        (found,) = lore(home, folder, "recall", "tariff")["facts"]
        assert fact in found["text"]
        daemon = realm if folder is walled else plain
        with daemon.connect(60) as client:
            client.hello()
            client.call("index_wait")
            listed = client.call("sessions", everywhere=True)["sessions"]
            assert [one["id"] for one in listed] == [session]
            asked = client.call("episodic_recall", query="aardvark", everywhere=True)
            assert [one["session"]["id"] for one in asked["sessions"]] == [session]
    for daemon, foreign in ((plain, walled), (realm, own)):
        with daemon.connect() as client, pytest.raises(Refusal, match="between realms"):
            client.hello()
            client.call("remember_fact", text="astray", workspace=str(foreign))
    stores = [p for p in home.rglob("*.db*") if p.is_file()]
    for text, wall in ((b"client a is 12", True), (b"others is 10", False)):
        holds = [path for path in stores if text in path.read_bytes()]
        assert holds and all(("realms" in path.parts) == wall for path in holds)


def test_rules_that_cannot_be_read_stop_the_client(home: Path) -> None:
    (home / "config").mkdir()
    (home / "config" / "config.toml").write_text('[realms]\nclient-a = "no list"\n')
    with pytest.raises(Invalid, match=r"config\.toml"):
        realms.here("/", dict(environment(home)))
    assert realms.here("/", {**environment(home), "LORE_REALM": ""}).realm == ""
    assert os.listdir(home / "user") == []


def test_what_was_indexed_before_a_rule_is_named_and_forgotten_at_its_old_place(
    home: Path,
) -> None:
    walled = home / "user" / "client-a"
    walled.mkdir()
    path = session_path(home / "user", THEIR)
    path.write_bytes(said(THEIR, "the aardvark of client a", 0, cwd=str(walled)))
    (home / "config").mkdir()
    with start_daemon(home) as daemon, daemon.connect(60) as client:
        client.hello()
        client.call("index_wait")
        assert len(client.call("sessions", everywhere=True)["sessions"]) == 1
        assert not strays(client)
    (home / "config" / "config.toml").write_text(f'[realms]\nclient-a = ["{walled}"]\n')
    with start_daemon(home) as daemon, daemon.connect(60) as client:
        client.hello()
        client.call("index_wait")
        until(lambda: strays(client), "the stray session is named")
        (mode,) = strays(client)
        assert "1 sessions" in mode["reason"] and str(walled) in mode["reason"]
        assert f"lore forget workspace {walled}" in mode["remedy"]
        gone = lore(home, home / "user", "forget", "workspace", str(walled), "--yes")
        assert gone["sessions"] == [THEIR]
        until(lambda: not strays(client), "nothing is astray")
        assert not client.call("sessions", everywhere=True)["sessions"]


def strays(client: RawClient) -> list[Any]:
    return [one for one in client.call("status")["degraded"] if one["name"] == "other_realm"]
