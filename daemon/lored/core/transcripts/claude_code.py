"""Claude Code: `<root>/projects/<slug>/<session>.jsonl`, all versions from 1.0.

Chain lines carry `uuid` and what was said; metadata lines do not. Facts that are easy to get
wrong:

- One answer of the model is several lines with equal `message.id`, one block each, the usage
  repeated with growing output: the last usage counts, once per message id.
- Subagents: files `agent-<id>.jsonl` (in `<session>/subagents/` or beside the parent), or
  lines with `isSidechain` in the parent's file (1.0). Their `sessionId` is the parent's.
- A fork replays old lines with unchanged uuid under a new `sessionId`: message keys are uuids,
  so copies are recognised.
- A `summary` line names another session's title: the session that owns `leafUuid`.
- Tokens as stored: `input` excludes what came from or went to the cache.
"""

from collections.abc import Iterable
from typing import Any, Final

from lored.core.transcripts.claude_lines import (
    read_assistant,
    read_attachment,
    read_system,
    read_user,
)
from lored.core.transcripts.claude_sessions import (
    line_session,
    parse_history,
    session_of_path,
    side_files,
)
from lored.core.transcripts.knowledge import (
    learn,
    learn_first,
    learn_time,
)
from lored.core.transcripts.lines import (
    attempt,
    decode_document,
    decode_line,
    kind_of,
    unknown_type,
)
from lored.core.transcripts.records import (
    Record,
    SessionPatch,
)
from lored.core.transcripts.stamps import instant
from lored.core.transcripts.texts import (
    names_in,
    text_or_none,
    title_of,
)

_PROGRESS: Final = b'"type":"progress","data":{"type":"'
_SNAPSHOT: Final = b'{"type":"file-history-snapshot"'
_STAMP: Final = b'"timestamp":"'
_PREFIX: Final = 1_024
"""Within it the type of a `progress` line stands: behind ids, cwd, version and branch."""
_MARKS: Final = frozenset({"uuid", "sessionId", "leafUuid", "messageId"})
_RANKED: Final = 32
"""Sessions of one file whose title's rank is remembered."""
_QUIET_TYPES: Final = names_in(
    """
    progress file-history-snapshot last-prompt queue-operation mode permission-mode agent-name
    agent-setting worktree-state tag bridge-session frame-link started result
    attribution-snapshot content-replacement file-history-delta
    """
)


class ClaudeCode:
    """Line parser of Claude Code's transcripts."""

    agent = "claude-code"
    version = 1

    def session_id(self, path: str, head: bytes) -> str | None:
        """`<session>` or, for subagents, `<parent session>/<agent id>`."""
        return session_of_path(path, head)

    def begin(self, path: str) -> dict[str, Any]:
        return {"session": session_of_path(path, b"") or "", "usage": {}}

    def sidecars(self, path: str) -> list[str]:
        """The `.meta.json` of a subagent."""
        return side_files(path)

    def parse_sidecar(self, path: str, data: bytes) -> Iterable[Record]:
        if path.endswith("history.jsonl"):
            return parse_history(data)
        value, damage = decode_document(data)
        if not isinstance(value, dict):
            return damage
        extra = {
            name: text
            for name in ("agentType", "description", "name", "toolUseId", "parentAgentId")
            if (text := text_or_none(value.get(name), 500))
        }
        title = title_of(extra.get("description", "")) or text_or_none(extra.get("agentType"))
        return [*damage, SessionPatch(is_subagent=True, title=title, extra=extra)]

    def parse(self, state: dict[str, Any], line: bytes, offset: int) -> Iterable[Record]:
        head = line[:_PREFIX]
        quiet = _PROGRESS in head or head.startswith(_SNAPSHOT)
        if quiet and line.endswith(b"}") and b"}{" not in line:
            # The largest share of bytes: hook chatter and whole subagent messages that have
            # files of their own. Damaged ones are parsed, for what is glued behind them.
            return _time_only(state, line)
        objects, damage = decode_line(line, offset, _MARKS)
        records: list[Record] = list(damage)
        for index, item in enumerate(objects):
            attempt(records, offset, _record, state, item, offset + index, records)
        return records


def _time_only(state: dict[str, Any], line: bytes) -> list[Record]:
    """The time of a chain line that is not parsed: its own stands behind those within it."""
    out: list[Record] = []
    at = line.rfind(_STAMP)
    if at > 0 and state["session"] and not line.startswith(_SNAPSHOT):
        start = at + len(_STAMP)
        stamp = line[start : start + 24].decode("ascii", "replace")
        learn_time(state, out, instant(stamp))
    return out


def _record(state: dict[str, Any], item: dict[str, Any], offset: int, out: list[Record]) -> None:
    kind = kind_of(item)
    if kind in ("user", "assistant", "attachment", "system"):
        _chain(state, item, kind, offset, out)
    elif kind == "custom-title":
        _title(state, item, "customTitle", 3, out)
    elif kind == "ai-title":
        _title(state, item, "aiTitle", 2, out)
    elif kind == "summary":
        _summary(item, out)
    elif kind == "pr-link":
        url = text_or_none(item.get("prUrl"), 500) or text_or_none(item.get("url"), 500)
        if url:
            learn(state, out, line_session(state, item, out), extra={"pr": url})
    elif kind not in _QUIET_TYPES:
        out.append(unknown_type(kind, offset))


def _chain(
    state: dict[str, Any], item: dict[str, Any], kind: str, offset: int, out: list[Record]
) -> None:
    at = instant(item.get("timestamp"))
    session = line_session(state, item, out)
    learn_time(state, out, at, session)
    branch = item.get("gitBranch")
    learn_first(
        state,
        out,
        session,
        cwd=text_or_none(item.get("cwd")),
        branch=text_or_none(branch, 500) if branch != "HEAD" else None,
    )
    learn(state, out, session, agent_version=text_or_none(item.get("version"), 60))
    uuid = item.get("uuid")
    key = uuid[:100] if isinstance(uuid, str) and uuid else f"{state['session']}:{offset}"
    if kind == "user":
        read_user(state, item, key, at, session, out)
    elif kind == "assistant":
        read_assistant(state, item, key, at, session, out)
    elif kind == "attachment":
        read_attachment(state, item, key, at, session, offset, out)
    else:
        read_system(state, item, key, at, session, offset, out)


def _title(
    state: dict[str, Any], item: dict[str, Any], name: str, rank: int, out: list[Record]
) -> None:
    """A person's title (rank 3) beats the model's (rank 2), whichever comes last."""
    title = title_of(item[name]) if isinstance(item.get(name), str) else None
    session = line_session(state, item, out)
    ranks: dict[str, int] = state.setdefault("ranks", {})
    if title and rank >= ranks.get(session or "", 0):
        ranks[session or ""] = rank
        while len(ranks) > _RANKED:
            del ranks[next(iter(ranks))]
        learn(state, out, session, title=title)


def _summary(item: dict[str, Any], out: list[Record]) -> None:
    leaf, title = item.get("leafUuid"), item.get("summary")
    told = title_of(title) if isinstance(title, str) else None
    if isinstance(leaf, str) and told:
        out.append(SessionPatch(titles={leaf[:100]: told}))


PARSER = ClaudeCode()
