"""A facts.jsonl of Recursive, or an export of ours (the same record)."""

from hashlib import blake2b

from lored.core import jsonl
from lored.core.clock import parse_instant
from lored.core.facts import STORED_KINDS, Statement
from lored.core.imports.incoming import Harvest, Incoming


def read(data: bytes) -> Harvest:
    """Every usable line; the others are problems. Two lines with one id are two facts: links
    mean the first, as upstream's look-up does."""
    harvest = Harvest("recursive")
    seen: set[str] = set()
    for line in jsonl.parse(data):
        record = line.record
        if record is None:
            harvest.problems.append(line.problem or "unusable line")
            continue
        number = jsonl.number(record["id"])
        key = f"F{number}"
        if key in seen:
            key = f"{key}#{len(harvest.facts)}"
            harvest.problems.append(f"{record['id']} stands twice; the second gets a new number")
        seen.add(key)
        entities = record.get("entities")
        statement = Statement(
            text=record["text"],
            tags=list(record["tags"]),
            entities=[one for one in entities if isinstance(one, str)]
            if isinstance(entities, list)
            else [],
            kind=record["kind"] if record.get("kind") in STORED_KINDS else "fact",
            source=record["source"],
            valid_from=parse_instant(record.get("valid_from")),
            valid_to=parse_instant(record.get("valid_to")),
        )
        for name in ("asserted_by", "source_ref", "session_id", "message_id"):
            if isinstance(record.get(name), str):
                setattr(statement, name, record[name])
        uid = record.get("uid")
        harvest.facts.append(
            Incoming(
                key=key,
                uid=uid if isinstance(uid, str) and uid else _uid(record["text"], record),
                statement=statement,
                created_at=parse_instant(record["created_at"]),
                last_accessed=parse_instant(record["last_accessed"]),
                access_count=min(record["access_count"], 1 << 53),
                superseded_by=record["superseded_by"],
                number=number,
            )
        )
    return harvest


def _uid(text: str, record: dict[str, object]) -> str:
    """The same for the same line wherever it is read."""
    said = f"{record['created_at']}\0{text}".encode()
    return "r" + blake2b(said, digest_size=12).hexdigest()
