"""From a state to the summary that people and agents read: a map of plain values.

Judges what the state does not say outright: what the session was about, how it ended.
"""

import copy
import re
from datetime import UTC, tzinfo
from typing import Any, Final

from lored.core import clock
from lored.core.summary import statements
from lored.core.summary.deeds import settle_open
from lored.core.summary.lines import (
    RESULTS,
    key_actions,
    last_tests,
    session_line,
    whole_text,
)
from lored.core.summary.phrases import is_chore, is_order, is_question, phrase, short_path
from lored.core.summary.requests import headline
from lored.core.summary.state import DECISIONS, NEXT_STEPS

State = dict[str, Any]

SHOWN_FILES: Final = 40
SHOWN_ERRORS: Final = 16

QUIET_S: Final = 1_800
"""An agent that has written nothing for so long is not at work (slow tools and thinking models
were seen to take up to 20 minutes)."""

_EXCUSE: Final = re.compile(
    r"pre-?existing|unrelated|already (?:failing|broken|fail)|not (?:related to|caused by)"
    r"|known issue"
    r"|expected to fail|无关|既存の|関係ない",
    re.IGNORECASE,
)


def render(state: State, session: dict[str, Any], zone: tzinfo = UTC) -> dict[str, Any]:
    """The summary map: goal, redirections, status, files, commands, tests, commits, errors,
    decisions, next_steps, duration_s, and the texts line, key_actions, text.

    Args:
        state: of `begin` and `fold`; not changed.
        session: what else is known, all optional: `title`, `cwd`, `started_at` (ISO or
            microseconds), `quiet` (true when nothing has come for long: an unfinished session
            is then interrupted, not active).
        zone: whose calendar the date in the line follows.
    """
    if state["open"] and state["tail"] == "assistant" and not state["outcomes"]:
        state = copy.deepcopy(state)
        settle_open(state)
    known = {**state["session"], **{k: v for k, v in session.items() if v is not None}}
    if state["session"].get("title"):
        known["title"] = state["session"]["title"]
    decisions, next_steps = _stated(state)
    status = _status(state, bool(session.get("quiet")))
    goal, head, asked = _goal(state, known)
    done = status == "completed" and bool(state["counts"]["actions"] or state["said"])
    if asked and (done or is_chore(head)):
        head = _deed(state, head)
    what = phrase(head, done=done, asked=asked) if head else ""
    files = _files(state, known.get("cwd"))
    commands = [_command(entry) for entry in state["checks"] + state["others"]]
    summary: dict[str, Any] = {
        "goal": goal,
        "headline": what or None,
        "redirections": [entry[2] for entry in state["redirections"]],
        "status": status,
        "files": files[:SHOWN_FILES],
        "files_more": max(len(files) - SHOWN_FILES, 0) + state["files_dropped"],
        "commands": commands,
        "tests": last_tests(state),
        "commits": [{"id": c[0] or None, "subject": c[1] or None} for c in state["commits"]],
        "errors": _errors(state, known.get("cwd")),
        "decisions": decisions,
        "findings": list(state["kept_facts"]),
        "next_steps": next_steps,
        "model": known.get("model"),
        "cost_usd": known.get("cost_usd"),
        "duration_s": _duration(state),
        "active_s": state["active_s"],
        "counts": dict(state["counts"]),
    }
    summary["key_actions"] = key_actions(state, summary)
    summary["line"] = session_line(summary, known.get("started_at") or state["first_at"], zone)
    summary["text"] = whole_text(summary)
    return {key: value for key, value in summary.items() if value is not None}


def settled_status(status: str, ended_at: int | None, now: int) -> str:
    """``status`` as of ``now`` (microseconds): a session that ended in the middle and has been
    quiet for `QUIET_S` was interrupted."""
    if status == "active" and (ended_at is None or now - ended_at > QUIET_S * clock.SECOND):
        return "interrupted"
    return status


def current_status(told: dict[str, Any], stored: str | None, ended_at: int | None, now: int) -> str:
    """The status of a session for readers: what its rendered summary ``told`` says, else the
    ``stored`` one, as of ``now``."""
    return settled_status(told.get("status") or stored or "active", ended_at, now)


def _goal(state: State, known: dict[str, Any]) -> tuple[str | None, str, bool]:
    """(goal, headline, whether that is of a person's words). A title given by a person or the
    agent beats the first prompt's first sentence, unless it is that prompt cut short."""
    asked = state["goal"]["text"] if state["goal"] else None
    goal = asked or known.get("goal") or state["recap"] or known.get("title") or state["weak_goal"]
    head = headline(goal) if goal else ""
    title = (known.get("title") or "").strip()
    if title == (known.get("prompt_title") or "").strip():
        title = ""  # made from the first prompt, which may be a greeting
    if title and asked and head and not _is_cut_of(title, asked):
        plain = headline(title)
        if len(plain) >= 8 and not plain.startswith("/"):
            return goal, plain, False
    return goal, head, bool(asked)


def _deed(state: State, head: str) -> str:
    """What the headline should name: when the session began with a question or a chore and went
    on to change files, the first later request to make something."""
    if not (is_question(head) or is_chore(head)) or not state["files"]:
        return head
    orders = (headline(entry[2]) for entry in state["redirections"])
    return next((order for order in orders if is_order(order)), head)


def _is_cut_of(title: str, text: str) -> bool:
    plain = " ".join(title.rstrip("….").lower().split())
    return " ".join(text.lower().lstrip("# ").split()).startswith(plain[:40])


def _stated(state: State) -> tuple[list[str], list[str]]:
    """Decisions and next steps, those of the latest text included."""
    decisions = [entry[1] for entry in state["decisions"]]
    steps = [entry[1] for entry in state["next_steps"]]
    said = state["said"]
    if said is not None:
        for text in statements.read_decisions(said["text"]):
            if text not in decisions:
                decisions.append(text)
        latest = statements.read_next_steps(said["text"])
        if latest:
            steps = latest
        elif state["next_steps"] and said["turn"] > state["next_steps"][0][0] + 2:
            steps = []
    return decisions[-DECISIONS:], steps[:NEXT_STEPS]


def _status(state: State, quiet: bool) -> str:
    """Metadata first, while nothing came after it; else how the session ends: with an answer
    (completed, or failed when the last check still fails), in the middle (active, or
    interrupted when it has gone quiet), or stopped by the person."""
    known, stated = state["session"], state["session"].get("status")
    newer = (state["last_at"] or "") > (known.get("status_at") or "")
    if stated == "failed":
        return "failed"
    if stated == "interrupted" and not newer:
        return "interrupted"
    if state["tail"] == "refused":
        return "interrupted"
    if state["tail"] == "assistant" or (stated == "completed" and not newer):
        return "failed" if _ends_failing(state) else "completed"
    return "interrupted" if quiet else "active"


def _ends_failing(state: State) -> bool:
    """The last test, build or lint failed, nothing passed since, and files were edited: the
    work was left broken. Without edits a failing check is a finding, not a failure, and so it is
    when the closing words say that it has other causes."""
    checks, said = state["checks"], state["said"]
    if not checks or checks[-1]["ok"] is not False or not state["files"]:
        return False
    return said is None or _EXCUSE.search(said["text"]) is None


def _files(state: State, cwd: str | None) -> list[dict[str, Any]]:
    """Edited files, the most edited first."""
    items = sorted(state["files"].items(), key=lambda item: (-item[1][0], -item[1][3]))
    return [
        {
            "path": path,
            "name": short_path(path, cwd),
            "edits": entry[0],
            "added": entry[1],
            "removed": entry[2],
            "change": entry[4],
        }
        for path, entry in items
    ]


def _command(entry: dict[str, Any]) -> dict[str, Any]:
    found = {
        "command": entry["label"],
        "kind": entry["kind"],
        "status": RESULTS[entry["ok"]],
        "runs": entry["runs"],
        "failures": entry["failures"],
        "exit_code": entry.get("exit"),
    }
    if "tests" in entry:
        found["passed"], found["failed"], found["unit"] = entry["tests"]
    return {key: value for key, value in found.items() if value is not None}


def _errors(state: State, cwd: str | None) -> list[dict[str, Any]]:
    """Errors met, those still open first; failed edits that a later edit made good are noise."""
    found = []
    for entry in state["errors"]:
        is_edit = entry["signature"].startswith("edit:")
        if is_edit and entry["how"] is not None:
            continue
        found.append(
            {
                "where": short_path(entry["label"], cwd) if is_edit else entry["label"],
                "message": entry["message"],
                "count": entry["count"],
                "overcome": entry["how"] is not None,
                **({"how": entry["how"]} if entry["how"] else {}),
            }
        )
    return sorted(found, key=lambda e: e["overcome"])[:SHOWN_ERRORS]


def _duration(state: State) -> int | None:
    first, last = clock.parse_instant(state["first_at"]), clock.parse_instant(state["last_at"])
    return None if first is None or last is None else (last - first) // clock.SECOND
