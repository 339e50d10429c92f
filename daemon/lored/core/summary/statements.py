"""What the assistant says at the end of a turn: decisions, findings, next steps.

Works on the assistant's closing text and on compaction summaries, by the words that such
statements begin or are joined with, in the languages that transcripts come in. Takes whole
sentences; invents nothing.
"""

import re
from typing import Final

from lored.core.summary.state import STATEMENT_CHARS, flat

LOOKED_AT: Final = 8_000
A_TURN: Final = 3
"""Most decisions and findings taken from one closing text."""
STEPS_A_TURN: Final = 6

_DECISION: Final = re.compile(
    r"\b(?:decided to|decision:|chose(?:n)? to|opted (?:for|to)|we(?:'ll| will) (?:use|keep"
    r"|go with)"
    r"|root cause|(?<!if )(?<!whether )the (?:issue|problem|bug"
    r"|cause|culprit|reason|failure|error) (?:was|is|were)"
    r"|turned out|turns out|(?:was|is|are|were) caused by|the fix (?:is|was)"
    r"|(?<!not )(?<!n't )(?:fixed|solved) by|confirmed that|found that|discovered"
    r"|key (?:finding|insight|decision)"
    r"|(?:does not|doesn't|cannot|can't) support)\b"
    r"|原因|根因|决定|改用|采用|发现|问题在于|結論|決め|분석 결과|원인",
    re.IGNORECASE,
)
_WEAK: Final = re.compile(
    r"\b(?:because|instead of|note that|important(?:ly)?:|must (?:not )?be)\b|因为|注意|ため、"
    r"|때문",
    re.IGNORECASE,
)
"""Joins a deed with its reason. Taken only from a text that holds no stronger statement, and
only of something that was done: explanations, estimates and excuses have such words too."""
_DEED: Final = re.compile(
    r"^(?:(?:so |then )?(?:i|we)(?:'ve| have)? )?(?:(?:now|also|just|deliberately|only)\s)*"
    r"(?:\w{2,}(?<!ne)ed|kept|made|chose|uses?|using|built|wrote|rewrote|put|set|left|took|went)\b"
    r"|^[^.]{0,60}\b(?:now|is now|are now)\s+[a-z`]|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]",
    re.IGNORECASE,
)
_NO_STATEMENT: Final = re.compile(
    r"^(?:if|should|could|would|when(?:ever)?|maybe|perhaps|possibly|(?:note: )?i (?:did not|didn't"
    r"|could not|couldn't|can't|cannot|can’t|couldn’t|didn’t|was unable|am unable|haven't)"
    r"|one (?:option|limitation)|option \w|summary:|(?:known )?limitations?:)\b",
    re.IGNORECASE,
)
"""Suppositions, offers and what was left undone."""
_SIGNS: Final = (
    "decided", "decision", "chose", "opted", "we'll", "we will", "root cause", "the issue",
    "the problem", "the bug", "the cause", "the culprit", "the reason", "the failure",
    "the error", "turned out", "turns out", "caused by", "the fix", "fixed by", "solved by",
    "confirmed that", "found that", "discovered", "key finding", "key insight", "limitation",
    "trade", "support", "原因", "根因", "决定", "改用", "采用", "发现", "问题在于", "結論",
    "決め", "분석 결과", "원인",
    "because", "instead of", "note that", "important", "must", "因为", "注意", "ため、", "때문",
)  # fmt: skip
"""A sentence without any of these, in lower case, fits neither expression: searching for them
one by one is several times quicker than the expressions."""
_PLAN: Final = re.compile(
    r"^(?:let me|now let me|i'll|i will|i'm going to|let's|now i|first,? i|next,? i|looking at"
    r"|i need to|i should|wait|hmm|we need to)\b",
    re.IGNORECASE,
)
_NEXT_HEAD: Final = re.compile(
    r"^\W*(?:next(?: steps?)?|remaining(?: work| tasks?| steps?| items?)?|still to do|to-?do(?:s)?"
    r"|outstanding(?: todos?| work)?|follow[- ]?ups?|future work|what'?s (?:left|next|remaining)"
    r"|pending(?: tasks?)?|not (?:yet )?done|open (?:items|questions|points)"
    r"|recommended next steps?|suggested next steps?|optional next step|下一步(?:计划|建议|工作)?"
    r"|后续(?:步骤|工作|建议|计划)?|待办(?:事项)?|剩余(?:工作|任务)?|未完成"
    r"|次のステップ|残り(?:の作業|タスク)?|今後の(?:作業|予定)|다음 단계|남은 작업|próximos pasos"
    r"|prochaines étapes|nächste schritte)"
    r"\W{0,4}(?:[:：].*)?\W*$",
    re.IGNORECASE,
)
_NEXT_INLINE: Final = re.compile(
    r"^\W*(?:next(?: steps?)?|remaining|to-?do|still to do|follow[- ]?up|what'?s left|下一步|后续"
    r"|待办|次のステップ|残り|다음 단계)\s*[:：]\s*(\S.{3,})$",
    re.IGNORECASE,
)
_NEXT_SIGNS: Final = (
    "next", "remaining", "to do", "todo", "to-do", "outstanding", "follow", "future work", "what",
    "pending", "done", "open ", "下一步", "后续", "待办", "剩余", "未完成", "次のステップ", "残り",
    "今後の", "다음 단계", "남은 작업", "próximos pasos", "prochaines étapes", "nächste schritte",
)  # fmt: skip
"""A text without any of these, in lower case, has no line that fits the two above."""
_BULLET: Final = re.compile(r"^\s*(?:[-*•‣◦]|\d{1,2}[.)]|\[[ xX]?\])\s+(?:\[[ xX]?\]\s*)?(.+?)\s*$")
_DONE_BOX: Final = re.compile(r"^\s*(?:[-*•]\s+)?(?:\[[xX]\]|✅|✓|☑)")
_HEADING: Final = re.compile(
    r"^\s*(?:#{1,6}\s+.+|\*\*[^*]{2,80}\*\*:?|\d{1,2}\.\s+[A-Z][^.:]{2,60}:?)\s*$"
)
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+(?=[A-Z`*\"'(])|(?<=[。！；])|\n+")
_FENCE: Final = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_MARKS: Final = re.compile(r"\*\*|__|^#{1,6}\s+|^\s*(?:[-*•]|\d{1,2}[.)])\s+")
_SECTION: Final = re.compile(
    r"^\s*(?:#{1,4}\s*"
    r"|\*\*)?(\d)\.\s*(?:\*\*)?([A-Z][\w ,/&-]{3,60}?)(?:\*\*)?\s*:(?:\*\*)?\s*(.*)$",
    re.MULTILINE,
)


def read_decisions(text: str) -> list[str]:
    """Sentences that state a decision, a cause or a finding; at most `A_TURN`, in order."""
    body = _FENCE.sub("\n", text[:LOOKED_AT]) if "```" in text else text[:LOOKED_AT]
    lower = body.lower()
    signs = [sign for sign in _SIGNS if sign in lower]
    if not signs:
        return []
    found: list[str] = []
    weak: list[str] = []
    for raw in _SENTENCE.split(body):
        sentence = _MARKS.sub("", raw).strip()
        if not (8 if not sentence.isascii() else 24) <= len(sentence) <= 600:
            continue
        lower = sentence.lower()
        if not any(sign in lower for sign in signs):
            continue
        if sentence.endswith((":", "：", "?", "？")) or _PLAN.match(sentence):
            continue
        if _NO_STATEMENT.match(sentence):
            continue
        if _DECISION.search(sentence):
            found.append(flat(sentence, STATEMENT_CHARS))
            if len(found) == A_TURN:
                break
        elif not weak and _WEAK.search(sentence) and _DEED.search(sentence):
            weak.append(flat(sentence, STATEMENT_CHARS))
    return found or weak


def read_next_steps(text: str) -> list[str]:
    """Bullets under a heading like `Next steps`, or the rest of a line `Next: ...`."""
    text = text[-LOOKED_AT:]
    lower = text.lower()
    if not any(sign in lower for sign in _NEXT_SIGNS):
        return []
    steps: list[str] = []
    listening = False
    for line in _FENCE.sub("\n", text).split("\n"):
        if not line.strip():
            continue
        inline = _NEXT_INLINE.match(line)
        if inline and not _BULLET.match(line):
            steps.append(_plain(inline[1]))
            listening = True
            continue
        if _NEXT_HEAD.match(_MARKS.sub("", line)) and len(line) < 120:
            listening = True
            continue
        if not listening:
            continue
        bullet = _BULLET.match(line)
        if bullet and not _HEADING.match(line):
            if not _DONE_BOX.match(line):
                steps.append(_plain(bullet[1]))
        elif not line.startswith((" ", "\t")):
            listening = False
    return [step for step in steps if len(step) >= 4][:STEPS_A_TURN]


def read_recap(text: str) -> dict[str, list[str]]:
    """Of a compaction summary in numbered sections: request, findings and next steps.

    The nine sections (request, concepts, files, errors, problem solving, user messages, pending
    tasks, current work, next step) are what Claude Code and Recursive ask their model for.
    """
    marks = list(_SECTION.finditer(text))
    found: dict[str, list[str]] = {"request": [], "facts": [], "next": []}
    for index, mark in enumerate(marks):
        end = marks[index + 1].start() if index + 1 < len(marks) else len(text)
        name = mark[2].lower()
        body = f"{mark[3]}\n{text[mark.end() : end]}"
        if "request" in name and "intent" in name:
            found["request"] = [flat(body.strip().split("\n\n")[0], 600)]
        elif "pending" in name or "next step" in name:
            found["next"] += _items(body, STEPS_A_TURN)
        elif "error" in name or "problem" in name:
            found["facts"] += _items(body, A_TURN)
    return found


def _items(body: str, bound: int) -> list[str]:
    items = [_plain(b[1]) for line in body.split("\n") if (b := _BULLET.match(line))]
    if not items and (first := _plain(body.strip().split("\n")[0])):
        items = [first]
    return [i for i in items if len(i) >= 8 and not _NOTHING.match(i)][:bound]


_NOTHING: Final = re.compile(
    r"^(?:none|n/a|no (?:pending|outstanding|errors|explicit)|nothing)\b", re.IGNORECASE
)


def _plain(text: str) -> str:
    return flat(_MARKS.sub("", text).strip(), STATEMENT_CHARS)
