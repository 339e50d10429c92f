"""Our own search on a memory: the real store, the real index, the real ranking.

`Written` writes rows as the daemon writes them (messages, text index, static and model vectors)
into a store file of its own; `Indexed` takes a file that the indexer itself filled. Questions
go through `store.search.messages`, the way that `episodic_recall` goes. Model vectors are
remembered in a folder, since computing them takes most of the time.
"""

import hashlib
from collections.abc import Iterable, Sequence
from datetime import UTC
from pathlib import Path

import numpy as np

from lored.core import maxsim
from lored.core.asked_time import asked_time
from lored.core.naming import plain_question
from lored.core.quantized import Float32, quantize
from lored.core.stored_text import encode
from lored.core.tokens import context_form, index_form, parse_query
from lored.embed.base import MINILM, STATIC
from lored.embed.onnx import MiniLM
from lored.embed.static import StaticEmbedder
from lored.services.search.deepening import passages, reordered
from lored.services.search.recall import DEEP_HITS
from lored.services.search.vectoring import spoken_texts
from lored.store import driver, migrate, pragmas
from lored.store.driver import Connection
from lored.store.pragmas import StoreKind
from lored.store.search import episodes, messages, text, vectors
from lored.store.search.columns import Columns
from lored.store.search.matching import MESSAGES, frequency_share
from lored.store.search.messages import MessageHit
from lored.store.sessions.listing import Filters

from .memories import Memory

ROLES = {"user": 0, "assistant": 1, "tool": 2, "summary": 3, "context": 4}
SPOKEN = (0, 1, 3)
"""What has model vectors (`services.search.vectoring`)."""


ASKED_AT = 1_796_083_200_000_000
"""2026-12-01: questions are asked after everything was said, so that `last week` is of no use."""


class Models:
    """The two embedders, the second one with a memory on disk."""

    def __init__(self, folder: Path | None) -> None:
        self.static = StaticEmbedder()
        self._minilm: MiniLM | None = None
        self._folder = folder
        self._known: dict[bytes, Float32] = {}
        self._tokens: dict[str, Float32] = {}

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

    def close_reading(
        self, conn: Connection, question: str, hits: Sequence[MessageHit]
    ) -> list[MessageHit]:
        """``hits`` in the order of deep mode (`services.search.deepening`)."""
        head, rest = list(hits[:DEEP_HITS]), list(hits[DEEP_HITS:])
        if len(head) < 2:
            return [*head, *rest]
        texts = passages(conn, head)
        for item in dict.fromkeys(texts):
            if item not in self._tokens:
                self._tokens[item] = self.minilm.token_vectors([item])[0].astype(np.float16)
        asked = self.minilm.token_vectors([question])[0]
        known = [self._tokens[item].astype(np.float32) for item in texts]
        return [*reordered(head, maxsim.parts(asked, known)), *rest]


class Search:
    """Questions to a store file. ``model``: with MiniLM; ``deep``: in deep mode."""

    def __init__(
        self, memory: Memory, conn: Connection, models: Models, *, model: bool, deep: bool = False
    ) -> None:
        self.memory, self.conn, self.models = memory, conn, models
        self.model, self.deep = model, deep
        self.columns = Columns()
        self.people = frozenset(name.lower() for name in memory.people)
        self.projects = frozenset(name.lower() for name in memory.projects)
        self.turn_of: dict[int, str] = {}
        self.session_of: dict[int, str] = {}

    def ask(self, question: str, limit: int) -> list[MessageHit]:
        """Hits, best first."""
        plain = plain_question(question, self.people, self.projects)
        asked: dict[str, Float32] = {}
        if self.model:
            asked[MINILM] = self.models.minilm.embed([plain], query=True)[0]
        share = frequency_share(self.conn, MESSAGES)
        static = self.models.static.embed_query(plain, share)
        if static.any():
            asked[STATIC] = static
        hits = messages.search(
            self.conn,
            self.columns,
            parse_query(question),
            asked,
            self.models.static.likeness,
            episodes.scope(self.conn, Filters(subagents=True)),
            max(limit, DEEP_HITS),
            asked_time(question, now=ASKED_AT, zone=UTC),
        ).hits
        if self.deep:
            hits = self.models.close_reading(self.conn, plain, hits)
        return hits[:limit]

    def find(self, question: str, limit: int) -> tuple[list[str], list[str]]:
        """(turn keys, their sessions), best first."""
        hits = self.ask(question, limit)
        turns = [self.turn_of[hit.id] for hit in hits]
        return turns, [self.session_of[hit.session] for hit in hits]

    def close(self) -> None:
        """End the connection."""
        self.conn.close()

    def add_model_vectors(self, ids: Iterable[int]) -> None:
        """As the background worker does (`services.search.vectoring`), in one transaction."""
        numbers = list(ids)
        texts: dict[int, str] = {}
        for start in range(0, len(numbers), 500):
            texts |= spoken_texts(self.conn, numbers[start : start + 500])
        rows = quantize(self.models.embed(list(texts.values()), self.memory.name))
        vectors.put_messages(self.conn, MINILM, zip(texts, rows, strict=True))


class Indexed(Search):
    """A store that the indexer filled; turn keys are record keys, sessions native ids."""

    def __init__(
        self, memory: Memory, path: Path, models: Models, *, model: bool, deep: bool = False
    ) -> None:
        conn = driver.connect(str(path), read_only=False)
        super().__init__(memory, conn, models, model=model, deep=deep)
        self.turn_of = dict(conn.execute("SELECT id, record_key FROM messages").fetchall())
        self.session_of = dict(conn.execute("SELECT id, native_id FROM sessions").fetchall())
        if model:
            self.columns.refresh(conn)
            absent, _ = self.columns.missing(MINILM, SPOKEN, len(self.turn_of))
            if absent:
                conn.execute("BEGIN IMMEDIATE")
                self.add_model_vectors(absent)
                conn.execute("COMMIT")


class Written(Search):
    """A memory written into a new store file in ``folder``."""

    def __init__(
        self, memory: Memory, folder: Path, models: Models, *, model: bool, deep: bool = False
    ) -> None:
        path = folder / f"{hashlib.blake2b(memory.name.encode(), digest_size=6).hexdigest()}.db"
        conn = driver.connect(str(path), read_only=False)
        super().__init__(memory, conn, models, model=model, deep=deep)
        migrate.bring_up(conn, StoreKind.SESSIONS, str(path), str(folder))
        pragmas.prepare_writer(conn, StoreKind.SESSIONS)
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
            self.add_model_vectors(self.turn_of)
        conn.execute("COMMIT")
