"""Neovim: our plugin as a package in the `pack` folder of its data directory (`:help packages`)."""

from __future__ import annotations

import os

from lore.install import shipped
from lore.install.edits import Edit, FileEdit
from lore.install.places import Place

MARK = "-- Written by `lore install`, removed by `lore uninstall`.\n"
FILES = ("lua/lore/init.lua", "plugin/lore.lua")


def edits(place: Place, recall: bool) -> list[Edit]:
    """The plugin's files."""
    base = place.env.get("XDG_DATA_HOME", "")
    data = base if base.startswith("/") else place.at(".local", "share")
    root = os.path.join(data, "nvim", "site", "pack", "lore", "start", "lore")
    return [FileEdit(os.path.join(root, name), MARK + shipped.read("nvim", name)) for name in FILES]
