"""Files that come with us but are not Python: units for supervisors, the Neovim plugin.

In a wheel they lie beside this module; in a source tree at their own places.
"""

from __future__ import annotations

import os

from lore.errors import Unavailable

_HERE = os.path.dirname(os.path.abspath(__file__))
_SOURCE = {
    "systemd": os.path.join(_HERE, "..", "..", "..", "systemd"),
    "nvim": os.path.join(_HERE, "..", "..", "editors", "nvim"),
}


def read(kind: str, name: str) -> str:
    """The text of a shipped file. Raises `Unavailable` when the installation lacks it."""
    for folder in (os.path.join(_HERE, "data", kind), _SOURCE[kind]):
        try:
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            continue
    raise Unavailable(f"{kind}/{name} is missing in this installation; reinstall lored")
