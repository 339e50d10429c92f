"""Words of the command line as data: what a verb takes, so that parser, help and shell
completions are made from one place. Owns no verb; `table.py` lists them.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from lore.cli.invocation import Invocation

SHELL_WORDS = ("file", "folder", "agent", "method", "verb")
"""What a shell can offer for a value beside fixed choices."""


AGENT_NAMES = (
    "aider",
    "amp",
    "antigravity",
    "claude-code",
    "cline",
    "codex",
    "copilot-cli",
    "cursor",
    "droid",
    "gemini-cli",
    "goose",
    "kilo-code",
    "kiro",
    "opencode",
    "pi",
    "qwen-code",
    "recursive",
    "roo-code",
)
"""Offered by shell completions; the daemon takes any name."""


class Usage(Exception):
    """The command line itself is wrong; exit code 2."""


class Arg:
    """One argument of a verb.

    ``names`` is `("TEXT",)` for a positional or `("--tag", "-t")` for a flag. ``kind`` says
    how values are taken: `text` one, `words` one or more joined by a space, `maybe` none or
    one, `many` any number, `list` a flag that may be repeated, `pair` a flag with two values,
    `flag` no value, `int`, `number`. ``complete`` is one of `SHELL_WORDS`.
    """

    __slots__ = ("choices", "complete", "help", "kind", "metavar", "names")

    def __init__(
        self,
        *names: str,
        help: str,  # noqa: A002 - argparse's word
        kind: str = "text",
        metavar: str = "",
        choices: tuple[str, ...] = (),
        complete: str = "",
    ) -> None:
        self.names, self.help, self.kind = names, help, kind
        self.choices, self.complete = choices, complete
        self.metavar = metavar or self.dest.upper()

    @property
    def positional(self) -> bool:
        return not self.names[0].startswith("-")

    @property
    def dest(self) -> str:
        """Attribute name in the parsed options."""
        return self.names[0].lstrip("-").replace("-", "_").lower()


class Verb:
    """One verb: its arguments, the function that runs it, examples for `--help`.

    ``scopes`` names which of `--global` and `--everywhere` mean something to it; the others
    are refused rather than ignored.
    """

    __slots__ = ("args", "examples", "name", "run", "scopes")

    def __init__(
        self,
        name: str,
        run: Callable[[Invocation], int],
        args: tuple[Arg, ...] = (),
        *,
        scopes: tuple[str, ...] = (),
        examples: tuple[str, ...] = (),
    ) -> None:
        self.name, self.run, self.args = name, run, args
        self.scopes, self.examples = scopes, examples


GLOBALS = (
    Arg("--workspace", "-C", help="path inside a workspace, or its id", complete="folder"),
    Arg("--global", "-g", kind="flag", help="facts that hold everywhere, not this workspace's"),
    Arg("--everywhere", kind="flag", help="all workspaces instead of the current one"),
    Arg("--json", kind="flag", help="one JSON document on stdout, errors as JSON on stderr"),
    Arg("--timeout", kind="number", metavar="SECONDS", help="give up after this long"),
    Arg("--direct", kind="flag", help="no daemon: read the stores, leave writes in the spool"),
)

# Arguments that several verbs share, worded once.
SINCE = Arg("--since", metavar="DATE", help="not older: 2026-05-28, yesterday, 3d, '2 weeks ago'")
UNTIL = Arg("--until", metavar="DATE", help="only older than this")
AS_OF = Arg("--as-of", metavar="DATE", help="what was valid then")
KNOWN_AT = Arg("--known-at", metavar="DATE", help="what had been recorded by then")
AGENT = Arg("--agent", help="only sessions of this agent", complete="agent")
LIMIT = Arg("--limit", "-n", kind="int", metavar="N", help="most results, 1 to 200")
EXPLAIN = Arg("--explain", kind="flag", help="show the parts of each score")
TAG = Arg("--tag", "-t", kind="list", help="a label; repeat for more")
ENTITY = Arg(
    "--entity", "-e", kind="list", metavar="TYPE:NAME", help="what it is about; repeat for more"
)


class Parser(argparse.ArgumentParser):
    """argparse that raises `Usage` instead of leaving the process."""

    def error(self, message: str) -> NoReturn:
        """Raise `Usage`; the caller prints it in the form asked for."""
        raise Usage(message)


def build(verb: Verb, about: str) -> Parser:
    """The parser of one verb: only that one is built, since each call pays for it."""
    parser = Parser(
        prog=f"lore {verb.name}",
        description=about[:1].upper() + about[1:] + ".",
        epilog=_epilog(verb),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    for arg in verb.args:
        _add(parser, arg)
    shared = parser.add_argument_group("common options")
    for arg in GLOBALS:
        heeded = arg.dest not in ("global", "everywhere") or arg.dest in verb.scopes
        _add(shared, arg, shown=heeded)
    return parser


def spell(verb: Verb, options: argparse.Namespace, **changed: object) -> str:
    """The command line that means these options, with some changed: to be pasted."""
    given = {**vars(options), **changed}
    words: list[str] = []
    flags: list[str] = []
    for arg in (*verb.args, *GLOBALS):
        value = given.get(arg.dest)
        if value is None or value is False or value == []:
            continue
        values = [str(one) for one in value] if isinstance(value, list) else [str(value)]
        if arg.positional:
            words += values
        elif arg.kind == "flag":
            flags.append(arg.names[0])
        elif arg.kind == "list":
            flags += [word for one in values for word in (arg.names[0], one)]
        else:
            flags += [arg.names[0], *values]
    return shlex.join(["lore", verb.name, *words, *flags])


def _epilog(verb: Verb) -> str:
    if not verb.examples:
        return ""
    return "examples:\n" + "\n".join(f"  {line}" for line in verb.examples)


def _add(parser: Any, arg: Arg, *, shown: bool = True) -> None:
    about = arg.help.replace("%", "%%") if shown else argparse.SUPPRESS
    options: dict[str, Any] = {"help": about}
    if arg.kind == "flag":
        options["action"] = "store_true"
    else:
        options["metavar"] = arg.metavar
        if arg.choices and arg.kind != "many":  # argparse would refuse an empty list
            options["choices"] = arg.choices
            if not arg.positional:
                options["metavar"] = "{" + ",".join(arg.choices) + "}"
    match arg.kind:
        case "int":
            options["type"] = int
        case "number":
            options["type"] = float
        case "list":
            options["action"] = "append"
        case "pair":
            options["nargs"] = 2
            options["metavar"] = tuple(arg.metavar.split())
        case "words":
            options["nargs"] = "+"
        case "many":
            options["nargs"] = "*"
        case "maybe":
            options["nargs"] = "?"
    if not arg.positional:
        options["dest"] = arg.dest
    elif arg.dest != arg.names[0]:
        parser.add_argument(arg.dest, **options)
        return
    parser.add_argument(*arg.names, **options)
