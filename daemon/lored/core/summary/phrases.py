"""The words of a rendered summary: past tense of what was asked, and names of files.

English phrasing is applied only to English requests that begin with a known verb; text in
other languages, questions and titles stand as they are.
"""

import os.path
import re
from typing import Final

PATH_CHARS: Final = 40

_IRREGULAR: Final = {
    "build": "built",
    "rebuild": "rebuilt",
    "write": "wrote",
    "rewrite": "rewrote",
    "make": "made",
    "find": "found",
    "get": "got",
    "set": "set",
    "run": "ran",
    "rerun": "reran",
    "read": "read",
    "redo": "redid",
    "undo": "undid",
    "split": "split",
    "give": "gave",
    "hide": "hid",
    "show": "showed",
    "draw": "drew",
    "speed": "sped",
    "debug": "debugged",
    "ship": "shipped",
    "plan": "planned",
    "scan": "scanned",
    "swap": "swapped",
    "drop": "dropped",
    "wrap": "wrapped",
    "strip": "stripped",
    "submit": "submitted",
    "commit": "committed",
    "tag": "tagged",
    "redesign": "redesigned",
}
_MAKING_WORDS: Final = (
    "add fix implement create update remove delete change improve move rename replace migrate"
    " convert port refactor build rebuild write rewrite make redo undo split set install"
    " upgrade downgrade bump integrate extract enable disable support handle optimize optimise"
    " simplify clean tidy format restructure reorganize rework generate render resolve address"
    " correct ensure finish complete provide expose introduce append insert apply adjust tweak"
    " tune increase decrease reduce limit extend expand configure design plan document"
    " translate bootstrap initialize initialise scaffold automate schedule polish align style"
    " annotate patch restore revert modify edit copy duplicate archive mock wrap swap drop"
    " strip hide show speed debug solve draw redesign restyle"
)
MAKING: Final = frozenset(_MAKING_WORDS.split())
"""Verbs that ask for something to be made or mended."""

_LOOKING_WORDS: Final = (
    "read check verify review analyze analyse investigate explore explain describe test run"
    " rerun compare evaluate measure benchmark profile list search look find research examine"
    " inspect audit trace reproduce troubleshoot diagnose summarize summarise report answer"
    " clarify scan use continue start give get monitor track download fetch export import load"
    " save open close print display record mark validate parse commit submit push pull tag"
    " merge rebase ship deploy release publish"
)
LOOKING: Final = frozenset(_LOOKING_WORDS.split())
"""Verbs that ask to look, find out, run or hand in."""

_VERBS: Final = MAKING | LOOKING
_QUESTION: Final = re.compile(
    r"^(?:why|how|what|when|where|which|who|is|are|does|do we|do you|did|can|could|should|would"
    r"|will|has|have)\b|[?？]$",
    re.IGNORECASE,
)
_GOAL: Final = re.compile(
    r"^(?P<name>(?:Goal|Task|Phase|Milestone|Step|Story|Ticket|Issue|RFC"
    r"|Sprint)\s+#?[\w.-]*\d[\w.-]*)\s*(?:[—–:：-]+\s*)(?P<what>.+)$",
    re.IGNORECASE,
)
_TOKEN: Final = re.compile(r"^[A-Za-z][a-z'-]*")


def phrase(line: str, *, done: bool) -> str:
    """What was done about a request, from its headline.

    Args:
        line: a headline (`requests.headline`).
        done: whether the work ended well with something to show.
    """
    goal = _GOAL.match(line)
    if goal:
        name = goal["name"][0].upper() + goal["name"][1:]
        what = goal["what"].strip().strip("()")
        return f"{'Implemented' if done else 'Worked on'} {name} ({what})"
    word = _TOKEN.match(line)
    verb = word[0].lower() if word else ""
    if verb in _VERBS and line[len(verb) : len(verb) + 1] == " ":
        rest = line[len(verb) :].rstrip("?？ ")
        return f"{past(verb).capitalize()}{rest}" if done else f"Worked on: {verb}{rest}"
    if _QUESTION.search(line) and line.isascii():
        return f"Answered: {line}" if done else f"Asked: {line}"
    return line[:1].upper() + line[1:]


def is_order(line: str) -> bool:
    """Whether a headline names a goal or begins with a verb of making."""
    word = _TOKEN.match(line)
    if word and word[0].lower() in MAKING:
        return bool(re.match(r"\w+ \w", line)) and len(line.split()) > 2
    return bool(_GOAL.match(line))


def is_question(line: str) -> bool:
    """Whether a headline asks instead of ordering."""
    return bool(_QUESTION.search(line))


def past(verb: str) -> str:
    """Past tense of a lower-case English verb of the tables above."""
    if verb in _IRREGULAR:
        return _IRREGULAR[verb]
    if verb.endswith("e"):
        return verb + "d"
    if verb.endswith("y") and verb[-2:-1] not in "aeou":
        return verb[:-1] + "ied"
    return verb + "ed"


def short_path(path: str, cwd: str | None) -> str:
    """``path`` relative to the session's directory, or its last two parts when outside."""
    if cwd:
        root = cwd.rstrip("/\\")
        for separator in ("/", "\\"):
            if path.lower().startswith(f"{root}{separator}".lower()):
                return path[len(root) + 1 :]
    if not os.path.isabs(path) and not re.match(r"^[A-Za-z]:[\\/]", path):
        return path.removeprefix("./")
    return "/".join(re.split(r"[\\/]", path)[-2:])


def brief_path(path: str) -> str:
    """``path`` without leading folders while it is longer than `PATH_CHARS`."""
    parts = path.split("/")
    while len(parts) > 1 and len("/".join(parts)) > PATH_CHARS:
        parts = parts[1:]
    return "/".join(parts)


def listed(names: list[str], shown: int, more: int = 0) -> str:
    """`a, b and 3 more files`."""
    rest = len(names) - shown + more
    if rest <= 0:
        return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]
    return f"{', '.join(names[:shown])} and {rest} more file{'s' if rest > 1 else ''}"
