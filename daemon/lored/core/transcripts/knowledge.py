"""What a parser already told about a session, so that each patch says only what is new.

Lives in the parser's state under `known`: session ("" = the file's own) -> field -> value.
"""

from typing import Any, Final

from lored.core.transcripts.records import Record, SessionPatch
from lored.core.transcripts.texts import title_of

KNOWN_SESSIONS: Final = 64
"""Sessions remembered per file; files with more (inline sidechains) tell old ones twice."""


def known(state: dict[str, Any], session: str | None) -> dict[str, Any]:
    """The map of what was told about ``session`` (None = the file's own)."""
    sessions: dict[str, dict[str, Any]] = state.setdefault("known", {})
    name = session or ""
    found = sessions.get(name)
    if found is None:
        found = sessions[name] = {}
        while len(sessions) > KNOWN_SESSIONS:
            del sessions[next(iter(sessions))]
    return found


def learn(
    state: dict[str, Any], out: list[Record], session: str | None = None, **fields: Any
) -> None:
    """Adds a patch with those fields that are not None and differ from what was told."""
    told = known(state, session)
    news = {
        name: value
        for name, value in fields.items()
        if value is not None and told.get(name) != value
    }
    if news:
        told.update(news)
        out.append(SessionPatch(session=session, **news))


def learn_first(
    state: dict[str, Any], out: list[Record], session: str | None = None, **fields: Any
) -> None:
    """Like `learn`, but the first value of each field stays."""
    told = known(state, session)
    news = {name: value for name, value in fields.items() if value is not None and name not in told}
    if news:
        told.update(news)
        out.append(SessionPatch(session=session, **news))


def learn_time(
    state: dict[str, Any], out: list[Record], at: str | None, session: str | None = None
) -> None:
    """Tells the earliest and the latest instant of a session. Files are not ordered by time."""
    if at is None:
        return
    told = known(state, session)
    last = told.get("ended_at")
    if last is None:
        told["started_at"] = told["ended_at"] = at
        out.append(SessionPatch(session=session, started_at=at, ended_at=at))
    elif at > last:
        told["ended_at"] = at
        out.append(SessionPatch(session=session, ended_at=at))
    elif at < told["started_at"]:
        told["started_at"] = at
        out.append(SessionPatch(session=session, started_at=at))


def learn_prompt(
    state: dict[str, Any], out: list[Record], text: str, session: str | None = None
) -> None:
    """Tells the title that the session's first real prompt gives."""
    if "prompt_title" not in known(state, session):
        learn(state, out, session, prompt_title=title_of(text))


def add_tokens(
    state: dict[str, Any],
    out: list[Record],
    counts: dict[str, int | None],
    session: str | None = None,
) -> None:
    """Adds counts to the session's totals and tells the new totals."""
    told = known(state, session)
    totals: dict[str, int] = told.setdefault("tokens", {})
    changed = False
    for name, count in counts.items():
        if count:
            totals[name] = totals.get(name, 0) + count
            changed = True
    if changed:
        out.append(SessionPatch(session=session, tokens=dict(totals)))
