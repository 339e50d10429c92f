"""From words to a verb and from errors to exit codes. Knows no verb.

Exit codes: 0 done, 1 nothing found, 2 usage, 3 refused (invalid, not found, ambiguous,
conflict, limit), 4 no daemon that can answer, 5 a defect of ours; 130 after Ctrl-C.
"""

from __future__ import annotations

import os
import sys

from lore.cli import table
from lore.cli.arguments import GLOBALS, Arg, Usage, build
from lore.cli.invocation import (
    DEFECT,
    DONE,
    INTERRUPTED,
    NO_DAEMON,
    REFUSED,
    USAGE,
    Invocation,
)
from lore.cli.render import Screen, clean, one_line
from lore.errors import LoreError

EXIT_BY_CODE = {
    "invalid": REFUSED,
    "not_found": REFUSED,
    "ambiguous": REFUSED,
    "conflict": REFUSED,
    "limit": REFUSED,
    "busy": NO_DAEMON,
    "timeout": NO_DAEMON,
    "unavailable": NO_DAEMON,
    "incompatible": NO_DAEMON,
    "shutting_down": NO_DAEMON,
    "internal": DEFECT,
}


CANDIDATES_SHOWN = 10
"""Of the meanings of an ambiguous name; writing more of it is quicker than reading more."""


def run(words: list[str]) -> int:
    """Run one command line and return its exit code; prints whatever went wrong."""
    ends = words.index("--") if "--" in words else len(words)
    screen = Screen(json="--json" in words[:ends])
    verb = ""
    try:
        verb, rest = split(words)
        code = _run(verb, rest, screen)
        screen.out.flush()
        return code
    except Usage as error:
        hint = f"lore {verb} --help" if verb else "lore --help"
        return _refuse(screen, USAGE, "usage", f"{error}; see `{hint}`", {})
    except LoreError as error:
        code = EXIT_BY_CODE.get(error.code, DEFECT)
        return _refuse(screen, code, error.code, error.message, error.data)
    except BrokenPipeError:
        # The reader went away (`lore facts | head`): nothing is wrong, nobody listens.
        _mute()
        return DONE
    except KeyboardInterrupt:
        screen.note("")
        return INTERRUPTED
    except OSError as error:
        # A full disk behind `>`, a folder that may not be read: the machine, not a defect.
        try:
            screen.out.flush()
        except OSError:
            _mute()
        where = f"{error.filename}: " if error.filename else ""
        return _refuse(screen, REFUSED, "invalid", f"{where}{error.strerror or error}", {})
    except Exception as error:
        if os.environ.get("LORE_DEBUG"):
            raise
        message = f"defect in lore {verb}: {type(error).__name__}: {error}; LORE_DEBUG=1 tells more"
        return _refuse(screen, DEFECT, "internal", message, {})


def _mute() -> None:
    """Let what is still to be printed go nowhere: standard output cannot take it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def split(words: list[str]) -> tuple[str, list[str]]:
    """The verb and its words; global flags before the verb are moved behind it.

    Raises `Usage` for an unknown verb, naming the nearest.
    """
    before: list[str] = []
    flags = {name: arg for arg in GLOBALS for name in arg.names}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word in ("-h", "--help") or (word == "help" and not rest):
            return "help", []
        if word in ("-V", "--version", "version"):
            return "version", []
        if word == "help":
            return rest[0], ["--help"]
        if not word.startswith("-"):
            if word not in table.MODULES:
                raise Usage(f"unknown verb {word!r}{_nearest(word)}")
            return word, [*before, *rest]
        arg = flags.get(word.partition("=")[0])
        if arg is None:
            raise Usage(f"unknown flag {word} before the verb")
        before.append(word)
        if _takes_next(arg, word) and rest:
            before.append(rest.pop(0))
    return "help", []


def _takes_next(arg: Arg, word: str) -> bool:
    return arg.kind != "flag" and "=" not in word


def _nearest(word: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(word, table.MODULES, 1)
    return f"; did you mean {near[0]!r}?" if near else ""


def _run(name: str, rest: list[str], screen: Screen) -> int:
    if name == "help":
        screen.say(table.overview())
        return DONE
    if name == "version":
        from lore import __version__

        screen.say(f"lore {__version__}")
        return DONE
    if name not in table.MODULES:
        raise Usage(f"unknown verb {name!r}{_nearest(name)}")
    verb = table.load(name)
    parser = build(verb, table.ABOUT[name])
    if "-h" in rest or "--help" in rest:
        screen.say(parser.format_help().rstrip())
        return DONE
    # Flags may stand between words, but not where `--` says that no more flags come: argparse
    # loses that mark when it looks twice.
    options = parser.parse_args(rest) if "--" in rest else parser.parse_intermixed_args(rest)
    for flag in ("global", "everywhere"):
        if getattr(options, flag) and flag not in verb.scopes:
            raise Usage(f"lore {name} has no use for --{flag}")
    with Invocation(name, options, screen) as invocation:
        return verb.run(invocation)


def _refuse(
    screen: Screen, exit_code: int, code: str, message: str, data: dict[str, object]
) -> int:
    try:
        screen.out.flush()
        if screen.json:
            screen.error_document(code, message, data)
        else:
            screen.note(f"lore: {clean(message)}", *_candidates(data))
    except BrokenPipeError:
        pass
    return exit_code


def _candidates(data: dict[str, object]) -> list[str]:
    """What an ambiguous name could mean, one a line, with what tells them apart."""
    found = data.get("candidates")
    if not isinstance(found, list):
        return []
    maps = [item if isinstance(item, dict) else {"id": item} for item in found[:CANDIDATES_SHOWN]]
    lines = [f"  {item.get('id')}  {one_line(str(item.get('text', '')))}".rstrip() for item in maps]
    return [clean(line) for line in lines]
