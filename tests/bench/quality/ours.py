"""Our own search on a memory: the real store, the real index, the real ranking.

Rows are written as the daemon writes them (messages, text index, static and model vectors)
into a store file of its own, and questions go through `store.search.messages`. Model vectors
are remembered in a folder, since computing them takes most of the time.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lored.core.naming import plain_question
from lored.core.quantized import Float32, quantize
from lored.core.stored_text import encode
from lored.core.tokens import context_form, index_form, parse_query
from lored.embed.base import MINILM, STATIC
from lored.embed.onnx import MiniLM
from lored.embed.static import StaticEmbedder
from lored.services.search.vectoring import spoken_texts
from lored.store import driver, migrate, pragmas
from lored.store.pragmas import StoreKind
from lored.store.search import messages, text, vectors
from lored.store.search.columns import Columns
from lored.store.search.messages import MessageHit, Scope

from .memories import Memory

ROLES = {"user": 0, "assistant": 1, "tool": 2, "summary": 3}


class Models:
    """The two embedders, the second one with a memory on disk."""

    def __init__(self, folder: Path | None) -> None:
        self.static = StaticEmbedder()
        self._minilm: MiniLM | None = None
        self._folder = folder
        self._known: dict[bytes, Float32] = {}

    @property
    def minilm(self) -> MiniLM:
        """Loaded when it is first needed."""
        if self._minilm is None:
            self._minilm = MiniLM()
        return self._minilm

    def embed(self, texts: Sequence[str], name: str) -> Float32:
        """MiniLM vectors of ``texts``, remembered under ``name``."""
        keys = [hashlib.blake2b(item.encode(), digest_size=16).digest() for item in texts]
        path = self._folder / f"{name}.npz" if self._folder else None
        if path is not None and path.exists():
            stored = np.load(path)
            blobs = stored["keys"].tobytes()
            for place, row in enumerate(stored["rows"]):
                self._known[blobs[16 * place : 16 * place + 16]] = row
        missing = [i for i, key in enumerate(keys) if key not in self._known]
        if missing:
            for i, row in zip(missing, self.minilm.embed([texts[i] for i in missing]), strict=True):
                self._known[keys[i]] = row
        rows = np.array([self._known[key] for key in keys], dtype=np.float32)
        if path is not None and missing:
            path.parent.mkdir(parents=True, exist_ok=True)
            np.savez(path, keys=np.frombuffer(b"".join(keys), dtype=np.uint8), rows=rows)
        return rows


class Store:
    """One memory in a store file."""

    def __init__(self, memory: Memory, folder: Path, models: Models, *, model: bool) -> None:
        self.memory, self.models, self.model = memory, models, model
        self.columns = Columns()
        self.people = frozenset(name.lower() for name in memory.people)
        self.projects = frozenset(name.lower() for name in memory.projects)
        path = folder / f"{hashlib.blake2b(memory.name.encode(), digest_size=6).hexdigest()}.db"
        self.conn = driver.connect(str(path), read_only=False)
        migrate.bring_up(self.conn, StoreKind.SESSIONS, str(path), str(folder))
        pragmas.prepare_writer(self.conn, StoreKind.SESSIONS)
        self.turn_of: dict[int, str] = {}
        self.session_of: dict[int, str] = {}
        self._write()

    def _write(self) -> None:
        conn = self.conn
        number = 0
        conn.execute("BEGIN IMMEDIATE")
        for row, session in enumerate(self.memory.sessions, 1):
            conn.execute(
                "INSERT INTO sessions(id, agent, native_id, indexed_at) VALUES(?, 'bench', ?, 0)",
                (row, session.key),
            )
            self.session_of[row] = session.key
            index: list[tuple[int, str, str]] = []
            before = ""
            for place, turn in enumerate(session.turns):
                number += 1
                self.turn_of[number] = turn.key
                conn.execute(
                    "INSERT INTO messages(id, session, key, position, role, at, text)"
                    " VALUES(?, ?, ?, ?, ?, ?, ?)",
                    (
                        number,
                        row,
                        number.to_bytes(8, "big"),
                        place,
                        ROLES[turn.role],
                        turn.at,
                        encode(turn.text),
                    ),
                )
                index.append(
                    (number, index_form(turn.text), context_form(turn.at, before, turn.text))
                )
                before = turn.text
            text.index_messages(conn, index)
            texts = [turn.text for turn in session.turns]
            ids = [item[0] for item in index]
            static = self.models.static.embed(texts)
            vectors.put_messages(conn, STATIC, zip(ids, quantize(static), strict=True))
        if self.model:
            ids = list(self.turn_of)
            texts = [
                t
                for s in range(0, len(ids), 500)
                for t in spoken_texts(conn, ids[s : s + 500]).values()
            ]
            rows = quantize(self.models.embed(texts, self.memory.name))
            vectors.put_messages(conn, MINILM, zip(ids, rows, strict=True))
        conn.execute("COMMIT")

    def ask(self, question: str, limit: int) -> list[MessageHit]:
        """Hits, best first."""
        plain = plain_question(question, self.people, self.projects)
        asked: dict[str, Float32] = {}
        if self.model:
            asked[MINILM] = self.models.minilm.embed([plain], query=True)[0]
        static = self.models.static.embed_query(plain, lambda word: 0.0)
        if static.any():
            asked[STATIC] = static
        return messages.search(
            self.conn,
            self.columns,
            parse_query(question),
            asked,
            self.models.static.likeness,
            Scope(),
            limit,
        ).hits

    def close(self) -> None:
        """End the connection."""
        self.conn.close()
