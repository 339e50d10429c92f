"""facts.jsonl against one facts store: the rows' side of the mirror.

`record` is a fact as a line holds it; the `mirror_lines` table keeps, per fact, the record
that both sides last agreed on. `compose` makes the file: untouched lines keep their bytes and
their place, a fact that changed here has its line rendered anew, new facts come last.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from lored.core import ids, jsonl
from lored.core.clock import SECOND, Micros, to_wire
from lored.core.facts import State
from lored.core.jsonl import Line
from lored.store.driver import Connection
from lored.store.facts import rows as facts
from lored.store.facts.rows import Fact

_SENTINELS: Final = {State.FORGOTTEN: jsonl.FORGOTTEN, State.EVICTED: jsonl.EVICTED}


def record(fact: Fact, numbers: Mapping[int, int]) -> dict[str, Any]:
    """The line's record of a fact. ``numbers`` gives F-numbers of successors by internal id."""
    superseded: str | None = None
    if fact.state in _SENTINELS:
        superseded = _SENTINELS[fact.state]
    elif fact.successor is not None and fact.state is State.SUPERSEDED:
        superseded = ids.fact(numbers[fact.successor])
    elif fact.state is State.SUPERSEDED:
        superseded = fact.successor_ref
    found: dict[str, Any] = {
        "id": ids.fact(fact.number),
        "text": fact.text,
        "tags": fact.tags,
        "source": fact.source,
        "created_at": seconds(fact.created_at),
        "last_accessed": seconds(fact.last_accessed),
        "access_count": fact.access_count,
        "superseded_by": superseded,
        "uid": fact.uid,
        "entities": fact.entities,
        "asserted_by": fact.asserted_by,
        "source_ref": fact.source_ref,
        "session_id": fact.session_id,
        "message_id": fact.message_id,
    }
    if fact.kind != "fact":
        found["kind"] = fact.kind
    if fact.valid_from // SECOND != fact.created_at // SECOND:
        found["valid_from"] = to_wire(fact.valid_from)
    if fact.valid_to is not None:
        found["valid_to"] = to_wire(fact.valid_to)
    return {**fact.extra, **found}


def seconds(at: Micros) -> str:
    """UTC, whole seconds, `Z`: the only form that Recursive parses."""
    return to_wire(at - at % SECOND)


def records(conn: Connection) -> dict[int, tuple[Fact, dict[str, Any]]]:
    """Every fact with a text and its record, by internal id, in the order of the lines."""
    rows = list(facts.every(conn))
    numbers = {fact.id: fact.number for fact in rows}
    erased = {fact.successor for fact in rows if fact.successor is not None} - set(numbers)
    numbers |= facts.numbers_of(conn, sorted(erased)) if erased else {}
    return {fact.id: (fact, record(fact, numbers)) for fact in rows}


def agreed(
    conn: Connection, only: Collection[int] | None = None
) -> dict[int, tuple[dict[str, Any], bool]]:
    """Per fact the record of the last agreement, and whether its line was in the file then;
    of all facts or of the internal ids ``only``."""
    where = "" if only is None else f" WHERE fact IN ({facts.marks(only)})"
    rows = conn.execute(f"SELECT fact, line, present FROM mirror_lines{where}", tuple(only or ()))
    return {fact: (json.loads(line), bool(present)) for fact, line, present in rows}


def agree(conn: Connection, fact_id: int, said: Mapping[str, Any], *, present: bool = True) -> None:
    """Keep what both sides say now."""
    conn.execute(
        "INSERT INTO mirror_lines(fact, line, present) VALUES(?, ?, ?)"
        " ON CONFLICT(fact) DO UPDATE SET line = excluded.line, present = excluded.present",
        (fact_id, jsonl.render(said), int(present)),
    )


def detach(conn: Connection, kept: Sequence[int]) -> int:
    """Mark facts whose line is gone from the file; returns how many are detached now."""
    conn.execute("CREATE TEMP TABLE IF NOT EXISTS kept_lines(fact INTEGER PRIMARY KEY)")
    conn.execute("DELETE FROM temp.kept_lines")
    conn.executemany("INSERT OR IGNORE INTO temp.kept_lines VALUES(?)", [(one,) for one in kept])
    conn.execute(
        "UPDATE mirror_lines SET present = 0"
        " WHERE present = 1 AND fact NOT IN (SELECT fact FROM temp.kept_lines)"
    )
    row = conn.execute("SELECT count(*) FROM mirror_lines WHERE present = 0").fetchone()
    return int(row[0])


def compose(
    conn: Connection, lines: Sequence[Line], owner: Mapping[int, int]
) -> tuple[bytes, dict[int, dict[str, Any]]]:
    """The file as it should be, and the record of each fact in it.

    ``owner`` tells which fact the line at an index belongs to; lines without an owner (damaged
    ones, repeats) stay as they are. The line of an erased fact is left out.
    """
    now, before = records(conn), agreed(conn)
    out: list[str] = []
    written: dict[int, dict[str, Any]] = {}
    for index, line in enumerate(lines):
        fact_id = owner.get(index)
        if fact_id is None:
            out.append(line.raw)
            continue
        if fact_id not in now:
            continue
        said = now[fact_id][1]
        base = before.get(fact_id)
        if base is not None and jsonl.same(base[0], said):
            out.append(line.raw)
        else:
            out.append(jsonl.render({**(line.record or {}), **said}))
        written[fact_id] = said
    for fact_id, (_, said) in now.items():
        base = before.get(fact_id)
        if fact_id in written or (base and not base[1] and jsonl.same(base[0], said)):
            continue
        out.append(jsonl.render(said))
        written[fact_id] = said
    return jsonl.join(out), written


class Unsettled(NamedTuple):
    """What a file that was written says of a fact and the store does not know yet: the record
    that both agree on now (None: as before), the place of its line (None: as before)."""

    fact: int
    said: Mapping[str, Any] | None
    place: int | None


def unsettled(conn: Connection, written: Mapping[int, Mapping[str, Any]]) -> list[Unsettled]:
    """What `settle` has to keep of the records in the file; little after one statement, however
    many facts there are."""
    rows = conn.execute("SELECT fact, line FROM mirror_lines WHERE present = 1")
    before: dict[int, str] = dict(rows.fetchall())
    places = facts.positions(conn)
    found = []
    for place, (fact_id, said) in enumerate(written.items()):
        same, here = before.get(fact_id) == jsonl.render(said), places.get(fact_id) == place
        if not same or not here:
            found.append(Unsettled(fact_id, None if same else said, None if here else place))
    return found


def settle(conn: Connection, news: Sequence[Unsettled]) -> None:
    """After the file was written: both sides agree on these records and places."""
    for one in news:
        if one.said is not None:
            agree(conn, one.fact, one.said)
        if one.place is not None:
            facts.set_position(conn, one.fact, one.place)


def remove(conn: Connection, fact_id: int) -> None:
    """Drop what the mirror keeps of a fact that is erased."""
    conn.execute("DELETE FROM mirror_lines WHERE fact = ?", (fact_id,))


def owners(conn: Connection, lines: Sequence[Line]) -> dict[int, int] | None:
    """Which fact each line belongs to when the file says nothing new since the last agreement;
    None when it does, so that it must be taken in. Needs no write."""
    before = agreed(conn)
    by_number: dict[int, int] = dict(
        conn.execute("SELECT f.number, f.id FROM facts f JOIN mirror_lines m ON m.fact = f.id")
    )
    owner: dict[int, int] = {}
    seen: set[int] = set()
    for index, line in enumerate(lines):
        if line.record is None:
            continue
        fact_id = by_number.get(jsonl.number(line.record["id"]))
        if fact_id is None or fact_id in seen or not before[fact_id][1]:
            return None
        if jsonl.changed_fields(before[fact_id][0], line.record):
            return None
        seen.add(fact_id)
        owner[index] = fact_id
    present = {fact_id for fact_id, (_, here) in before.items() if here}
    return owner if present <= seen else None


def unknown_texts(conn: Connection, texts: Sequence[str]) -> list[str]:
    """The texts that no fact of this store has."""
    known = {row[0] for row in conn.execute("SELECT text FROM facts")}
    return [text for text in texts if text not in known]
