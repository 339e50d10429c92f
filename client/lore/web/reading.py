"""How values read on a page: the template environment and its filters. Pure.

Stored text is data. Every value that a template prints passes `shown`, so control characters,
direction marks and invisible tag characters stand there as visible escapes, and is then
escaped for HTML by Jinja. No filter here makes markup of stored text.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final
from urllib.parse import urlsplit
from zlib import crc32

from jinja2 import Environment, PackageLoader, select_autoescape
from markupsafe import Markup

from lore.cli import times
from lore.cli.render import clean
from lore.cli.views import short_id

Map = dict[str, Any]

HUES: Final = 12
"""Colours for agents in the style sheet."""

_FIRST: Final = (
    *("claude-code", "codex", "recursive", "gemini-cli", "opencode", "cursor"),
    *("copilot-cli", "cline", "qwen-code", "amp", "goose", "antigravity"),
)
"""Agents that many people use together get a colour each; others share by their name."""

LONG_TEXT: Final = 1_600
"""Characters of a message shown before the rest is folded away: about a screen."""

EXCERPT: Final = 600
"""Characters of an excerpt in a list of hits."""

LONG_NOISE: Final = 500
"""The same for what tools answered and agents were given, which people seldom read."""

_INVISIBLE: Final = {
    code: f"\\u{code:04x}" for code in (0x061C, 0x2028, 0x2029, 0xFEFF, *range(0xE0000, 0xE0080))
}
"""What the terminal's rule leaves alone but a page should not hide: an Arabic letter mark, line
separators, a byte order mark, and tag characters, which carry text that only a model sees."""

_AROUND: Final = re.compile(
    r"^Session(?: \d{4}-\d{2}-\d{2})?: | (?:Completed|Failed|Interrupted|In progress)\.$"
)
"""What a summary line says beside the deed: pages show date and state of a session apart."""

_FENCE: Final = re.compile(r"^[ \t]*(?:```|~~~)[^\n]*$", re.MULTILINE)


def shown(value: object) -> object:
    """A value as a template prints it: text cleaned, nothing for None, the rest as it is."""
    if value is None:
        return ""
    if isinstance(value, str) and not isinstance(value, Markup):
        return clean(value.replace("\r\n", "\n")).translate(_INVISIBLE)
    return value


def environment() -> Environment:
    """The templates of this package with their filters."""
    made = Environment(
        loader=PackageLoader("lore.web"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        finalize=shown,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        ago=times.ago,
        day=times.day,
        exact=exact,
        lasting=lambda value: times.seconds(float(value)),
        size=lambda value: times.size(float(value)),
        count=count,
        hue=hue,
        short=short_id,
        link=link,
        tail=tail,
        blocks=blocks,
        marked=marked,
        clipped=clipped,
        folded=folded,
        figure=figure,
        place=place,
        plural=plural,
        label=label,
        clock=clock,
        headline=headline,
        deeds=deeds,
    )
    return made


def exact(instant: str | None) -> str:
    """`Thu 28 May 2026, 05:41:07 CEST`: the tooltip of a relative time."""
    moment = times.local(instant) if instant else None
    return moment.strftime("%a %d %b %Y, %H:%M:%S %Z").strip() if moment else instant or ""


def clock(instant: str | None) -> str:
    """`05:41` in the local zone."""
    moment = times.local(instant) if instant else None
    return moment.strftime("%H:%M") if moment else ""


def count(number: float) -> str:
    """`12,345`."""
    return f"{number:,}"


def plural(number: int, one: str, many: str = "") -> str:
    """`1 session`, `2 sessions`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def label(word: str) -> str:
    """`open_conflicts` as `open conflicts`."""
    return word.replace("_", " ")


def hue(name: str) -> str:
    """The colour class of an agent: the same name, the same colour, for ever."""
    number = _FIRST.index(name) if name in _FIRST else crc32(name.encode())
    return f"hue-{number % HUES}"


def headline(session: Mapping[str, Any]) -> str:
    """What a session was about: its summary line without date and state, else its title."""
    line = _AROUND.sub("", str((session.get("summary") or {}).get("line") or ""))
    return line or str(session.get("title") or "") or "Nothing was said"


def deeds(line: str) -> str:
    """The line of key actions as a sentence: `Edited src/cache.py.`"""
    rest = line.removeprefix("Key actions: ")
    return rest[:1].upper() + rest[1:]


def link(text: str | None) -> str | None:
    """The address when ``text`` is a plain web address, else None: nothing stored becomes a
    link of another kind."""
    if not text or not text.startswith(("https://", "http://")) or text.split() != [text]:
        return None
    try:
        return text if urlsplit(text).hostname else None
    except ValueError:
        return None


def tail(path: str, parts: int = 2) -> str:
    """The last parts of a path: `shop/api`."""
    return "/".join([part for part in path.split("/") if part][-parts:]) or path


def place(fact: Mapping[str, Any]) -> str:
    """Where a fact, cluster or conflict lives, as it stands in addresses: `global` or the
    workspace's id."""
    return str(fact.get("workspace") or fact.get("scope") or "global")


def blocks(text: str) -> list[tuple[str, str]]:
    """A message as (`text` or `code`, part): what stands between fences is code."""
    found: list[tuple[str, str]] = []
    edges = [0, *(edge for hit in _FENCE.finditer(text) for edge in hit.span()), len(text)]
    # Edges alternate: end of a fence line, beginning of the next one.
    parts = [text[low:high] for low, high in list(pairwise(edges))[::2]]
    for number, part in enumerate(parts):
        stripped = part.strip("\n")
        if stripped:
            found.append(("code" if number % 2 else "text", stripped))
    return found


def folded(text: str, role: str = "") -> tuple[str, str]:
    """A long text as what is shown at once and the rest, cut at a line or word."""
    room = LONG_NOISE if role in ("tool", "context") else LONG_TEXT
    if len(text) <= room:
        return text, ""
    cut = max(text.rfind("\n", room // 2, room), 0)
    cut = cut or max(text.rfind(" ", room // 2, room), 0) or room
    return text[:cut], text[cut:]


def clipped(text: str, words: Iterable[str]) -> str:
    """The part of a long text that an excerpt shows: from a little before the first of
    ``words``, with an ellipsis where something is left out."""
    pattern = _any_of(words)
    hit = pattern.search(text) if pattern else None
    begin = max((hit.start() if hit else 0) - EXCERPT // 4, 0)
    if begin:
        begin = max(text.rfind("\n", begin, begin + EXCERPT // 5), begin)
    part = text[begin : begin + EXCERPT].strip()
    return ("… " if begin else "") + part + (" …" if begin + EXCERPT < len(text) else "")


def marked(text: str, words: Iterable[str]) -> list[tuple[bool, str]]:
    """``text`` in parts, each with whether it is one of ``words`` (any case)."""
    pattern = _any_of(words)
    if pattern is None:
        return [(False, text)]
    found, at = [], 0
    for hit in pattern.finditer(text):
        if hit.start() > at:
            found.append((False, text[at : hit.start()]))
        found.append((True, hit[0]))
        at = hit.end()
    if at < len(text):
        found.append((False, text[at:]))
    return found


def _any_of(words: Iterable[str]) -> re.Pattern[str] | None:
    wanted = sorted({word for word in words if word}, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, wanted)), re.IGNORECASE) if wanted else None


def figure(value: object) -> str:
    """A part of a score: `0.123`, or as it is."""
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{label(str(key))} {figure(part)}" for key, part in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(figure(part) for part in value)
    return str(value)
