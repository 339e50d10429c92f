"""Plain Markdown memories (CLAUDE.md, Claude Code's and Codex's memory files) as statements.

One statement per list item (with what is indented under it) and per paragraph. The headings
above it become tags, front matter and code fences that stand alone are left out, since they
are examples and not statements. Nothing is interpreted: the text is kept as written.
"""

import re
from hashlib import blake2b
from typing import Final

from lored.core.facts import DOCUMENT, TEXT_BYTES, Statement
from lored.core.imports.incoming import Harvest, Incoming

_HEADING: Final = re.compile(r"^(#{1,6})\s+(.*?)\s*#*\s*$")
_ITEM: Final = re.compile(r"^(\s{0,3})(?:[-*+]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?(.*)$")
_FENCE: Final = re.compile(r"^\s*(```|~~~)")
_RULE: Final = re.compile(r"^\s*([-*_]\s*){3,}$")
_WORD: Final = re.compile(r"[^\w]+")


def read(data: bytes, path: str) -> Harvest:
    """The statements of one file; ``path`` becomes their `source_ref`."""
    harvest = Harvest("markdown")
    text = data.decode("utf-8", "replace").replace("\r\n", "\n")
    for tags, said in _statements(text):
        if len(said.encode()) > TEXT_BYTES:
            harvest.problems.append(f"a passage of {len(said)} characters is too long for a fact")
            continue
        digest = blake2b(f"{path}\0{said}".encode(), digest_size=12).hexdigest()
        harvest.facts.append(
            Incoming(
                key=digest,
                uid=f"m{digest}",
                statement=Statement(
                    text=said, tags=tags, source=DOCUMENT, source_ref=f"file:{path}"
                ),
            )
        )
    return harvest


def _statements(text: str) -> list[tuple[list[str], str]]:
    found: list[tuple[list[str], str]] = []
    headings: dict[int, str] = {}
    block: list[str] = []

    def close() -> None:
        said = "\n".join(block).strip()
        block.clear()
        if said and not _FENCE.match(said):
            found.append(([headings[level] for level in sorted(headings)], said))

    fenced = ""
    for line in _body(text).split("\n"):
        fence = _FENCE.match(line)
        if fenced or fence:
            block.append(line)
            if fence:
                fenced = "" if fenced else fence[1]
            continue
        heading, item = _HEADING.match(line), _ITEM.match(line)
        if heading or _RULE.match(line):
            close()
            if heading:
                level = len(heading[1])
                headings = {key: value for key, value in headings.items() if key < level}
                tag = _WORD.sub("-", heading[2].lower()).strip("-")
                if tag:
                    headings[level] = tag
        elif item:
            close()
            block.append(item[2])
        elif not line.strip():
            close()
        else:
            block.append(line.strip())
    close()
    return found


def _body(text: str) -> str:
    """Without YAML front matter."""
    if text.startswith("---\n"):
        end = text.find("\n---", 4)
        if end > 0:
            after = text.find("\n", end + 1)
            return text[after + 1 :] if after > 0 else ""
    return text
