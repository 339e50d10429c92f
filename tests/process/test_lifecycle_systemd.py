"""The units under a real `systemd --user`, with everything that the service file restricts.

Needs root and systemd, and makes its own manager: in a mount namespace of its own, since a
user manager insists on a /run/systemd/system that this machine may not have. What the test
changes in the units: the program's path and the condition that refuses root.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.daemon import environment
from support.wire import Hangup, RawClient

SYSTEMD = Path(__file__).parents[2] / "systemd"
MANAGER = "/lib/systemd/systemd"
START_SECONDS = 10.0

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not os.path.exists(MANAGER) or shutil.which("unshare") is None,
    reason="needs root, systemd and unshare",
)


class Manager:
    """A running user manager and its command line."""

    def __init__(self, env: dict[str, str]) -> None:
        self.env = env

    def ctl(self, *words: str) -> str:
        done = subprocess.run(
            ["systemctl", "--user", *words],
            env=self.env,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        return done.stdout.strip()

    def show(self, name: str) -> str:
        return self.ctl("show", "--value", f"--property={name}", "lored.service")


def install(folder: Path, *, hardened: bool) -> None:
    """The units as a user would copy them."""
    folder.mkdir(parents=True)
    for name in ("lored.socket", "lored.service"):
        text = (SYSTEMD / name).read_text().replace("ConditionUser=!root\n", "")
        command = f"{sys.executable} -P -m lored.main"
        (folder / name).write_text(text.replace("%h/.local/bin/lored", command))
    if hardened:
        drop_in = (SYSTEMD / "lored.service.d" / "hardening.conf").read_text()
        (folder / "lored.service.d").mkdir()
        # The homes of tests lie in /tmp, which a private /tmp would hide.
        (folder / "lored.service.d" / "hardening.conf").write_text(
            drop_in.replace("PrivateTmp=yes\n", "")
        )
        for name in ("share", "state"):  # as the README says: a read-only home has no new folder
            (folder.parents[2] / ".local" / name / "lore").mkdir(mode=0o700, parents=True)


@contextlib.contextmanager
def manager(home: Path, *, hardened: bool = False) -> Iterator[Manager]:
    """A user manager over ``home``; skips the test where there can be none."""
    runtime = home / "x"
    runtime.mkdir(mode=0o700)
    env = environment(home, {"XDG_RUNTIME_DIR": str(runtime)})
    del env["LORE_HOME"]
    install(home / "user" / ".config" / "systemd" / "user", hardened=hardened)
    process = subprocess.Popen(
        [
            "unshare",
            "--mount",
            "sh",
            "-c",
            "mount -t tmpfs none /run && mkdir -p /run/systemd/system && "
            f"exec {MANAGER} --user --log-target=null",
        ],
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    made = Manager(env)
    try:
        deadline = time.monotonic() + START_SECONDS
        while not made.ctl("show", "--property=Version"):
            if process.poll() is not None or time.monotonic() > deadline:
                pytest.skip("no user manager can run here")
            time.sleep(0.05)
        made.ctl("start", "lored.socket")
        yield made
        made.ctl("stop", "lored.socket", "lored.service")
    finally:
        made.ctl("exit")
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def test_activation_crash_reload_and_stop(home: Path) -> None:
    path = home / "x" / "lore" / "lore.sock"
    with manager(home) as systemd:
        assert systemd.show("MainPID") == "0"
        assert os.stat(path).st_mode & 0o777 == 0o600
        with RawClient(str(path), timeout_s=30) as client:
            client.hello()
            first = client.call("status")
            assert first["activated"] is True and str(first["pid"]) == systemd.show("MainPID")
            assert "serving" in systemd.show("StatusText")
            systemd.ctl("reload", "lored.service")
            assert systemd.show("ActiveState") == "active"
            systemd.ctl("kill", "--signal=KILL", "lored.service")
            with pytest.raises((Hangup, BrokenPipeError)):
                client.call("ping")
        with RawClient(str(path), timeout_s=30) as client:  # waits in the socket meanwhile
            assert client.call("status")["pid"] != first["pid"]
            assert systemd.show("NRestarts") == "1"
        systemd.ctl("stop", "lored.service")
        assert systemd.show("Result") == "success" and path.exists()
        with RawClient(str(path), timeout_s=30) as client:
            assert client.call("ping")["pong"]


@pytest.mark.parametrize("hardened", [False, True], ids=["service", "drop-in"])
def test_the_restrictions_hold_and_everything_works_inside_them(home: Path, hardened: bool) -> None:
    path = home / "x" / "lore" / "lore.sock"
    with manager(home, hardened=hardened) as systemd, RawClient(str(path), 30) as client:
        client.hello()
        client.call("remember_fact", text="the moon is made of cheese", scope="global")
        found = client.call("recall_fact", query="what is the moon made of")
        assert [fact["text"] for fact in found["facts"]] == ["the moon is made of cheese"]
        pid = systemd.show("MainPID")
        state = Path(f"/proc/{pid}/status").read_text()
        assert "NoNewPrivs:\t1" in state and "Seccomp:\t2" in state
        degraded = {one["name"] for one in client.call("status")["degraded"]}
        assert degraded <= {"mirror"}  # a read-only home has no facts.jsonl, and says so
        if hardened:
            touched = subprocess.run(
                ["nsenter", "-t", pid, "-U", "-m", "--preserve-credentials", "touch", "/usr/x"],
                capture_output=True,
                text=True,
                check=False,
            )
            assert "Read-only file system" in touched.stderr
