"""Any file of one JSON object per line that has a role and a content, by a mapping in TOML.

Each file is one session, named after the file.

    [[sources.custom]]
    agent = "my-agent"                  # shown as the agent's name
    root = "~/.my-agent/logs"
    pattern = "*.jsonl"                 # glob below the root; `**` = any folders
    role = "role"                       # where things stand: names joined by dots
    content = "message.content"         # text, or a list of text/tool_use/tool_result blocks
    id = "id"                           # optional, as all below
    time = "timestamp"                  # ISO text, epoch seconds or milliseconds
    cwd = "cwd"
    model = "model"
    title = "title"
    user = ["user", "human"]            # values of `role`; these are the defaults
    assistant = ["assistant", "model", "ai"]
    tool = ["tool", "function"]
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from lored.core.transcripts.conversation import read_blocks, record_key
from lored.core.transcripts.files import Alone
from lored.core.transcripts.knowledge import learn, learn_first, learn_time
from lored.core.transcripts.lines import attempt, decode_line, unknown_type
from lored.core.transcripts.place import Place
from lored.core.transcripts.places import pattern_of
from lored.core.transcripts.records import Message, Record
from lored.core.transcripts.stamps import instant
from lored.core.transcripts.texts import flat_text, keep_output, text_or_none, title_of

_FIELDS: Final = ("role", "content", "id", "time", "cwd", "model", "title")
_ROLES: Final[dict[str, tuple[str, ...]]] = {
    "user": ("user", "human"),
    "assistant": ("assistant", "model", "ai"),
    "tool": ("tool", "function"),
}


class Generic(Alone):
    """Line parser made by a mapping."""

    version = 1

    def __init__(self, mapping: Mapping[str, Any]) -> None:
        """Raises ValueError with a sentence for a mapping that cannot work."""
        unknown = set(mapping) - {*_FIELDS, *_ROLES, "agent", "root", "pattern"}
        if unknown:
            raise ValueError(f"unknown key {sorted(unknown)[0]!r} in a custom source")
        self.agent = _text(mapping, "agent", None)
        self.root = _text(mapping, "root", None)
        self.pattern = _text(mapping, "pattern", "**/*.jsonl")
        self._paths = {
            name: _text(mapping, name, name if name in ("role", "content") else "").split(".")
            for name in _FIELDS
        }
        self._roles: dict[str, str] = {}
        for role, names in _ROLES.items():
            values = mapping.get(role, names)
            if not isinstance(values, list | tuple) or not all(isinstance(v, str) for v in values):
                raise ValueError(f"{role!r} in a custom source must be a list of texts")
            self._roles.update(dict.fromkeys(values, role))

    @property
    def places(self) -> tuple[Place, ...]:
        """Where its files are, for `register`."""
        return (
            Place(
                self.agent, self.root, (self.pattern,), ((pattern_of(self.pattern), self.agent),)
            ),
        )

    def session_id(self, path: str, head: bytes) -> str | None:
        """The file's name without its ending."""
        name = path.replace("\\", "/").rpartition("/")[2]
        return name.partition(".")[0] or name

    def begin(self, path: str) -> dict[str, Any]:
        return {"session": self.session_id(path, b"") or "unknown"}

    def parse(self, state: dict[str, Any], line: bytes, offset: int) -> Iterable[Record]:
        marks = frozenset(path[0] for path in self._paths.values() if path[0])
        objects, damage = decode_line(line, offset, marks)
        out: list[Record] = list(damage)
        for index, item in enumerate(objects):
            attempt(out, offset, self._item, state, item, offset + index, out)
        return out

    def _get(self, item: dict[str, Any], name: str) -> Any:
        value: Any = item
        for step in self._paths[name]:
            value = value.get(step) if step and isinstance(value, dict) else None
        return value

    def _item(
        self, state: dict[str, Any], item: dict[str, Any], offset: int, out: list[Record]
    ) -> None:
        at = instant(self._get(item, "time"))
        learn_time(state, out, at)
        learn_first(state, out, cwd=text_or_none(self._get(item, "cwd")))
        title = self._get(item, "title")
        learn(
            state,
            out,
            model=text_or_none(self._get(item, "model"), 200),
            title=title_of(title) if isinstance(title, str) else None,
        )
        stated = self._get(item, "role")
        role = self._roles.get(stated) if isinstance(stated, str) else None
        key = record_key(state["session"], self._get(item, "id"), offset)
        content = self._get(item, "content")
        if role in ("user", "assistant"):
            read_blocks(state, out, role, key, content, at=at)
        elif role == "tool":
            kept, dropped = keep_output(flat_text(content))
            if kept.strip():
                out.append(Message(key, "tool", kept, at=at, truncated_bytes=dropped))
        elif stated is not None:
            out.append(unknown_type(stated, offset))


def _text(mapping: Mapping[str, Any], name: str, default: str | None) -> str:
    value = mapping.get(name, default)
    if not isinstance(value, str) or (default is None and not value):
        raise ValueError(f"a custom source needs {name!r} as text")
    return value
