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
    "go": "went",
    "say": "said",
    "send": "sent",
    "map": "mapped",
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
    " strip hide show speed debug solve draw redesign restyle prefix append rename switch reorder"
    " brainstorm draft wire"
)
MAKING: Final = frozenset(_MAKING_WORDS.split())
"""Verbs that ask for something to be made or mended."""

_LOOKING_WORDS: Final = (
    "read check verify review analyze analyse investigate explore explain describe test run"
    " rerun compare evaluate measure benchmark profile list search look find research examine"
    " inspect audit trace reproduce troubleshoot diagnose summarize summarise report answer"
    " clarify scan use continue start give get monitor track download fetch export import load"
    " save open close print display record mark validate parse commit submit push pull tag"
    " merge rebase ship deploy release publish go say echo ask figure propose suggest send map"
    " list count try"
)
LOOKING: Final = frozenset(_LOOKING_WORDS.split())
"""Verbs that ask to look, find out, run or hand in."""

_VERBS: Final = MAKING | LOOKING
_OBJECT: Final = re.compile(r"\w+ (?!(?:it|this|that|them|these|those|all)\b)\w")
"""A verb and what it is about by name."""
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


_AND_THEN: Final = re.compile(
    r"(?P<joint>,? (?:and )?(?:then )?)(?P<verb>[a-z]+)(?= (?:it|them|the|a|an|this|that|these"
    r"|those|all|any|some|each|every|no|what|how|why|whether|which|my|our|your|its|their|one|both"
    r"|another)\b| [@`'\"/~.]| [\w-]+[/.]\w)"
)
"""A further order of the same sentence, known by what follows it: `the build and test scripts`
is none, `fix it and test the build` is."""
_BOUND: Final = re.compile(
    r"\b(?:to|can|could|should|must|may|might|will|would|shall|not|don't|you|they|we|i|let|lets"
    r"|if|unless|before|after|when|while|until|so that)\b",
    re.IGNORECASE,
)
"""After one of these a verb is no order: `so that others can read and edit the page`."""
_STATEMENT: Final = re.compile(
    r"^(?:i|i'm|i've|we|we're|we've|it|it's|its|this|that|there|there's|they|the|my|our|now|when"
    r"|after|since|by|for|in|on|at|as|if|you|your|all|some|still|nono)\b",
    re.IGNORECASE,
)
CHORE_CHARS: Final = 60
_CHORE: Final = re.compile(
    r"^(?:check ?out|switch to|pull|fetch|rebase|commit|push|stage|stash|merge|git|cd|open|start"
    r"|(?:read|check|look at) (?:the )?(?:git|status|branch|diff|log|readme|docs?|claude"
    r"|agents))\b(?![/.\w-])",
    re.IGNORECASE,
)
_DOING: Final = re.compile(r"^(?:i'?m|i am|we'?re|we are) working on (?=\S)", re.IGNORECASE)


def phrase(line: str, *, done: bool, asked: bool = True) -> str:
    """What was done about a request, from its headline.

    Args:
        line: a headline (`requests.headline`).
        asked: whether these are a person's words, not a title.
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
        return f"{past(verb).capitalize()}{_done(rest)}" if done else f"Worked on: {verb}{rest}"
    if line.startswith("/") and " " not in line:
        return f"Ran {line}"
    if doing := _DOING.match(line):
        return f"Worked on {line[doing.end() :]}"
    if _QUESTION.search(line) and line.isascii():
        return f"Answered: {line}" if done else f"Asked: {line}"
    if asked and line.isascii() and _STATEMENT.match(line):
        own = line if line.split("'")[0].split()[0] == "I" else line[:1].lower() + line[1:]
        return f"Worked on: {own}"
    return line[:1].upper() + line[1:]


def _done(rest: str) -> str:
    """Past tense of the further orders in the rest of an order that was carried out."""
    bound = _BOUND.search(rest)
    end = bound.start() if bound else len(rest)

    def told(match: re.Match[str]) -> str:
        verb = match["verb"]
        if not match["joint"].strip() or verb not in _VERBS:
            return match[0]
        return f"{match['joint']}{past(verb)}"

    return _AND_THEN.sub(told, rest[:end]) + rest[end:]


def is_order(line: str) -> bool:
    """Whether a headline names a goal or begins with a verb of making."""
    word = _TOKEN.match(line)
    if word and word[0].lower() in MAKING:
        return bool(_OBJECT.match(line)) and len(line.split()) > 2
    return bool(_GOAL.match(line))


def is_chore(line: str) -> bool:
    """Whether a headline asks only for what comes before or after work (`check out main`)."""
    return len(line) <= CHORE_CHARS and bool(_CHORE.match(line))


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
