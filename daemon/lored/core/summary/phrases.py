"""The words of a rendered summary: past tense of what was asked, and names of files.

English phrasing is applied only to English requests that begin with a known verb; text in
other languages, questions and titles stand as they are.
"""

import os.path
import re
from typing import Final

_IRREGULAR: Final = {
    "build": "built",
    "rebuild": "rebuilt",
    "write": "wrote",
    "rewrite": "rewrote",
    "make": "made",
    "find": "found",
    "get": "got",
    "set": "set",
    "put": "put",
    "run": "ran",
    "rerun": "reran",
    "read": "read",
    "do": "did",
    "redo": "redid",
    "undo": "undid",
    "split": "split",
    "cut": "cut",
    "take": "took",
    "think": "thought",
    "understand": "understood",
    "bring": "brought",
    "send": "sent",
    "give": "gave",
    "go": "went",
    "keep": "kept",
    "let": "let",
    "begin": "began",
    "teach": "taught",
    "hide": "hid",
    "show": "showed",
    "break": "broke",
    "draw": "drew",
    "speed": "sped",
    "debug": "debugged",
    "ship": "shipped",
    "plan": "planned",
    "scan": "scanned",
    "swap": "swapped",
    "drop": "dropped",
    "map": "mapped",
    "wrap": "wrapped",
    "stop": "stopped",
    "strip": "stripped",
    "submit": "submitted",
    "commit": "committed",
    "refer": "referred",
    "log": "logged",
    "tag": "tagged",
    "trim": "trimmed",
    "pin": "pinned",
    "refactor": "refactored",
}
_REGULAR_WORDS: Final = (
    "add fix implement create update remove delete change improve move rename replace migrate"
    " convert port test check verify review analyze analyse investigate explore explain describe"
    " document design configure install upgrade downgrade bump integrate extract merge rebase"
    " push pull deploy release publish enable disable allow support handle optimize optimise"
    " simplify clean tidy format lint restructure reorganize rework generate render compute"
    " parse validate resolve address correct ensure finish complete continue start prepare"
    " provide expose introduce add append insert apply use adjust tweak tune increase decrease"
    " reduce limit extend expand clarify compare evaluate measure benchmark profile list search"
    " look research examine inspect audit trace reproduce troubleshoot diagnose help summarize"
    " summarise translate import export load save store cache download upload fetch open close"
    " connect restore revert bootstrap initialize initialise scaffold automate schedule monitor"
    " track report answer work polish align center style annotate mark label record print"
    " display patch lower raise restart add modify edit copy clone duplicate delete purge"
    " archive compress cover mock stub raise"
)
_REGULAR: Final = frozenset(_REGULAR_WORDS.split())
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
    if (
        verb
        and (verb in _IRREGULAR or verb in _REGULAR)
        and not line.startswith(f"{word[0]}:" if word else ":")
    ):
        rest = line[len(verb) :]
        return (
            f"{past(verb).capitalize()}{rest}"
            if done
            else f"Worked on: {line[0].lower()}{line[1:]}"
        )
    if _QUESTION.search(line) and line.isascii():
        return f"Answered: {line}" if done else f"Asked: {line}"
    return line[:1].upper() + line[1:]


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


def listed(names: list[str], shown: int, more: int = 0) -> str:
    """`a, b and 3 more files`."""
    rest = len(names) - shown + more
    if rest <= 0:
        return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]
    return f"{', '.join(names[:shown])} and {rest} more file{'s' if rest > 1 else ''}"
