"""Undo: put back what an entry of the change log says was there before.

An entry can be undone while no later one that still stands is about the same things; else
the answer names those. What is put back is believed from now on: `known_at` still shows what
was believed in between. The undo is an entry itself, and can be undone.
"""

from typing import Any

from lore.errors import Conflict as Refused
from lored.core import ids
from lored.core.facts import State
from lored.core.validity import Window
from lored.store.driver import Connection
from lored.store.facts import conflicts, log, merge
from lored.store.facts import rows as facts
from lored.store.facts.log import Batch, Entry
from lored.store.facts.pipeline import Rules, relabel
from lored.store.facts.rows import Fact

_BELIEF = ("state", "valid_from", "valid_to", "successor", "successor_ref")
_FINAL = {"erase": "what was forgotten for good has no text any more"}


def undo(conn: Connection, batch: Batch, entry: Entry, *, rules: Rules) -> int:
    """Take ``entry`` back; returns the new entry. Raises `Conflict` with the reason."""
    name = ids.spell("log", entry.id)
    if entry.op in _FINAL:
        raise Refused(f"{name} ({entry.op}) cannot be undone: {_FINAL[entry.op]}")
    if entry.undone_by is not None:
        raise Refused(f"{name} is undone already, by {ids.spell('log', entry.undone_by)}")
    blocking = log.later(conn, entry)
    if blocking:
        names = ", ".join(f"{ids.spell('log', one.id)} ({one.op})" for one in blocking[:5])
        raise Refused(f"{name} cannot be undone before what came after it: {names}")
    now_rows = _reverse(conn, batch, entry.before, rules)
    number = batch.log(
        conn,
        "undo",
        facts=[subject for kind, subject in entry.subjects if kind == log.FACT],
        conflicts=[subject for kind, subject in entry.subjects if kind == log.CONFLICT],
        entities=[subject for kind, subject in entry.subjects if kind == log.ENTITY],
        before=now_rows,
        note=f"{entry.op} {name}",
    )
    log.mark_undone(conn, entry, number)
    return number


def _reverse(
    conn: Connection, batch: Batch, before: dict[str, Any], rules: Rules
) -> dict[str, Any]:
    """Put ``before`` back and return what it replaced, in the same form."""
    found: dict[str, Any] = {"facts": {}, "conflicts": {}}
    if "merge" in before:
        found["split"] = before["merge"]
        merge.split(conn, before["merge"])
    if "split" in before:
        found["merge"] = merge.merge_again(conn, before["split"], batch.now)
    created = facts.by_ids(conn, before.get("created", ()))
    for fact in created.values():
        found["facts"][str(fact.id)] = log.image(fact)
        _put(conn, batch, fact, {"state": int(State.FORGOTTEN), "pending": 0}, rules)
    images = before.get("facts", {})
    rows = facts.by_ids(conn, map(int, images))
    for key, image in images.items():
        fact = rows[int(key)]
        found["facts"][key] = log.image(fact, *image)
        _put(conn, batch, fact, image, rules)
    for key, image in before.get("conflicts", {}).items():
        found["conflicts"][key] = _settle(conn, int(key), image)
    for key in before.get("opened", {}):
        image = {
            "status": conflicts.DISMISSED,
            "resolved_at": batch.now,
            "resolved_by": batch.actor,
            "resolution": "undone",
            "winner": None,
        }
        found["conflicts"][key] = _settle(conn, int(key), image)
    return found


def _settle(conn: Connection, number: int, image: dict[str, Any]) -> dict[str, Any]:
    one = conflicts.by_id(conn, number)
    if one is None:
        raise Refused(f"{ids.spell('conflict', number)} does not exist any more")
    conflicts.settle(
        conn,
        number,
        status=image["status"],
        now=image["resolved_at"],
        by=image["resolved_by"],
        resolution=image["resolution"],
        winner=image["winner"],
    )
    return one.image()


def _put(conn: Connection, batch: Batch, fact: Fact, image: dict[str, Any], rules: Rules) -> None:
    """Write the columns of ``image`` into ``fact``."""
    if fact.state is State.ERASED:
        raise Refused(f"{ids.fact(fact.number)} was forgotten for good")
    if "state" in image:
        facts.believe(
            conn,
            fact,
            now=batch.now,
            state=State(image["state"]),
            window=Window(
                image.get("valid_from", fact.valid_from), image.get("valid_to", fact.valid_to)
            ),
            successor=image.get("successor", fact.successor),
        )
        if image.get("successor_ref"):
            facts.point_to(conn, fact.id, image["successor_ref"])
    if "tags" in image:
        relabel(
            conn,
            fact,
            image["tags"],
            image["entities"],
            rules=rules,
            now=batch.now,
            cluster=image.get("cluster"),
        )
    plain = {name: image[name] for name in image if name not in (*_BELIEF, *log.LABELS)}
    if plain:
        facts.set_columns(conn, fact.id, **plain)
