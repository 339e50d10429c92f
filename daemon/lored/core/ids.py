"""Names of things on the wire: `F3`, `C4`, `conflict:7`, `L12`, `B5`, and their qualified forms.

A number is unique within one scope only, so a name may carry the scope (`global:F3`,
`workspace:F3`) and the kind (`fact:F3`), in either order. Uids are 32 hex digits, unique
everywhere. Pure: knows spellings, not stores.
"""

import re
from dataclasses import dataclass
from typing import Final, Literal

from lore.errors import Invalid

Scope = Literal["global", "workspace"]
Kind = Literal["fact", "cluster", "conflict", "log", "batch"]

NUMBER_MAX: Final = (1 << 53) - 1
"""Numbers travel as integers in some clients; beyond this they would not be exact."""

_LETTER: Final = {"fact": "F", "cluster": "C", "conflict": "", "log": "L", "batch": "B"}
_PREFIXES: Final = {
    "fact": ("fact", "ep"),
    "cluster": ("cluster", "concept"),
    "conflict": ("conflict",),
    "log": ("log",),
    "batch": ("batch",),
}
_EXAMPLE: Final = {
    "fact": "F3, fact:F3, global:F3, workspace:F3 or a uid",
    "cluster": "C4, cluster:C4 or global:C4",
    "conflict": "conflict:7 or global:conflict:7",
    "log": "L12 or global:L12",
    "batch": "B5 or global:B5",
}
_UID: Final = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Ref:
    """A parsed name: its kind, the scope it was qualified with, and number or uid."""

    kind: Kind
    number: int | None
    uid: str | None = None
    scope: Scope | None = None

    def __str__(self) -> str:
        return self.uid or spell(self.kind, self.number or 0, self.scope)


def spell(kind: Kind, number: int, scope: Scope | None = None) -> str:
    """The name of a thing: `F3`, `conflict:7`; with ``scope`` qualified."""
    bare = f"conflict:{number}" if kind == "conflict" else f"{_LETTER[kind]}{number}"
    return f"{scope}:{bare}" if scope else bare


def fact(number: int, scope: Scope | None = None) -> str:
    """`F3` or `global:F3`."""
    return spell("fact", number, scope)


def parse(text: str, kind: Kind) -> Ref:
    """Read a name of ``kind`` in any accepted spelling; `F007` is 7.

    Raises `Invalid` that shows what is accepted.
    """
    parts = text.strip().split(":")
    scope: Scope | None = None
    rest = [part.strip() for part in parts]
    while len(rest) > 1:
        head = rest[0].lower()
        if head == "global" and scope is None:
            scope = "global"
        elif head == "workspace" and scope is None:
            scope = "workspace"
        elif head not in _PREFIXES[kind]:
            raise _refused(text, kind)
        rest = rest[1:]
    last = rest[0]
    if kind == "fact" and _UID.fullmatch(last.lower()):
        return Ref(kind, None, last.lower(), scope)
    letter = _LETTER[kind]
    digits = last[1:] if letter and last[:1].upper() == letter else last
    if not (digits.isascii() and digits.isdigit()) or int(digits) > NUMBER_MAX:
        raise _refused(text, kind)
    return Ref(kind, int(digits), None, scope)


def fact_number(text: str) -> int | None:
    """The number of a plain `F<n>` as Recursive's files write it, None for anything else."""
    if text[:1] == "F" and text[1:].isascii() and text[1:].isdigit() and len(text) < 17:
        return int(text[1:])
    return None


def make_uid(at: int, random: bytes) -> str:
    """A uid from an instant (microseconds) and ten random bytes: later ones sort later, so that
    an index over them grows at its end (the layout of UUID version 7, without its marks)."""
    milliseconds = max(0, at // 1000) & ((1 << 48) - 1)
    return f"{milliseconds:012x}{random[:10].hex()}"


def _refused(text: str, kind: Kind) -> Invalid:
    return Invalid(f"{text!r} is not the id of a {kind}: use {_EXAMPLE[kind]}")
