"""The PRAGMA table per store kind, each with its reason."""

from enum import Enum
from typing import Final

from lored.store.driver import Connection


class StoreKind(Enum):
    """The two promises: precious facts, rebuildable sessions."""

    FACTS = "facts"
    SESSIONS = "sessions"

    @property
    def application_id(self) -> int:
        """Stamped into the file header, so that a foreign file is recognised ('loRF'/'loRS')."""
        return {"facts": 0x6C6F5246, "sessions": 0x6C6F5253}[self.value]


_COMMON: Final = (
    "PRAGMA foreign_keys=ON",
    "PRAGMA temp_store=MEMORY",
    # No mapping: it saves a search 5 % of its time and adds every page that was ever read to
    # the resident memory (150 MB at 150,000 messages); and a store that another program cut
    # off would end the daemon by SIGBUS instead of an error.
    "PRAGMA mmap_size=0",
    "PRAGMA trusted_schema=OFF",
)

_WRITER: Final = {
    StoreKind.FACTS: (
        # An acknowledged fact survives power loss: the WAL is synced at each commit.
        "PRAGMA synchronous=FULL",
        # macOS: fsync there leaves the data in the disk's cache (sqlite.org/pragma.html). A
        # no-op on Linux.
        "PRAGMA fullfsync=ON",
        "PRAGMA secure_delete=ON",
        "PRAGMA cache_size=-4096",
        "PRAGMA journal_size_limit=4194304",
        "PRAGMA wal_autocheckpoint=1000",
    ),
    StoreKind.SESSIONS: (
        # Rebuildable from transcripts: cursors share the transaction, so a lost tail is re-read.
        "PRAGMA synchronous=NORMAL",
        "PRAGMA secure_delete=FAST",
        "PRAGMA cache_size=-32768",
        "PRAGMA journal_size_limit=67108864",
        "PRAGMA wal_autocheckpoint=4000",
    ),
}


def prepare_writer(connection: Connection, kind: StoreKind) -> None:
    """Set the modes of the only connection that writes and checkpoints."""
    mode = connection.execute("PRAGMA journal_mode=WAL").fetchone()[0]
    if mode not in ("wal", "memory"):
        raise RuntimeError(f"journal mode is {mode}, not wal")
    for pragma in _COMMON + _WRITER[kind]:
        connection.execute(pragma)


def prepare_reader(connection: Connection) -> None:
    """Set the modes of a read-only connection; it never checkpoints."""
    # The system's cache holds the file; 2, 8 and 16 MB here answer searches equally fast.
    for pragma in (*_COMMON, "PRAGMA query_only=ON", "PRAGMA cache_size=-4096"):
        connection.execute(pragma)
