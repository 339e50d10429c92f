"""Claude Code: to which session a file, or one line of it, belongs."""

import re
from typing import Any, Final

from lored.core.transcripts.knowledge import learn, learn_first
from lored.core.transcripts.lines import decode_line
from lored.core.transcripts.records import Damage, Message, Record, SessionPatch
from lored.core.transcripts.stamps import instant
from lored.core.transcripts.texts import keep, text_or_none

CHAINS: Final = 128
"""Ends of inline sidechains that are remembered: several run at once, each a chain of
`parentUuid`."""
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_AGENT: Final = re.compile(r"agent-([\w.-]{1,80})\.jsonl$")
_SESSION: Final = re.compile(rb'"sessionId"\s*:\s*"([^"\\]{1,100})"')


def session_of_path(path: str, head: bytes) -> str | None:
    """Native session id of a file; None for what is no transcript (workflow journals, and flat
    agent files that do not name their parent yet)."""
    parts = path.replace("\\", "/").split("/")
    name = parts[-1]
    if not name.endswith(".jsonl") or name in ("journal.jsonl", "history.jsonl"):
        return None
    agent = _AGENT.fullmatch(name)
    if agent:
        if "subagents" in parts:
            at = len(parts) - 1 - parts[::-1].index("subagents")
            return f"{parts[at - 1]}/{agent[1]}" if at > 0 else None
        parent = _SESSION.search(head)
        return f"{parent[1].decode('utf-8', 'replace')}/{agent[1]}" if parent else None
    stem = name.removesuffix(".jsonl")
    if _UUID.fullmatch(stem):
        return stem
    named = _SESSION.search(head)
    return named[1].decode("utf-8", "replace") if named else stem


def side_files(path: str) -> list[str]:
    """`agent-<id>.meta.json` beside a subagent's transcript."""
    return [path.removesuffix(".jsonl") + ".meta.json"] if _AGENT.search(path) else []


def line_session(state: dict[str, Any], item: dict[str, Any], out: list[Record]) -> str | None:
    """The session of one line: None = the file's own, else its native id. The line's own
    `sessionId` is right even when the line stands in another session's file."""
    native = item.get("sessionId")
    native = native[:100] if isinstance(native, str) and native else state["session"]
    if not item.get("isSidechain"):
        if not state["session"]:
            state["session"] = native
        return None if native == state["session"] else native
    agent = item.get("agentId")
    parent, _, own_agent = state["session"].partition("/")
    if own_agent and agent == own_agent:  # workflow agents write `<parent>#<agent>` as session
        learn_first(state, out, None, is_subagent=True, parent=parent)
        return None
    if isinstance(agent, str) and agent:
        session = f"{native}/{agent[:80]}"
    else:
        session = f"{native}/{_chain(state, item)}"
    if not state["session"]:
        state["session"] = session
    name = None if session == state["session"] else session
    learn_first(state, out, name, is_subagent=True, parent=native)
    return name


def _chain(state: dict[str, Any], item: dict[str, Any]) -> str:
    """Name of the inline sidechain that a line continues: the first uuid of its chain."""
    uuid, parent = item.get("uuid"), item.get("parentUuid")
    chains: dict[str, str] = state.setdefault("chains", {})
    name = chains.get(parent) if isinstance(parent, str) else None
    if name is None:
        name = uuid[:8] if isinstance(uuid, str) and uuid else "sidechain"
    if isinstance(uuid, str):
        chains[uuid[:100]] = name
        while len(chains) > CHAINS:
            del chains[next(iter(chains))]
    return name


def parse_history(data: bytes) -> list[Record]:
    """`history.jsonl`: the prompts of every session, which outlive its transcript. Marked
    `side_channel`: to be stored only for sessions whose transcript is gone."""
    out: list[Record] = []
    state: dict[str, Any] = {"session": ""}
    offset = 0
    for line in data.split(b"\n"):
        objects, damage = decode_line(line, offset) if line.strip() else ([], [])
        out.extend(d for d in damage if isinstance(d, Damage))
        for item in objects:
            session, words = item.get("sessionId"), item.get("display")
            if not isinstance(session, str) or not isinstance(words, str) or not words.strip():
                continue
            at = instant(item.get("timestamp"))
            kept, dropped = keep(words)
            key = f"history:{session}:{item.get('timestamp')}"
            learn(
                state,
                out,
                session,
                cwd=text_or_none(item.get("project")),
                extra={"side_channel": True},
            )
            if at:
                out.append(SessionPatch(session=session, started_at=at, ended_at=at))
            out.append(
                Message(
                    key,
                    "user",
                    kept,
                    at=at,
                    session=session,
                    truncated_bytes=dropped,
                    extra={"side_channel": True},
                )
            )
        offset += len(line) + 1
    return out
