"""Stores of released versions under this one, and with an older wheel both ways.

`LORE_OLD_WHEEL=<path of a wheel>` names the older release for the pairs; without it those are
skipped. The stores of every release stand in `tests/data/schemas` (see support/release.py).
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lore import __version__
from support.daemon import environment, make_home, remove_home, start_daemon
from support.release import ask, fill, put_sample

SCHEMAS = Path(__file__).parents[1] / "data" / "schemas"
RELEASES = sorted(path.name for path in SCHEMAS.iterdir())
OLD_WHEEL = os.environ.get("LORE_OLD_WHEEL", "")
needs_wheel = pytest.mark.skipif(not OLD_WHEEL, reason="LORE_OLD_WHEEL names no wheel")
STILL = {"LORE_MIRROR_ENABLED": "0", "LORE_INDEX_ENABLED": "0"}


@pytest.mark.parametrize("release", RELEASES)
def test_stores_of_a_release_hold_here_what_they_held_there(home: Path, release: str) -> None:
    told = json.loads((SCHEMAS / release / "answers.json").read_text())
    shutil.copytree(SCHEMAS / release, home / "data")
    for path in (home / "data", *(home / "data").rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)
    workspace = told.pop("workspace_id")
    for _ in range(2):  # and again, once it was brought up
        with start_daemon(home, STILL) as daemon, daemon.connect(60) as client:
            client.hello(workspace=workspace)
            assert ask(client) == told
            assert client.call("verify", deep=True)["ok"]
            assert not client.call("status")["degraded"]
            found = client.call("recall_fact", query="service moved port 6001")["facts"]
            assert found[0]["text"].endswith("service 1 moved to port 6001")
            found = client.call("episodic_recall", query="demo", everywhere=True)["sessions"]
            assert [one["session"]["id"] for one in found] == [told["sessions"][0]["id"]]
    with start_daemon(home, STILL) as daemon, daemon.connect(60) as client:
        client.hello(workspace=workspace)
        stated = client.call("remember_fact", text="service 13 is new here", scope="global")
        highest = max(int(fact["id"].lstrip("F")) for fact in told["global"])
        assert stated["created"] and int(stated["fact"]["id"].lstrip("F")) > highest


@pytest.fixture(scope="module")
def old() -> Iterator[dict[str, str]]:
    """Environment in which Python finds the older release."""
    folder = make_home()
    try:
        install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target"]
        subprocess.run([*install, str(folder / "old"), OLD_WHEEL], check=True)
        yield {"PYTHONPATH": str(folder / "old")}
    finally:
        remove_home(folder)


def client_says(home: Path, code: str, env: dict[str, str]) -> Any:
    """What a client process of a release answers: JSON of the expression ``code``."""
    full = environment(home, {"LORE_NO_SPAWN": "", **env})
    script = (
        "import json\nfrom lore import Client, __version__\n"
        "c = Client(timeout=60, start_timeout=30)\n"
        f"print(json.dumps({code}))"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", script],
        env=full,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


STATE = "c.call('remember_fact', {'text': 'stated by a client', 'scope': 'global'})['created']"
COUNT = "c.call('facts', {'scope': 'global'})['total']"
RUNS = "[__version__, c.server['version']]"


@needs_wheel
def test_an_old_client_is_served_by_this_daemon_and_leaves_it_alone(
    home: Path, old: dict[str, str]
) -> None:
    with start_daemon(home) as daemon:
        theirs, ours = client_says(home, RUNS, old)
        assert (theirs, ours) == ("0.1.0", __version__)
        assert client_says(home, STATE, old) and client_says(home, COUNT, old) == 1
        assert client_says(home, COUNT, {}) == 1
        assert daemon.process.poll() is None


@needs_wheel
def test_this_client_is_served_by_an_old_daemon_where_it_may_not_start_one(
    home: Path, old: dict[str, str]
) -> None:
    with start_daemon(home, old):
        stay = {"LORE_NO_SPAWN": "1"}
        assert client_says(home, RUNS, stay) == [__version__, "0.1.0"]
        assert client_says(home, STATE, stay) and client_says(home, COUNT, stay) == 1


@needs_wheel
def test_this_client_replaces_an_old_daemon_and_nothing_is_lost(
    home: Path, old: dict[str, str]
) -> None:
    with start_daemon(home, old, may_be_dead=True) as daemon:
        assert client_says(home, STATE, old)
        try:
            assert client_says(home, RUNS, {}) == [__version__, __version__]
            assert client_says(home, COUNT, {}) == 1
            assert client_says(home, RUNS, old) == ["0.1.0", __version__], "never the reverse"
            daemon.process.wait(10)
        finally:
            stop = "c.call('drain', {'reason': 'test'})"
            pid = client_says(home, f"[c.call('status')['pid'], {stop}]", {})[0]
            while Path(f"/proc/{pid}").exists():
                os.sched_yield()


@needs_wheel
def test_up_and_down_again_in_place_keeps_every_fact_and_session(
    home: Path, old: dict[str, str]
) -> None:
    """The schemas are the same, so the old release reads what this one wrote."""
    put_sample(home)
    env = {"LORE_MIRROR_ENABLED": "0"}
    project = home / "user" / "project"
    project.mkdir()

    def answers(which: dict[str, str], text: str = "") -> dict[str, Any]:
        with start_daemon(home, env | which) as daemon, daemon.connect(60) as client:
            client.hello(workspace=str(project))
            if not text:
                fill(client)
            else:
                client.call("index_wait")
                client.call("remember_fact", text=text, scope="global", entities=["service:new"])
            return ask(client)

    first = answers(old)
    second = answers({}, "stated after the upgrade")
    added = second["global"].pop()
    assert added["text"] == "stated after the upgrade" and second == first
    third = answers(old, "stated after the downgrade")
    assert [third["global"].pop(-2), third["global"].pop()["text"]] == [
        added,
        "stated after the downgrade",
    ]
    assert third == first
