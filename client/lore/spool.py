"""Writes that wait for the daemon: one file each, for callers that cannot reach its socket.

A file is written whole (temporary name, fsync, rename), so that the daemon, which takes files
in the order of their names and removes each after its commit, sees all of a write or nothing.
The idempotency key inside makes a write that is taken in twice (a crash between commit and
removal) count once.

The file is one JSON object: `format` 1, `method`, `params` (by the method table, always with
an `idempotency_key` where the method has one), `workspace` (the caller's path or id, if any),
`client`, and `at`, the UTC instant of the call: phrases such as `yesterday` in `params` are
relative to it, not to the moment of taking in.
"""

import os
import sys
import time

from lore.errors import Invalid, Limit, Unavailable
from lore.paths import Paths
from lore.wire.limits import REQUEST_BYTES
from lore.wire.methods import BY_NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FORMAT = 1

METHODS = ("remember_fact", "remember", "update_fact", "forget_fact", "verify_fact", "apply")
"""What may wait: statements about facts. Nothing else makes sense later."""

FILES = 10_000
"""Most files in the spool: beyond it the daemon has not run for long, and that must be said."""


def put(
    paths: Paths, method: str, params: "dict[str, Any]", workspace: "str | None", client: str
) -> "dict[str, Any]":
    """Leave one write in the spool; returns `{queued: file name, spool: folder}`.

    Raises `Invalid` for a method that cannot wait or a missing parameter, `Limit` for one too
    large for the wire or a spool that is full, `Unavailable` when the folder cannot be written.
    """
    _check(method, params)
    from json import dumps

    entry: dict[str, Any] = {
        "format": FORMAT,
        "method": method,
        "params": _with_key(method, params),
        "at": _instant(),
        "client": client,
    }
    if workspace is not None:
        entry["workspace"] = workspace
    data = dumps(entry, ensure_ascii=False).encode("utf-8")
    if len(data) > REQUEST_BYTES:
        raise Limit(f"{method}: {len(data)} bytes is larger than the limit of {REQUEST_BYTES}")
    name = f"{time.time_ns():020d}-{os.getpid()}-{os.urandom(4).hex()}.json"
    try:
        _write(paths.spool_dir, name, data)
    except OSError as error:
        raise Unavailable(
            f"no daemon can be reached and the spool {paths.spool_dir} cannot be written "
            f"({error.strerror}); allow the sandbox to write there, or run the command outside it"
        ) from None
    return {"queued": name, "spool": paths.spool_dir}


def _check(method: str, params: "dict[str, Any]") -> None:
    if method not in METHODS:
        raise Invalid(f"{method} needs the daemon; only statements about facts can wait")
    for param in BY_NAME[method].params:
        value = params.get(param.name)
        if param.required and value is None:
            raise Invalid(f"{method}: parameter {param.name} is missing: {param.doc}")
        if value is not None and param.choices and value not in param.choices:
            raise Invalid(f"{method}: {param.name} must be one of {', '.join(param.choices)}")
        if isinstance(value, str):
            try:
                value.encode()
            except UnicodeEncodeError:
                raise Invalid(f"{method}: {param.name} is not valid UTF-8") from None


def _with_key(method: str, params: "dict[str, Any]") -> "dict[str, Any]":
    known = any(param.name == "idempotency_key" for param in BY_NAME[method].params)
    if known and "idempotency_key" not in params:
        return {**params, "idempotency_key": os.urandom(16).hex()}
    return params


def _instant() -> str:
    now = time.time()
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now * 1000) % 1000:03d}Z"


def _write(folder: str, name: str, data: bytes) -> None:
    os.makedirs(folder, mode=0o700, exist_ok=True)
    if sum(entry.endswith(".json") for entry in os.listdir(folder)) >= FILES:
        raise Limit(f"the spool {folder} holds {FILES} writes; run `lore up` outside the sandbox")
    draft = f"{folder}/.{name}.part"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            _sync(file.fileno())
        os.rename(draft, f"{folder}/{name}")
    except OSError:
        os.unlink(draft)
        raise
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sync(descriptor: int) -> None:
    """To the disk itself: fsync of macOS stops at the disk's cache (fsync(2) there)."""
    if sys.platform == "darwin":
        import fcntl

        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
    else:
        os.fsync(descriptor)
