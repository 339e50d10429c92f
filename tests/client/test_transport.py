"""Whom the client trusts, and what it says where sockets are refused."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lore import errors, transport
from lore.paths import Paths
from support import sandbox

from .conftest import TinyDaemon

needs_root = pytest.mark.skipif(os.getuid() != 0, reason="needs another user")


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_directory_where_others_write_is_refused(tiny: TinyDaemon, mode: int) -> None:
    os.chmod(tiny.where.runtime_dir, mode)
    with pytest.raises(errors.Unavailable, match="others can write"):
        transport.connect(tiny.where.socket)


def test_a_link_for_a_directory_is_refused(tiny: TinyDaemon) -> None:
    link = tiny.where.runtime_dir + "-link"
    os.symlink(tiny.where.runtime_dir, link)
    with pytest.raises(errors.Unavailable, match="not a directory"):
        transport.connect(link + "/lore.sock")


@needs_root
def test_a_directory_of_another_user_is_refused(tiny: TinyDaemon) -> None:
    os.chown(tiny.where.runtime_dir, 65534, -1)
    with pytest.raises(errors.Unavailable, match="belongs to uid 65534, not to you"):
        transport.connect(tiny.where.socket)


@needs_root
def test_a_daemon_of_another_user_is_refused(where: Paths) -> None:
    os.makedirs(where.runtime_dir, mode=0o700)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(where.socket)
        ready, told = os.pipe()
        child = os.fork()
        if child == 0:  # the credentials of a socket are those at its listen
            os.setuid(65534)
            listener.listen()
            os.write(told, b"x")
            time.sleep(30)
            os._exit(0)
        try:
            os.read(ready, 1)
            with pytest.raises(errors.Unavailable, match="served by uid 65534"):
                transport.connect(where.socket)
        finally:
            os.kill(child, 9)
            os.waitpid(child, 0)
            os.close(ready)
            os.close(told)


def test_absent_is_none(where: Paths) -> None:
    assert transport.connect(where.socket) is None
    os.makedirs(where.runtime_dir, mode=0o700)
    assert transport.connect(where.socket) is None
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(where.socket)
    assert transport.connect(where.socket) is None
    Path(where.runtime_dir + "/file").touch(0o600)
    assert transport.connect(where.runtime_dir + "/file/folder/lore.sock") is None
    with pytest.raises(errors.Unavailable, match="is not a directory; remove it"):
        transport.connect(where.runtime_dir + "/file/lore.sock")


def test_a_full_accept_queue_is_waited_for(where: Paths) -> None:
    os.makedirs(where.runtime_dir, mode=0o700)
    waiting = []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(where.socket)
        listener.listen(0)
        started = time.monotonic()
        with pytest.raises(errors.Unavailable, match="takes no connection"):
            for _ in range(10):
                waiting.append(transport.connect(where.socket, time.monotonic() + 0.1))
        assert time.monotonic() - started < 5
        listener.accept()[0].close()  # room for one more
        waiting.append(transport.connect(where.socket, time.monotonic() + 5))
    for stream in waiting:
        assert stream is not None
        stream.close()


def test_deadlines_of_reading_and_writing(tiny: TinyDaemon) -> None:
    stream = transport.connect(tiny.where.socket)
    assert stream is not None
    with pytest.raises(TimeoutError):
        stream.receive(time.monotonic() + 0.02)
    with pytest.raises(TimeoutError):
        stream.receive(time.monotonic() - 1)
    assert not stream.is_dead()
    tiny.hang_up()
    assert stream.receive(time.monotonic() + 5) == b""
    assert stream.is_dead()
    stream.close()
    stream.close()
    assert stream.is_dead()


@pytest.mark.skipif(not sandbox.SUPPORTED, reason="needs seccomp")
def test_a_sandbox_is_told_apart_from_an_absent_daemon(tiny: TinyDaemon) -> None:
    code = (
        "from lore import Client, errors\n"
        "try:\n    Client()\n"
        "except errors.Unavailable as error:\n    print(error.data, error)\n"
    )
    done = subprocess.run(
        [sys.executable, sandbox.__file__, sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "{'sandboxed': True} Unix sockets are refused here" in done.stdout, done.stderr
