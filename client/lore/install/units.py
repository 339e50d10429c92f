"""Units for supervisors: systemd of the user, launchd. The same files as in `systemd/`, with
this installation's program in them. Starting them is left to the two commands in `START`.
"""

from __future__ import annotations

import os
import subprocess

from lore.errors import Invalid
from lore.install import shipped
from lore.install.edits import Edit, FileEdit
from lore.install.places import Place

MARK = "Written by `lore install`, removed by `lore uninstall`."
LABEL = "com.lored.lored"

SYSTEMD_NEXT = "the daemon now starts with the first call; `journalctl --user -u lored` has its log"
LAUNCHD_NEXT = "the daemon now starts with the first call"

COMMAND_SECONDS = 20.0
"""Longest wait for systemctl or launchctl."""


def daemon_program(place: Place) -> str:
    """The daemon's command: beside the client's. Raises `Invalid` when it is not there."""
    path = os.path.join(os.path.dirname(place.command), "lored")
    if not os.path.exists(path):
        raise Invalid(f"{path} is missing; run: pip install 'lored[daemon]'")
    return path


def _no_carried(place: Place) -> None:
    if place.carried:
        names = ", ".join(place.carried)
        raise Invalid(f"units serve the default paths only; unset {names} and try again")


def systemd(place: Place, recall: bool) -> list[Edit]:
    """lored.socket and lored.service for `systemctl --user`."""
    _no_carried(place)
    service = shipped.read("systemd", "lored.service")
    program = daemon_program(place).replace("%", "%%")
    if any(char in program for char in " \t\"'\\"):
        program = '"' + program.replace("\\", "\\\\").replace('"', '\\"') + '"'
    lines = [
        f"ExecStart={program} run" if line.startswith("ExecStart=") else line
        for line in service.splitlines()
    ]
    documents = {
        "lored.socket": shipped.read("systemd", "lored.socket"),
        "lored.service": "\n".join(lines) + "\n",
    }
    return [
        FileEdit(place.config("systemd", "user", name), f"# {MARK}\n{text}")
        for name, text in documents.items()
    ]


def launchd(place: Place, recall: bool) -> list[Edit]:
    """A launch agent with the socket handed over."""
    from xml.sax.saxutils import escape

    _no_carried(place)
    text = shipped.read("systemd", f"{LABEL}.plist")
    text = text.replace("@HOME@/.local/bin/lored", escape(daemon_program(place)))
    text = text.replace("@HOME@", escape(place.home))
    head, _, rest = text.partition("<plist")
    path = place.at("Library", "LaunchAgents", f"{LABEL}.plist")
    return [FileEdit(path, f"{head}<!-- {MARK} -->\n<plist{rest}")]


START = {
    "systemd": (
        ("systemctl", "--user", "daemon-reload"),
        ("systemctl", "--user", "enable", "--now", "lored.socket"),
    ),
    "launchd": (
        ("launchctl", "bootstrap", f"gui/{os.getuid()}", f"~/Library/LaunchAgents/{LABEL}.plist"),
    ),
}
STOP = {
    "systemd": (("systemctl", "--user", "disable", "--now", "lored.socket", "lored.service"),),
    "launchd": (("launchctl", "bootout", f"gui/{os.getuid()}/{LABEL}"),),
}
AFTER_STOP = {"systemd": (("systemctl", "--user", "daemon-reload"),)}


def run(commands: tuple[tuple[str, ...], ...]) -> list[str]:
    """Run supervisor commands; returns a note for each that failed."""
    notes = []
    for words in commands:
        line = [os.path.expanduser(word) for word in words]
        try:
            done = subprocess.run(
                line,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=COMMAND_SECONDS,
                check=False,
            )
            failed = done.stderr.strip() or f"exit code {done.returncode}"
            if done.returncode != 0:
                notes.append(f"`{' '.join(words)}` failed: {failed}")
        except (OSError, subprocess.TimeoutExpired) as error:
            notes.append(f"`{' '.join(words)}` could not run: {error}")
    return notes
