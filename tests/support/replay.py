"""Transcripts read whole, without stores: records by session, and their summaries.

What the indexer does over time, at once: parse, take secrets out, fold.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from lored.core import summary
from lored.core.redact import redact
from lored.core.session_fields import changes, merge, wire_fields
from lored.core.transcripts import default_roots, parser_for
from lored.core.transcripts.records import Record, SessionPatch
from lored.store import driver

REPOSITORY = Path(__file__).parents[2]
SAMPLES = REPOSITORY / "tests" / "data" / "transcripts"
SHARED = (
    Path(os.environ.get("LORE_SHARED_DATA") or REPOSITORY.parent / "shared" / "data")
    / "transcripts"
)


def find(name: str) -> Path | None:
    """A sample by its path below the transcripts folder: ours, else the larger collection's."""
    for folder in (SAMPLES, SHARED):
        if (folder / name).is_file():
            return folder / name
    return None


def read(agent: str, path: Path) -> Iterator[tuple[str, Record]]:
    """(native session id, record) of one file with its side files, in order."""
    parser: Any = parser_for(agent, str(path))
    assert parser is not None, f"no parser for {agent} {path}"
    data = path.read_bytes()
    own = parser.session_id(str(path), data[:4096]) or path.stem
    if hasattr(parser, "parse"):
        state = parser.begin(str(path))
        at = 0
        for line in data.split(b"\n"):
            if line.strip():
                yield from _owned(own, parser.parse(state, line.rstrip(b"\r"), at))
            at += len(line) + 1
        if hasattr(parser, "finish"):
            yield from _owned(own, parser.finish(state))
        for side in parser.sidecars(str(path)):
            if os.path.isfile(side):
                yield from _owned(own, parser.parse_sidecar(side, Path(side).read_bytes()))
    elif hasattr(parser, "parse_document"):
        yield from _owned(own, parser.parse_document(str(path), data))
    else:
        connection = driver.sqlite.connect(f"file:{path}?mode=ro", uri=True)
        try:
            for session, records, _ in parser.parse_database(connection, {}):
                yield from _owned(session, records)
        finally:
            connection.close()


def _owned(own: str, records: Iterable[Record]) -> Iterator[tuple[str, Record]]:
    for record in records:
        yield getattr(record, "session", None) or own, record


class Replay:
    """Sessions of files, folded."""

    def __init__(self) -> None:
        self.states: dict[str, dict[str, Any]] = {}
        self.fields: dict[str, dict[str, Any]] = {}

    def take(self, agent: str, path: Path) -> "Replay":
        """Fold one file."""
        for session, record in read(agent, path):
            for name in ("text", "command", "target", "output_excerpt", "summary"):
                value = getattr(record, name, None)
                if isinstance(value, str):
                    setattr(record, name, redact(value)[0])
            summary.fold(self.states.setdefault(session, summary.begin()), [record])
            if isinstance(record, SessionPatch):
                merge(self.fields.setdefault(session, {}), changes(record))
        return self

    def summaries(self) -> dict[str, dict[str, Any]]:
        """Rendered summaries of the sessions with any message or action, by native id."""
        return {
            session: summary.render(state, wire_fields(self.fields.get(session, {})))
            for session, state in self.states.items()
            if state["counts"]["messages"] or state["counts"]["actions"]
        }


def agents() -> list[str]:
    """Names of the agents whose roots are known."""
    return sorted({root.agent for root in default_roots({}, "/nowhere")})
