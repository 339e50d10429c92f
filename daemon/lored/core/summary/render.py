"""From a state to the summary that people and agents read.

The two lines have the form that Recursive's documents promise:
`Session 2026-05-28: Implemented Goal 131 (permissions). Completed.` and
`Key actions: edited src/permissions.rs, added 12 tests.`
"""

import copy
import re
from datetime import UTC, tzinfo
from typing import Any, Final

from lored.core import clock
from lored.core.summary import statements
from lored.core.summary.deeds import settle_open
from lored.core.summary.phrases import brief_path, is_order, is_question, listed, phrase, short_path
from lored.core.summary.requests import headline
from lored.core.summary.state import DECISIONS, NEXT_STEPS, cut

State = dict[str, Any]

LINE_CHARS: Final = 200
KEY_ACTIONS_CHARS: Final = 240
FILES_NAMED: Final = 3
SHOWN_FILES: Final = 40
SHOWN_ERRORS: Final = 16
TEXT_CHARS: Final = 4_000

QUIET_S: Final = 1_800
"""An agent that has written nothing for so long is not at work (slow tools and thinking models
were seen to take up to 20 minutes)."""

_EXCUSE: Final = re.compile(
    r"pre-?existing|unrelated|already (?:failing|broken|fail)|not (?:related to|caused by)"
    r"|known issue"
    r"|expected to fail|无关|既存の|関係ない",
    re.IGNORECASE,
)
_RESULTS: Final = {True: "ok", False: "failed", None: "unknown"}
_OUTCOMES: Final = {
    "completed": "Completed",
    "failed": "Failed",
    "interrupted": "Interrupted",
    "active": "In progress",
}


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
    goal, head = _goal(state, known)
    done = status == "completed" and bool(state["counts"]["actions"] or state["said"])
    what = phrase(_deed(state, head) if done else head, done=done) if head else ""
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
        "tests": _tests(state),
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
    summary["key_actions"] = _key_actions(state, summary)
    summary["line"] = session_line(summary, known.get("started_at") or state["first_at"], zone)
    summary["text"] = _text(summary)
    return {key: value for key, value in summary.items() if value is not None}


def session_line(summary: dict[str, Any], started_at: str | int | None, zone: tzinfo = UTC) -> str:
    """`Session <date>: <what>. <outcome>.` for the day on which the session started in ``zone``.

    Kept apart from `render` so that a reader can show the date in its own zone.
    """
    at = started_at if isinstance(started_at, int) else clock.parse_instant(started_at)
    day = f" {clock.from_micros(at).astimezone(zone):%Y-%m-%d}" if at is not None else ""
    outcome = _OUTCOMES[summary.get("status") or "active"]
    what = cut(summary.get("headline") or "No request recorded", LINE_CHARS).rstrip(".。")
    stop = "" if what.endswith(("?", "？", "!", "！", "…")) else "."
    return f"Session{day}: {what}{stop} {outcome}."


def settled_status(status: str, ended_at: int | None, now: int) -> str:
    """``status`` as of ``now`` (microseconds): a session that ended in the middle and has been
    quiet for `QUIET_S` was interrupted."""
    if status == "active" and (ended_at is None or now - ended_at > QUIET_S * clock.SECOND):
        return "interrupted"
    return status


def _goal(state: State, known: dict[str, Any]) -> tuple[str | None, str]:
    """(goal, headline). A title given by a person or the agent beats the first prompt's first
    sentence, unless it is that prompt cut short."""
    asked = state["goal"]["text"] if state["goal"] else None
    goal = asked or known.get("goal") or state["recap"] or known.get("title") or state["weak_goal"]
    head = headline(goal) if goal else ""
    title = (known.get("title") or "").strip()
    if title == (known.get("prompt_title") or "").strip():
        title = ""  # made from the first prompt, which may be a greeting
    if title and asked and head and not _is_cut_of(title, asked):
        plain = headline(title)
        if len(plain) >= 8 and not plain.startswith("/"):
            return goal, plain
    return goal, head


def _deed(state: State, head: str) -> str:
    """What the headline of finished work should name: when the session began with a question and
    went on to change files, the first later request to make something."""
    if not is_question(head) or not state["files"]:
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
        "status": _RESULTS[entry["ok"]],
        "runs": entry["runs"],
        "failures": entry["failures"],
        "exit_code": entry.get("exit"),
    }
    if "tests" in entry:
        found["passed"], found["failed"], found["unit"] = entry["tests"]
    return {key: value for key, value in found.items() if value is not None}


def _tests(state: State) -> dict[str, Any] | None:
    """The last test run with numbers, and how many tests were written."""
    runs = [e for e in state["checks"] if e["kind"] == "test"]
    added = state["counts"]["tests_added"]
    if not runs:
        return {"added": added} if added else None
    best = next((e for e in reversed(runs) if "tests" in e), runs[-1])
    found: dict[str, Any] = {"command": best["label"], "status": _RESULTS[best["ok"]]}
    if "tests" in best:
        found["passed"], found["failed"], found["unit"] = best["tests"]
    if added:
        found["added"] = added
    return found


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


def _key_actions(state: State, summary: dict[str, Any]) -> str | None:
    """`Key actions: edited a and b, added 12 tests, ...`; None when nothing was done."""
    parts: list[str] = []
    made = [brief_path(f["name"]) for f in summary["files"] if f["change"] == "add"]
    changed = [brief_path(f["name"]) for f in summary["files"] if f["change"] == "update"]
    gone = [brief_path(f["name"]) for f in summary["files"] if f["change"] == "delete"]
    more = summary["files_more"]
    if changed:
        parts.append(f"edited {listed(changed, FILES_NAMED, more)}")
    if made:
        parts.append(f"created {listed(made, FILES_NAMED, 0 if changed else more)}")
    if gone:
        parts.append(f"deleted {listed(gone, FILES_NAMED)}")
    added = state["counts"]["tests_added"]
    if added:
        parts.append(f"added {added} test{'s' if added > 1 else ''}")
    parts += _check_parts(state)
    commits = summary["commits"]
    if commits:
        last = commits[-1]
        name = (last["id"] or "")[:10]
        if last["subject"]:
            name = f"{name} ({cut(last['subject'], 60)})".lstrip()
        many = len(commits) > 1
        parts.append(f"made {len(commits)} commits, last {name}" if many else f"committed {name}")
    if not parts:
        parts = [
            f"ran {cut(e['label'], 50)}{' (failed)' if e['ok'] is False else ''}"
            for e in state["others"][-FILES_NAMED:]
        ]
    looked = state["kinds"].get("read", 0) + state["kinds"].get("search", 0)
    if not parts and looked:
        parts = [f"read and searched {'once' if looked == 1 else f'{looked} times'}"]
    if not parts:
        return None
    while len(parts) > 1 and len(", ".join(parts)) > KEY_ACTIONS_CHARS:
        del parts[-1]
    return f"Key actions: {cut(', '.join(parts), KEY_ACTIONS_CHARS).rstrip('.…')}."


def _check_parts(state: State) -> list[str]:
    """The last tests, and builds or lints that were left failing."""
    parts = []
    tests = _tests(state)
    if tests and "command" in tests:
        label = cut(tests["command"], 40)
        if "passed" in tests:
            unit = "" if tests["unit"] == "tests" else f" {tests['unit']}"
            failed = f", {tests['failed']} failed" if tests["failed"] else ""
            parts.append(f"ran {label} ({tests['passed']}{unit} passed{failed})")
        else:
            said = {"ok": " (passed)", "failed": " (failed)"}.get(tests["status"], "")
            parts.append(f"ran {label}{said}")
    parts += [
        f"{cut(entry['label'], 40)} still fails"
        for entry in state["errors"]
        if entry["how"] is None and entry["signature"].startswith(("build:", "lint:"))
    ]
    return parts[:3]


def _text(summary: dict[str, Any]) -> str:
    """The whole summary as a short text, the form that search indexes and models digest."""
    lines = [summary["line"]]
    if summary["key_actions"]:
        lines.append(summary["key_actions"])
    if summary["goal"]:
        lines.append(f"Goal: {' '.join(summary['goal'].split())}")
    for title, items in (
        ("Then asked", summary["redirections"]),
        ("Decisions and findings", [*summary["findings"][-5:], *summary["decisions"][-7:]]),
        ("Next steps", summary["next_steps"]),
    ):
        if items:
            lines.append(f"{title}:")
            lines += [f"- {item}" for item in items]
    if summary["errors"]:
        lines.append("Errors:")
        for error in summary["errors"]:
            end = f"overcome: {error['how']}" if error["overcome"] else "not overcome"
            lines.append(f"- {error['where']}: {error['message']} ({end})")
    return cut("\n".join(lines), TEXT_CHARS)
