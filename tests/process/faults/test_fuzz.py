"""Input of every kind that reaches the daemon by another way than the wire's frames (those:
tests/rpc/test_garbage.py): no crash, no hang, no growth, and always an answer."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from lore.errors import Invalid
from lored.core.triage_ops import BY_NAME
from lored.runtime import config
from support.daemon import RunningDaemon, environment, make_home, remove_home, start_daemon
from support.wire import RawClient, Refusal

FULL = bool(os.environ.get("LORE_FULL"))
GROWTH_BYTES = 60 << 20
CODES = {"invalid", "not_found", "conflict", "limit", "ambiguous"}
"""What wrong input may be answered with; `internal` would be a defect."""

bounded = settings(
    max_examples=5000 if FULL else 60,
    deadline=None,
    derandomize=not FULL,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def target() -> Iterator[RunningDaemon]:
    """The daemon under fire; alive and no larger at the end."""
    home = make_home()
    try:
        with start_daemon(home, {"LORE_INDEX_ENABLED": "0"}) as daemon:
            before = psutil.Process(daemon.pid).memory_info().rss
            yield daemon
            assert psutil.Process(daemon.pid).memory_info().rss - before < GROWTH_BYTES
            assert " defect " not in daemon.log() and "Traceback" not in daemon.log()
    finally:
        remove_home(home)


@pytest.fixture(scope="module")
def client(target: RunningDaemon) -> Iterator[RawClient]:
    """A connection to it."""
    with target.connect(30) as connected:
        connected.hello()
        yield connected


texts = some.text(some.characters(codec="utf-8"), max_size=40)
ODD = 'as=x $x F1 old=F1 new=$x global:F1 C1 conflict:1 "a b" e=tool:redis tags=a,b'
words = some.sampled_from([*BY_NAME, *ODD.split(" "), *"'\"\\#[]{}=$\0", "e="])
lines = some.lists(some.one_of(words, texts), max_size=6).map(" ".join)


@bounded
@given(ops=some.one_of(some.lists(lines, max_size=5).map("\n".join), texts))
def test_apply_text(client: RawClient, ops: str) -> None:
    try:
        answer = client.call("apply", ops=ops, scope="global")
        assert answer["success"]
    except Refusal as refusal:
        assert refusal.code in CODES, refusal.wire
        assert refusal.wire["message"]


values = some.recursive(
    some.one_of(some.none(), some.booleans(), some.integers(-(2**53), 2**53), texts),
    lambda inner: some.one_of(
        some.lists(inner, max_size=3), some.dictionaries(texts, inner, max_size=3)
    ),
    max_leaves=8,
)
records = some.fixed_dictionaries(
    {"text": some.one_of(texts, values)},
    optional={
        name: some.one_of(values, texts)
        for name in ("id", "tags", "entities", "valid_from", "valid_to", "created_at", "scope")
    }
    | {"superseded_by": some.sampled_from(["F1", "F2", 3, None])},
)
jsonl = some.one_of(
    some.lists(some.one_of(records, values).map(json.dumps), max_size=5).map(
        lambda rows: "\n".join(rows).encode()
    ),
    some.binary(max_size=200),
)


@bounded
@given(data=jsonl, form=some.sampled_from(["jsonl", "recursive", "markdown", None]))
def test_import(client: RawClient, target: RunningDaemon, data: bytes, form: str | None) -> None:
    path = target.home / "import.jsonl"
    path.write_bytes(data)
    more: dict[str, Any] = {"format": form} if form else {}
    try:
        client.call("import", path=str(path), scope="global", **more)
    except Refusal as refusal:
        assert refusal.code in CODES, refusal.wire


entries = some.one_of(
    some.binary(max_size=200),
    some.fixed_dictionaries(
        {
            "format": some.sampled_from([1, 1, 1, 2, "1"]),
            "method": some.sampled_from(["remember_fact", "forget_fact", "apply", "drain", 3]),
            "params": some.one_of(
                some.fixed_dictionaries({"text": texts, "idempotency_key": texts}),
                some.dictionaries(texts, values, max_size=3),
                values,
            ),
            "at": some.one_of(some.just("2026-05-28T12:00:00Z"), texts, values),
        },
        optional={"workspace": values, "client": values},
    ).map(lambda entry: json.dumps(entry).encode()),
)


def test_spool_files(home: Path) -> None:
    """Hundreds of odd files wait at the start; a good one behind them all comes in."""
    spool = home / "state" / "spool"
    spool.mkdir(parents=True, mode=0o700)
    number = 0

    @bounded
    @given(data=entries)
    def leave(data: bytes) -> None:
        nonlocal number
        number += 1
        (spool / f"{number:020d}-1-ab.json").write_bytes(data)

    leave()
    good = {
        "format": 1,
        "method": "remember_fact",
        "params": {"text": "the good one", "scope": "global", "idempotency_key": "good"},
        "at": "2026-05-28T12:00:00Z",
    }
    (spool / f"{number + 1:020d}-1-ab.json").write_text(json.dumps(good))
    with start_daemon(home, {"LORE_INDEX_ENABLED": "0"}) as daemon, daemon.connect(60) as client:
        client.hello()
        texts = [one["text"] for one in client.call("facts", scope="global", limit=200)["facts"]]
        assert "the good one" in texts
        status = client.call("status")
        assert status["spool"]["files"] == 0 and status["spool"]["refused"] > 0
        assert not [one for one in status["degraded"] if one["name"].startswith("no_")]
        assert " defect " not in daemon.log()


tables = some.dictionaries(
    some.one_of(some.sampled_from(["log_level", "sweep_seconds", "exclude", "backup_keep"]), texts),
    values,
    max_size=4,
)
configs = some.one_of(
    some.binary(max_size=120),
    texts.map(str.encode),
    tables.map(
        lambda table: "\n".join(
            f"{name} = {json.dumps(value)}" for name, value in table.items()
        ).encode()
    ),
)


@settings(bounded, max_examples=200 if FULL else 6)
@given(data=configs)
def test_config_files(data: bytes) -> None:
    """`lored check` with an odd config.toml: accepted, or one sentence that names the file."""
    home = make_home()
    try:
        (home / "config").mkdir()
        (home / "config" / "config.toml").write_bytes(data)
        done = subprocess.run(
            [sys.executable, "-P", "-m", "lored.main", "check"],
            env=environment(home),
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert b"Traceback" not in done.stderr, done.stderr
        assert done.returncode == 0 or b"config.toml" in done.stderr or b"setting" in done.stderr
    finally:
        remove_home(home)


@bounded
@given(data=configs)
def test_config_texts(data: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The same without a process, so with more of them."""

    path = tmp_path_factory.mktemp("config") / "config.toml"
    path.write_bytes(data)
    with contextlib.suppress(Invalid):
        config.load(str(path))
