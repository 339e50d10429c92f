"""Starting: one daemon however many want it, and one clear sentence when it may not start."""

import contextlib
import os
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from lore import Client, launch
from lore.paths import resolve
from lored.runtime.refusal import ALREADY_RUNNING, BAD_SETUP, BAD_STORE
from support.daemon import RunningDaemon, environment, start_daemon
from support.wire import RawClient

RUN = [sys.executable, "-P", "-m", "lored.main", "run"]
STARTERS = 30

STARTER = """
import sys
from lore.client import Client
with Client(name="starter") as client:
    assert client.call("ping")["pong"]
    print(client.call("status")["pid"])
"""


def refused(home: Path, env: dict[str, str] | None = None, *words: str) -> tuple[int, str]:
    """Exit code and stderr of a daemon that must not start."""
    done = subprocess.run(
        list(words) or RUN,
        env=environment(home, env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr


def daemons_of(home: Path) -> list[psutil.Process]:
    """Every process that serves this home."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.cmdline()[-1:] == ["run"] and process.environ().get("LORE_HOME") == str(
                home
            ):
                found.append(process)
    return found


def end(process: psutil.Process) -> None:
    """SIGTERM, then proof of the end."""
    process.terminate()
    try:
        process.wait(5)
    except psutil.TimeoutExpired:
        process.kill()
        raise


def wait_gone(home: Path) -> None:
    """Until no daemon serves this home any more."""
    deadline = time.monotonic() + 5
    while daemons_of(home):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def leave_stale_socket(home: Path) -> None:
    path = home / "run" / "lore.sock"
    path.parent.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(path))


def test_thirty_clients_at_once_get_one_daemon_and_thirty_answers(home: Path) -> None:
    leave_stale_socket(home)
    env = environment(home, {"LORE_START_SECONDS": "60"})
    del env["LORE_NO_SPAWN"]
    clients = [
        subprocess.Popen(
            [sys.executable, "-P", "-c", STARTER],
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(STARTERS)
    ]
    answers = []
    try:
        for client in clients:
            out, err = client.communicate(timeout=90)
            assert client.returncode == 0, err
            answers.append(out.strip())
        running = daemons_of(home)
        assert len(answers) == STARTERS
        assert {int(pid) for pid in answers} == {process.pid for process in running}
        assert len(running) == 1
        # Every client, its parent among them, has ended: the daemon does not mind.
        assert running[0].is_running() and running[0].ppid() != os.getpid()
    finally:
        for client in clients:
            client.kill()
            client.wait()
        for process in daemons_of(home):
            end(process)
    assert daemons_of(home) == []


def test_ten_daemons_at_once_leave_one(home: Path) -> None:
    leave_stale_socket(home)
    rivals = [
        subprocess.Popen(RUN, env=environment(home), stderr=subprocess.PIPE, text=True)
        for _ in range(10)
    ]
    try:
        deadline = time.monotonic() + 60
        while sum(one.poll() is None for one in rivals) > 1 and time.monotonic() < deadline:
            time.sleep(0.02)
        alive = [one for one in rivals if one.poll() is None]
        assert len(alive) == 1
        for one in rivals:
            if one is not alive[0]:
                assert one.returncode == ALREADY_RUNNING
                assert one.stderr is not None and "runs already" in one.stderr.read()
        path = str(home / "run" / "lore.sock")
        with contextlib.closing(RawClient(path)) as client:
            assert client.call("status")["pid"] == alive[0].pid
    finally:
        for one in rivals:
            if one.poll() is None:
                one.terminate()
            one.wait(5)
            assert one.stderr is not None
            one.stderr.close()


def test_a_second_daemon_refuses_and_the_first_does_not_notice(daemon: RunningDaemon) -> None:
    before = os.stat(daemon.socket).st_ino
    code, said = refused(daemon.home)
    assert code == ALREADY_RUNNING
    assert str(daemon.pid) in said and daemon.socket in said and "lore down" in said
    assert os.stat(daemon.socket).st_ino == before
    with daemon.connect() as client:
        assert client.call("ping")["pong"]


def test_after_kill_9_the_next_daemon_serves_within_2_s(home: Path) -> None:
    with start_daemon(home, may_be_dead=True) as first:
        lock = os.stat(first.paths.lock).st_ino
        first.kill()
        assert os.path.exists(first.socket)
        began = time.monotonic()
        with start_daemon(home) as second, second.connect() as client:
            assert client.call("ping")["pong"]
            assert time.monotonic() - began < 2.0 * slowness()
            assert os.stat(second.paths.lock).st_ino == lock  # never unlinked


def slowness() -> float:
    """How much slower than a quiet machine this one starts Python now (at least 1)."""
    began = time.monotonic()
    subprocess.run([sys.executable, "-I", "-c", "import asyncio, numpy"], check=True)
    return max(1.0, (time.monotonic() - began) / 0.25)


def test_modes_do_not_depend_on_the_umask(home: Path) -> None:
    shell = ["/bin/sh", "-c", 'umask 0; exec "$@"', "sh", *RUN]
    with start_daemon(home, command=shell) as daemon, daemon.connect() as client:
        client.hello()
        modes = {}
        for top in (daemon.paths.data_dir, daemon.paths.state_dir, daemon.paths.runtime_dir):
            for folder, _, names in os.walk(top):
                for path in (folder, *(f"{folder}/{name}" for name in names)):
                    modes[path] = stat.S_IMODE(os.lstat(path).st_mode)
        assert modes[daemon.socket] == 0o600
        assert {path: oct(mode) for path, mode in modes.items() if mode & 0o077} == {}


def test_the_pointer_and_the_lock_tell_where_and_who(daemon: RunningDaemon) -> None:
    assert Path(daemon.paths.pointer).read_text() == daemon.socket + "\n"
    text = Path(daemon.paths.lock).read_text()
    assert f'"pid": {daemon.pid}' in text and daemon.socket in text and '"version"' in text


@pytest.mark.parametrize("fault", ["link", "open", "file", "foreign"])
def test_a_socket_folder_that_is_not_ours_alone(home: Path, fault: str) -> None:
    run = home / "run"
    if fault == "link":
        (home / "elsewhere").mkdir(mode=0o700)
        run.symlink_to(home / "elsewhere")
    elif fault == "open":
        run.mkdir()
        run.chmod(0o750)
    elif fault == "file":
        run.write_text("")
    else:
        if os.geteuid() != 0:
            pytest.skip("needs root to make a folder of another user")
        run.mkdir(mode=0o700)
        os.chown(run, 65534, 65534)
    code, said = refused(home)
    assert code == BAD_SETUP and str(run) in said and said.count("\n") == 1
    words = {"link": "symbolic link", "open": "chmod 700", "file": "folder", "foreign": "uid 65534"}
    assert words[fault] in said
    assert said.removeprefix("lored: ").strip() in Path(home / "state" / "lored.log").read_text()


def test_something_else_at_the_socket_s_path_is_left_alone(home: Path) -> None:
    (home / "run").mkdir(mode=0o700)
    (home / "run" / "lore.sock").write_text("precious")
    code, said = refused(home)
    assert code == BAD_SETUP and "not a socket" in said
    assert (home / "run" / "lore.sock").read_text() == "precious"


@pytest.mark.parametrize("kind", ["symlink", "hardlink"])
def test_a_planted_lock_file_is_refused(home: Path, kind: str) -> None:
    (home / "state").mkdir(mode=0o700)
    victim = home / "victim"
    victim.write_text("precious")
    lock = home / "state" / "lored.lock"
    if kind == "symlink":
        lock.symlink_to(victim)
    else:
        lock.hardlink_to(victim)
    code, said = refused(home)
    assert code == BAD_SETUP and str(lock) in said
    assert victim.read_text() == "precious"


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({"LORE_SOCKET": "/tmp/" + "x" * 110}, "longer than"),
        ({"LORE_SOCKET": "relative.sock"}, "absolute"),
        ({"LORE_SOCKET": "/tmp/lore.sock"}, "/tmp"),
        ({"LORE_REALM": "../up"}, "letters"),
        ({"LORE_LOG_LEVEL": "loud"}, "log_level"),
        ({"LORE_SWEEP_SECONDS": "0"}, "between"),
        ({"MSGPACK_PUREPYTHON": "1"}, "force-reinstall msgpack"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_a_setup_that_does_not_fit_is_one_sentence(
    home: Path, env: dict[str, str], words: str
) -> None:
    code, said = refused(home, env)
    assert code == BAD_SETUP and words in said and said.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("index_enabeld = false", "did you mean 'index_enabled'"),
        ("sweep_seconds = 'x'", "sweep_seconds"),
        ("sweep_seconds = = 1", "line 1"),
        (b"\xff\xfe", "not UTF-8"),
    ],
)
def test_a_wrong_config_file_names_the_line_or_the_key(
    home: Path, text: str | bytes, words: str
) -> None:
    (home / "config").mkdir()
    path = home / "config" / "config.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    code, said = refused(home)
    assert code == BAD_SETUP and words in said and "config.toml" in said


def test_a_network_file_system_is_refused_with_the_remedy(home: Path) -> None:
    script = (
        "from lored.runtime import places\n"
        "from lored.main import main\n"
        "places.file_system = lambda path: 'nfs4'\n"
        "raise SystemExit(main(['run']))"
    )
    code, said = refused(home, None, sys.executable, "-c", script)
    assert code == BAD_SETUP and "nfs4" in said and "LORE_HOME" in said
    assert not (home / "data" / "global.db").exists()


@pytest.mark.parametrize(
    ("pragmas", "words"),
    [
        (("application_id=0x6C6F5246", "user_version=999"), "upgrade lored"),
        (("application_id=1234", "user_version=1"), "not a facts store"),
    ],
    ids=["newer", "foreign"],
)
def test_a_store_that_is_not_for_this_release_is_left_alone(
    home: Path, pragmas: tuple[str, ...], words: str
) -> None:
    (home / "data").mkdir(mode=0o700)
    path = home / "data" / "global.db"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE precious (x)")
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}")
        connection.commit()
    before = path.read_bytes()
    code, said = refused(home)
    assert code == BAD_STORE and words in said and str(path) in said and said.count("\n") == 1
    assert path.read_bytes() == before
    env = environment(home, {"LORE_START_SECONDS": "60"})
    del env["LORE_NO_SPAWN"]
    started = subprocess.run(
        [sys.executable, "-P", "-c", STARTER], env=env, capture_output=True, text=True, check=False
    )
    assert started.returncode != 0 and words in started.stderr  # who starts it hears it too
    wait_gone(home)
    assert path.read_bytes() == before
    assert not (home / "run" / "lore.sock").exists()
    done = subprocess.run(
        [sys.executable, "-m", "lored.main", "check"],
        env=environment(home),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == BAD_STORE and str(path) in done.stderr


def test_a_client_that_starts_it_hears_why_it_did_not(home: Path) -> None:
    (home / "config").mkdir()
    (home / "config" / "config.toml").write_text("nonsense = 1")
    env = environment(home, {"LORE_START_SECONDS": "60"})
    del env["LORE_NO_SPAWN"]
    done = subprocess.run(
        [sys.executable, "-P", "-c", STARTER], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0 and "unknown setting 'nonsense'" in done.stderr


def test_another_user_is_refused_even_where_the_folder_is_open(daemon: RunningDaemon) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root to become another user")
    for path in (daemon.home, daemon.home / "run"):
        path.chmod(0o755)
    os.chmod(daemon.socket, 0o666)
    child = os.fork()
    if child == 0:
        code = 9
        with contextlib.suppress(BaseException):
            os.setgid(65534)
            os.setuid(65534)
            sock = socket.socket(socket.AF_UNIX)
            sock.settimeout(10)
            sock.connect(daemon.socket)
            with contextlib.suppress(OSError):
                sock.sendall(b"\x94\x00\x01\xa4ping\x90")
            try:
                code = 0 if sock.recv(100) == b"" else 1
            except ConnectionResetError:
                code = 0
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with daemon.connect() as client:
        assert client.call("ping")["pong"]
    assert "foreign_peer uid=65534" in daemon.log()


def test_check_starts_nothing(home: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "lored.main", "check"],
        env=environment(home),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "not made yet" in done.stdout and "daemon: not running" in done.stdout
    assert sorted(path.name for path in home.iterdir()) == ["user"]


def test_signals_of_the_starter_do_not_reach_a_detached_daemon(home: Path) -> None:
    env = environment(home, {"LORE_START_SECONDS": "60"})
    del env["LORE_NO_SPAWN"]
    script = STARTER + "\nimport os, signal\nos.killpg(0, signal.SIGKILL)\n"
    done = subprocess.run(
        [sys.executable, "-P", "-u", "-c", script],
        env=env,
        stdout=subprocess.PIPE,
        start_new_session=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    try:
        [running] = daemons_of(home)
        assert running.pid == int(done.stdout)
        with contextlib.closing(RawClient(str(home / "run" / "lore.sock"))) as client:
            assert client.call("ping")["pong"]
    finally:
        for process in daemons_of(home):
            end(process)


SLOW = """
import sys, time
from lored.rpc import handlers
from lored.main import main
load = handlers.load
def slow():
    time.sleep({seconds})
    return load()
handlers.load = slow
sys.exit(main(["run"]))
"""


def started_slowly(home: Path, seconds: float) -> "subprocess.Popen[bytes]":
    """A daemon that needs long to open, from the moment when it listens."""
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW.format(seconds=seconds)], env=environment(home)
    )
    deadline = time.monotonic() + 20
    while not (home / "run" / "lore.sock").exists():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.005)
    return process


def test_it_answers_while_it_opens_and_other_calls_wait(home: Path) -> None:
    process = started_slowly(home, 1.0)
    try:
        with contextlib.closing(RawClient(str(home / "run" / "lore.sock"))) as client:
            assert client.hello()["protocol"] == 1
            waits = client.send("status")
            assert client.call("ping")["pong"]
            assert client.order[-1] != waits
            assert client.wait(waits)["pid"] == process.pid
    finally:
        process.terminate()
        assert process.wait(5) == 0


def test_it_can_be_stopped_while_it_opens(home: Path) -> None:
    process = started_slowly(home, 60)
    began = time.monotonic()
    process.terminate()
    assert process.wait(5) == 0 and time.monotonic() - began < 5
    assert not (home / "run" / "lore.sock").exists()


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs proc(5)")
def test_closed_standard_descriptors_are_not_given_to_stores(home: Path) -> None:
    shell = ["/bin/sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *RUN]
    with start_daemon(home, command=shell) as daemon, daemon.connect() as client:
        client.hello()
        client.call("remember_fact", text="kept", scope="global")
        targets = [os.readlink(f"/proc/{daemon.pid}/fd/{fd}") for fd in range(3)]
        assert targets == ["/dev/null"] * 3


@pytest.mark.parametrize("package", ["aiosqlite", "uvloop"])
def test_a_package_that_is_not_installed_is_named(home: Path, package: str) -> None:
    script = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "from lored.main import main\n"
        "raise SystemExit(main(['run']))"
    )
    code, said = refused(home, None, sys.executable, "-c", script)
    assert code == BAD_SETUP and package in said and "lored[daemon]" in said


def test_a_call_waits_for_a_daemon_that_is_starting(home: Path) -> None:
    """It says so in hello; a deadline of 2 s begins once it can answer at all."""
    process = started_slowly(home, 4.0)
    try:
        where = resolve({"LORE_HOME": str(home), "HOME": str(home / "user")})
        while (stream := launch.find(where)) is None:  # bound, and not listening yet
            time.sleep(0.005)
        stream.close()
        with Client(where=where, start=False) as client:
            assert client.server["starting"]
            assert client.call("facts", {"scope": "global"})["facts"] == []
        with Client(where=where, start=False) as client:
            assert "starting" not in client.server
        with Client(where=where, start=False, timeout=0.2) as client:
            assert client.call("ping")["pong"]
    finally:
        process.terminate()
        process.wait(10)
