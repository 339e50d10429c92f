"""What fits into an agent's prompt: ranking of facts, one-line forms, and a byte budget.

Pure. Everything injected passes through here: text from memory is data, so it becomes one
line without control characters and cannot imitate a heading or another entry.

Form, as Recursive's documents give it: `# Facts` and lines `• [F1] text  [tags: a, b]`;
`# Episodic recall` and two lines a session. Readers of transcripts know our own blocks again
by these first lines (`core/transcripts/own.py`).
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from lored.core.clock import DAY, Micros, parse_instant

FACTS_HEADING: Final = "# Facts"
EPISODES_HEADING: Final = "# Episodic recall"

BYTES_PER_TOKEN: Final = 4
"""Rough size of a token; exact counts depend on the model."""
FACT_BYTES: Final = 320
"""Of one fact's text: several facts are worth more than one told in full."""
TAGS_BYTES: Final = 80
EPISODE_BYTES: Final = 480
"""Of the two lines of a session."""
LEAST_BYTES: Final = 48
"""A text cut shorter than this says nothing."""

HALF_LIFE_DAYS: Final = 30.0
"""Use of a fact counts half after a month."""

_BAD: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u2028\u2029\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]+"
)
"""Control characters, and the invisible ones that hide or reorder text (bidirectional marks,
zero-width characters, tag characters)."""
_ESCAPES: Final = re.compile(
    r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Line:
    """One entry of a block: its lines joined, and what the receipt says of it."""

    text: str
    receipt: dict[str, Any]


def neutral(text: str) -> str:
    """``text`` on one line, terminal sequences and invisible characters removed."""
    return " ".join(_BAD.sub(" ", _ESCAPES.sub("", text)).split())


def fit(text: str, limit: int) -> str:
    """``text`` within ``limit`` bytes of UTF-8, cut at a word where one ends near, then `…`."""
    raw = text.encode("utf-8", "replace")
    if len(raw) <= limit:
        return text
    head = raw[: max(limit - 3, 0)].decode("utf-8", "ignore")
    space = head.rfind(" ")
    if space > len(head) * 2 // 3:
        head = head[:space]
    return head.rstrip(" ,;:.-—") + "…"


def rank(facts: Iterable[dict[str, Any]], now: Micros) -> list[dict[str, Any]]:
    """Facts in wire form, the most useful first, when there is no question to go by: those of
    the workspace before global ones, recently and often used ones, open conflicts (an agent
    must not act on one side unknowing); a fact that may be out of date gives way."""
    return sorted(facts, key=lambda fact: (-worth(fact, now), fact["id"]))


def worth(fact: dict[str, Any], now: Micros) -> float:
    """The score of `rank`, 0 to about 2.5."""
    used = max(
        (at for name in ("last_accessed", "verified_at", "created_at") if (at := _at(fact, name))),
        default=now,
    )
    age = max(now - used, 0) / DAY
    score = math.exp2(-age / HALF_LIFE_DAYS)
    score += min(math.log1p(fact.get("access_count", 0)) / math.log1p(50), 1.0) * 0.5
    score += 0.4 if fact.get("scope") == "workspace" else 0.0
    score += {"decision": 0.2, "preference": 0.2, "assumption": -0.2}.get(fact.get("kind", ""), 0.0)
    score += 0.2 if fact.get("conflicts") else 0.0
    return score - (0.3 if fact.get("unverified") else 0.0)


def fact_line(fact: dict[str, Any], *, ambiguous: bool, limit: int = FACT_BYTES) -> Line:
    """`• [F1] text  [tags: a, b]`, then what a reader must know: an open conflict, that it may
    be out of date, that it came out of a tool, which scope when the id exists in both.

    A text longer than ``limit`` bytes is cut and says how to read the rest.
    """
    whole = neutral(fact["text"])
    text = fit(whole, limit)
    if text != whole:
        text = f"{text} (rest: fact {fact['id']})"
    marks = []
    tags = fit(", ".join(neutral(tag) for tag in fact.get("tags", ())), TAGS_BYTES)
    if tags:
        marks.append(f"[tags: {tags}]")
    if ambiguous:
        marks.append(f"[{fact['scope']}]")
    if fact.get("conflicts"):
        marks.append(f"[disputed: {', '.join(fact['conflicts'][:3])}]")
    if fact.get("unverified"):
        reason = fit(neutral(str(fact["unverified"].get("reason", ""))), 60)
        marks.append(f"[unverified: {reason}]" if reason else "[unverified]")
    if str(fact.get("source", "")).lower().startswith("tool"):
        marks.append("[from tool output]")
    tail = f"  {' '.join(marks)}" if marks else ""
    return Line(
        f"• [{fact['id']}] {text}{tail}",
        {"id": fact["id"], "scope": fact["scope"], "uid": fact.get("uid"), "cut": text != whole},
    )


def episode_line(session: dict[str, Any], line: str, key_actions: str | None) -> Line:
    """The two lines of a session; the second is left out when nothing was done."""
    first = fit(neutral(line), EPISODE_BYTES * 2 // 3)
    second = fit(neutral(key_actions or ""), EPISODE_BYTES - len(first.encode()))
    return Line("\n".join(filter(None, (first, second))), {"id": session["id"]})


def pack(heading: str, lines: Sequence[Line], limit: int) -> tuple[str, list[Line]]:
    """The block of the first lines that fit into ``limit`` bytes with their heading; a line that
    does not fit is passed over for a shorter one. ("", []) when none fits."""
    size = len(heading.encode())
    taken: list[Line] = []
    for line in lines:
        more = 1 + len(line.text.encode())
        if size + more <= limit:
            size += more
            taken.append(line)
    if not taken:
        return "", []
    return "\n".join([heading, *(line.text for line in taken)]), taken


def _at(fact: dict[str, Any], name: str) -> Micros | None:
    return parse_instant(fact.get(name))
