"""Puts the manual page `lore(1)` into the wheel; run by hatchling, made by `lore.cli.manual`."""

import os
import sys
import tempfile
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ManualHook(BuildHookInterface[Any]):
    """Writes the page to a folder of its own and has it installed under `share/man`."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Before the wheel is written."""
        sys.dont_write_bytecode = True  # a build leaves nothing in the source tree
        sys.path.insert(0, os.path.join(self.root, "client"))
        from lore.cli import manual

        self._folder = tempfile.TemporaryDirectory(prefix="lore-manual-")
        path = os.path.join(self._folder.name, "lore.1")
        with open(path, "w", encoding="utf-8") as file:
            file.write(manual.page())
        build_data["shared_data"][path] = "share/man/man1/lore.1"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """After it."""
        self._folder.cleanup()
