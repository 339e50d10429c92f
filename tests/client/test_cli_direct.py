"""Without a daemon: reads from the stores, writes into the spool; also inside a real sandbox."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lore import spool
from lore.cli.direct import Direct
from lore.client import Client
from lore.errors import Invalid, Limit, Unavailable
from lore.paths import resolve
from lore.wire.limits import REQUEST_BYTES
from support import sandbox
from support.cli import LORE, Lore
from support.daemon import environment, start_daemon


@pytest.fixture
def lore(home: Path) -> Lore:
    project = home / "user" / "project"
    project.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    return Lore(home, project)


def state_facts(lore: Lore) -> None:
    lore("remember", "Cache TTL is 300s", "-e", "tool:redis")
    lore("remember", "Cache TTL is 600s", "-e", "tool:redis")
    lore("remember", "--global", "Answer in British English")
    lore("apply", "conflict fact_a=workspace:F1 fact_b=F2 severity=high")


READS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("facts", {}),
    ("fact", {"id": "workspace:F1"}),
    ("fact_history", {"id": "F2"}),
    ("conflicts", {}),
    ("clusters", {}),
    ("entities", {}),
    ("snapshot", {"scopes": ["entity:tool:redis"], "format": "text"}),
    ("workspace", {}),
    ("context", {}),
)


def comparable(value: Any) -> Any:
    """An answer without what differs between two moments."""
    if isinstance(value, dict):
        gone = ("access_count", "last_accessed", "revision", "timestamp", "receipt", "as_of")
        return {k: comparable(v) for k, v in value.items() if k not in gone}
    return [comparable(v) for v in value] if isinstance(value, list) else value


def test_direct_answers_are_those_of_the_daemon(lore: Lore) -> None:
    paths, workspace = resolve(environment(lore.home)), str(lore.cwd)

    def read_directly() -> list[Any]:
        direct = Direct(paths, workspace)
        try:
            return [comparable(direct.call(method, given)) for method, given in READS]
        finally:
            direct.close()

    with start_daemon(lore.home):
        state_facts(lore)
        with Client(workspace=workspace, start=False, where=paths) as client:
            served = [comparable(client.call(method, given)) for method, given in READS]
        shown = lore("facts").out
        beside = read_directly()
    alone = read_directly()
    for (method, _), said, first, second in zip(READS, served, beside, alone, strict=True):
        assert first == said, method
        assert second == said, method
    assert lore("facts", "--direct").out == shown


def test_direct_changes_no_file(lore: Lore) -> None:
    with start_daemon(lore.home):
        state_facts(lore)
    data = lore.home / "data"

    def files() -> dict[str, bytes]:
        """SQLite's companions of a store in WAL mode come with any reader."""
        return {
            str(p): p.read_bytes()
            for p in data.rglob("*")
            if p.is_file() and not p.name.endswith(("-wal", "-shm"))
        }

    before = files()
    direct = Direct(resolve(environment(lore.home)), str(lore.cwd))
    for method, given in (*READS, ("recall", {"query": "cache"}), ("status", {})):
        assert direct.call(method, given)
    direct.close()
    assert files() == before


def test_a_folder_that_cannot_be_written_is_read_all_the_same(lore: Lore) -> None:
    from lored.direct import _connect

    with start_daemon(lore.home):
        state_facts(lore)
    store = lore.home / "data" / "global.db"
    assert not store.with_name("global.db-wal").exists()
    if os.getuid() == 0:
        # Root writes everywhere; what is left to prove is that immutable reading works.
        from lored.store import driver

        connection = driver.connect(str(store), read_only=True, immutable=True)
        assert connection.execute("SELECT count(*) FROM facts").fetchone()[0] >= 1
        connection.close()
        return
    os.chmod(store.parent, 0o500)
    try:
        connection = _connect(str(store))
        assert connection.execute("SELECT count(*) FROM facts").fetchone()[0] >= 1
        connection.close()
    finally:
        os.chmod(store.parent, 0o700)


def test_no_memory_yet(lore: Lore) -> None:
    assert "no memory" in lore("facts", "--direct", code=4).err


def test_what_needs_the_daemon_says_so(lore: Lore) -> None:
    for words in (
        ("index", "--wait"),
        ("backup",),
        ("watch",),
        ("up",),
        ("entities", "--merge", "a:b", "c:d"),
        ("workspace", "split"),
    ):
        done = lore(*words, "--direct", code=None)
        assert done.code in (2, 4), words
        assert "daemon" in done.err, words
        assert done.out == ""


def test_writes_wait_in_the_spool(lore: Lore) -> None:
    done = lore("remember", "Kept for later", "-t", "x", "--valid-from", "yesterday", "--direct")
    assert "kept in the spool" in done.out
    lore("forget", "F1", "--direct")
    lore("apply", "dismiss id=conflict:1", "--direct")
    data = lore.json("update", "F1", "New text", "--direct")
    folder = lore.home / "state" / "spool"
    names = sorted(os.listdir(folder))
    assert len(names) == 4
    assert data["queued"] in names
    first = json.loads((folder / names[0]).read_text())
    assert first["format"] == 1
    assert first["method"] == "remember_fact"
    assert first["params"]["text"] == "Kept for later"
    assert first["params"]["valid_from"] == "yesterday"  # relative to `at`
    assert first["at"].endswith("Z")
    assert first["workspace"] == str(lore.cwd)
    assert len(first["params"]["idempotency_key"]) == 32
    assert (folder / names[0]).stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700
    doctor = lore("doctor", code=3).out
    assert "4 writes wait" in doctor


def test_the_spool_refuses_what_the_wire_would(home: Path) -> None:
    paths = resolve(environment(home))
    with pytest.raises(Invalid, match="text is missing"):
        spool.put(paths, "remember_fact", {}, None, "t")
    with pytest.raises(Invalid, match="kind must be one of"):
        spool.put(paths, "remember_fact", {"text": "x", "kind": "rumour"}, None, "t")
    with pytest.raises(Invalid, match="UTF-8"):
        spool.put(paths, "remember_fact", {"text": "\udcff"}, None, "t")
    with pytest.raises(Limit):
        spool.put(paths, "remember_fact", {"text": "x" * REQUEST_BYTES}, None, "t")
    with pytest.raises(Invalid, match="needs the daemon"):
        spool.put(paths, "backup", {}, None, "t")
    (home / "state").mkdir()
    (home / "state" / "spool").write_text("in the way")
    with pytest.raises(Unavailable, match="cannot be written"):
        spool.put(paths, "remember_fact", {"text": "x"}, None, "t")


def test_a_full_spool_is_said(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "FILES", 2)
    paths = resolve(environment(home))
    for _ in range(2):
        spool.put(paths, "remember_fact", {"text": "x"}, None, "t")
    with pytest.raises(Limit, match="spool"):
        spool.put(paths, "remember_fact", {"text": "x"}, None, "t")


@pytest.mark.skipif(not sandbox.SUPPORTED, reason="seccomp filters of x86-64 and arm64 Linux")
def test_inside_a_sandbox_the_same_commands_work(lore: Lore) -> None:
    def inside(*words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, sandbox.__file__, shutil.which(LORE[0]) or LORE[0], *LORE[1:], *words],
            capture_output=True,
            text=True,
            env=environment(lore.home),
            cwd=lore.cwd,
            timeout=60,
            check=False,
        )
        assert done.returncode == code, done
        return done

    with start_daemon(lore.home):
        state_facts(lore)
        shown = inside("facts")
        assert "British English" in shown.stdout
        assert "sockets are refused here" in shown.stderr
        document = json.loads(inside("facts", "--json").stdout)
        assert comparable(document["data"]) == comparable(lore.json("facts"))
        assert "kept in the spool" in inside("remember", "From the sandbox").stdout
        assert "refused" in inside("ping", code=4).stderr
        hook = subprocess.run(
            [sys.executable, sandbox.__file__, *LORE, "hook", "codex", "session-start"],
            input="{}",
            capture_output=True,
            text=True,
            env=environment(lore.home),
            cwd=lore.cwd,
            timeout=60,
            check=False,
        )
        assert (hook.returncode, hook.stdout, hook.stderr) == (0, "", "")
