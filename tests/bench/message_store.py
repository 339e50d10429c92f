"""Sessions stores of 150,000 and 1,500,000 messages with real text, written as the daemon would.

Rows, text index, static vectors and sign bits are the product's own; only the reading of files
is left out. Texts are those of the real samples, with other words in places from copy to copy.
Vectors of the larger model, which would take an hour to compute, are made from the static ones:
as many, as long, as costly to search, without its judgement.

What the worker of a daemon does (forms for the index, static vectors, compression) is done in
processes of its own here too, so that 1,500,000 messages take minutes; `kept` builds a store of
a size once and copies it from then on.
"""

import functools
import hashlib
import multiprocessing
import os
import random
import re
import shutil
import tempfile
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.pool import AsyncResult
from pathlib import Path
from typing import Final

import numpy as np

from bench.corpus import Rewriter
from lored.core.outputs import output_form
from lored.core.quantized import quantize
from lored.core.stored_text import encode
from lored.core.tokens import context_form, index_form
from lored.core.transcripts.records import Message
from lored.embed.base import MINILM, STATIC
from lored.embed.static import StaticEmbedder
from lored.store import driver, pragmas
from lored.store.pragmas import StoreKind
from lored.store.search import text, vectors
from support.transcripts import all_samples, read

ROLES: Final = {"user": 0, "assistant": 1, "tool": 2, "summary": 3}
SESSION_MESSAGES: Final = 120
BATCH: Final = 40 * SESSION_MESSAGES
"""Messages of one transaction, whole sessions."""
KEPT_FROM: Final = 100_000
"""Messages from which a store is worth keeping: a minute of work."""
MINILM_DIMENSIONS: Final = 384
DAY_US: Final = 86_400_000_000
AGENTS: Final = ("claude-code", "codex", "recursive")


@functools.cache
def real_messages() -> list[tuple[str, str]]:
    """(role, text) of every message of the samples that is indexed."""
    found = []
    for sample in all_samples():
        if sample.agent in AGENTS:
            for records in read(sample).values():
                found += [
                    (record.role, record.text)
                    for record in records
                    if isinstance(record, Message) and record.role in ROLES
                ]
    return found


def stream(start: int, stop: int) -> Iterator[tuple[str, str]]:
    """Messages ``start`` to ``stop``: the real ones, then siblings of them."""
    originals = real_messages()
    rewriter, copy = Rewriter(0), 0
    for number in range(start, stop):
        if number // len(originals) != copy:
            copy = number // len(originals)
            rewriter = Rewriter(copy)
        role, said = originals[number % len(originals)]
        yield role, rewriter.grown(said.encode()).decode("utf-8", "replace")


def questions(count: int, seed: int = 5) -> list[str]:
    """Queries: half of them words that stand together somewhere, half as people ask."""
    dice = random.Random(seed)
    texts = [said for role, said in real_messages() if role in ("user", "assistant")]
    forms = ("why did {} fail", "what did we decide about {}", "the command that fixed {}", "{}")
    found = []
    while len(found) < count:
        words = re.findall(r"[A-Za-z_]{4,20}", dice.choice(texts)[:2_000])
        if len(words) >= 4:
            at = dice.randrange(len(words) - 3)
            found.append(
                dice.choice(forms).format(" ".join(words[at : at + dice.choice((2, 3, 4))]))
            )
    return found


@dataclass(frozen=True, slots=True)
class _Batch:
    """Whole sessions, made ready to be written as `ingest` does."""

    sessions: list[tuple[int, int, str]]
    """(number, began, title)."""
    rows: list[tuple[int, int, bytes, int, int, int, str | bytes]]
    words: list[tuple[int, str, str]]
    spoken: list[int]
    static: list[bytes]
    wide: list[bytes]


@functools.cache
def _models() -> tuple[StaticEmbedder, "np.typing.NDArray[np.float32]"]:
    widen = np.random.default_rng(1).standard_normal((256, MINILM_DIMENSIONS)).astype(np.float32)
    return StaticEmbedder(), widen


def _prepare(asked: tuple[int, int, int, int]) -> _Batch:
    """Messages ``start`` to ``stop`` of ``count`` over the year before ``now_us``."""
    start, stop, count, now_us = asked
    batch = _Batch([], [], [], [], [], [])
    said_of: list[str] = []
    before, began, session = "", 0, 0
    for place, (role, said) in enumerate(stream(start, stop), start):
        number, position = place + 1, place % SESSION_MESSAGES
        if position == 0:
            before, session = "", place // SESSION_MESSAGES + 1
            began = now_us - 365 * DAY_US * (count - place) // count
            batch.sessions.append((session, began, said[:80]))
        at = began + position * 1_000_000
        key = number.to_bytes(16, "big")
        batch.rows.append((number, session, key, position, ROLES[role], at, encode(said)))
        if role == "tool":
            batch.words.append((number, output_form(said), ""))
            continue
        batch.words.append((number, index_form(said), context_form(at, before, said)))
        batch.spoken.append(number)
        said_of.append(said)
        before = said[-300:]
    if said_of:
        table, widen = _models()
        rows = table.embed(said_of)
        wide = rows @ widen
        wide /= np.maximum(np.linalg.norm(wide, axis=1, keepdims=True), 1e-9)
        batch.static.extend(quantize(rows))
        batch.wide.extend(quantize(wide))
    return batch


def fill(path: str, count: int, now_us: int, workspace: str | None, batch: int = BATCH) -> None:
    """Write ``count`` messages into the sessions store at ``path``, which exists and is open
    nowhere, over the year before ``now_us``. Every twentieth session is of ``workspace``."""
    tasks = [(start, min(start + batch, count), count, now_us) for start in range(0, count, batch)]
    conn = driver.connect(path, read_only=False)
    pragmas.prepare_writer(conn, StoreKind.SESSIONS)
    real_messages()  # read once, inherited by the processes
    if len(tasks) == 1:
        _write(conn, _prepare(tasks[0]), now_us)
    else:
        _fill_together(conn, tasks, now_us)
    set_workspace(conn, workspace)
    while text.merge_messages(conn):
        pass
    conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    conn.close()


def _fill_together(
    conn: driver.Connection, tasks: list[tuple[int, int, int, int]], now_us: int
) -> None:
    """Prepare batches in as many processes as there are cores, write them here in order."""
    processes = os.cpu_count() or 1
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        waiting: deque[AsyncResult[_Batch]] = deque()
        for task in tasks:
            waiting.append(pool.apply_async(_prepare, (task,)))
            if len(waiting) > 2 * processes:  # more would only fill the memory
                _write(conn, waiting.popleft().get(), now_us)
        for ready in waiting:
            _write(conn, ready.get(), now_us)
        pool.close()
        pool.join()


def set_workspace(conn: driver.Connection, workspace: str | None) -> None:
    """Every twentieth session is of ``workspace``."""
    conn.execute("UPDATE sessions SET workspace = ? WHERE id % 20 = 0", (workspace,))


def _write(conn: driver.Connection, batch: _Batch, now_us: int) -> None:
    conn.execute("BEGIN IMMEDIATE")
    conn.executemany(
        "INSERT INTO sessions(id, agent, native_id, cwd, status, title, started_at, ended_at,"
        " message_count, positions, indexed_at)"
        " VALUES(?, ?, ?, '/srv/demo', 'completed', ?, ?, ?, ?, ?, ?)",
        [
            (number, AGENTS[number % 3], f"session-{number}", title, began,
             began + DAY_US // 24, SESSION_MESSAGES, SESSION_MESSAGES, now_us)
            for number, began, title in batch.sessions
        ],
    )  # fmt: skip
    conn.executemany(
        "INSERT INTO messages(id, session, key, position, role, at, text)"
        " VALUES(?, ?, ?, ?, ?, ?, ?)",
        batch.rows,
    )
    text.index_messages(conn, batch.words)
    vectors.put_messages(conn, STATIC, zip(batch.spoken, batch.static, strict=True))
    vectors.put_messages(conn, MINILM, zip(batch.spoken, batch.wide, strict=True))
    conn.execute("COMMIT")


def keep(path: str, count: int, now_us: int, workspace: str) -> None:
    """As `fill`, from a store of this size that was built before, if there is one; a large one
    is built aside and lies in the folder for temporary files until somebody takes it away."""
    if count < KEPT_FROM:
        fill(path, count, now_us, workspace)
        return
    with open(path, "rb") as file:
        empty = file.read(100)  # the header: another schema is another store
    about = repr((count, len(real_messages()), BATCH, empty[60:72])).encode()
    name = f"lore-messages-{count}-{hashlib.blake2b(about, digest_size=6).hexdigest()}.db"
    store = Path(tempfile.gettempdir()) / name
    if not store.exists():
        made = f"{store}.{os.getpid()}"
        shutil.copyfile(path, made)
        fill(made, count, now_us, None)
        os.replace(made, store)
    shutil.copyfile(store, path)
    conn = driver.connect(path, read_only=False)
    set_workspace(conn, workspace)
    conn.close()
