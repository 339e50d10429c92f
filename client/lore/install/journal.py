"""What `lore install` has written, so that `lore uninstall` undoes exactly that.

One JSON file in the state directory and the original bytes of every changed file beside it.
An entry is on disk before its file is written: after a crash at any moment the journal tells
the truth, or names a change that did not happen, which undoing finds out by itself.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field
from typing import Any

from lore.errors import Invalid

FORMAT = 1


@dataclass
class Entry:
    """One changed file. ``original`` names the saved bytes (None: we made the file),
    ``folders`` those that were made for it, ``written`` is the digest of what we wrote."""

    target: str
    path: str
    real: str
    original: str | None
    written: str
    folders: list[str] = field(default_factory=list)


class Journal:
    """The entries, by path. Every change is saved at once."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._file = os.path.join(folder, "journal.json")
        self.entries: dict[str, Entry] = {}
        try:
            with open(self._file, encoding="utf-8") as file:
                document = json.load(file)
        except FileNotFoundError:
            return
        except (OSError, ValueError) as error:
            raise Invalid(f"{self._file}: cannot be read ({error}); move it away") from None
        if document.get("format") != FORMAT:
            raise Invalid(f"{self._file}: written by a newer lore; upgrade this one")
        for item in document["entries"]:
            self.entries[item["path"]] = Entry(**item)

    def original(self, entry: Entry) -> bytes | None:
        """The bytes before us; None when there was no file."""
        if entry.original is None:
            return None
        with open(os.path.join(self._folder, entry.original), "rb") as file:
            return file.read()

    def record(self, target: str, path: str, real: str, base: bytes | None, after: bytes) -> Entry:
        """Note a change that is about to be made; ``base`` is the file without our entries
        (None: there was none), kept from the first time while only we write the file."""
        known = self.entries.get(path)
        name = None
        if base is not None:
            name = f"{digest(path.encode())[:16]}.original"
            self._write(name, base)
        folders = known.folders if known is not None else []
        entry = self.entries[path] = Entry(target, path, real, name, digest(after), folders)
        self._save()
        return entry

    def note_folders(self, entry: Entry, folders: list[str]) -> None:
        """Remember folders made for a file."""
        if folders:
            entry.folders = [*entry.folders, *folders]
            self._save()

    def drop(self, entry: Entry) -> None:
        """Forget an entry whose change is undone; the saved bytes go too."""
        del self.entries[entry.path]
        self._save()
        if entry.original is not None:
            os.unlink(os.path.join(self._folder, entry.original))
        if not self.entries:
            os.unlink(self._file)
            os.rmdir(self._folder)

    def _save(self) -> None:
        document: dict[str, Any] = {
            "format": FORMAT,
            "entries": [vars(entry) for entry in self.entries.values()],
        }
        self._write("journal.json", json.dumps(document, indent=1, ensure_ascii=False).encode())

    def _write(self, name: str, data: bytes) -> None:
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        draft = os.path.join(self._folder, name + ".part")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, os.path.join(self._folder, name))


def digest(data: bytes) -> str:
    """SHA-256 in hex."""
    return hashlib.sha256(data).hexdigest()
