"""`lored check`: whether a daemon could start here, part by part; changes nothing.

One line a part, `ok` or the sentence with the remedy; the exit code is that of the first
refusal.
"""

import os
import sys

from lore.errors import Invalid
from lored.runtime import places, start
from lored.runtime.lock import read_holder
from lored.runtime.refusal import BAD_STORE, OK, Refused
from lored.store import driver
from lored.store.migrate import SCHEMA_VERSION
from lored.store.pragmas import StoreKind


def run() -> int:
    """Check everything that can be checked beside a running daemon."""
    try:
        start.check_codec()
        paths, _ = start.locate()
    except (Refused, Invalid) as error:
        return _fail("settings", error)
    _say("settings", paths.config_file if os.path.exists(paths.config_file) else "defaults")
    code = OK
    try:
        places.check(paths)
        _say("data folder", paths.data_dir)
    except Refused as refusal:
        code = _fail("data folder", refusal)
    stores = [(paths.global_db, StoreKind.FACTS), (paths.sessions_db, StoreKind.SESSIONS)]
    if os.path.isdir(paths.workspaces_dir):
        stores += [
            (f"{paths.workspaces_dir}/{name}", StoreKind.FACTS)
            for name in sorted(os.listdir(paths.workspaces_dir))
            if name.endswith(".db")
        ]
    for path, kind in stores:
        try:
            _say(path, check_store(path, kind))
        except Refused as refusal:
            code = code or _fail(path, refusal)
    found = driver.capabilities()
    _say("sqlite", f"{found['driver']} {found['sqlite']}, sqlite-vec {found['sqlite_vec']}")
    holder = read_holder(paths.lock)
    _say("daemon", f"pid {holder['pid']} at {holder['socket']}" if holder else "not running")
    return code


def check_store(path: str, kind: StoreKind) -> str:
    """State of one store file in a few words. Raises `Refused`."""
    if not os.path.exists(path):
        return "not made yet"
    try:
        connection = driver.connect(path, read_only=True)
        try:
            application_id = connection.execute("PRAGMA application_id").fetchone()[0]
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            problem = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        finally:
            connection.close()
    except driver.Error as error:
        raise Refused(
            f"cannot be read ({error}); at its start the daemon sets a damaged store aside and "
            "restores it from the newest backup",
            BAD_STORE,
        ) from None
    if not tables:
        return "empty"
    if application_id != kind.application_id:
        raise Refused("is not a store of lored; move it away", BAD_STORE)
    if version > SCHEMA_VERSION[kind]:
        raise Refused(
            f"has schema {version}, this release knows {SCHEMA_VERSION[kind]}: upgrade lored",
            BAD_STORE,
        )
    if problem != "ok":
        raise Refused(f"is damaged ({problem}); run: lore restart", BAD_STORE)
    return f"ok, schema {version}"


def _say(part: str, text: str) -> None:
    print(f"{part}: {text}")


def _fail(part: str, error: Refused | Invalid) -> int:
    print(f"{part}: {error.message}", file=sys.stderr)
    return error.code if isinstance(error, Refused) else 78
