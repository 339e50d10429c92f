"""The manual page `lore(1)`, made from the table of verbs: one home of every help text.

The wheel installs it as `share/man/man1/lore.1`; `python -m lore.cli.manual` prints it. Pure.
"""

from __future__ import annotations

from lore.cli import table
from lore.cli.arguments import GLOBALS, Arg, Verb

EXITS = (
    ("0", "done"),
    ("1", "nothing found"),
    ("2", "the command line is wrong"),
    ("3", "refused: invalid, not found, ambiguous, in conflict, over a limit"),
    ("4", "no daemon that can answer"),
    ("5", "a defect of lore itself"),
    ("130", "interrupted"),
)

ENVIRONMENT = (
    ("LORE_HOME", "one folder for settings, data, state and socket"),
    ("LORE_SOCKET", "the socket alone"),
    ("LORE_REALM", "a separate set of stores; nothing is searched across realms"),
    ("LORE_OFF", "set to 1: the hooks say nothing"),
    ("LORE_NO_SPAWN", "set to 1: never start the daemon"),
    ("NO_COLOR", "no colours"),
)

FILES = (
    ("~/.config/lore/config.toml", "settings"),
    ("~/.local/share/lore/", "the stores and their backups"),
    ("~/.local/state/lore/", "log, spool, locks and, without XDG_RUNTIME_DIR, the socket"),
)


def page() -> str:
    """The whole page as roff."""
    lines = [
        '.\\" Made by python -m lore.cli.manual; edit the help texts in lore/cli instead.',
        '.TH LORE 1 "" "lored" "User Commands"',
        ".SH NAME",
        "lore \\- one memory for every local AI agent",
        ".SH SYNOPSIS",
        ".B lore",
        ".I VERB",
        "[\\fIARGUMENTS\\fR]",
        ".SH DESCRIPTION",
        "Asks the memory daemon \\fBlored\\fR of this user, and starts it when it is needed.",
        "Facts and past sessions of all agents are kept per workspace (the repository that the",
        "current directory is in) and globally. Dates are ISO (2026-05-28), \\fByesterday\\fR,",
        "\\fB3d\\fR or \\fB2 weeks ago\\fR, in the local zone. Ids are \\fBF3\\fR,",
        "\\fBglobal:F3\\fR, and any unique beginning of a session id.",
    ]
    for group, verbs in table.GROUPS:
        lines.append(f'.SH "{group.upper()}"')
        for name, _, about in verbs:
            lines += _verb(table.load(name), about)
    lines.append('.SH "COMMON OPTIONS"')
    lines.append("Where they mean something to the verb.")
    lines += [line for arg in GLOBALS for line in _arg(arg)]
    for title, rows in (("EXIT STATUS", EXITS), ("ENVIRONMENT", ENVIRONMENT), ("FILES", FILES)):
        lines.append(f'.SH "{title}"')
        for term, about in rows:
            lines += [".TP", f".B {_plain(term)}", _plain(about)]
    return "\n".join(lines) + "\n"


def _verb(verb: Verb, about: str) -> list[str]:
    lines = [
        f'.SS "lore {verb.name}{_synopsis(verb)}"',
        _plain(about[:1].upper() + about[1:]) + ".",
    ]
    for arg in verb.args:
        lines += _arg(arg)
    if verb.examples:
        lines += [".PP", ".nf", ".RS"]
        lines += [_plain(example) for example in verb.examples]
        lines += [".RE", ".fi"]
    return lines


def _synopsis(verb: Verb) -> str:
    words = []
    for arg in verb.args:
        if arg.positional:
            name = arg.names[0]
            form = {"words": "{} ...", "many": "[{} ...]", "maybe": "[{}]"}.get(arg.kind, "{}")
            words.append(form.format(name))
    options = " [OPTIONS]" if any(not arg.positional for arg in verb.args) else ""
    return "".join(f" {word}" for word in words) + options


def _arg(arg: Arg) -> list[str]:
    if arg.positional:
        head = f"\\fI{_plain(arg.names[0])}\\fR"
    else:
        names = ", ".join(f"\\fB{_plain(name)}\\fR" for name in arg.names)
        value = "" if arg.kind == "flag" else f" \\fI{_plain(arg.metavar)}\\fR"
        head = names + value
    about = _plain(arg.help)
    if arg.choices and arg.kind != "many":
        about += _plain(f" ({', '.join(arg.choices)})")
    return [".TP", head, about]


def _plain(text: str) -> str:
    """Text without meaning for roff: back slashes, hyphens that are meant, leading controls."""
    safe = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + safe if safe[:1] in (".", "'") else safe


if __name__ == "__main__":
    print(page(), end="")
