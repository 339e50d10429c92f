"""Where the time of a backfill goes: milliseconds a MB of transcript, by stage.

    python tests/bench/stages.py [MB] [--static]

The worker's and the daemon's share of the work, one after the other in this process, without
pipe and event loop: what `--only indexing` shows beyond the sum here is theirs, and the start of
the worker. ``--static`` computes static vectors too. A stage holds what it does itself, not what
it calls under another name here; measuring costs some per cent, so the total is taken from a run
without. Compare two versions in turn and take the least of several: a busy machine doubles it.
"""

import functools
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import GeneratorType
from typing import Any

import msgpack

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench import corpus
from lored.core import batches, summary
from lored.core.transcripts import PARSERS
from lored.embed.static import StaticEmbedder
from lored.ingest import frames, harvest, reading
from lored.ingest.books import Known
from lored.store import driver, migrate, pragmas
from lored.store.pragmas import StoreKind
from lored.store.search import packing, text, vectors
from lored.store.sessions import actions, known, writes
from lored.store.sessions.written import FileRef
from lored.zone import zone

MB = 24
AGENTS = {".claude": "claude-code", ".codex": "codex", ".recursive": "recursive"}
STAGES: tuple[tuple[str, Any, str], ...] = (
    ("read lines", reading.Lines, "__iter__"),
    *(("parse and decode", type(PARSERS[agent]), "parse") for agent in AGENTS.values()),
    ("rows of records", harvest.Harvest, "take"),
    ("redact", harvest, "redact"),
    ("words for the index", harvest, "index_form"),
    ("words for the index", harvest, "context_form"),
    ("words for the index", harvest, "output_form"),
    ("compress", harvest, "encode"),
    ("summary fold", summary, "fold"),
    ("summary render", summary, "render"),
    ("static vectors", harvest.Harvest, "_vectors"),
    ("cut a batch", harvest.Harvest, "cut"),
    ("pack and unpack", batches, "pack"),
    ("pack and unpack", batches, "unpack"),
    ("pack and unpack", frames, "encode"),
    ("pack and unpack", frames, "decode"),
    ("write: look up", writes._Writing, "look_up"),
    ("write: rows", writes._Writing, "run"),
    ("write: rows", writes._Writing, "flush"),
    ("write: actions", actions.ActionWrites, "save"),
    ("write: session and cursor", writes._Writing, "finish"),
    ("write: text index", text, "index_messages"),
    ("write: text index", packing, "_next_change"),  # where FTS5 flushes what it gathered
    ("write: packed columns", packing, "catalogue_messages"),
    ("write: vectors", vectors, "put_messages"),
)


class Stages:
    """Seconds spent in each stage, without what it called of other stages."""

    def __init__(self) -> None:
        self.spent: Counter[str] = Counter()
        self._open: list[str] = []
        self._since = 0.0

    def wrap(self, name: str, fn: Callable[..., Any]) -> Callable[..., Any]:
        """``fn``, counted as ``name``; of a generator each step is."""

        @functools.wraps(fn)
        def counted(*args: Any, **named: Any) -> Any:
            found = self.run(name, functools.partial(fn, *args, **named))
            return self._steps(name, found) if isinstance(found, GeneratorType) else found

        return counted

    def run(self, name: str, fn: Callable[[], Any]) -> Any:
        """``fn()``, counted as ``name``."""
        self._turn()
        self._open.append(name)
        try:
            return fn()
        finally:
            self._turn()
            self._open.pop()

    def _steps(self, name: str, steps: Iterator[Any]) -> Iterator[Any]:
        end = object()
        while (found := self.run(name, lambda: next(steps, end))) is not end:
            yield found

    def _turn(self) -> None:
        now = time.process_time()
        if self._open:
            self.spent[self._open[-1]] += now - self._since
        self._since = now


def backfill(home: Path, stages: Stages, *, embed: bool) -> None:
    """Read all transcripts below ``home`` into a new store, newest first."""
    embedder = StaticEmbedder() if embed else None
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/sessions.db"
        conn = driver.connect(path, read_only=False)
        pragmas.prepare_writer(conn, StoreKind.SESSIONS)
        migrate.bring_up(conn, StoreKind.SESSIONS, path, folder)
        for file in sorted(home.rglob("*.jsonl"), key=lambda one: -one.stat().st_mtime):
            agent = AGENTS[file.relative_to(home).parts[0]]
            for batch in _batches(conn, str(file), agent, embedder):
                data = frames.encode(batches.pack(batch))
                unpacked = batches.unpack(frames.decode(data[4:]))
                conn.execute("BEGIN IMMEDIATE")
                ref = FileRef(str(file), agent, str(home), 0)
                writes.apply(conn, ref, unpacked, workspaces={}, now=reading.now())
                stages.run("write: commit", lambda: conn.execute("COMMIT"))
        conn.close()


def _batches(conn: Any, path: str, agent: str, embedder: Any) -> Iterator[batches.Batch]:
    def ask(name: str) -> Known:
        found = known.known(conn, agent, name)
        fold = found["fold"]
        state = msgpack.unpackb(fold, strict_map_key=False) if fold else summary.begin()
        return Known(state, found["fields"], found["previous"], False, found["stored"])

    def begin(name: str, at: int | None) -> harvest.Harvest:
        return harvest.Harvest(
            agent, name, ask, excluded=lambda cwd: False, redacting=True, embedder=embedder,
            at=at, now=reading.now(), zone=zone(),
        )  # fmt: skip

    job = reading.Job(path, agent, agent, settle=True, slice_bytes=1 << 40)
    try:
        yield from reading.read_lines(
            PARSERS[agent], job, begin, lambda place: None, lambda size: None
        )
    except reading.NotTranscript:
        return


def main(arguments: list[str]) -> int:
    """Print the table."""
    embed = "--static" in arguments
    size = int(next((one for one in arguments if one.isdigit()), MB))
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        megabytes = corpus.grow(home, size * 1_000_000, now_ns=time.time_ns()).bytes / 1e6
        stages = Stages()
        began = time.process_time()
        backfill(home, stages, embed=embed)
        total = time.process_time() - began
        for name, owner, attribute in STAGES:
            setattr(owner, attribute, stages.wrap(name, getattr(owner, attribute)))
        stages.spent.clear()
        stages.run("the rest", lambda: backfill(home, stages, embed=embed))
    for name, seconds in stages.spent.most_common():
        print(f"{seconds / megabytes * 1e3:8.2f} ms/MB  {name}")
    print(
        f"{total / megabytes * 1e3:8.2f} ms/MB  in all, not measured: {megabytes / total:.1f} MB/s"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
