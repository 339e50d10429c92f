"""Where agents keep their sessions, and which of the files there matter.

The table is in `place_table`. No I/O: whoever walks the roots asks `classify` for each path.
"""

import re
from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

from lored.core.transcripts.place import FILE, Place
from lored.core.transcripts.place_table import PLACES

Kind = Literal["transcript", "sidecar"]


class Root(NamedTuple):
    """A place to look: `path` is absolute; `patterns` are globs relative to it (`**` = any
    folders); `env_var` names the variable that moved it, None = the default place."""

    agent: str
    path: str
    patterns: tuple[str, ...]
    env_var: str | None


def default_roots(env: Mapping[str, str], home: str) -> list[Root]:
    """Every place where sessions of known agents may be, whether it exists or not.

    Args:
        env: environment of the user's session.
        home: absolute path of the home directory.
    """
    home = home.rstrip("/")
    roots: list[Root] = []
    for place in _places:
        moved = next((name for name, _ in place.variables if env.get(name)), None)
        patterns = place.patterns
        if moved is not None:
            suffix = dict(place.variables)[moved]
            path = _absolute(env[moved], home)
            if suffix == FILE:
                path, _, name = path.rpartition("/")
                patterns = (name,)
            elif suffix:
                path = f"{path}/{suffix}"
        elif place.default:
            path = _absolute(place.default, home)
        else:
            continue
        root = Root(place.agent, path or "/", patterns, moved)
        if all(root[:2] != other[:2] for other in roots):
            roots.append(root)
    return roots


def workspace_roots(workspace: str) -> list[Root]:
    """Places inside a project where agents keep its sessions; ``workspace`` is absolute. They
    are not searched for: whoever knows a workspace asks for them."""
    folder = workspace.rstrip("/")
    return [
        Root("recursive", f"{folder}/.recursive", ("sessions/**/*",), None),
        Root("aider", folder, (".aider.chat.history.md",), None),
    ]


def _absolute(path: str, home: str) -> str:
    """A path as written in a variable or the table; what is relative is below ``home``."""
    path = path.rstrip("/")
    if path == "~":
        return home
    path = path.removeprefix("~/")
    return path if path.startswith("/") else f"{home}/{path}"


def pattern_of(glob: str) -> str:
    """A regular expression for a glob of relative paths; `**/` is any folders, also none."""
    pieces = re.split(r"(\*\*/|\*|\?)", glob.replace("\\", "/"))
    wild = {"**/": "(?:.*/)?", "*": "[^/]*", "?": "[^/]"}
    return "".join(wild.get(piece, re.escape(piece)) for piece in pieces)


def classify(agent: str, relative_path: str) -> Kind | None:
    """Whether a file below a root of ``agent`` is a transcript, belongs to one, or neither."""
    path = relative_path.replace("\\", "/")
    if path.endswith((".tmp", ".lock", ".swp", "~")) or ".unreadable-" in path:
        return None
    if parser_name(agent, path) is not None:
        return "transcript"
    for pattern in _SIDECARS.get(agent, ()):
        if pattern.fullmatch(path):
            return "sidecar"
    return None


def parser_name(agent: str, path: str) -> str | None:
    """Name in `PARSERS` of what reads a transcript of ``agent``; None = not a transcript.
    ``path`` is relative to the root, or absolute."""
    path = path.replace("\\", "/")
    whole = path.startswith("/") or path[1:3] == ":/"
    for pattern, relative, name in _TRANSCRIPTS.get(agent, ()):
        if (pattern if whole else relative).fullmatch(path):
            return name
    return None


_TRANSCRIPTS: Final[dict[str, list[tuple[re.Pattern[str], re.Pattern[str], str]]]] = {}
_SIDECARS: Final[dict[str, list[re.Pattern[str]]]] = {}


def add_place(place: Place) -> None:
    """Makes a place known to `default_roots` and `classify`."""
    _places.append(place)
    for pattern, name in place.transcripts:
        compiled = (re.compile(f"(?:.*/)?(?:{pattern})"), re.compile(pattern), name)
        _TRANSCRIPTS.setdefault(place.agent, []).append(compiled)
    if place.sidecars:
        _SIDECARS.setdefault(place.agent, []).append(re.compile(place.sidecars))


def drop_places(agent: str) -> None:
    """Forgets every place of an agent."""
    _places[:] = [place for place in _places if place.agent != agent]
    _TRANSCRIPTS.pop(agent, None)
    _SIDECARS.pop(agent, None)


_places: Final[list[Place]] = []
for _place in PLACES:
    add_place(_place)
