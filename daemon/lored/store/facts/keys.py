"""Idempotency keys: the same key never states twice, also after a restart."""

import json
from hashlib import blake2b
from typing import Any, Final

from lore.errors import Conflict
from lored.core.clock import DAY, Micros
from lored.store.driver import Connection

KEPT_DAYS: Final = 90
"""A key is known for this long: spools and retries are settled within hours."""


def asked(params: dict[str, Any]) -> bytes:
    """A hash of what was asked, the key itself left out."""
    body = {name: value for name, value in params.items() if name != "idempotency_key"}
    text = json.dumps(body, ensure_ascii=False, sort_keys=True, separators=(",", ":"), default=str)
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def known(conn: Connection, key: str, hashed: bytes) -> dict[str, Any] | None:
    """What ``key`` gave before, None when it is new.

    Raises `Conflict` when it was used for another request.
    """
    row = conn.execute("SELECT asked, given FROM idempotency WHERE key = ?", (key,)).fetchone()
    if row is None:
        return None
    if row[0] != hashed:
        raise Conflict(f"idempotency_key {key!r} was used for another request; take a new key")
    found: dict[str, Any] = json.loads(row[1])
    return found


def keep(conn: Connection, key: str, hashed: bytes, given: dict[str, Any], now: Micros) -> None:
    """Remember ``key`` with ids (never texts), and drop a few that are out of date."""
    conn.execute(
        "DELETE FROM idempotency WHERE key IN"
        " (SELECT key FROM idempotency WHERE at < ? ORDER BY at LIMIT 8)",
        (now - KEPT_DAYS * DAY,),
    )
    conn.execute(
        "INSERT INTO idempotency(key, asked, given, at) VALUES(?, ?, ?, ?)",
        (key, hashed, json.dumps(given, separators=(",", ":")), now),
    )
