"""Forgetting for good: every copy of a fact's words in one store file.

What stays is a shell: number, uid, times, its place in chains, and the keyed hash by which an
import recognises the text and leaves it out. Pages are overwritten because the writer runs
with `secure_delete`; the caller folds the WAL in and proves the result by scanning the files.
"""

import json
from typing import Any

from lored.core.facts import State
from lored.store.driver import Connection
from lored.store.facts import conflicts, mirror
from lored.store.facts.log import FACT, Batch
from lored.store.facts.rows import Fact
from lored.store.search import text, vectors


def erase(conn: Connection, batch: Batch, fact: Fact, *, note: str | None) -> dict[str, int]:
    """Erase ``fact`` and note that it was done. Returns rows changed, by table."""
    removed = wipe(conn, fact.id)
    for one in conflicts.of_facts(conn, [fact.id]):
        conflicts.settle(
            conn,
            one.id,
            status=conflicts.DISMISSED,
            now=batch.now,
            by=batch.actor,
            resolution="a side was forgotten for good",
            winner=None,
        )
    batch.log(conn, "erase", facts=[fact.id], note=note)
    return removed


def wipe(conn: Connection, fact_id: int) -> dict[str, int]:
    """Take the words of a fact out of every table; also used on copies of a store."""
    removed = {"text index": _rows(conn, "fact_texts", "id", fact_id)}
    text.remove_fact(conn, fact_id)
    removed["vectors"] = _rows(conn, "fact_vectors", "fact", fact_id)
    vectors.remove_fact(conn, fact_id)
    mirror.remove(conn, fact_id)
    removed["entities"] = _entities(conn, fact_id)
    conn.execute("DELETE FROM bindings WHERE fact = ?", (fact_id,))
    conn.execute(
        "UPDATE conflicts SET note = NULL, resolution = NULL WHERE fact_a = ?1 OR fact_b = ?1",
        (fact_id,),
    )
    removed["log entries"] = _log(conn, fact_id)
    conn.execute(
        "UPDATE facts SET text = '', tags = '[]', entities = '[]', source = NULL,"
        " asserted_by = NULL, source_ref = NULL, session_id = NULL, message_id = NULL,"
        " extra = '{}', pending = 0, set_id = NULL, core = 0, state = ? WHERE id = ?",
        (int(State.ERASED), fact_id),
    )
    removed["facts"] = 1
    return removed


def _rows(conn: Connection, table: str, column: str, fact_id: int) -> int:
    row = conn.execute(f"SELECT count(*) FROM {table} WHERE {column} = ?", (fact_id,)).fetchone()
    return int(row[0])


def _entities(conn: Connection, fact_id: int) -> int:
    """Drop the fact's links, and the names that only it used."""
    cluster = conn.execute("SELECT cluster FROM facts WHERE id = ?", (fact_id,)).fetchone()[0]
    own = [
        row[0]
        for row in conn.execute("SELECT entity FROM fact_entities WHERE fact = ?", (fact_id,))
    ]
    conn.execute("DELETE FROM fact_entities WHERE fact = ?", (fact_id,))
    others = conn.execute(
        "SELECT 1 FROM facts WHERE cluster = ? AND id <> ? AND state <> ? LIMIT 1",
        (cluster, fact_id, int(State.ERASED)),
    ).fetchone()
    if others is None:
        conn.execute("DELETE FROM cluster_entities WHERE cluster = ?", (cluster,))
    gone = 0
    for entity in own:
        gone += conn.execute(
            "DELETE FROM entities WHERE id = ?1"
            " AND NOT EXISTS (SELECT 1 FROM fact_entities WHERE entity = ?1)"
            " AND NOT EXISTS (SELECT 1 FROM cluster_entities WHERE entity = ?1)"
            " AND NOT EXISTS (SELECT 1 FROM entity_aliases WHERE entity = ?1)",
            (entity,),
        ).rowcount
    return gone


def _log(conn: Connection, fact_id: int) -> int:
    """Notes of the fact's entries, who asserted it, and its labels and other columns in what
    undo would need."""
    rows = conn.execute(
        "SELECT l.id, l.before FROM change_log l JOIN change_subjects x ON x.entry = l.id"
        " WHERE x.kind = ? AND x.subject = ?",
        (FACT, fact_id),
    ).fetchall()
    kept_columns = {"state", "valid_from", "valid_to", "successor", "pending", "verified_at"}
    for entry, before in rows:
        image: dict[str, Any] = json.loads(before)
        mine = image.get("facts", {}).get(str(fact_id))
        if mine is not None:
            image["facts"][str(fact_id)] = {k: v for k, v in mine.items() if k in kept_columns}
        conn.execute(
            "UPDATE change_log SET note = NULL, before = ?1, actor = CASE WHEN actor ="
            " (SELECT asserted_by FROM facts WHERE id = ?3) THEN NULL ELSE actor END"
            " WHERE id = ?2",
            (json.dumps(image, separators=(",", ":")), entry, fact_id),
        )
    return len(rows)
