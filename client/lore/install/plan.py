"""From targets to changes, and from changes to files. The only place that writes.

A plan is made whole before anything is written; what cannot be done is in it as a refusal
with its reason and stops nothing else.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from lore.errors import LoreError
from lore.install import files
from lore.install.edits import Edit
from lore.install.journal import Entry, Journal, digest


@dataclass
class Change:
    """One file of a plan: `after` is None when the file goes. `refused` says why not."""

    target: str
    path: str
    found: files.Found | None = None
    after: bytes | None = None
    refused: str | None = None
    entry: Entry | None = None
    base: bytes | None = None
    """When installing: the file without our entries."""

    @property
    def action(self) -> str:
        """`refuse`, `keep` (nothing to do), `create`, `edit` or `delete`."""
        if self.refused is not None:
            return "refuse"
        before = self.found.data if self.found else None
        if before == self.after:
            return "keep"
        if self.after is None:
            return "delete"
        return "create" if before is None else "edit"

    def diff(self) -> str:
        """The change as a unified diff; empty when there is none."""
        before = (self.found.data if self.found else None) or b""
        lines = difflib.unified_diff(
            before.decode("utf-8", "replace").splitlines(keepends=True),
            (self.after or b"").decode("utf-8", "replace").splitlines(keepends=True),
            self.path if before else "/dev/null",
            self.path if self.after is not None else "/dev/null",
        )
        return "".join(line if line.endswith("\n") else line + "\n" for line in lines)


def plan_install(edits: list[tuple[str, Edit]], journal: Journal) -> list[Change]:
    """Changes that put our entries into files."""
    changes = []
    for target, edit in edits:
        change = Change(target, edit.path, entry=journal.entries.get(edit.path))
        try:
            change.found = files.look(edit.path)
            before = files.text_of(edit.path, change.found.data)
            change.after = edit.merge(before).encode("utf-8")
            change.base = _base(change, edit, before, journal)
        except LoreError as error:
            change.refused = _named(edit.path, error)
        changes.append(change)
    return changes


def _base(change: Change, edit: Edit, before: str | None, journal: Journal) -> bytes | None:
    """The bytes that undoing shall give back."""
    entry, data = change.entry, change.found.data if change.found else None
    if data is None or before is None:
        return None
    original = journal.original(entry) if entry is not None else data
    if entry is not None and entry.written == digest(data):
        return original
    stripped = edit.strip(before, files.text_of(edit.path, original))
    return stripped.encode("utf-8") if stripped is not None else None


def plan_uninstall(
    edits: list[tuple[str, Edit]], journal: Journal, targets: set[str] | None = None
) -> list[Change]:
    """Changes that take our entries out: of journalled files, and of those that the targets'
    edits name, in case the journal was lost. ``targets`` None means all."""
    by_path = {edit.path: (target, edit) for target, edit in edits}
    changes = []
    for entry in reversed(list(journal.entries.values())):
        if targets is None or entry.target in targets:
            known = by_path.pop(entry.path, None)
            changes.append(_undo(entry, known[1] if known else None, journal))
    for target, edit in by_path.values():
        if edit.path in journal.entries:
            continue
        change = Change(target, edit.path)
        try:
            change.found = files.look(edit.path)
            text = files.text_of(edit.path, change.found.data)
            # What was there before us is unknown: containers that we leave empty go too.
            stripped = edit.strip(text, "") if text is not None else None
            change.after = stripped.encode() if stripped is not None else None
        except LoreError:
            continue  # not ours and not readable: nothing of ours to take out
        if change.action != "keep":
            changes.append(change)
    return changes


def _undo(entry: Entry, edit: Edit | None, journal: Journal) -> Change:
    """Back to the original bytes where nobody changed the file since; else our entries out."""
    change = Change(entry.target, entry.path, entry=entry)
    try:
        change.found = files.look(entry.path)
        data = change.found.data
        original = journal.original(entry)
        if data is None or data == original:
            change.after = data
        elif digest(data) == entry.written:
            change.after = original
        elif edit is None:
            change.refused = (
                f"{entry.path}: was changed since and its kind is unknown; edit it by hand"
            )
        else:
            text, before = files.text_of(entry.path, data), files.text_of(entry.path, original)
            stripped = edit.strip(text or "", before)
            change.after = stripped.encode("utf-8") if stripped is not None else None
    except (LoreError, OSError) as error:
        change.refused = _named(entry.path, error)
    return change


def _named(path: str, error: Exception) -> str:
    text = str(error)
    return text if path in text else f"{path}: {text}"


def apply_install(change: Change, journal: Journal) -> None:
    """Write one change of an install plan; raises `Invalid` when that fails."""
    if change.action not in ("create", "edit") or change.found is None or change.after is None:
        return
    entry = journal.record(change.target, change.path, change.found.real, change.base, change.after)
    journal.note_folders(entry, files.make_folders(change.found.real))
    files.write(change.found, change.after)


def apply_uninstall(change: Change, journal: Journal) -> None:
    """Write one change of an uninstall plan and forget its entry."""
    if change.refused is not None:
        return
    if change.found is not None and change.action != "keep":
        if change.after is None:
            files.delete(change.found)
        else:
            files.write(change.found, change.after)
    if change.entry is not None:
        if change.after is None:
            files.remove_folders(change.entry.folders)
        journal.drop(change.entry)
