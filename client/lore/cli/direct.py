"""The memory without a daemon: reads from the stores, writes into the spool.

For sandboxes that refuse Unix sockets, and for `--direct`. The daemon's own package does the
reading with the same services, opened read-only; it is loaded by name, since the client never
depends on it, and only here.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from lore import spool
from lore.errors import Unavailable
from lore.paths import Paths
from lore.wire.methods import BY_NAME

READER_MODULE = "lored.direct"

_WRITING_PARAMS = {"entities": ("merge", "alias"), "workspace": ("target",)}
"""Parameters that make a write of a method that otherwise only reads."""


class Direct:
    """Answers calls as `lore.Client` does; opens the stores on the first read."""

    def __init__(self, paths: Paths, workspace: str | None) -> None:
        self._paths, self._workspace = paths, workspace
        self._reader: Any = None

    def call(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        timeout: float | None = None,
        on_event: object = None,
    ) -> Any:
        """A read is answered now; a statement about facts is queued (`{queued: ...}`); what
        needs the daemon raises `Unavailable`. There are no events here."""
        given = params or {}
        known = BY_NAME.get(method)
        if known is not None and known.name in spool.METHODS:
            return spool.put(self._paths, known.name, given, self._workspace, "lore")
        if known is not None and (
            known.mutates
            or any(given.get(name) for name in _WRITING_PARAMS.get(known.name, ()))
            or given.get("action") == "split"
        ):
            raise Unavailable(f"{method} needs the daemon; run it outside the sandbox")
        return self._open().call(method, given, self._workspace, timeout)

    def _open(self) -> Any:
        if self._reader is None:
            try:
                module = import_module(READER_MODULE)
            except ImportError as error:
                raise Unavailable(
                    f"reading without a daemon needs its package ({error.name} is missing); "
                    "run: pip install 'lored[daemon]'"
                ) from None
            self._reader = module.Reader(self._paths)
        return self._reader

    def close(self) -> None:
        """Close the stores."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None
