"""Where we are: home, environment, platform and the command that agents shall run."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from dataclasses import dataclass, field

from lore.errors import Invalid

CARRIED = ("LORE_HOME", "LORE_REALM", "LORE_SOCKET")
"""Settings that decide which memory is meant: what is set at install is written down, because
agents start us with an environment of their own."""


@dataclass(frozen=True)
class Place:
    """A machine as seen by the installer."""

    home: str
    env: dict[str, str] = field(default_factory=dict)
    command: str = "lore"
    darwin: bool = False

    def at(self, *parts: str) -> str:
        """A path under the home directory."""
        return os.path.join(self.home, *parts)

    def config(self, *parts: str) -> str:
        """A path under XDG_CONFIG_HOME."""
        base = self.env.get("XDG_CONFIG_HOME", "")
        return os.path.join(base if base.startswith("/") else self.at(".config"), *parts)

    def moved(self, variable: str, *default: str) -> str:
        """A folder that a variable moves, else its default under the home directory."""
        return self.env.get(variable) or self.at(*default)

    @property
    def carried(self) -> dict[str, str]:
        """Variables to write into entries."""
        return {name: self.env[name] for name in CARRIED if self.env.get(name)}

    def hook(self, agent: str, event: str) -> str:
        """The shell command line of a hook."""
        words = [self.command, "hook", agent, event]
        if self.carried:
            words = ["env", *(f"{k}={v}" for k, v in self.carried.items()), *words]
        return shlex.join(words)


def here() -> Place:
    """This machine. Raises `Invalid` when there is no home directory."""
    home = os.environ.get("HOME", "")
    if not home.startswith("/"):
        raise Invalid("no home directory: set HOME")
    return Place(home, dict(os.environ), own_command(), sys.platform == "darwin")


def own_command() -> str:
    """The absolute path of this `lore`: beside the running interpreter, else on PATH."""
    beside = os.path.join(os.path.dirname(sys.executable), "lore")
    if os.access(beside, os.X_OK):
        return beside
    found = shutil.which("lore")
    if found is None:
        raise Invalid("the command `lore` is not on PATH; install it with pipx or pip")
    return os.path.abspath(found)
