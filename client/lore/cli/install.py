"""`install` and `uninstall`: connect agents and editors, and undo exactly that."""

from __future__ import annotations

import os
from typing import Any

from lore.cli.arguments import Arg, Usage, Verb
from lore.cli.invocation import Invocation
from lore.cli.render import Screen, clean
from lore.errors import LoreError
from lore.install import plan, targets, units
from lore.install.edits import Edit
from lore.install.journal import Journal
from lore.install.places import Place, here

Edits = list[tuple[str, Edit]]

NAMES = tuple(target.name for target in targets.TARGETS)


def install(inv: Invocation) -> int:
    """Plan, show, write; exit code 3 when a file had to be refused."""
    o, place = inv.options, here()
    chosen = _chosen(o.agent, place)
    journal = Journal(_folder(inv))
    edits, refusals = _edits(chosen, place, recall=o.recall)
    changes = refusals + plan.plan_install(edits, journal)
    notes: list[str] = []
    idle: set[str] = set()
    if not o.dry_run:
        _apply(changes, journal, plan.apply_install)
        done = {c.target for c in changes if c.action in ("create", "edit")}
        for name in sorted(done & units.START.keys()):
            failures = units.run(units.START[name])
            notes += failures
            idle |= {name} if failures else set()
    active = {c.target for c in changes if c.refused is None} - idle
    notes += [note for t in chosen if t.name in active for note in t.notes]
    data = _data(changes, notes, o.dry_run)
    data["found"] = {t.name: t.found(place) for t in targets.TARGETS if t.found(place)}

    def text(screen: Screen) -> None:
        if not chosen:
            screen.say("no agent or editor was found here; name one: " + ", ".join(NAMES))
        _show(screen, changes, notes, dry_run=o.dry_run, diff=o.dry_run or o.diff)

    inv.show(data, text)
    return 3 if any(c.refused for c in changes) else 0


def uninstall(inv: Invocation) -> int:
    """Undo; with --stop also stop the daemon."""
    o, place = inv.options, here()
    journal = Journal(_folder(inv))
    wanted = set(o.agent) or None
    if wanted and wanted - set(NAMES):
        raise Usage(
            f"unknown agent {sorted(wanted - set(NAMES))[0]!r}; there is {', '.join(NAMES)}"
        )
    chosen = [t for t in targets.TARGETS if wanted is None or t.name in wanted]
    edits, _ = _edits(chosen, place, recall=False)
    changes = plan.plan_uninstall(edits, journal, wanted)
    notes: list[str] = []
    if not o.dry_run:
        gone = {c.target for c in changes if c.refused is None}
        for name in sorted(gone & units.STOP.keys()):
            notes += units.run(units.STOP[name])
        _apply(changes, journal, plan.apply_uninstall)
        for name in sorted(gone & units.AFTER_STOP.keys()):
            notes += units.run(units.AFTER_STOP[name])
        if wanted is None:
            from lore.cli.daemon import stop

            pid = stop(inv)
            notes += [f"stopped the daemon (pid {pid})"] if pid else []
            notes.append(
                f"your memory stays in {inv.paths.data_dir}; remove that folder to forget it all"
            )
    data = _data(changes, notes, o.dry_run)

    def text(screen: Screen) -> None:
        if not changes:
            screen.say("nothing of ours was found")
        _show(screen, changes, notes, dry_run=o.dry_run, diff=o.dry_run or o.diff)

    inv.show(data, text)
    return 3 if any(c.refused for c in changes) else 0


def _folder(inv: Invocation) -> str:
    return os.path.join(inv.paths.state_dir, "install")


def _chosen(names: list[str], place: Place) -> list[targets.Target]:
    for name in names:
        if name not in targets.BY_NAME:
            raise Usage(f"unknown agent {name!r}; there is {', '.join(NAMES)}")
    if names:
        return [targets.BY_NAME[name] for name in dict.fromkeys(names)]
    return [t for t in targets.TARGETS if not t.by_name_only and t.found(place)]


def _edits(
    chosen: list[targets.Target], place: Place, *, recall: bool
) -> tuple[Edits, list[plan.Change]]:
    """The edits of all targets; a target that cannot say its edits becomes a refusal."""
    edits: Edits = []
    refusals = []
    for target in chosen:
        try:
            edits += [(target.name, edit) for edit in target.edits(place, recall)]
        except LoreError as error:
            refusals.append(plan.Change(target.name, target.name, refused=error.message))
    return edits, refusals


def _apply(changes: list[plan.Change], journal: Journal, step: Any) -> None:
    for change in changes:
        try:
            step(change, journal)
        except LoreError as error:
            change.refused = error.message


def _data(changes: list[plan.Change], notes: list[str], dry_run: bool) -> dict[str, Any]:
    return {
        "dry_run": dry_run,
        "changes": [
            {
                "target": c.target,
                "path": c.path,
                "action": c.action,
                **({"reason": c.refused} if c.refused else {}),
                **({"diff": c.diff()} if c.action in ("create", "edit", "delete") else {}),
            }
            for c in changes
        ],
        "notes": notes,
    }


DIFF_LINES = 60
"""Of one file in text: an edit of an agent's settings fits, a file that is all ours need not."""

_COLOURS = {"refuse": "red", "keep": "dim", "create": "green", "edit": "green", "delete": "yellow"}


def _show(
    screen: Screen, changes: list[plan.Change], notes: list[str], *, dry_run: bool, diff: bool
) -> None:
    for change in changes:
        action = screen.paint(f"{change.action:6}", _COLOURS[change.action])
        detail = clean(change.refused or change.path)
        screen.say(f"{action}  {change.target:13} {detail}")
        if diff and change.refused is None:
            lines = change.diff().splitlines()
            for line in lines[:DIFF_LINES]:
                colour = {"+": ("green",), "-": ("red",), "@": ("cyan",)}.get(line[:1], ())
                screen.say("  " + screen.paint(clean(line), *colour))
            if len(lines) > DIFF_LINES:
                left = f"  … {len(lines) - DIFF_LINES} more lines (--json shows all)"
                screen.say(screen.paint(left, "dim"))
    for note in notes:
        screen.say(screen.paint(f"note: {clean(note)}", "dim"))
    if dry_run and changes:
        screen.say(screen.paint("dry run: nothing was written", "dim"))


_AGENTS = Arg("AGENT", kind="many", choices=NAMES, help="which; default: all that are found here")
_DRY = Arg("--dry-run", kind="flag", help="show the changes, write nothing")
_DIFF = Arg("--diff", kind="flag", help="show what was changed in each file")

VERBS = (
    Verb(
        "install",
        install,
        (
            _AGENTS,
            _DRY,
            _DIFF,
            Arg("--recall", kind="flag", help="also look up the memory at each prompt and edit"),
        ),
        examples=("lore install --dry-run", "lore install", "lore install codex systemd"),
    ),
    Verb(
        "uninstall",
        uninstall,
        (_AGENTS, _DRY, _DIFF),
        examples=("lore uninstall --dry-run", "lore uninstall cursor"),
    ),
)
