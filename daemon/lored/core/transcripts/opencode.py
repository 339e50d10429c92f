"""opencode: `opencode.db`, version 1 (1.2 to 1.18) and version 2 (from 2.0).

Rows are updated in place and deleted by a revert. What changed is found through the sessions'
update time, the messages' update time and the rows added since; of a changed session only the
messages updated since are told again. Version 2 is recognised by its tables and goes before
the stale copy in version 1's.
"""

from collections.abc import Iterable
from typing import Any, Final

from lored.core.transcripts import opencode_records as records
from lored.core.transcripts.calls import statement
from lored.core.transcripts.conversation import plain_words, say
from lored.core.transcripts.databases import columns, decoded, row_of
from lored.core.transcripts.lines import attempt, unknown_type
from lored.core.transcripts.records import Action, Damage, Message, Record, SessionPatch
from lored.core.transcripts.stamps import instant
from lored.core.transcripts.texts import excerpt, flat_text, text_or_none

OVERLAP_MS: Final = 2_000
"""Updates so shortly before the last look are looked at again: times are the writer's."""
_QUIET: Final = frozenset(
    {
        "system",
        "model-switched",
        "agent-switched",
        "location-switched",
        "idle",
        "skill",
        "retry",
        "error",
    }
)
_CHANGED_1: Final = (
    "SELECT id, time_updated FROM session WHERE time_updated >= :since OR id IN"
    " (SELECT session_id FROM message WHERE time_updated >= :since) OR id IN"
    " (SELECT session_id FROM part WHERE rowid > :row) ORDER BY time_updated"
)
_CHANGED_2: Final = (
    "SELECT s.id, s.time_updated FROM session_v2 s WHERE s.time_updated >= :since OR s.id IN"
    " (SELECT session_id FROM session_message WHERE time_updated >= :since) ORDER BY s.time_updated"
)


class OpencodeDatabase:
    """Database parser of `opencode.db`."""

    agent = "opencode"
    version = 1

    def session_id(self, path: str, head: bytes) -> str | None:
        return None

    def parse_database(
        self, connection: Any, watermark: dict[str, Any]
    ) -> Iterable[tuple[str, list[Record], dict[str, Any]]]:
        tables = columns(connection)
        mark: dict[str, Any] = {"v1": 0, "v2": 0, "part": 0, **watermark}
        second = "session_v2" in tables and "session_message" in tables
        if second:
            since = mark["v2"]
            for name, updated in connection.execute(_CHANGED_2, {"since": since}).fetchall():
                out, latest = _read_2(connection, tables, name, since)
                mark["v2"] = max(mark["v2"], number(updated) - OVERLAP_MS, latest - OVERLAP_MS)
                if out and isinstance(name, str):
                    yield name, out, dict(mark)
        if not {"session", "message", "part"} <= tables.keys():
            return
        newer = (
            {row[0] for row in connection.execute("SELECT id FROM session_v2")} if second else set()
        )
        since, rows = mark["v1"], mark["part"]
        for name, updated in connection.execute(
            _CHANGED_1, {"since": since, "row": rows}
        ).fetchall():
            if name in newer:
                continue
            out, latest, largest = _read_1(connection, tables, name, since, rows)
            mark["v1"] = max(mark["v1"], number(updated) - OVERLAP_MS, latest - OVERLAP_MS)
            mark["part"] = max(mark["part"], largest)
            if out and isinstance(name, str):
                yield name, out, dict(mark)


def number(value: Any) -> int:
    """A time of a row (ms); a column may hold anything."""
    return value if type(value) is int and 0 <= value < 1 << 62 else 0


def _header(row: dict[str, Any], out: list[Record]) -> bool:
    """Adds the session's patch; whether it is a subagent's."""
    row = {**row, "model": decoded(row.get("model")) or row.get("model")}
    out.extend(records.header(row))
    return bool(row.get("parent_id"))


def _read_1(
    connection: Any, tables: dict[str, set[str]], name: str, since: int, rows: int
) -> tuple[list[Record], int, int]:
    """Records of a version 1 session, latest update (ms) and largest row of its parts."""
    out: list[Record] = []
    state: dict[str, Any] = {"session": name}
    row = row_of(connection, tables, "session", "id = ?", (name,))
    machine = _header(row, out)
    latest = largest = 0
    first: dict[str, str] = {}
    cursor = connection.execute(
        "SELECT id, time_updated, data FROM message WHERE session_id = :name AND"
        " (time_updated >= :since OR id IN"
        "  (SELECT message_id FROM part WHERE session_id = :name AND rowid > :row))"
        " ORDER BY time_created, id",
        {"name": name, "since": since, "row": rows},
    )
    for message_id, updated, data in cursor.fetchall():
        latest = max(latest, number(updated))
        message = decoded(data)
        if not isinstance(message, dict):
            out.append(Damage("json"))
            continue
        made = len(out)
        for part_id, row_id, text in connection.execute(
            "SELECT id, rowid, data FROM part WHERE message_id = ? ORDER BY id", (message_id,)
        ):
            largest = max(largest, row_id)
            item = decoded(text)
            if isinstance(item, dict):
                attempt(out, 0, _part, state, message, item, message_id, part_id, machine, out)
            else:
                out.append(Damage("json"))
        key = next((r.key for r in out[made:] if isinstance(r, Message)), None)
        if key:
            first[message_id] = key
    _totals(connection, name, row, out)
    out.extend(records.revert({"revert": decoded(row.get("revert"))}, first))
    return out, latest, largest


def _part(
    state: dict[str, Any],
    message: dict[str, Any],
    item: dict[str, Any],
    message_id: str,
    part_id: str,
    machine: bool,
    out: list[Record],
) -> None:
    times = message.get("time")
    at = instant(times.get("created")) if isinstance(times, dict) else None
    role = "assistant" if message.get("role") == "assistant" else "user"
    if role == "assistant" and message.get("summary") is True and item.get("type") == "text":
        records.summary(out, message_id, flat_text(item.get("text")), at)
        return
    records.part(
        state,
        item,
        role,
        out,
        part_id=part_id,
        message_id=message_id,
        model=records.model_of(message),
        at=at,
        machine=machine,
    )


def _totals(connection: Any, name: str, row: dict[str, Any], out: list[Record]) -> None:
    """Model, cost, tokens and status from the messages, where the session's row has none."""
    patch = SessionPatch()
    cost = 0.0
    for (data,) in connection.execute(
        "SELECT data FROM message WHERE session_id = ? ORDER BY time_created, id", (name,)
    ):
        message = decoded(data)
        if not isinstance(message, dict) or message.get("role") != "assistant":
            continue
        patch.model = records.model_of(message) or patch.model
        spent = message.get("cost")
        cost += spent if isinstance(spent, int | float) and 0 < spent < 1e6 else 0
        for field, count in _counts(message.get("tokens")).items():
            patch.tokens[field] = patch.tokens.get(field, 0) + count
        if message.get("finish") == "stop":
            patch.status = "completed"
        elif message.get("error"):
            patch.status = "failed"
    if any(row.get(f"tokens_{field}") for field in ("input", "output")):
        patch.tokens = {}
    if cost and not row.get("cost"):
        patch.cost_usd = round(cost, 9)
    out.append(patch)


def _counts(tokens: Any) -> dict[str, int]:
    if not isinstance(tokens, dict):
        return {}
    cache = tokens.get("cache")
    cache = cache if isinstance(cache, dict) else {}
    counts = {
        "input": tokens.get("input"),
        "output": tokens.get("output"),
        "reasoning": tokens.get("reasoning"),
        "cache_read": cache.get("read"),
        "cache_write": cache.get("write"),
    }
    return {name: n for name, n in counts.items() if type(n) is int and 0 < n < 1 << 62}


def _read_2(
    connection: Any, tables: dict[str, set[str]], name: str, since: int
) -> tuple[list[Record], int]:
    """Records of a version 2 session, and its latest update (ms)."""
    out: list[Record] = []
    state: dict[str, Any] = {"session": name}
    row = row_of(connection, tables, "session_v2", "id = ?", (name,))
    machine = _header(row, out)
    latest = 0
    first: dict[str, str] = {}
    totals: dict[str, int] = {}
    patch = SessionPatch()
    for message_id, kind, updated, data in connection.execute(
        "SELECT id, type, time_updated, data FROM session_message WHERE session_id = ?"
        " ORDER BY seq",
        (name,),
    ):
        latest = max(latest, number(updated))
        item = decoded(data)
        if not isinstance(item, dict):
            out.append(Damage("json"))
            continue
        if kind == "assistant":
            patch.model = records.model_of(item.get("model")) or patch.model
            if item.get("finish") in ("stop", "error"):
                patch.status = "completed" if item["finish"] == "stop" else "failed"
            for field, count in _counts(item.get("tokens")).items():
                totals[field] = totals.get(field, 0) + count
        if number(updated) >= since:
            made = len(out)
            attempt(out, 0, _message_2, state, kind, message_id, item, machine, out)
            key = next((r.key for r in out[made:] if isinstance(r, Message)), None)
            if key:
                first[message_id] = key
    if not any(row.get(f"tokens_{field}") for field in ("input", "output")):
        patch.tokens = totals
    out.append(patch)
    out.extend(records.revert({"revert": decoded(row.get("revert"))}, first))
    return out, latest


def _message_2(
    state: dict[str, Any],
    kind: Any,
    message_id: Any,
    item: dict[str, Any],
    machine: bool,
    out: list[Record],
) -> None:
    times = item.get("time")
    times = times if isinstance(times, dict) else {}
    at = instant(times.get("created"))
    if kind in ("user", "synthetic"):
        text = flat_text(item.get("text"))
        role, words = plain_words(text)
        injected = kind == "synthetic" or machine
        key = records.message_key(message_id, text, state["session"])
        say(state, out, "context" if injected else role, key, words, at=at)
    elif kind == "assistant":
        _assistant_2(state, message_id, item, times, at, out)
    elif kind == "compaction":
        records.summary(out, message_id, flat_text(item.get("summary")), at)
    elif kind == "shell":
        output = flat_text(item.get("output"))
        command = text_or_none(item.get("command"), 4_000)
        out.append(
            Action(
                str(message_id)[:100],
                "command",
                "user-shell",
                command=command,
                status="unknown",
                started_at=at,
                output_excerpt=excerpt(output) or None,
                extra=statement("user-shell", None, command),
            )
        )
    elif kind not in _QUIET:
        out.append(unknown_type(kind, 0))


def _assistant_2(
    state: dict[str, Any],
    message_id: Any,
    item: dict[str, Any],
    times: dict[str, Any],
    at: str | None,
    out: list[Record],
) -> None:
    content = item.get("content")
    for index, block in enumerate(content if isinstance(content, list) else []):
        if not isinstance(block, dict):
            continue
        if block.get("type") == "text" and times.get("completed"):
            text = flat_text(block.get("text"))
            key = records.message_key(message_id, text, f"{state['session']}:{index}")
            model = records.model_of(item.get("model"))
            say(state, out, "assistant", key, text, at=at, model=model)
        elif block.get("type") == "tool":
            records.tool(
                state,
                out,
                block.get("id"),
                block.get("name"),
                block.get("state"),
                fallback=f"{message_id}#{index}",
                at=at,
                times=block.get("time"),
            )


DATABASE = OpencodeDatabase()
