"""The formats that can be read: one module each, pure, loaded when first used.

`PARSERS` maps a parser's name to the parser. Most agents have one parser of the agent's name;
an agent that changed its format has several, which all have the same `agent`. Which one reads
a file is told by `parser_for(agent, path)`; whether a file matters at all by `classify`. A
parser is a `LineParser` (has `parse`), a `DocumentParser` (`parse_document`) or a
`DatabaseParser` (`parse_database`), see `records`.

A user adds a format in one of two ways:

- In the configuration, for any file of one JSON object per line with a role and a content: see
  `generic`.
- As a package with an entry point in the group `lored.transcripts`:

      [project.entry-points."lored.transcripts"]
      my-agent = "my_package.my_module:PARSER"

  `PARSER` follows one of the three protocols and has besides `places: tuple[Place, ...]`
  (`lored.core.transcripts.place`). `register_entry_points()` adds them; a name that exists is
  never replaced, and one that cannot be loaded is reported, not raised.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, Final

from lored.core.transcripts.place import Place
from lored.core.transcripts.places import (
    Kind,
    Root,
    add_place,
    classify,
    default_roots,
    drop_places,
    parser_name,
    workspace_roots,
)
from lored.core.transcripts.records import DatabaseParser, DocumentParser, LineParser

__all__ = [
    "ENTRY_POINTS",
    "PARSERS",
    "Kind",
    "Place",
    "Root",
    "classify",
    "default_roots",
    "parser_for",
    "parser_name",
    "register",
    "register_entry_points",
    "unregister",
    "workspace_roots",
]

Parser = LineParser | DocumentParser | DatabaseParser

ENTRY_POINTS: Final = "lored.transcripts"

_MODULES: Final[dict[str, str]] = {
    "recursive": "recursive",
    "recursive-file": "recursive:FILE",
    "claude-code": "claude_code",
    "codex": "codex",
    "gemini-cli": "gemini_cli:LOG",
    "gemini-cli-document": "gemini_cli:DOCUMENT",
    "antigravity": "antigravity",
    "opencode": "opencode:DATABASE",
    "opencode-tree": "opencode_tree:TREE",
    "copilot-cli": "copilot_cli",
    "pi": "pi",
    "qwen-code": "qwen_code",
    "qwen-code-document": "gemini_cli:QWEN_DOCUMENT",
    "goose": "goose:DATABASE",
    "goose-log": "goose:LOG",
    "cline": "cline:CLINE",
    "cline-sessions": "cline:SESSIONS",
    "roo-code": "cline:ROO",
    "kilo-code": "cline:KILO",
    "aider": "aider",
    "cursor": "cursor",
    "amp": "amp",
    "droid": "droid",
    "kiro": "kiro:DATABASE",
    "kiro-document": "kiro:DOCUMENT",
}


def parser_for(agent: str, path: str) -> Parser | None:
    """What reads a file of ``agent``: the parser for its path, else the agent's own."""
    return PARSERS.get(parser_name(agent, path) or agent)


class Registry(Mapping[str, Parser]):
    """Parsers by name. A module of ours is imported when its parser is first asked for."""

    def __init__(self, modules: dict[str, str]) -> None:
        self._modules = dict(modules)
        self._loaded: dict[str, Parser] = {}

    def __getitem__(self, name: str) -> Parser:
        if name not in self._loaded:
            module, _, attribute = self._modules[name].partition(":")
            loaded: Parser = getattr(
                import_module(f"lored.core.transcripts.{module}"), attribute or "PARSER"
            )
            self._loaded[name] = loaded
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter([*self._modules, *(name for name in self._loaded if name not in self._modules)])

    def __len__(self) -> int:
        return len({*self._modules, *self._loaded})

    def add(self, name: str, parser: Parser) -> bool:
        """Adds a parser under a new name; False when the name exists."""
        if name in self:
            return False
        self._loaded[name] = parser
        return True

    def remove(self, name: str) -> None:
        """Takes away what `add` added."""
        if name not in self._modules:
            self._loaded.pop(name, None)


PARSERS: Final = Registry(_MODULES)


def register(name: str, parser: Parser, places: tuple[Place, ...]) -> bool:
    """Adds a format and the places of its files; False when the name is taken."""
    if not PARSERS.add(name, parser):
        return False
    for place in places:
        add_place(place)
    return True


def unregister(name: str) -> None:
    """Takes away what `register` added, when the configuration changes."""
    if name not in _MODULES:
        PARSERS.remove(name)
        drop_places(name)


def register_entry_points() -> dict[str, str]:
    """Adds the formats of installed packages. Returns name -> why it could not be added."""
    from importlib.metadata import entry_points  # a tenth of the daemon's start

    problems: dict[str, str] = {}
    for entry in entry_points(group=ENTRY_POINTS):
        try:
            parser: Any = entry.load()
            if not register(entry.name, parser, tuple(parser.places)):
                problems[entry.name] = "the name is taken by another format"
        except Exception as error:
            problems[entry.name] = f"{type(error).__name__}: {error}"
    return problems
