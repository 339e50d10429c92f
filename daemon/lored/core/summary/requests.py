"""What a person asked for: telling a real request from a greeting, and its headline.

Pure text work, for any language: where words must be known (greetings, "go on"), the lists
hold the common ones of several languages; everything else goes by shape.
"""

import re
from typing import Final

from lored.core.summary.phrases import LOOKING, MAKING
from lored.core.summary.state import cut, flat

HEADLINE_CHARS: Final = 120
LOOKED_AT: Final = 6_000
"""Characters of a prompt that are read: a goal stands at its start."""

_TRIVIAL: Final = frozenset(
    phrase.strip()
    for phrase in """
hi|hello|hey|hey there|hi there|hello there|yo|howdy|good morning|good evening|greetings|sup
thanks|thank you|thx|ty|cheers|thanks a lot|great thanks|ok thanks|perfect thanks
ok|okay|k|yes|y|no|n|nope|sure|yep|yeah|yup|right|correct|exactly|agreed|fine|good|great
perfect|nice|cool|awesome|excellent|lgtm|looks good|sounds good|very good|well done|wow|please
yes please|continue|go on|go ahead|go|proceed|keep going|carry on|next|resume|do it|do that
please do|please continue
yes do it|ok do it|ok go ahead|yes go ahead|yes continue|ok continue
continue please|please proceed|make it so
try again|again|retry|redo|stop|wait|pause|cancel|exit|quit|done|test|testing|ping|help
undo|skip|never mind|nevermind
a|b|c|d|both|all|either|none|first|second|1|2|3|4|option 1|option 2|option a|option b
approve|approved|accept|allow
你好|您好|嗨|哈喽|继续|接着|好|好的|行|可以|是|是的|对|不|不是|谢谢|多谢|开始|确认|同意|没问题|请继续|嗯|完成
再试一次|重试|停|下一步|都可以
こんにちは|はい|いいえ|続けて|続けてください|お願いします|ありがとう|了解|次|もう一度|オーケー|どうぞ
안녕|안녕하세요|네|예|아니요|계속|계속해|계속해줘|고마워|감사합니다|좋아|다음
hola|sí|si|vale|gracias|continúa|sigue|adelante|bonjour|salut|oui|non|merci|continuez|d'accord|vas-y
hallo|ja|nein|danke|weiter|mach weiter|gut|ok danke|olá|sim|não|obrigado|ciao|grazie|avanti|va bene
привет|да|нет|спасибо|продолжай|дальше|хорошо|ладно|давай
""".replace("\n", "|").split("|")
    if phrase.strip()
)
_LEAD: Final = re.compile(
    r"^(?:[A-Za-z0-9][.)]\s+|(?:hi|hello|hey|ok(?:ay)?|alright|right|so|now|well|great|perfect"
    r"|nice|cool|thanks"
    r"|thank you"
    r"|yes|yeah|sure|please|then|next|also|dude|man|actually)\b[\s,.!:—-]+"
    r"|(?:claude|codex|gemini|copilot|cursor)\s*[,!:—-]\s+"
    r"|(?:can|could|would|will) you (?:(?:please|now|also|maybe) )*(?:help (?:me |us )?(?:to )?)?"
    r"|(?:i want|i need|i'd like|i would like|we need|we want|we still need|you need|your task is"
    r"|your job is|the task is|the goal is|i'?m trying|i am trying|we'?re (?:going|trying)"
    r"|we are (?:going|trying)|try)(?: you)? to (?=[a-z])"
    r"|(?:we|you) (?:should|must) |i think we (?:should|need to) "
    r"|let'?s |let us |help(?: me)?(?: to)? |please |in th(?:is|at) \w+,? please "
    r"|go (?:ahead )?and |(?:have|take) a (?:\w+ )?(?=look )|your goal: )",
    re.IGNORECASE,
)
_ZH_LEAD: Final = re.compile(
    r"^(?:你好|您好|请问|请|麻烦|帮我|帮忙|请帮我|现在|好的|那么|接下来|然后)[，,、：:\s]*"
)
_HEADING: Final = re.compile(r"^#{1,4}\s+(.{3,200}?)\s*#*$")
_LABEL: Final = re.compile(
    r"^(?:\*\*)?(?:goal|task|objective|request|issue|title|目标|任务|需求|目標"
    r"|課題)(?:\*\*)?\s*[:：]\s*(?:\*\*)?\s*",
    re.IGNORECASE,
)
_FENCE: Final = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_BLOCK: Final = re.compile(r"<([a-z]\w*[_-][\w-]*)\b[^>]*>.*?(?:</\1>|\Z)", re.DOTALL)
_IMAGE: Final = re.compile(
    r"\[(?:Image|Pasted|File|Screenshot)[^\]\n]{0,200}\]|!\[[^\]\n]*\]\([^)\n]*\)"
    r"|'(?:/[^'\n]+|[A-Z]:\\[^'\n]+)\.(?:png|jpe?g|gif|webp|pdf)'",
    re.IGNORECASE,
)
_SLASH: Final = re.compile(r"^[/$]([a-zA-Z][\w:.-]*)(?:\s+(.*))?$", re.DOTALL)
_BULLET: Final = re.compile(r"^\s*(?:[-*•>]|\d{1,2}[.)])\s+")
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+|(?<=[。！？；])")
_CJK: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_WORD: Final = re.compile(r"[A-Za-z]+")
_EMPHASIS: Final = re.compile(r"(\*\*|__|`)(\S[^*`\n]*?)\1")
_PLAN_FOLLOWS: Final = re.compile(
    r"^(?:please )?(?:implement|execute|carry out|follow|apply) (?:the following|this|the) plan\b"
    r"[^:\n]{0,40}:?\s*#*\s*",
    re.IGNORECASE,
)
_MARKER: Final = re.compile(r"^\s*\[\[ ## \w+ ## \]\]\s*$", re.MULTILINE)
"""Field marks that programs put between the parts of a prompt (DSPy's chat adapter)."""
_TERMINAL: Final = re.compile(
    r"(?:[❯➜»%$] |>>> |PS [A-Z]:\\|[\w.-]+@[\w.-]+[:~ ][^\n]{0,80}[$#%] )"
)
_POLITE: Final = re.compile(r"^(?:\w+[\s,.!]+){0,3}?(?:can|could|would|will) you\b", re.IGNORECASE)
_ASIDE: Final = re.compile(
    r"(?:,\s+(?:(?:and|but|so|because) )?(?=(?:i|we|it|you|that|this|there|they|he|she)(?:'\w+)? )"
    r"|,?\s+(?:and|but) if (?=\w))",
    re.IGNORECASE,
)
"""Where an order passes into talk about it: `go back to main, I did another try and now ...`."""
ORDER_CHARS: Final = 16
"""A shorter order keeps its aside: it says too little alone."""
LINES: Final = 6
SENTENCES: Final = 8
"""Looked at for the sentence that asks; people explain first and ask then."""

_ONLY_PATH: Final = re.compile(r"^[@'\"]?[~./\\\w:-]*[/\\][^\s]*['\"]?$")


def read_request(text: str) -> str | None:
    """The words of a real request, cleaned and on few lines; None for a greeting, an assent, a
    command of the agent's own, or nothing but a picture."""
    words = _words(text)
    return words if words and not is_trivial(words) else None


def is_trivial(words: str) -> bool:
    """Whether ``words`` ask for nothing of their own (`ok`, `继续`, `2`, `/clear`)."""
    plain = words.strip().strip(".!?…,。！？～~ )(:;'\"").lower()
    if len(plain) <= 40 and (not plain or " ".join(plain.replace(",", " ").split()) in _TRIVIAL):
        return True
    return bool(_ONLY_PATH.match(words) and "\n" not in words and not _CJK.search(words))


def headline(text: str) -> str:
    """One line that names the request: its heading, else the sentence that asks for work.

    Of the first sentences the one that begins with a verb of making or mending wins over those
    that ask to read, and those over plain statements; the earlier one at equal rank.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return ""
    plan = next((line for line in lines[1:8] if _HEADING.match(line)), None)
    if plan is not None and _PLAN_FOLLOWS.search(lines[0]):
        lines = [plan]
    elif len(lines) == 1 and (inline := _PLAN_FOLLOWS.search(lines[0])):
        lines = [lines[0][inline.end() :].strip() or lines[0]]
    heading = _HEADING.match(lines[0])
    line = _LABEL.sub("", heading[1]) if heading else _pick(lines[:LINES])
    line = _EMPHASIS.sub(r"\2", line)
    return cut(" ".join(line.split()).rstrip(".。:：,，; "), HEADLINE_CHARS)


def redirection(words: str, limit: int) -> str:
    """A later request on one line: its heading when it has one, else its first words without
    courtesies; more than a headline, since later requests lean on what went before."""
    first = words.lstrip().split("\n", 1)[0]
    if _HEADING.match(first):
        return headline(words)
    plain = flat(_without_lead(words.strip()), limit)
    if plain.endswith("?") and plain.count("?") == 1 and _POLITE.match(words.lstrip()):
        return plain[:-1].rstrip()
    return plain


def _words(text: str) -> str:
    text = text[:LOOKED_AT]
    if "```" in text:
        text = _FENCE.sub(" ", text)
    if "<" in text:
        text = _BLOCK.sub(" ", text)
    if "[" in text or "'" in text:
        text = _IMAGE.sub(" ", text)
    if "[[ ## " in text:
        text = _MARKER.sub("", text)
    text = text.strip()
    if _TERMINAL.match(text):
        return ""  # pasted from a terminal: what a program said
    slash = _SLASH.match(text)
    if slash and "/" not in slash[1]:
        rest = (slash[2] or "").strip()
        return rest if len(rest.split()) >= 3 or len(_CJK.findall(rest)) >= 4 else ""
    if text.startswith("!") and "\n" not in text:
        return ""
    return text


def _pick(lines: list[str]) -> str:
    """The best sentence of the first lines; a short one takes the next along."""
    sentences = [
        sentence.strip()
        for line in lines
        for sentence in _SENTENCE.split(_BULLET.sub("", _LABEL.sub("", line)))
        if sentence.strip()
    ][:SENTENCES]
    best, rank = "", -1
    for sentence in sentences:
        plain = _without_lead(sentence)
        worth = _rank(plain) if not is_trivial(plain) else -1
        if worth > rank:
            best, rank = plain, worth
    if not best:
        return lines[0]
    if rank > 0 and (aside := _ASIDE.search(best, ORDER_CHARS)):
        best = best[: aside.start()]
    if _weight(best) < 15 and rank < 2:
        after = [s for s in sentences[1:3] if not is_trivial(s) and _without_lead(s) != best]
        best = " ".join([best, *after[:1]])
    return best


def _rank(sentence: str) -> int:
    word = _WORD.match(sentence)
    if word and word[0].lower() in MAKING:
        return 2
    return 1 if word and word[0].lower() in LOOKING else 0


def _without_lead(line: str) -> str:
    for _ in range(5):
        shorter = _ZH_LEAD.sub("", _LEAD.sub("", line, count=1), count=1).lstrip()
        if shorter == line or len(shorter) < 6:
            break
        line = shorter
    return line


def _weight(text: str) -> int:
    """Length in Latin characters; an ideograph says about as much as three."""
    return len(text) + 2 * len(_CJK.findall(text))
