"""Power cuts and disks that do not sync: what was acknowledged had reached the disk."""

import os
import random
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

from process.test_indexing import homes
from support.daemon import make_home, remove_home, start_daemon
from support.history import Writer
from support.shim import faulty
from support.wire import RawClient, Refusal

ROUNDS = 40 if os.environ.get("LORE_FULL") else 2
CUTS = 3
"""Ways in which one power cut is played: see `after_cut`."""


def after_cut(home: Path, shadow: Path, chance: random.Random, way: int) -> Path:
    """A home as it may be found after the cut.

    Each file below data is as it was at its last sync (way 0), or, by chance for each file,
    as it was at its last write, which the disk may have got to as well.
    """
    made = make_home()
    shutil.copytree(home / "user", made / "user", symlinks=True, dirs_exist_ok=True)
    for path in shadow.rglob("*"):
        if not path.is_file() or path.name.endswith(".draft"):
            continue
        place = path.relative_to(shadow)
        live = home / "data" / place
        source = live if way and live.exists() and chance.random() < 0.5 else path
        target = made / "data" / place
        target.parent.mkdir(parents=True, exist_ok=True)
        for folder in target.parents:
            if folder.is_relative_to(made):
                folder.chmod(0o700)
        shutil.copy(source, target)
    return made


def write_for(path: str, writers: list[Writer], seconds: float) -> None:
    ended = threading.Event()
    threads = [threading.Thread(target=one.run, args=(path, ended), daemon=True) for one in writers]
    for thread in threads:
        thread.start()
    ended.wait(seconds)
    ended.set()
    for thread in threads:
        thread.join(60)


@pytest.mark.timeout(120 + 30 * ROUNDS)
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_after_a_power_cut_every_acknowledged_fact_is_there(home: Path, seed: int) -> None:
    chance = random.Random(seed)
    project = home / "user" / "project"
    project.mkdir(parents=True)
    for folder in homes()[:1]:
        shutil.copytree(folder, home / "user", dirs_exist_ok=True)
    shadow = home / "synced"
    shadow.mkdir()
    env = faulty(home / "data", shadow=shadow) | {"LORE_MIRROR_ENABLED": "0"}
    writers = [
        Writer("ada", seed, scope="global"),
        Writer("bob", seed + 1000, scope="workspace", workspace=str(project)),
    ]
    with start_daemon(home, env, may_be_dead=True) as daemon:
        write_for(daemon.socket, writers, 0.5 + chance.random())
        daemon.remember_family()
        daemon.kill()
    assert all(one.acknowledged and one.open is None for one in writers)
    assert (shadow / "global.db-wal").exists()
    shutil.move(shadow, home.with_suffix(".synced"))
    try:
        for way in range(CUTS) if ROUNDS > 2 else (seed % 2,):
            found = after_cut(home, home.with_suffix(".synced"), chance, way)
            try:
                look_into(found, writers)
            finally:
                remove_home(found)
    finally:
        shutil.rmtree(home.with_suffix(".synced"))


def look_into(found: Path, writers: list[Writer]) -> None:
    """The home opens, holds what the writers know, and is sound."""
    env = {"LORE_MIRROR_ENABLED": "0"}
    with start_daemon(found, env) as daemon, daemon.connect(60) as client:
        client.hello()
        assert not recovered(client)
        for writer in writers:
            moved(writer, found).check(client)
        client.call("index_wait")
        checks = client.call("verify", deep=True)
        assert checks["ok"], [one for one in checks["checks"] if not one["ok"]]


def recovered(client: RawClient) -> list[Any]:
    """Stores that were set aside: a power cut damages none."""
    return [one for one in client.call("status")["degraded"] if one["name"] == "recovery"]


def moved(writer: Writer, to: Path) -> Writer:
    """The same model, for the home at its new place."""
    where = dict(writer.where)
    if "workspace" in where:
        (name,) = [p.stem for p in (to / "data" / "workspaces").glob("*.db")]
        where["workspace"] = name
    copy = Writer(writer.name, 0, **where)
    copy.states, copy.ids = dict(writer.states), dict(writer.ids)
    return copy


def test_a_disk_that_does_not_sync_acknowledges_nothing(home: Path) -> None:
    """EIO at the sync of a commit: the caller hears it, and the fact is not there later."""
    flag = home / "broken"
    with (
        start_daemon(home, faulty(home / "data", no_sync=flag)) as daemon,
        daemon.connect() as client,
    ):
        client.hello()
        first = client.call("remember_fact", text="kept: quartz", scope="global")["fact"]
        flag.touch()
        with pytest.raises(Refusal) as refused:
            client.call("remember_fact", text="lost: basalt", scope="global")
        assert refused.value.code == "unavailable" and "disk" in str(refused.value.wire)
        degraded = client.call("status")["degraded"]
        assert [one for one in degraded if one["name"] == "io_error" and one["remedy"]]
        flag.unlink()
        texts = [one["text"] for one in client.call("facts", scope="global")["facts"]]
        assert texts == ["kept: quartz"]
        client.call("remember_fact", text="kept: cedar", scope="global")
        assert client.call("fact", id=f"global:{first['id']}")["fact"]["active"]
        assert client.call("verify", deep=True)["ok"]
