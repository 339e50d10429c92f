"""What many formats say about a file: nothing stands beside it, its name is the session's."""

from collections.abc import Iterable
from typing import Any

from lored.core.transcripts.records import Record


class Alone:
    """A format without sidecars."""

    def sidecars(self, path: str) -> list[str]:
        """None."""
        return []

    def parse_sidecar(self, path: str, data: bytes) -> Iterable[Record]:
        """Nothing."""
        return []


class Named:
    """A format whose files are named after their session, `<session>.jsonl`."""

    def session_id(self, path: str, head: bytes) -> str | None:
        """The file's name without its ending; None for other files."""
        name = path.replace("\\", "/").rpartition("/")[2]
        return name.removesuffix(".jsonl") if name.endswith(".jsonl") else None

    def begin(self, path: str) -> dict[str, Any]:
        """The state before the first line."""
        return {"session": self.session_id(path, b"") or "unknown"}
