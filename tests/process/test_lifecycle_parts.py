"""Small parts of the runtime whose rules need no process."""

import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from lored import mounts
from lored.runtime import logs, places
from lored.runtime.lock import Lock, read_holder
from lored.runtime.logs import Sink
from lored.services.care.openmetrics import Page
from lored.watch.eventless import sends_events

MOUNTS = r"""
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:40 / /home rw,relatime - nfs4 server:/home rw,vers=4.2
31 30 0:41 / /home/ann/local rw - xfs /dev/sdb1 rw
32 22 0:42 / /mnt/with\040space rw - fuse.sshfs ann@host: rw
33 22 0:43 / /srv rw - ext4 /dev/sdc1 rw
34 33 0:44 / /srv rw - cifs //server/srv rw
nonsense
"""


@pytest.mark.parametrize(
    ("path", "kind", "remote"),
    [
        ("/var/lib", "ext4", False),
        ("/home/ann", "nfs4", True),
        ("/home/ann/local/lore", "xfs", False),
        ("/home/ann/localized", "nfs4", True),
        ("/mnt/with space/x", "fuse.sshfs", True),
        ("/srv/data", "cifs", True),
        ("/homes", "ext4", False),
    ],
)
def test_the_innermost_and_latest_mount_decides(path: str, kind: str, remote: bool) -> None:
    assert mounts.type_in_mountinfo(MOUNTS, path) == kind
    assert places.is_remote(kind) is remote


@pytest.mark.parametrize("kind", ["btrfs", "tmpfs", "overlay", "fuse.gocryptfs", "zfs", "apfs", ""])
def test_local_file_systems_are_welcome(kind: str) -> None:
    assert not places.is_remote(kind)


@pytest.mark.parametrize("kind", ["nfs4", "fuse.sshfs", mounts.NOT_LOCAL])
def test_what_is_not_local_holds_no_store_and_sends_no_events(kind: str) -> None:
    assert places.is_remote(kind)
    assert not sends_events(kind)


def test_this_machine_has_a_known_file_system(tmp_path: Path) -> None:
    assert mounts.file_system(str(tmp_path))


def test_a_lock_is_held_once_and_survives_a_removed_file(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    first, second = Lock(path), Lock(path)
    assert first.acquire() and not second.acquire()
    first.describe({"pid": 5})
    assert read_holder(path) == {"pid": 5}
    first.release()
    assert read_holder(path) == {} and os.path.exists(path)
    assert second.acquire()
    os.unlink(path)
    third = Lock(path)
    assert third.acquire()  # a lock on a removed file protects nothing
    second.release()
    third.release()
    assert read_holder(str(tmp_path / "none")) == {}


@pytest.fixture
def log_file(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "lored.log"
    sink = Sink(str(path), journal=False, terminal=False)
    logs.configure(sink, "info")
    yield path
    structlog.reset_defaults()
    logging.getLogger().handlers.clear()
    logging.getLogger().setLevel(logging.WARNING)


def test_lines_are_one_record_each_and_hold_no_message_of_an_exception(log_file: Path) -> None:
    log = structlog.get_logger()
    log.debug("unseen")
    log.info("call", method="ping", ms=1.23456789, text='a "b"\nc\x1b[31m', none=None)
    try:
        raise KeyError("a secret of the user")
    except KeyError as error:
        log.error("defect", exc_info=error)
    try:
        raise OSError(28, "No space left on device")
    except OSError:
        log.exception("fault")
    logging.getLogger("library").warning("said %s", "so")
    first, second, third, fourth = log_file.read_text().splitlines()
    assert first.endswith(r'info    call method=ping ms=1.23457 text="a \"b\"\nc\u001b[31m"')
    assert "secret" not in second and "error=KeyError" in second
    assert "test_lifecycle_parts.py" in second
    assert "No space left" in third
    assert fourth.endswith('library text="said so"')
    assert stat.S_IMODE(log_file.stat().st_mode) == 0o600


def test_the_file_is_rotated_and_its_size_bounded(
    log_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "FILE_BYTES", 2000)
    log = structlog.get_logger()
    for number in range(200):
        log.info("line", number=number, pad="x" * 50)
    files = sorted(path.name for path in log_file.parent.iterdir())
    assert files == ["lored.log", "lored.log.1", "lored.log.2", "lored.log.3"]
    assert all(path.stat().st_size <= 2000 for path in log_file.parent.iterdir())
    assert "number=199" in log_file.read_text()


def test_a_log_that_cannot_be_written_costs_nothing_else(tmp_path: Path) -> None:
    sink = Sink(str(tmp_path / "none" / "lored.log"), journal=False, terminal=False)
    sink.write("info", "lost")


def test_the_journal_gets_priorities_and_no_time(capfd: pytest.CaptureFixture[str]) -> None:
    found = os.fstat(2)
    assert logs.under_journal({"JOURNAL_STREAM": f"{found.st_dev}:{found.st_ino}"})
    assert not logs.under_journal({"JOURNAL_STREAM": "1:1"})
    assert not logs.under_journal({"JOURNAL_STREAM": "x"}) and not logs.under_journal({})
    sink = Sink("/nowhere", journal=True, terminal=False)
    sink.write("warning", "watch out")
    sink.write("debug", "by the way")
    assert capfd.readouterr().err == "<4>watch out\n<7>by the way\n"


def test_openmetrics_text() -> None:
    page = Page()
    page.gauge("a_bytes", "Size", [({"name": 'x"\n\\'}, 5), ({}, 1.5)])
    page.counter("b", "Count", [({"m": "ping"}, 3)])
    page.histogram("c_seconds", "Time", (0.1, 1.0), [({"m": "x"}, [1, 2, 3], 4.5)])
    assert page.text() == (
        "# TYPE a_bytes gauge\n# HELP a_bytes Size\n"
        'a_bytes{name="x\\"\\n\\\\"} 5\na_bytes 1.5\n'
        "# TYPE b counter\n# HELP b Count\n"
        'b_total{m="ping"} 3\n'
        "# TYPE c_seconds histogram\n# HELP c_seconds Time\n"
        'c_seconds_bucket{m="x",le="0.1"} 1\n'
        'c_seconds_bucket{m="x",le="1.0"} 3\n'
        'c_seconds_bucket{m="x",le="+Inf"} 6\n'
        'c_seconds_count{m="x"} 6\nc_seconds_sum{m="x"} 4.5\n'
        "# EOF\n"
    )
