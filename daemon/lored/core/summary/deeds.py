"""Folding tool calls: files edited, commands and their outcomes, errors and how they ended.

A call comes twice, first `running` and later with its outcome, which may lack what the first
said; what waits is kept in `open`. Only outcomes count.
"""

import os.path
from typing import Any

from lored.core.summary import outcomes
from lored.core.summary.commands import Step, read_steps
from lored.core.summary.state import (
    CHECKS,
    COMMAND_CHARS,
    COMMITS,
    DONE_ACTIONS,
    ERRORS,
    FILES,
    OPEN_ACTIONS,
    OTHERS,
    TARGET_CHARS,
    cut,
    fingerprint,
    push,
    work_at,
)
from lored.core.transcripts.records import Action

State = dict[str, Any]


def take_action(state: State, action: Action) -> None:
    """Take one tool call, or its outcome, into ``state`` (mutated)."""
    work_at(state, action.started_at)
    work_at(state, action.ended_at)
    mark = fingerprint(action.key)
    if action.status == "running":
        if mark not in state["done"]:
            state["open"][mark] = _opened(action)
            while len(state["open"]) > OPEN_ACTIONS:
                del state["open"][next(iter(state["open"]))]
            state["tail"] = "action"
        return
    begun = state["open"].pop(mark, None)
    if mark in state["done"]:
        return
    push(state["done"], mark, DONE_ACTIONS)
    deed = {**(begun or {}), **_opened(action)}
    if action.status != "unknown":  # what a person typed after `!` has no outcome, and no sequel
        state["tail"] = "action"
        state["outcomes"] = True
    counts, kind = state["counts"], deed["kind"]
    counts["actions"] += 1
    state["kinds"][kind] = state["kinds"].get(kind, 0) + 1
    output = action.output_excerpt or ""
    if action.status == "failed" and outcomes.was_refused(output):
        state["tail"] = "refused"
        return
    failed = action.status == "failed"
    counts["failed"] += failed
    if kind == "edit":
        _edit(state, deed, failed, output)
    elif kind == "command":
        _command(state, deed, action, failed, output)


def settle_open(state: State) -> None:
    """Count the calls that wait for an outcome as done, outcome unknown: their turn is over. Only
    in sessions without any outcome, of formats that record none (Cursor); elsewhere a call
    without one was interrupted and did nothing."""
    if state["outcomes"]:
        return
    for mark, deed in state["open"].items():
        push(state["done"], mark, DONE_ACTIONS)
        state["counts"]["actions"] += 1
        state["kinds"][deed["kind"]] = state["kinds"].get(deed["kind"], 0) + 1
        if deed["kind"] == "edit":
            _edit(state, deed, False, "")
        for step in deed.get("steps", ()):
            _step(state, Step(*step), None, None, None)
    state["open"] = {}


def _opened(action: Action) -> dict[str, Any]:
    """What is kept of a call until its outcome; empty fields are left out."""
    deed: dict[str, Any] = {"kind": action.kind}
    if action.target:
        deed["target"] = action.target[:TARGET_CHARS]
    if action.command:
        deed["steps"] = [list(step) for step in read_steps(action.command)]
    for name in ("added", "removed", "tests"):
        if isinstance(action.extra.get(name), int):
            deed[name] = action.extra[name]
    if isinstance(action.extra.get("change"), str):
        deed["change"] = action.extra["change"][:12]
    return deed


def _edit(state: State, deed: dict[str, Any], failed: bool, output: str) -> None:
    path = deed.get("target")
    if not path:
        return
    if failed:
        _error(state, f"edit:{path}", path, outcomes.read_error(output) or "edit failed")
        return
    files = state["files"]
    entry = files.get(path)
    if entry is None:
        if len(files) >= FILES:
            least = min(files, key=lambda name: (files[name][0], files[name][3]))
            del files[least]
            state["files_dropped"] += 1
        entry = files[path] = [0, 0, 0, 0, deed.get("change") or _change(output)]
    entry[0] += 1
    entry[1] += deed.get("added", 0)
    entry[2] += deed.get("removed", 0)
    entry[3] = state["seq"]
    if deed.get("change") == "delete":
        entry[4] = "delete"
    state["counts"]["tests_added"] += deed.get("tests", 0)
    _overcome(state, f"edit:{path}", "edited later")


def _change(output: str) -> str:
    head = output[:200].lower()
    return "add" if "created" in head and "success" in head else "update"


def _command(state: State, deed: dict[str, Any], action: Action, failed: bool, output: str) -> None:
    steps = [Step(*step) for step in deed.get("steps", ())]
    committed = next((s for s in steps if s.kind == "commit"), None)
    if action.commit or (committed and action.status == "ok"):
        _commit(state, action, output, committed)
    tests = outcomes.read_tests(output) if any(s.kind == "test" for s in steps) else None
    if tests is not None and tests.failed:
        failed = True
    unknown = action.status == "unknown" and tests is None
    culprit = _culprit(steps, failed, tests)
    for step in steps:
        bad = failed and step == culprit
        if failed and not bad and culprit is not None and steps.index(step) > steps.index(culprit):
            continue  # never reached, or unknown
        counted = tests if step.kind == "test" else None
        missing = bad and outcomes.could_not_run(output)
        _step(state, step, None if unknown or missing else bad, counted, action.exit_code)
        if unknown:
            continue
        if bad:
            message = outcomes.read_error(output) or (
                f"exit code {action.exit_code}" if action.exit_code else "failed"
            )
            _error(state, step.signature, step.label, message, counted)
        else:
            _overcome(state, step.signature, "passed later")


def _culprit(steps: list[Step], failed: bool, tests: outcomes.Tests | None) -> Step | None:
    """Of a failed line of several steps, the one most likely to have failed."""
    if not failed or not steps:
        return None
    if tests is not None and tests.failed:
        return next(s for s in steps if s.kind == "test")
    checks = [s for s in steps if s.kind in ("test", "build", "lint", "install")]
    return (checks or steps)[-1]


def _step(
    state: State,
    step: Step,
    bad: bool | None,
    tests: outcomes.Tests | None,
    exit_code: int | None,
) -> None:
    """Note one run; ``bad`` None = nobody knows how it ended."""
    is_check = step.kind in ("test", "build", "lint")
    if not is_check and step.kind not in ("install", "push", "change", "run"):
        return
    items = state["checks"] if is_check else state["others"]
    entry = next((e for e in items if e["label"] == step.label), None)
    if entry is None:
        entry = {"kind": step.kind, "label": step.label, "runs": 0, "failures": 0}
    else:
        items.remove(entry)
    entry["runs"] += 1
    push(items, entry, CHECKS if is_check else OTHERS)
    if bad is None and entry.get("ok") is not None:
        return  # an unknown end does not undo a known one
    entry["failures"] += bool(bad)
    entry["ok"] = None if bad is None else not bad
    entry["seq"] = state["seq"]
    if exit_code is not None:
        entry["exit"] = exit_code
    if tests is not None:
        entry["tests"] = list(tests)


def _commit(state: State, action: Action, output: str, step: Step | None) -> None:
    """Keep id and subject; a quiet commit (`-q`) has only the subject of its command line."""
    found = outcomes.read_commit(output)
    commit = action.commit or (found[0] if found else "")
    subject = found[1] if found else ""
    if not commit:
        if step is None or "nothing to commit" in output or "no changes added" in output:
            return
        subject = outcomes.read_subject(step.label)
    if not commit or all(commit != known[0] for known in state["commits"]):
        push(state["commits"], [commit, subject], COMMITS)


def _error(
    state: State, signature: str, label: str, message: str, tests: outcomes.Tests | None = None
) -> None:
    errors = state["errors"]
    entry = next((e for e in errors if e["signature"] == signature), None)
    if entry is None:
        entry = {"signature": signature, "label": cut(label, COMMAND_CHARS), "count": 0}
    else:
        errors.remove(entry)
    if tests is not None and tests.failed:
        total = tests.passed + tests.failed
        message = f"{tests.failed} of {total} {tests.unit} failed" + (
            f": {message}" if message else ""
        )
    entry.update(message=message, how=None, seq=state["seq"])
    entry["count"] += 1
    push(errors, entry, ERRORS)


def _overcome(state: State, signature: str, how: str) -> None:
    for entry in state["errors"]:
        if entry["how"] is None and entry["signature"] == signature:
            edited = [p for p, f in state["files"].items() if f[3] > entry["seq"]]
            if edited and not signature.startswith("edit:"):
                names = ", ".join(os.path.basename(p) for p in edited[-2:])
                how = f"{how}, after editing {names}"
            entry["how"] = cut(how, COMMAND_CHARS)
