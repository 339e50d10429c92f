"""Where agents keep their sessions, and which of the files there matter.

A table per agent: default root, the environment variables that move it, and patterns of
paths relative to the root. No I/O: whoever walks the roots asks `classify` for each path.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

Kind = Literal["transcript", "sidecar"]


class Root(NamedTuple):
    """A place to look: `path` is absolute; `patterns` are globs relative to it (`**` = any
    folders); `env_var` names the variable that moved it, None = the default place."""

    agent: str
    path: str
    patterns: tuple[str, ...]
    env_var: str | None


@dataclass(frozen=True, slots=True)
class Place:
    """One kind of root of an agent.

    `default`: below the home directory. `variables`: (name, path appended to its value), the
    first that is set wins. `transcripts`: regular expression -> parser name (see
    `lored.core.transcripts`). `sidecars`: files that say something about a session.
    """

    agent: str
    default: str
    patterns: tuple[str, ...]
    transcripts: tuple[tuple[str, str], ...]
    sidecars: str | None = None
    variables: tuple[tuple[str, str], ...] = ()


_PACKED: Final = r"(?:\.zst|\.gz)?"
_VSCODE_HOSTS: Final = (
    "Code",
    "Code - Insiders",
    "VSCodium",
    "Cursor",
    "Windsurf",
    "Antigravity",
    "Kiro",
    "Trae",
)


def _vscode_places() -> tuple[Place, ...]:
    """Task folders of Cline and its forks in the global storage of every editor that hosts
    them."""
    users = [f"{base}/{host}/User" for host in _VSCODE_HOSTS for base in _HOST_BASES]
    users += [f"{server}/data/User" for server in (".vscode-server", ".cursor-server")]
    return tuple(
        Place(
            agent,
            f"{user}/globalStorage/{extension}",
            ("tasks/*/*.json",),
            ((r"tasks/[^/]+/ui_messages\.json", "cline-tasks"),),
            r"tasks/[^/]+/(?:api_conversation_history|history_item|task_metadata)\.json",
        )
        for user in users
        for agent, extension in _EXTENSIONS
    )


_HOST_BASES: Final = (".config", "Library/Application Support")
_EXTENSIONS: Final = (
    ("cline", "saoudrizwan.claude-dev"),
    ("roo-code", "rooveterinaryinc.roo-cline"),
    ("kilo-code", "kilocode.kilo-code"),
)

PLACES: Final[tuple[Place, ...]] = (
    Place(
        "recursive",
        ".recursive",
        ("workspaces/*/sessions/**/*", "workspaces/*/path.txt"),
        ((rf"(?:.*/)?transcript\.jsonl{_PACKED}", "recursive"),),
        r"(?:.*/)?(?:\.meta\.json|cost\.json|path\.txt)",
        (("RECURSIVE_HOME", ""),),
    ),
    Place(
        "recursive",
        "",
        ("**/*",),
        ((rf"(?:.*/)?transcript\.jsonl{_PACKED}", "recursive"),),
        r"(?:.*/)?(?:\.meta\.json|cost\.json)",
        (("RECURSIVE_SESSIONS_DIR", ""),),
    ),
    Place(
        "claude-code",
        ".claude",
        ("projects/**/*.jsonl*", "projects/**/agent-*.meta.json", "history.jsonl"),
        (
            (
                rf"projects/[^/]+/(?:[^/]+/subagents/(?:.*/)?agent-)?[^/]+\.jsonl{_PACKED}",
                "claude-code",
            ),
        ),
        r"history\.jsonl|projects/(?:.*/)?agent-[^/]+\.meta\.json",
        (("CLAUDE_CONFIG_DIR", ""),),
    ),
    Place(
        "claude-code",
        ".config/claude",
        ("projects/**/*.jsonl*", "projects/**/agent-*.meta.json", "history.jsonl"),
        (
            (
                rf"projects/[^/]+/(?:[^/]+/subagents/(?:.*/)?agent-)?[^/]+\.jsonl{_PACKED}",
                "claude-code",
            ),
        ),
        r"history\.jsonl|projects/(?:.*/)?agent-[^/]+\.meta\.json",
        (("XDG_CONFIG_HOME", "claude"),),
    ),
    Place(
        "codex",
        ".codex",
        (
            "sessions/**/rollout-*.jsonl*",
            "archived_sessions/rollout-*.jsonl*",
            "session_index.jsonl",
            "history.jsonl",
        ),
        ((rf"(?:sessions/(?:.*/)?|archived_sessions/)rollout-[^/]+\.jsonl{_PACKED}", "codex"),),
        r"session_index\.jsonl|history\.jsonl",
        (("CODEX_HOME", ""),),
    ),
    Place(
        "codex",
        "Library/Developer/Xcode/CodingAssistant/codex",
        ("sessions/**/rollout-*.jsonl*", "session_index.jsonl", "history.jsonl"),
        ((rf"(?:sessions/(?:.*/)?|archived_sessions/)rollout-[^/]+\.jsonl{_PACKED}", "codex"),),
        r"session_index\.jsonl|history\.jsonl",
    ),
)


def default_roots(env: Mapping[str, str], home: str) -> list[Root]:
    """Every place where sessions of known agents may be, whether it exists or not.

    Args:
        env: environment of the user's session.
        home: absolute path of the home directory.
    """
    roots: list[Root] = []
    for place in _places:
        moved = next((name for name, _ in place.variables if env.get(name)), None)
        if moved is not None:
            suffix = dict(place.variables)[moved]
            value = env[moved]
            value = home + value[1:] if value[:2] in ("~", "~/") else value
            path = f"{value.rstrip('/')}/{suffix}".rstrip("/") or "/"
        elif place.default:
            path = f"{home.rstrip('/')}/{place.default}"
        else:
            continue
        root = Root(place.agent, path, place.patterns, moved)
        if all(root[:2] != other[:2] for other in roots):
            roots.append(root)
    return roots


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


def parser_name(agent: str, relative_path: str) -> str | None:
    """Name in `PARSERS` of what reads a transcript of ``agent``; None = not a transcript."""
    path = relative_path.replace("\\", "/")
    for pattern, name in _TRANSCRIPTS.get(agent, ()):
        if pattern.fullmatch(path):
            return name
    return None


_TRANSCRIPTS: Final[dict[str, list[tuple[re.Pattern[str], str]]]] = {}
_SIDECARS: Final[dict[str, list[re.Pattern[str]]]] = {}


def add_place(place: Place) -> None:
    """Makes a place known to `default_roots` and `classify`."""
    _places.append(place)
    for pattern, name in place.transcripts:
        _TRANSCRIPTS.setdefault(place.agent, []).append((re.compile(pattern), name))
    if place.sidecars:
        _SIDECARS.setdefault(place.agent, []).append(re.compile(place.sidecars))


_places: Final[list[Place]] = []
for _place in PLACES:
    add_place(_place)
