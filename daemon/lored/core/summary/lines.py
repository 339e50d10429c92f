"""The texts of a summary: its two lines, and the whole in a few.

The two lines have the form that Recursive's documents promise:
`Session 2026-05-28: Implemented Goal 131 (permissions). Completed.` and
`Key actions: edited src/permissions.rs, added 12 tests.`
"""

from datetime import UTC, tzinfo
from typing import Any, Final

from lored.core import clock
from lored.core.summary.phrases import brief_path, listed
from lored.core.summary.state import cut

State = dict[str, Any]

LINE_CHARS: Final = 200
KEY_ACTIONS_CHARS: Final = 240
FILES_NAMED: Final = 3
TEXT_CHARS: Final = 4_000

RESULTS: Final = {True: "ok", False: "failed", None: "unknown"}
_OUTCOMES: Final = {
    "completed": "Completed",
    "failed": "Failed",
    "interrupted": "Interrupted",
    "active": "In progress",
}


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


def key_actions(state: State, summary: dict[str, Any]) -> str | None:
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
        name, subject = (last["id"] or "")[:10], cut(last["subject"] or "", 60)
        if subject:
            name = f"{name} ({subject})" if name else f'"{subject}"'
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
    told = cut(", ".join(parts), KEY_ACTIONS_CHARS).rstrip(".")
    return f"Key actions: {told}" if told.endswith("…") else f"Key actions: {told}."


def _check_parts(state: State) -> list[str]:
    """The last tests, and builds or lints that were left failing."""
    parts = []
    tests = last_tests(state)
    if tests and "command" in tests:
        label = cut(tests["command"], 40)
        if "passed" in tests:
            unit = "" if tests["unit"] == "tests" else f" {tests['unit']}"
            unit = unit.removesuffix("s") if tests["passed"] == 1 else unit
            failed = f", {tests['failed']} failed" if tests["failed"] else ""
            parts.append(f"ran {label} ({tests['passed']}{unit} passed{failed})")
        else:
            said = {"ok": " (passed)", "failed": " (failed)"}.get(tests["status"], "")
            parts.append(f"ran {label}{said}")
    failing = {entry["label"] for entry in state["checks"] if entry.get("ok") is False}
    parts += [
        f"{cut(entry['label'], 40)} still fails"
        for entry in state["errors"]
        if entry["how"] is None
        and entry["signature"].startswith(("build:", "lint:"))
        and entry["label"] in failing
    ]
    return parts[:3]


def whole_text(summary: dict[str, Any]) -> str:
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


def last_tests(state: State) -> dict[str, Any] | None:
    """The last test run with numbers, and how many tests were written."""
    runs = [e for e in state["checks"] if e["kind"] == "test"]
    added = state["counts"]["tests_added"]
    if not runs:
        return {"added": added} if added else None
    best = next((e for e in reversed(runs) if "tests" in e), runs[-1])
    found: dict[str, Any] = {"command": best["label"], "status": RESULTS[best["ok"]]}
    if "tests" in best:
        found["passed"], found["failed"], found["unit"] = best["tests"]
    if added:
        found["added"] = added
    return found
