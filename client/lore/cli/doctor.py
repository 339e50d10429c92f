"""`doctor`: proof that everything is sound, from the client's side and the daemon's.

Each check says what is wrong and the command that mends it. Starts nothing.
"""

from __future__ import annotations

import os
import stat
import sys
from typing import Any

from lore import __version__, launch
from lore.cli.arguments import Arg, Verb
from lore.cli.care import show_checks
from lore.cli.invocation import Invocation
from lore.errors import LoreError

Check = dict[str, Any]


def doctor(inv: Invocation) -> int:
    """Run all checks; exit code 3 when one fails that nothing has mended."""
    checks = [*_client(inv), *_daemon(inv)]
    ok = all(check["ok"] or check.get("fixed") for check in checks)
    inv.show({"ok": ok, "checks": checks}, lambda screen: show_checks(screen, checks))
    return 0 if ok else 3


def _check(name: str, ok: bool, detail: str = "", remedy: str = "") -> Check:
    check: Check = {"name": name, "ok": ok}
    if detail:
        check["detail"] = detail
    if remedy and not ok:
        check["remedy"] = remedy
    return check


def _client(inv: Invocation) -> list[Check]:
    where = inv.paths
    version = f"lore {__version__}, Python {sys.version.split()[0]}"
    checks = [
        _check("client", True, version),
        _codec(),
        *(
            _private(path)
            for path in (where.runtime_dir, where.data_dir, where.state_dir)
            if os.path.lexists(path)
        ),
    ]
    spooled = _spooled(where.spool_dir)
    if spooled:
        remedy = "run `lore up`: the daemon takes them in"
        checks.append(_check("spool", False, f"{spooled} writes wait for the daemon", remedy))
    return checks


def _codec() -> Check:
    from lore.wire.codec import FAST

    return _check(
        "msgpack",
        FAST,
        "C extension" if FAST else "pure Python: slow, and refused by the daemon",
        "pip install --force-reinstall msgpack",
    )


def _private(path: str) -> Check:
    """Whether a folder of ours is a real folder, owned by us and closed to others."""
    found = os.lstat(path)
    mode = stat.S_IMODE(found.st_mode)
    if not stat.S_ISDIR(found.st_mode):
        return _check(path, False, "is not a folder", f"move it away: mv {path} {path}.old")
    if found.st_uid != os.getuid():
        return _check(path, False, f"belongs to uid {found.st_uid}", "set LORE_HOME elsewhere")
    return _check(path, not mode & 0o077, f"mode {mode:04o}", f"chmod 700 {path}")


def _spooled(folder: str) -> int:
    try:
        return sum(name.endswith(".json") for name in os.listdir(folder))
    except OSError:
        return 0


def _daemon(inv: Invocation) -> list[Check]:
    try:
        if launch.find(inv.paths) is None:
            detail = f"nobody listens at {inv.paths.socket}"
            return [_check("daemon", False, detail, "lore up")]
        health = inv.call("health")
        status = inv.call("status")
        verified = inv.call("verify", deep=inv.options.deep, fix=inv.options.fix)
    except LoreError as error:
        return [_check("daemon", False, error.message, "lore logs; lore restart")]
    theirs = str(status.get("version"))
    checks = [
        _check("daemon", True, f"lored {theirs}, pid {status.get('pid')}"),
        _check(
            "versions",
            theirs == __version__,
            f"client {__version__}, daemon {theirs}",
            "lore restart",
        ),
        _check("health", bool(health.get("ok")), "; ".join(map(_text, health.get("reasons", ())))),
    ]
    for reason in status.get("degraded", ()):
        remedy = str(reason.get("remedy", "")) if isinstance(reason, dict) else ""
        checks.append(_check("degraded", False, _text(reason), remedy))
    return checks + list(verified.get("checks", []))


def _text(reason: Any) -> str:
    if isinstance(reason, dict):
        return str(reason.get("reason") or reason.get("message") or reason.get("name"))
    return str(reason)


VERBS = (
    Verb(
        "doctor",
        doctor,
        (
            Arg("--deep", kind="flag", help="compare the index with the transcripts: slow"),
            Arg("--fix", kind="flag", help="repair what can be repaired"),
        ),
        examples=("lore doctor", "lore doctor --deep --fix"),
    ),
)
