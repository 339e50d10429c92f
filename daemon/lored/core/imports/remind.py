"""Remind's rows as statements of ours (0.12 keeps them in SQLite, 0.14 in JSON files).

Both have the same tables: facts, episodes, concepts, conflicts. A fact episode is the source
of a fact row and not taken twice. Other episodes become facts of their own kind where we have
it, else notes; concepts that are not fact clusters (a model's generalisations) become notes.
Times are naive local times (Remind writes `datetime.now()`), read in the caller's zone.
Entities keep Remind's `type:name`.
"""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime, tzinfo
from typing import Any, Final

from lored.core.clock import Micros, to_micros
from lored.core.facts import STORED_KINDS, Statement
from lored.core.imports.incoming import Contradiction, Harvest, Incoming

_SEVERITIES: Final = ("low", "medium", "high")

Rows = Mapping[str, Iterable[Mapping[str, Any]]]
"""Table name -> rows; JSON columns may be text, and text within text (0.12 encodes twice)."""


def read(rows: Rows, zone: tzinfo) -> Harvest:
    """All facts, notes and open conflicts of a Remind store."""
    harvest = Harvest("remind")
    sources = set()
    for row in rows.get("facts", ()):
        incoming = _fact(row, zone, harvest)
        if incoming is not None:
            harvest.facts.append(incoming)
            sources.add(row.get("source_episode_id"))
    for row in rows.get("episodes", ()):
        data = {**row, **_map(row.get("data"))}
        if data.get("id") not in sources and not data.get("deleted_at"):
            _add(harvest, _episode(data, zone), data)
    for row in rows.get("concepts", ()):
        data = {**row, **_map(row.get("data"))}
        if data.get("concept_type") not in ("fact_cluster", "fact") and not data.get("deleted_at"):
            _add(harvest, _concept(data, zone), data)
    for row in rows.get("conflicts", ()):
        if row.get("status") == "open" and row.get("fact_a_id") and row.get("fact_b_id"):
            severity = row.get("severity")
            harvest.conflicts.append(
                Contradiction(
                    str(row["fact_a_id"]),
                    str(row["fact_b_id"]),
                    severity if severity in _SEVERITIES else "medium",
                    _text(row.get("description")) or None,
                )
            )
    return harvest


def _add(harvest: Harvest, incoming: Incoming | None, data: Mapping[str, Any]) -> None:
    if incoming is None:
        harvest.problems.append(f"{data.get('id')} has no text")
    else:
        harvest.facts.append(incoming)


def _fact(row: Mapping[str, Any], zone: tzinfo, harvest: Harvest) -> Incoming | None:
    text = _text(row.get("statement"))
    if not text.strip():
        harvest.problems.append(f"fact {row.get('id')} has no statement")
        return None
    superseded = row.get("superseded_by")
    statement = Statement(
        text=text,
        entities=_names(row.get("entity_ids")),
        asserted_by=_text(row.get("asserted_by")) or None,
        source_ref=_text(row.get("source_ref")) or None,
        source="remind",
        valid_from=_instant(row.get("valid_from"), zone),
        valid_to=None if superseded else _instant(row.get("valid_to"), zone),
    )
    return Incoming(
        key=str(row["id"]),
        uid=f"remind-{row['id']}",
        statement=statement,
        created_at=_instant(row.get("created_at"), zone),
        superseded_by=str(superseded) if superseded else None,
    )


def _episode(data: Mapping[str, Any], zone: tzinfo) -> Incoming | None:
    text = _text(data.get("content"))
    if not text.strip():
        return None
    kind = _text(data.get("episode_type")).lower()
    return Incoming(
        key=str(data["id"]),
        uid=f"remind-{data['id']}",
        statement=Statement(
            text=text,
            entities=_names(data.get("entity_ids")),
            kind=kind if kind in STORED_KINDS else "note",
            asserted_by=_text(data.get("asserted_by")) or None,
            source_ref=_text(data.get("source_ref")) or None,
            source="remind",
        ),
        created_at=_instant(data.get("created_at") or data.get("timestamp"), zone),
    )


def _concept(data: Mapping[str, Any], zone: tzinfo) -> Incoming | None:
    parts = [_text(data.get("title")), _text(data.get("summary"))]
    text = ": ".join(part for part in parts if part.strip())
    if not text:
        return None
    tags = data.get("tags")
    return Incoming(
        key=str(data["id"]),
        uid=f"remind-{data['id']}",
        statement=Statement(
            text=text,
            tags=[tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else [],
            entities=_names(data.get("entity_ids")),
            kind="note",
            source="remind concept",
        ),
        created_at=_instant(data.get("created_at"), zone),
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _decoded(value: object) -> object:
    for _ in range(2):
        if isinstance(value, str | bytes):
            try:
                value = json.loads(value)
            except ValueError:
                return None
    return value


def _map(value: object) -> dict[str, Any]:
    found = _decoded(value)
    return found if isinstance(found, dict) else {}


def _names(value: object) -> list[str]:
    found = _decoded(value) if isinstance(value, str) else value
    return [one for one in found if isinstance(one, str)] if isinstance(found, list) else []


def _instant(value: object, zone: tzinfo) -> Micros | None:
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return to_micros(moment if moment.tzinfo else moment.replace(tzinfo=zone))
