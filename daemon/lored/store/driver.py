"""Which SQLite this daemon runs on: the one place that knows.

The stdlib module of many Pythons (pyenv, macOS, python.org) cannot load extensions, and
SQLite 3.7.0-3.51.2 has a WAL-reset bug that can corrupt a file. So: pysqlite3 (bundles
3.53), then sqlean, then the stdlib if it is new enough; sqlite-vec is loaded where the
module can load it, else the vector index runs on numpy and `status` says so.
`LORE_SQLITE=pysqlite3|sqlean|stdlib` forces one, `LORE_SQLITE_VEC=0` leaves the extension
out (both for tests of the other paths).

Exception classes are exported from here: those of pysqlite3 are not the stdlib's.
"""

import importlib
import os
from types import ModuleType
from typing import Any, Final

MINIMUM: Final = (3, 43, 0)
"""Contentless-delete FTS5 tables appeared in 3.43."""

STATEMENTS: Final = 512
"""Prepared statements kept per connection: stating one fact runs about 40 different ones, and
preparing costs more than running them."""

_CANDIDATES: Final = (("pysqlite3", "pysqlite3"), ("sqlean", "sqlean"), ("stdlib", "sqlite3"))


def _choose() -> tuple[str, ModuleType]:
    wanted = os.environ.get("LORE_SQLITE")
    tried: list[str] = []
    for name, module_name in _CANDIDATES:
        if wanted and name != wanted:
            continue
        try:
            module = importlib.import_module(module_name)
        except ImportError as error:
            tried.append(f"{name}: {error}")
            continue
        if module.sqlite_version_info < MINIMUM:
            tried.append(f"{name}: SQLite {module.sqlite_version} is older than 3.43")
            continue
        return name, module
    raise ImportError(
        "no usable SQLite module; install pysqlite3>=0.6.1 (" + "; ".join(tried) + ")"
    )


NAME, sqlite = _choose()
Connection = Any
"""A connection of the chosen module (typed loosely: the modules share no base class)."""
Error: type[Exception] = sqlite.Error
DatabaseError: type[Exception] = sqlite.DatabaseError
OperationalError: type[Exception] = sqlite.OperationalError
IntegrityError: type[Exception] = sqlite.IntegrityError
Row = sqlite.Row
VERSION: Final[str] = sqlite.sqlite_version


def _load_vec(connection: Connection) -> None:
    import sqlite_vec

    connection.enable_load_extension(True)
    try:
        sqlite_vec.load(connection)
    finally:
        connection.enable_load_extension(False)


def _probe() -> tuple[bool, str]:
    """Whether sqlite-vec loads here, and why not."""
    if os.environ.get("LORE_SQLITE_VEC") == "0":
        return False, "switched off by LORE_SQLITE_VEC=0"
    connection = sqlite.connect(":memory:")
    try:
        if not hasattr(connection, "enable_load_extension"):
            return False, f"{NAME} cannot load extensions; install pysqlite3"
        _load_vec(connection)
    except (ImportError, sqlite.Error) as error:
        return False, f"sqlite-vec: {error}"
    finally:
        connection.close()
    return True, ""


HAS_VEC, VEC_REASON = _probe()


def connect(
    path: str, *, read_only: bool, immutable: bool = False, timeout_s: float = 5.0
) -> Connection:
    """Open ``path`` in autocommit mode (transactions are explicit), with sqlite-vec if any.

    ``read_only`` opens with ``mode=ro`` and never creates the file; ``immutable`` also takes no
    locks and needs no WAL, for a file that nobody can write. May be used from another
    thread than the one that made it, one thread at a time.
    """
    from urllib.parse import quote

    uri = f"file:{quote(path)}?mode={'ro' if read_only else 'rwc'}"
    if immutable:
        uri += "&immutable=1"
    connection = sqlite.connect(
        uri,
        uri=True,
        timeout=timeout_s,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=STATEMENTS,
    )
    if HAS_VEC:
        _load_vec(connection)
    return connection


def capabilities() -> dict[str, object]:
    """What `status` says about the driver."""
    found: dict[str, object] = {"driver": NAME, "sqlite": VERSION, "sqlite_vec": HAS_VEC}
    if not HAS_VEC:
        found["sqlite_vec_reason"] = VEC_REASON
    return found
