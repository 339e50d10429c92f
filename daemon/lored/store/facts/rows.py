"""Rows of facts: read, insert, change what is believed. SQL of the `facts` table lives here.

A bound `LIMIT ?` makes SQLite prepare the statement anew at each call (it looks at the value,
measured: 30 us), so limits of statements that run at every call stand in their text.

Every function takes the connection of a running transaction. `id` is the internal key (also
the rowid of the text and vector index), `number` the N of `F<N>`. What is believed about a
fact (window, state, successor) is only changed through `believe`, which keeps the belief
before as a row of `fact_versions`: that is what `known_at` reads.

**For the mirror and the importers** (facts.jsonl and other memories):

- `store.facts.pipeline.place(conn, batch, statement, given=Given(...))` states a fact with a
  number, uid, times, counters, line position and foreign keys (`extra`) of its own, through
  the same clustering and indexing as any other; `collisions.find` then tells what it
  contradicts. `Given.exact=True` skips the duplicate check, so that two lines with equal text
  stay two facts.
- `changes.supersede / forget / evict / restore(conn, batch, row, ...)` change its state;
  `point_to(conn, id, ref)` keeps a `superseded_by` whose target is not here (yet).
- `renumber(conn, id, number)` gives a fact another F-number; nothing else refers to it.
- `every(conn)` yields all rows that still have a text, in the order of the file's lines.
- `erased_hashes(conn)` and `text_key(conn)`: texts that must not come back.
- `set_position`, `set_extra`, `set_counters` write the columns of the file that no rule
  depends on. None of them is a change in the sense of the revision.
- Changes since a revision: `log.facts_changed(conn, since)`.
"""

import secrets
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from lored.core.clock import Micros
from lored.core.facts import State
from lored.core.validity import Window
from lored.store.driver import Connection

COLUMNS: Final = (
    "id, number, uid, text, tags, entities, kind, source, asserted_by, source_ref, session_id,"
    " message_id, created_at, verified_at, last_accessed, access_count, valid_from, valid_to,"
    " state, successor, successor_ref, known_from, cluster, core, set_id, pending, position, extra"
)
"""A fact's columns, in the order of its fields."""

_STATES: Final = tuple(State)
IDS_AT_ONCE: Final = 500
"""Ids bound to one statement."""


@dataclass(slots=True)
class Fact:
    """One row. Instants are microseconds UTC; `tags` and `entities` as written."""

    id: int
    number: int
    uid: str
    text: str
    tags: list[str]
    entities: list[str]
    kind: str
    source: str | None
    asserted_by: str | None
    source_ref: str | None
    session_id: str | None
    message_id: str | None
    created_at: Micros
    verified_at: Micros | None
    last_accessed: Micros
    access_count: int
    valid_from: Micros
    valid_to: Micros | None
    state: State
    successor: int | None
    successor_ref: str | None
    known_from: Micros
    cluster: int
    core: int
    set_id: int | None
    pending: bool
    position: int
    extra: dict[str, Any]

    @property
    def window(self) -> Window:
        """Its validity."""
        return Window(self.valid_from, self.valid_to)


def fact_of(row: Sequence[Any]) -> Fact:
    """The fact in a row of `COLUMNS`."""
    values = list(row)
    values[4] = orjson.loads(row[4]) if row[4] != "[]" else []
    values[5] = orjson.loads(row[5]) if row[5] != "[]" else []
    values[18] = _STATES[row[18]]
    values[25] = row[25] == 1
    values[27] = orjson.loads(row[27]) if row[27] != "{}" else {}
    return Fact(*values)


def marks(values: Collection[object]) -> str:
    """`?,?,?` for a list of values."""
    return ",".join("?" * len(values))


# -- reading -------------------------------------------------------------------------------


def select(conn: Connection, condition: str, values: Sequence[object] = ()) -> list[Fact]:
    """Facts by a condition of ours (everything after WHERE; the table is named `f`)."""
    rows = conn.execute(f"SELECT {COLUMNS} FROM facts f WHERE {condition}", tuple(values))
    return [fact_of(row) for row in rows]


def by_number(conn: Connection, number: int) -> Fact | None:
    """`F<number>`, whatever its state."""
    found = select(conn, "number = ?", (number,))
    return found[0] if found else None


def by_uid(conn: Connection, uid: str) -> Fact | None:
    """The fact with this uid."""
    found = select(conn, "uid = ?", (uid,))
    return found[0] if found else None


def by_ids(conn: Connection, ids: Iterable[int]) -> dict[int, Fact]:
    """Facts by internal id; unknown ones are left out."""
    wanted = list(ids)
    found: dict[int, Fact] = {}
    for start in range(0, len(wanted), IDS_AT_ONCE):
        part = wanted[start : start + IDS_AT_ONCE]
        for fact in select(conn, f"id IN ({marks(part)})", part):
            found[fact.id] = fact
    return found


def numbers_of(conn: Connection, ids: Sequence[int]) -> dict[int, int]:
    """Internal id -> F-number."""
    rows = conn.execute(f"SELECT id, number FROM facts WHERE id IN ({marks(ids)})", tuple(ids))
    return dict(rows.fetchall())


def existing_numbers(conn: Connection, numbers: Sequence[int]) -> set[int]:
    """Which F-numbers this store has."""
    if not numbers:
        return set()
    rows = conn.execute(
        f"SELECT number FROM facts WHERE number IN ({marks(numbers)})", tuple(numbers)
    )
    return {row[0] for row in rows}


def predecessors_of(conn: Connection, ids: Sequence[int]) -> dict[int, list[int]]:
    """Internal id -> F-numbers that it replaced, oldest number first."""
    found: dict[int, list[int]] = {}
    for successor, number in conn.execute(
        f"SELECT successor, number FROM facts WHERE successor IN ({marks(ids)}) ORDER BY number",
        tuple(ids),
    ):
        found.setdefault(successor, []).append(number)
    return found


def every(conn: Connection) -> Iterator[Fact]:
    """All facts but the erased, in the order of lines in facts.jsonl."""
    rows = conn.execute(
        f"SELECT {COLUMNS} FROM facts WHERE state <> ? ORDER BY position, number",
        (State.ERASED,),
    )
    return map(fact_of, rows)


def positions(conn: Connection) -> dict[int, int]:
    """Internal id -> place of the fact's line in facts.jsonl."""
    return dict(conn.execute("SELECT id, position FROM facts").fetchall())


def count(conn: Connection) -> dict[str, int]:
    """Facts by state (`active`, `superseded`, ...), for statistics."""
    found = {state.name.lower(): 0 for state in State}
    for state, facts in conn.execute("SELECT state, count(*) FROM facts GROUP BY state"):
        found[State(state).name.lower()] = facts
    return found


# -- texts that are known ------------------------------------------------------------------


def text_key(conn: Connection) -> bytes:
    """This store's secret for `core.facts.text_hash`; made at first use by a writer."""
    row = conn.execute("SELECT value FROM meta WHERE key = 'text_key'").fetchone()
    if row is not None:
        return bytes.fromhex(row[0])
    made = secrets.token_hex(16)
    conn.execute("INSERT INTO meta(key, value) VALUES('text_key', ?)", (made,))
    return bytes.fromhex(made)


def with_hash(conn: Connection, text_hash: int) -> list[Fact]:
    """Facts whose text may be the one hashed, oldest first."""
    return select(conn, "text_hash = ? ORDER BY id", (text_hash,))


def erased_hashes(conn: Connection) -> set[int]:
    """Hashes of texts that were forgotten hard and must not be imported again."""
    rows = conn.execute("SELECT text_hash FROM facts WHERE state = ?", (State.ERASED,))
    return {row[0] for row in rows}


# -- writing -------------------------------------------------------------------------------


def next_number(conn: Connection) -> int:
    """The number of the next fact. Rows are never deleted, so none comes twice."""
    row = conn.execute("SELECT max(number) FROM facts").fetchone()
    return (row[0] or 0) + 1


_INSERT: Final = (
    "INSERT INTO facts(text_hash, "
    + COLUMNS.removeprefix("id, ")
    + f") VALUES({', '.join('?' * (COLUMNS.count(',') + 1))})"
)


def insert(conn: Connection, fact: Fact, text_hash: int) -> int:
    """Insert a row (its `id` is not looked at); returns its id."""
    cursor = conn.execute(
        _INSERT,
        (
            text_hash,
            fact.number,
            fact.uid,
            fact.text,
            _encode(fact.tags),
            _encode(fact.entities),
            fact.kind,
            fact.source,
            fact.asserted_by,
            fact.source_ref,
            fact.session_id,
            fact.message_id,
            fact.created_at,
            fact.verified_at,
            fact.last_accessed,
            fact.access_count,
            fact.valid_from,
            fact.valid_to,
            int(fact.state),
            fact.successor,
            fact.successor_ref,
            fact.known_from,
            fact.cluster,
            fact.core,
            fact.set_id,
            int(fact.pending),
            fact.position,
            _encode(fact.extra),
        ),
    )
    return int(cursor.lastrowid)


def _encode(value: Any) -> Any:
    """Lists and maps as JSON, anything else as it is."""
    if not isinstance(value, list | dict):
        return value
    return orjson.dumps(value).decode()


def believe(
    conn: Connection,
    fact: Fact,
    *,
    now: Micros,
    state: State,
    window: Window,
    successor: int | None,
) -> None:
    """Change window, state and successor of ``fact`` (also in the object); keep the belief
    before. A change within the same microsecond replaces nothing that was ever readable."""
    if now > fact.known_from:
        conn.execute(
            "INSERT OR REPLACE INTO fact_versions VALUES(?, ?, ?, ?, ?, ?, ?)",
            (
                fact.id,
                fact.known_from,
                now,
                fact.valid_from,
                fact.valid_to,
                int(fact.state),
                fact.successor,
            ),
        )
        fact.known_from = now
    fact.state, fact.successor, fact.successor_ref = state, successor, None
    fact.valid_from, fact.valid_to = window
    conn.execute(
        "UPDATE facts SET state = ?, valid_from = ?, valid_to = ?, successor = ?,"
        " successor_ref = NULL, known_from = ? WHERE id = ?",
        (int(state), *window, successor, fact.known_from, fact.id),
    )


def set_columns(conn: Connection, fact_id: int, **values: Any) -> None:
    """Update plain columns (labels, links, flags); lists are encoded here."""
    pairs = {key: _encode(value) for key, value in values.items()}
    conn.execute(
        f"UPDATE facts SET {', '.join(f'{key} = ?' for key in pairs)} WHERE id = ?",
        (*pairs.values(), fact_id),
    )


def renumber(conn: Connection, fact_id: int, number: int) -> None:
    """Give a fact another F-number; raises IntegrityError when it is taken."""
    set_columns(conn, fact_id, number=number)


def set_position(conn: Connection, fact_id: int, position: int) -> None:
    """Place of the fact's line in facts.jsonl."""
    set_columns(conn, fact_id, position=position)


def set_extra(conn: Connection, fact_id: int, extra: dict[str, Any]) -> None:
    """Keys of the file's line that are not ours."""
    set_columns(conn, fact_id, extra=extra)


def set_counters(conn: Connection, fact_id: int, last_accessed: Micros, access_count: int) -> None:
    """Counters as the file has them."""
    set_columns(conn, fact_id, last_accessed=last_accessed, access_count=access_count)


def point_to(conn: Connection, fact_id: int, ref: str | None) -> None:
    """Keep a `superseded_by` of the file whose target is not in this store."""
    set_columns(conn, fact_id, successor_ref=ref)


def count_access(conn: Connection, seen: Iterable[tuple[int, int, Micros]]) -> None:
    """Add accesses: (id, how many, the last one)."""
    conn.executemany(
        "UPDATE facts SET access_count = access_count + ?,"
        " last_accessed = max(last_accessed, ?) WHERE id = ?",
        [(count, last, fact_id) for fact_id, count, last in seen],
    )
