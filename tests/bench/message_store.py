"""Sessions stores of 150,000 and 1,500,000 messages with real text, written as the daemon would.

Rows, text index, static vectors and sign bits are the product's own; only the reading of files
is left out. Texts are those of the real samples, with other words in places from copy to copy.
Vectors of the larger model, which would take an hour to compute, are made from the static ones:
as many, as long, as costly to search, without its judgement.
"""

import functools
import itertools
import random
import re
from collections.abc import Iterator
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
BATCH: Final = 5_000
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


def stream(count: int) -> Iterator[tuple[str, str]]:
    """``count`` messages: the real ones, then siblings of them."""
    originals = real_messages()

    def endless() -> Iterator[tuple[str, str]]:
        for copy in itertools.count():
            rewriter = Rewriter(copy)
            for role, said in originals:
                yield role, rewriter.grown(said.encode()).decode("utf-8", "replace")

    return itertools.islice(endless(), count)


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


def fill(path: str, count: int, now_us: int, workspace: str | None) -> None:
    """Write ``count`` messages into the sessions store at ``path``, which exists and is open
    nowhere, over the year before ``now_us``. Every twentieth session is of ``workspace``."""
    conn = driver.connect(path, read_only=False)
    pragmas.prepare_writer(conn, StoreKind.SESSIONS)
    table = StaticEmbedder()
    widen = np.random.default_rng(1).standard_normal((256, MINILM_DIMENSIONS)).astype(np.float32)
    number = session = position = 0
    before = ""
    source = stream(count)
    while batch := list(itertools.islice(source, BATCH)):
        index: list[tuple[int, str, str]] = []
        spoken: list[tuple[int, str]] = []
        conn.execute("BEGIN IMMEDIATE")
        for role, said in batch:
            if position % SESSION_MESSAGES == 0:
                session += 1
                position, before = 0, ""
                began = now_us - 365 * DAY_US * (count - number) // count
                conn.execute(
                    "INSERT INTO sessions(id, agent, native_id, workspace, cwd, status, title,"
                    " started_at, ended_at, message_count, positions, indexed_at)"
                    " VALUES(?, ?, ?, ?, '/srv/demo', 'completed', ?, ?, ?, ?, ?, ?)",
                    (session, AGENTS[session % 3], f"session-{session}",
                     workspace if session % 20 == 0 else None, said[:80], began,
                     began + DAY_US // 24, SESSION_MESSAGES, SESSION_MESSAGES, now_us),
                )  # fmt: skip
            number += 1
            at = began + position * 1_000_000
            conn.execute(
                "INSERT INTO messages(id, session, key, position, role, at, text)"
                " VALUES(?, ?, ?, ?, ?, ?, ?)",
                (number, session, number.to_bytes(16, "big"), position, ROLES[role], at,
                 encode(said)),
            )  # fmt: skip
            if role == "tool":
                index.append((number, output_form(said), ""))
            else:
                index.append((number, index_form(said), context_form(at, before, said)))
                spoken.append((number, said))
                before = said[-300:]
            position += 1
        text.index_messages(conn, index)
        if spoken:
            rows = table.embed([said for _, said in spoken])
            ids = [message for message, _ in spoken]
            vectors.put_messages(conn, STATIC, zip(ids, quantize(rows), strict=True))
            wide = rows @ widen
            wide /= np.maximum(np.linalg.norm(wide, axis=1, keepdims=True), 1e-9)
            vectors.put_messages(conn, MINILM, zip(ids, quantize(wide), strict=True))
        conn.execute("COMMIT")
    while text.merge_messages(conn):
        pass
    conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    conn.close()
