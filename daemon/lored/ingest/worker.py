"""The worker: reads, parses, redacts, embeds and summarises; holds no database handle.

    python -m lored.ingest.worker MEMORY_BYTES

A child process of the daemon, lower in priority, limited in address space, and dead as soon
as its parent is (`lored.tied`): hostile input or a crash in native code costs one file, never
the daemon.
Frames (`ingest.frames`) on standard input and output:

    daemon -> worker   ["job", number, job, options]     read this file
                       ["known", map]                     answer to "ask"
    worker -> daemon   ["ready", 0]
                       ["ask", number, session]           what is known of a session?
                       ["batch", number, batch]           rows and the cursor after them
                       ["beat", number, place]            alive, no batch yet
                       ["end", number, outcome, text, bytes_read]

Outcomes: `done` (read to its end), `more` (the slice is used up), `anew` (not the file of the
cursor), `ignored` (no transcript), `barred` (forgotten or excluded), `gone` (no file of that
name), `failed` (text says why). The worker ends when its input ends.
"""

import gc
import os
import resource
import sys
import time
import traceback
from typing import Any, BinaryIO, Final

import msgpack

from lored import __version__
from lored.core import summary
from lored.core.batches import pack
from lored.core.transcripts import PARSERS
from lored.embed.base import Embedder
from lored.embed.static import StaticEmbedder
from lored.ingest import frames
from lored.ingest.books import Known
from lored.ingest.documents import read_database, read_document, read_sidecar
from lored.ingest.exclusion import Exclusion
from lored.ingest.formats import register_all
from lored.ingest.harvest import Harvest
from lored.ingest.reading import Anew, Job, NotTranscript, Unusable, now, read_lines
from lored.zone import zone

NICE: Final = 5
"""Requests come first, also those of other programs."""

COLLECT_AFTER: Final = 50_000
"""Objects that may be born before cycles are looked for. Records are trees, freed without it, and
a line of JSON is thousands of objects: at Python's 700 this was 4 % of the processor time."""

BEAT_SECONDS: Final = 1.0
"""How often a long silence is broken; the daemon takes a much longer one for a hang."""


def main() -> int:
    """Serve the daemon until it closes our input."""
    os.nice(NICE)
    limit_memory(int(sys.argv[1]))
    # Standard output carries frames: whatever prints must not reach it.
    output = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER)
    _Worker(sys.stdin.buffer, output).serve()
    return 0


def limit_memory(extra_bytes: int) -> None:
    """Limit the address space to what is used now and ``extra_bytes`` more."""
    used = 0
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
    except OSError:
        return  # macOS does not honour RLIMIT_AS
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = used + extra_bytes
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def _place(error: BaseException) -> str:
    """Where an exception was raised; its message may hold text of the transcript."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{os.path.basename(frame.filename)}:{frame.lineno} {frame.name}"


class _Worker:
    def __init__(self, source: BinaryIO, target: Any) -> None:
        self._source, self._target = source, target
        self._embedder: Embedder | None = None
        self._number = 0
        self._beat_at = 0.0
        self._bytes_read = 0

    def serve(self) -> None:
        self._send("ready", __version__)
        while True:
            frame = frames.read(self._source)
            if frame is None:
                return
            _, self._number, job, options = frame
            self._bytes_read = 0
            outcome, text = self._run(Job(**job), options)
            self._send("end", outcome, text, self._bytes_read)

    def _send(self, kind: str, *values: Any) -> None:
        data = memoryview(frames.encode([kind, self._number, *values]))
        while data:
            data = data[self._target.write(data) :]
        self._beat_at = time.monotonic()

    def _beat(self, place: int) -> None:
        if time.monotonic() - self._beat_at > BEAT_SECONDS:
            self._send("beat", place)

    def _count(self, size: int) -> None:
        self._bytes_read += size

    def _embed(self) -> Embedder:
        if self._embedder is None:
            self._embedder = StaticEmbedder()
        return self._embedder

    def _run(self, job: Job, options: dict[str, Any]) -> tuple[str, str]:
        register_all(options["custom"])
        parser = PARSERS.get(job.parser)
        if parser is None:
            return "ignored", ""
        exclusion = Exclusion.parse(options["exclude"])
        barred: list[Harvest] = []
        own = [""]

        def known(name: str) -> Known:
            self._send("ask", name)
            reply = frames.read(self._source)
            if reply is None:
                sys.exit(0)
            found = reply[1]
            fold = found["fold"]
            if fold is None and found["stored"] and job.offset and name == own[0]:
                raise Anew  # its summary cannot be folded on: from the start, then
            cwd = found["fields"].get("cwd")
            return Known(
                msgpack.unpackb(fold, strict_map_key=False) if fold else summary.begin(),
                found["fields"],
                found["previous"],
                found["barred"] or (cwd is not None and exclusion.cwd(cwd, job.agent)),
                found["stored"],
            )

        def open_harvest(name: str, at: int | None) -> Harvest:
            own[:] = [name]
            harvest = Harvest(
                job.agent,
                name,
                known,
                excluded=lambda cwd: exclusion.cwd(cwd, job.agent),
                redacting=options["redact"],
                embedder=self._embed() if options["embed"] else None,
                at=at,
                now=now(),
                zone=zone(),
            )
            barred[:] = [harvest]
            return harvest

        last = False
        reader: Any = read_lines
        if job.sidecar:
            if not hasattr(parser, "parse_sidecar"):
                return "ignored", ""
            reader = read_sidecar
        elif hasattr(parser, "parse_document"):
            reader = read_document
        elif hasattr(parser, "parse_database"):
            reader = read_database
        try:
            for batch in reader(parser, job, open_harvest, self._beat, self._count):
                last = batch.last
                self._send("batch", pack(batch))
        except Anew:
            return "anew", ""
        except NotTranscript:
            return "ignored", ""
        except Unusable as error:
            return "failed", str(error)
        except FileNotFoundError:
            return "gone", ""
        except OSError as error:
            return "failed", error.strerror or str(error)
        except MemoryError:
            return "failed", "out of memory"
        except Exception as error:
            # A defect of a parser costs this file until its next version, and nothing else.
            return "failed", f"{type(error).__name__} at {_place(error)}"
        if barred and barred[0].barred and reader in (read_lines, read_document):
            return "barred", ""
        return ("done" if last else "more"), ""


if __name__ == "__main__":
    sys.exit(main())
